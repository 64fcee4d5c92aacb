# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Words that nearly always hide a noun of the field are rare in the code, and on the pages that users read.

A sentence is subject, verb, object, in the field's nouns: "adds up the allocations again", not "adds all of it up anew". Where a limit is
reached, write the noun: what the kernel shows, the disk's contents, the layout's lines, a claim that needs the room.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.house.imports import PLUGINS, ROOT

MOST = {
    "told": (2, 1),
    "of it": (13, 7),
    "who": (8, 10),
    "besides?": (5, 7),
    "so many": (5, 1),
    "looked at": (3, 1),
    "is of": (4, 2),
    "mended": (1, 1),
    "anew": (1, 2),
    "whoever": (2, 2),
    "whom": (2, 4),
    "what is there": (4, 1),
    "the one that": (7, 9),
    "tells?": (6, 6),
}
"""By word the highest numbers in the code of `plugins`, and on pages, in roles, playbooks and fragments of the changelog."""
MOST_IN_PLUGINS, MOST_ON_PAGES = 63, 54
FIELD = re.compile(r"--no-tell-kernel")
"""Words of the field that contain one of these: an option of sfdisk."""


def code() -> Iterator[Path]:
    """Yield the files of code that users and their hosts run."""
    yield from sorted(PLUGINS.rglob("*.py"))


def pages() -> Iterator[Path]:
    """Yield the files of text that people read outside of the code."""
    yield from (ROOT / "README.md", ROOT / "CONTRIBUTING.md")
    for folder in ("docs", "roles", "playbooks", "changelogs/fragments"):
        yield from (file for file in sorted((ROOT / folder).rglob("*")) if file.suffix in {".md", ".rst", ".yml", ".j2"})


@functools.cache
def lines_of(files: Callable[[], Iterable[Path]]) -> tuple[tuple[str, str], ...]:
    """Return (place, line) of all lines of some files."""
    return tuple(
        (f"{file.relative_to(ROOT)}:{number}", line)
        for file in files()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
    )


def times(word: str, line: str) -> int:
    """Return how often a word stands in a line, in letters of either case, and not within another word."""
    return len(re.findall(rf"\b(?:{word})\b", FIELD.sub("", line), re.IGNORECASE))


@pytest.mark.parametrize("word", MOST)
def test_a_word_that_hides_a_noun_is_rare(word: str) -> None:
    for most, files in zip(MOST[word], (code, pages), strict=True):
        found = [place for place, line in lines_of(files) for _time in range(times(word, line))]
        says = f"{word!r} stands in {len(found)} places, of which {most} are allowed; name the thing: {', '.join(found)}"
        assert len(found) <= most, says


def test_the_limits_stay_low() -> None:
    assert sum(in_code for in_code, _on_pages in MOST.values()) <= MOST_IN_PLUGINS
    assert sum(on_pages for _in_code, on_pages in MOST.values()) <= MOST_ON_PAGES


@pytest.mark.parametrize(
    ("line", "expected"), [("It tells what he Tell.", 2), ("foretell, teller, _tells", 0), ("sfdisk --no-tell-kernel", 0)]
)
def test_words_are_counted_as_words_alone(line: str, expected: int) -> None:
    assert times("tells?", line) == expected
