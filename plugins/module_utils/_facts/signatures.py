# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written on block devices: wipefs for every signature, sfdisk for partition tables, blkid for what lies where there is no node."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .._storage.tool_output import as_rows, as_text, read_mapping, reads
from .lsblk import to_integer
from .udev import decode

SECTOR = 512
"""Bytes of a sector as the kernel and libblkid count, whatever the disk's own sectors are."""

_OFFSET = re.compile(r"(0x)?[0-9a-fA-F]{1,16}")
_NO_TABLE = "does not contain a recognized partition table"


@dataclass(frozen=True)
class Signature:
    """A signature: its type as libblkid names it (`ext4`, `LVM2_member`, `gpt`), and where its magic bytes lie, in bytes."""

    type: str
    uuid: t.Optional[str] = None
    label: t.Optional[str] = None
    offsets: tuple[int, ...] = ()


@dataclass(frozen=True)
class TablePartition:
    """A partition as the table on the disk has it, or the kernel where the table cannot be read; bytes. `attrs` is sfdisk's text."""

    number: int
    start: int
    size: int
    type: t.Optional[str]
    name: t.Optional[str] = None
    uuid: t.Optional[str] = None
    attrs: t.Optional[str] = None


@dataclass(frozen=True)
class Table:
    """A partition table: `gpt`, `dos`, or another name of libfdisk's.

    `sector` is its unit in bytes, `first_lba` the first of its sectors that a partition may have, `slots` how many entries a GPT has
    room for; None where sfdisk does not say.
    """

    type: str
    uuid: t.Optional[str] = None
    partitions: tuple[TablePartition, ...] = ()
    sector: t.Optional[int] = field(default=None, compare=False)
    first_lba: t.Optional[int] = field(default=None, compare=False)
    slots: t.Optional[int] = field(default=None, compare=False)


def signatures_command(*devices: str) -> list[str]:
    """Return the command whose output parse_signatures reads; it only lists. Of several devices it does not say which has what."""
    return ["wipefs", "--parsable", *devices]


def several_command(devices: Iterable[str]) -> list[str]:
    """Return the command whose output parse_several reads; a wipefs that cannot choose its columns fails."""
    return ["wipefs", "--parsable", "--output", "DEVICE,OFFSET,UUID,LABEL,TYPE", *devices]


def parse_several(text: str) -> dict[str, tuple[Signature, ...]]:
    """Return by the last part of a device's path what `wipefs` lists; devices with nothing on them are left out."""
    lines: dict[str, list[str]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            device, _comma, rest = line.partition(",")
            lines.setdefault(device, []).append(rest)
    return {device: parse_signatures("\n".join(found)) for device, found in lines.items()}


def parse_signatures(text: str) -> tuple[Signature, ...]:
    """Return what `wipefs --parsable` lists; the copies of one signature (GPT keeps two) are one with several offsets.

    The parsable format is the same in every version, the JSON one came late.
    A comma in a label is not escaped, so fields are taken from both ends.
    """
    found: dict[tuple[str, t.Optional[str], t.Optional[str]], list[int]] = {}
    for line in text.splitlines():
        fields = line.split(",")
        if line.startswith("#") or len(fields) < 4 or not _OFFSET.fullmatch(fields[0]):
            continue
        label = decode(",".join(fields[2:-1])) or None
        found.setdefault((fields[-1], decode(fields[1]) or None, label), []).append(int(fields[0], 16))
    return tuple(Signature(kind, uuid, label, tuple(sorted(offsets))) for (kind, uuid, label), offsets in found.items())


def table_command(device: str) -> list[str]:
    """Return the command whose output parse_table reads."""
    return ["sfdisk", "--json", device]


def has_no_table(message: str) -> bool:
    """Return whether sfdisk's complaint (in the C locale) is only that there is no partition table."""
    return _NO_TABLE in message


@reads("sfdisk")
def parse_table(text: str, logical_block: int) -> Table:
    """Return the table of `sfdisk --json`; `logical_block` is used where an sfdisk before 2.37 does not name its sector size.

    Raises ValueError when the text is no table.
    """
    table = read_mapping(text).get("partitiontable")
    if not isinstance(table, Mapping):
        raise ValueError("no partition table")
    sector = to_integer(table.get("sectorsize")) or logical_block
    entries = (_partition(entry, sector) for entry in as_rows(table.get("partitions")))
    partitions = sorted(entries, key=lambda partition: partition.number)
    first, slots = to_integer(table.get("firstlba")), to_integer(table.get("table-length"))
    return Table(str(as_text(table["label"])), _lower(as_text(table.get("id"))), tuple(partitions), sector, first, slots)


def _partition(entry: Mapping[str, t.Any], sector: int) -> TablePartition:
    return TablePartition(
        number=partition_number(str(as_text(entry["node"]))),
        start=int(entry["start"]) * sector,
        size=int(entry["size"]) * sector,
        type=partition_type(str(as_text(entry["type"]))),
        name=as_text(entry.get("name")) or None,
        uuid=_lower(as_text(entry.get("uuid"))),
        attrs=as_text(entry.get("attrs")) or None,
    )


def partition_number(node: str) -> int:
    """Return the number at the end of a partition's node name."""
    digits = node[len(node.rstrip("0123456789")) :]
    if not digits:
        raise ValueError(f"{node} does not end in a partition number")
    return int(digits)


def partition_type(code: str) -> str:
    """Return a partition type as lsblk writes it: a GUID in lower case, an MBR type as `0x83`."""
    code = code.lower()
    return code if "-" in code or code.startswith("0x") else f"0x{code}"


def probe_command(device: str, offset: t.Optional[int] = None, size: t.Optional[int] = None) -> list[str]:
    """Return the command whose output parse_probe reads; `offset` and `size` (bytes) look at a part of the device."""
    window = [] if offset is None else ["--offset", str(offset), "--size", str(size)]
    return ["blkid", "--probe", "--output", "export", *window, device]


def parse_probe(text: str) -> dict[str, str]:
    """Return the values of `blkid --probe --output export`."""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {name: value.replace("\\", "") for name, value in pairs}


def _lower(text: t.Optional[str]) -> t.Optional[str]:
    return text.lower() if text else None
