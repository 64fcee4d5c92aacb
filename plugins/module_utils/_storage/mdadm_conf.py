# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines of arrays in mdadm.conf: the one reader and the one writer of them. Words are the same in capitals and in small letters.

A line that begins with a blank goes on with the one before (mdadm.conf(5)).
"""

from __future__ import annotations

import itertools
import re
import typing as t
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .fstab import rows

_WORD = re.compile(r"[A-Za-z0-9/_.:+-]+")


@dataclass(frozen=True)
class ArrayLine:
    """A line of an array; `uuid` as mdadm writes it, four groups of eight digits."""

    name: str
    uuid: str
    metadata: str = "1.2"

    @property
    def line(self) -> str:
        """The line as it is written; raises ValueError with the word that cannot be."""
        for what, word in (("name", self.name), ("UUID", self.uuid), ("metadata", self.metadata)):
            if not _WORD.fullmatch(word):
                raise ValueError(f"the {what} of an array is {word!r}, which mdadm.conf has no form for")
        return f"ARRAY {self.name} metadata={self.metadata} UUID={self.uuid}"


def mdadm_uuid(uuid: str) -> str:
    """Return a UUID as mdadm writes it: `11223344-5566-...` is `11223344:55667788:...`."""
    digits = uuid.replace("-", "").replace(":", "").lower()
    return ":".join(digits[start : start + 8] for start in range(0, len(digits), 8))


def read_array(line: str) -> t.Optional[ArrayLine]:
    """Return what a line, with those that go on with it, says of an array (without a UUID: an empty one); None for any other line."""
    words = [word.strip('"') for _line, own in rows(line) for word in _without_comment(own)]
    if len(words) < 2 or words[0].lower() != "array":
        return None
    values = {key.lower(): value for key, _equals, value in (word.partition("=") for word in words[2:])}
    return ArrayLine(words[1], mdadm_uuid(values.get("uuid", "")), values.get("metadata", ""))


def read_arrays(text: str) -> list[ArrayLine]:
    """Return what a file says of arrays."""
    return [array for line in whole_lines(text.split("\n")) for array in [read_array(line)] if array is not None]


def with_arrays(text: str, arrays: Iterable[ArrayLine]) -> str:
    """Return the text with these lines: a line of the same name and another UUID is replaced where it is, all else stays.

    Raises ValueError for an array that cannot be written.
    """
    lines = text.split("\n")[: -1 if text.endswith("\n") or not text else None]
    for array in arrays:
        lines = _with_array(whole_lines(lines), array)
    return "".join(f"{line}\n" for line in lines)


def whole_lines(lines: Iterable[str]) -> list[str]:
    """Return lines with those that go on with them."""
    whole: list[str] = []
    for line in lines:
        if whole and line[:1].isspace() and line.strip():
            whole[-1] += f"\n{line}"
        else:
            whole.append(line)
    return whole


def _without_comment(words: Sequence[str]) -> Iterator[str]:
    return itertools.takewhile(lambda word: not word.startswith("#"), words)


def _with_array(lines: Sequence[str], array: ArrayLine) -> list[str]:
    there = [read_array(line) for line in lines]
    if any(known is not None and known.uuid == array.uuid for known in there):
        return list(lines)
    position = next((at for at, known in enumerate(there) if known is not None and known.name == array.name), len(lines))
    return [*lines[:position], array.line, *lines[position + 1 :]]
