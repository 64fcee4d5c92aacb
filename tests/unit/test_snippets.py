# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every snippet of every page is run by a test, or stands below `<!-- fragment -->` since it needs something that no test has.

Fragments, too, are what they are shown as, and name modules, options, filters and playbooks that exist: a reader copies them.
"""

from __future__ import annotations

import functools
import json
import pathlib
import re
import textwrap
import typing as t

import jsonschema
import pytest
import yaml
from ansible_collections.bareon.allocator.tests.support.house.documented import documented_options

ROOT = pathlib.Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("roles/*/*.md")])
TESTED = {
    "docs/group_info.md": "plugins/plugin_utils/_group/test_guide.py",
    "docs/groups.md": "test_groups_guide.py",
    "docs/installers.md": "test_installers_guide.py",
    "docs/messages.md": "test_messages.py",
    "docs/provider_candidates.md": "plugins/plugin_utils/_provider/test_guide.py",
}
"""The test of each page that runs all its YAML."""
RUN_AS_WRITTEN = ("docs/tutorials/", "docs/how_to/")
"""Pages whose files and consoles test_tutorials.py runs."""
RUNNABLE = ("yaml", "yml", "json", "console", "sh")
_FENCED = re.compile(r"(?:^ *<!-- (?P<mark>[^\n]*) -->\n)?^ *```(?P<language>\w+)\n(?P<text>.*?)^ *```$", re.DOTALL | re.MULTILINE)
_OURS = "bareon.allocator."


class Snippet(t.NamedTuple):
    """A block of a page; `mark` is the comment right above it."""

    page: str
    mark: str
    language: str
    text: str

    @property
    def is_run(self) -> bool:
        """Whether a test runs it."""
        if self.page.startswith(RUN_AS_WRITTEN):
            return self.language == "console" or self.mark.startswith("file: ")
        return self.page in TESTED and self.language == "yaml"

    def read(self) -> list[t.Any]:
        """Return its documents."""
        return [json.loads(self.text)] if self.language == "json" else list(yaml.safe_load_all(self.text))


SNIPPETS = [
    pytest.param(
        Snippet(str(page.relative_to(ROOT)), found["mark"] or "", found["language"], textwrap.dedent(found["text"])),
        id=f"{page.relative_to(ROOT)}-{number}",
    )
    for page in PAGES
    for number, found in enumerate(_FENCED.finditer(page.read_text(encoding="utf-8")), start=1)
    if found["language"] in RUNNABLE
]


@functools.cache
def options(module: str) -> frozenset[str]:
    """Return the options that a module documents, with those of its fragments."""
    named = documented_options(module)
    return frozenset([*named, *(alias for option in named.values() for alias in option.get("aliases", ()))])


def tasks(value: t.Any) -> t.Iterator[tuple[str, t.Any]]:
    """Give (module, arguments) of each task of ours, however deep it lies."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if str(key).startswith(_OURS):
                yield str(key).removeprefix(_OURS), inner
            else:
                yield from tasks(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from tasks(inner)


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_snippet_is_run_or_is_marked_as_a_fragment(snippet: Snippet) -> None:
    assert snippet.is_run != (snippet.mark == "fragment"), f"{snippet.page}: run it in a test, or mark it:\n{snippet.text}"


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_snippet_is_what_it_is_shown_as(snippet: Snippet) -> None:
    if snippet.language in ("console", "sh"):
        assert snippet.text.strip()
        return
    documents = snippet.read()
    assert documents != [None]
    for module, arguments in tasks(documents):
        if isinstance(arguments, dict):
            assert set(arguments) <= options(module), module
    if documents and all(isinstance(one, list) and isinstance(one[0], dict) and {"id", "type"} <= set(one[0]) for one in documents):
        schema = json.loads((ROOT / "docs" / "schemas" / "dynamic-schema.json").read_text(encoding="utf-8"))
        jsonschema.validate(documents[0], schema)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_on_a_page_exist(page: pathlib.Path) -> None:
    text = page.read_text(encoding="utf-8")
    known = {
        path.stem
        for folder in ("modules", "filter", "inventory", "lookup", "doc_fragments")
        for path in (ROOT / "plugins" / folder).iterdir()
    }
    known |= {path.stem for path in (ROOT / "playbooks").glob("*.yml")} | {path.name for path in (ROOT / "roles").iterdir()}
    assert set(re.findall(r"\bbareon\.allocator\.(\w+)", text)) <= known
    if page.name != "CHANGELOG.md":
        assert [name for name in re.findall(r"\bplaybooks/[\w/]+\.yml", text) if not (ROOT / name).exists()] == []


def test_tests_that_run_pages_name_them() -> None:
    for page, test in TESTED.items():
        assert pathlib.Path(page).name in (ROOT / "tests" / "unit" / test).read_text(encoding="utf-8")
