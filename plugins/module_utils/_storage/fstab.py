# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

r"""The lines of fstab: the one reader and the one writer of them.

Blanks, tabs and `\` are written as `\040`, `\011` and `\134`, which all readers know. Others are not written: systemd-fstab-generator takes
`\043` for what it says, and makes two lines of its unit of `\012`. All are read, byte by byte, as libmount does; the kernel's mountinfo and
swaps are written in the same way.
"""

from __future__ import annotations

import os
import re
import typing as t
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace

from .filesystems import SWAP

_OCTAL = re.compile(rb"\\([0-3][0-7]{2})")
_SPECIAL = re.compile(r"[ \t\\]")
_BLANKS = re.compile(r"[ \t]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

_FIELDS = ("source", "mount point", "type", "options", "dump", "pass")
_FIELDS_LEFT_OUT = ("defaults", "0", "0")
"""What options, dump and pass are where a line ends before them."""
_FEWEST_FIELDS = 3

_TAG = re.compile(r"""(?P<tag>[A-Za-z]+)=(?P<quote>["']?)(?P<value>.*)(?P=quote)""")
_OF_A_DEVICE = re.compile(r"(UUID|LABEL|PARTUUID|PARTLABEL|ID)=|/dev/")
_FROM_AN_IMAGE = "# of the image: "


def with_escapes(field: str) -> str:
    """Return a field as it is written."""
    return _SPECIAL.sub(lambda letter: f"\\{ord(letter[0]):03o}", field)


def without_escapes(field: str) -> str:
    """Return a field as it is meant; what no file can hold, half of a surrogate pair, as it is."""
    try:
        written = field.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return field
    return _OCTAL.sub(lambda match: bytes([int(match[1], 8)]), written).decode("utf-8", "surrogateescape")


def rows(text: str) -> Iterator[tuple[str, list[str]]]:
    """Give the lines of a table that say something, each with its fields as they are written."""
    for line in text.split("\n"):
        words = [word for word in _BLANKS.split(line.rstrip("\r")) if word]
        if words and not words[0].startswith("#"):
            yield line, words


def plain_source(source: str) -> str:
    """Return a source as it is compared: its tag in capitals, without quotation marks, UUIDs in lower case."""
    named = _TAG.fullmatch(source)
    if named is None:
        return source
    tag, value = named["tag"].upper(), named["value"]
    return f"{tag}={value.lower() if tag in ('UUID', 'PARTUUID') else value}"


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
        """The line as it is written; raises ValueError with the field that cannot be."""
        fields = astuple(self)
        for name, field in zip(_FIELDS, fields):
            if not field:
                raise ValueError(f"the {name} of a line of fstab for {self.path or self.src} is empty")
            if _CONTROL.search(field):
                raise ValueError(
                    f"the {name} of a line of fstab is {field!r}; a field cannot have line breaks and other control characters"
                )
        if self.src.startswith("#"):
            raise ValueError(f"the source of a line of fstab is {self.src!r}; a line that begins with # is a comment")
        return " ".join(with_escapes(field) for field in fields)

    @property
    def is_swap(self) -> bool:
        """Whether the line is a swap space's, which has no mount point."""
        return self.fstype == SWAP

    def below(self, root: str) -> Entry:
        """Return the entry with its mount point below a directory."""
        return replace(self, path=os.path.normpath(f"{root.rstrip('/')}/{self.path.lstrip('/')}"))

    def has_place_of(self, other: Entry) -> bool:
        """Return whether both are for one mount point, or for one swap space."""
        if self.is_swap or other.is_swap:
            return self.is_swap and other.is_swap and plain_source(self.src) == plain_source(other.src)
        return _plain_path(self.path) == _plain_path(other.path)


def read_entry(line: str) -> t.Optional[Entry]:
    """Return what a line says; None for a comment, an empty line and what is none."""
    found = next(rows(line), None)
    if found is None or len(found[1]) < _FEWEST_FIELDS:
        return None
    fields = [without_escapes(field) for field in found[1][: len(_FIELDS)]]
    return Entry(*fields, *_FIELDS_LEFT_OUT[max(0, len(fields) - _FEWEST_FIELDS) :])


def read_entries(text: str) -> list[Entry]:
    """Return what the lines of a table say."""
    return [entry for line, _fields in rows(text) for entry in [read_entry(line)] if entry is not None]


def with_entries(text: str, entries: Iterable[Entry]) -> str:
    """Return the text with these lines: the first line of a mount point that says otherwise is replaced where it is, all else stays.

    Raises ValueError for an entry that cannot be written.
    """
    lines = text.split("\n")[: -1 if text.endswith("\n") or not text else None]
    for entry in entries:
        lines = _with_entry(lines, entry)
    return "".join(f"{line}\n" for line in lines)


def without_devices(text: str, kept: Iterable[str]) -> str:
    """Return the table of an image with the lines of devices put out of action, but for these sources: the image's disks are not here."""
    ours = {plain_source(source) for source in kept}
    entries = ((line, read_entry(line)) for line in text.split("\n"))
    gone = (entry is not None and _OF_A_DEVICE.match(entry.src) and plain_source(entry.src) not in ours for _line, entry in entries)
    return "\n".join(f"{_FROM_AN_IMAGE}{line}" if out else line for line, out in zip(text.split("\n"), gone))


def has_entry(text: str, entry: Entry) -> bool:
    """Return whether a line says so already."""
    return entry in read_entries(text)


def _with_entry(lines: Sequence[str], entry: Entry) -> list[str]:
    there = [read_entry(line) for line in lines]
    if entry in there:
        return list(lines)
    position = next((at for at, known in enumerate(there) if known is not None and known.has_place_of(entry)), len(lines))
    return [*lines[:position], entry.line, *lines[position + 1 :]]


def _plain_path(path: str) -> str:
    return path.rstrip("/") or "/"
