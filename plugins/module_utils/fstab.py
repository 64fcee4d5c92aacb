# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The text of an fstab, with the lines that it has to have. Pure."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

from .facts.mounts import decode_octal

_FIELDS_LEFT_OUT = ("defaults", "0", "0")
"""What options, dump and pass are where a line ends before them."""

_FEWEST_FIELDS = 3
_SPECIAL = re.compile(r"[\s#\\]")


@dataclass(frozen=True)
class Entry:
    """A line of fstab, its fields as they are meant: escapes are a matter of the file."""

    src: str
    path: str
    fstype: str
    opts: str = "defaults"
    dump: str = "0"
    passno: str = "0"

    @property
    def line(self) -> str:
        """The line as it is written."""
        return " ".join(_SPECIAL.sub(lambda letter: f"\\{ord(letter[0]):03o}", field) for field in astuple(self))


def with_entries(text: str, entries: Iterable[Entry]) -> str:
    """Return the text with these lines: the first line of a mount point that says otherwise is replaced where it is, all else stays."""
    lines = text.splitlines()
    for entry in entries:
        lines = _with_entry(lines, entry)
    return "".join(f"{line}\n" for line in lines)


def has_entry(text: str, entry: Entry) -> bool:
    """Return whether a line says so already."""
    return any(_read(line) == entry for line in text.splitlines())


def _with_entry(lines: Sequence[str], entry: Entry) -> list[str]:
    there = [_read(line) for line in lines]
    if entry in there:
        return list(lines)
    position = next((at for at, known in enumerate(there) if known is not None and known.path == entry.path), len(lines))
    return [*lines[:position], entry.line, *lines[position + 1 :]]


def _read(line: str) -> t.Optional[Entry]:
    """Return what a line says; None for a comment, an empty line and what is none."""
    fields = [decode_octal(field) for field in line.split()[:6]]
    if len(fields) < _FEWEST_FIELDS or fields[0].startswith("#"):
        return None
    return Entry(*fields, *_FIELDS_LEFT_OUT[max(0, len(fields) - _FEWEST_FIELDS) :])
