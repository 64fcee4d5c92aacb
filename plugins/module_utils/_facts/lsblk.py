# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""lsblk: which columns it knows, and its JSON as rows.

A row is what all readers of block devices return: the device's values by lsblk's column name in lower case
(`log-sec`, `pttype`), as int, bool, str or None, and `parents`, the kernel names of the devices it is built on.
Sizes are bytes; `start` is in sectors of 512 bytes whatever the disk's own sectors are, as in sysfs.
"""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from .._storage.tool_output import as_rows, as_text, read_mapping, reads

Row = dict[str, t.Any]
Rows = dict[str, Row]
"""Rows by kernel name."""

COLUMNS = (
    "FSTYPE",
    "HCTL",
    "KNAME",
    "LABEL",
    "LOG-SEC",
    "MAJ:MIN",
    "MODEL",
    "MOUNTPOINT",
    "MOUNTPOINTS",
    "NAME",
    "OPT-IO",
    "PARTLABEL",
    "PARTN",
    "PARTTYPE",
    "PARTUUID",
    "PATH",
    "PHY-SEC",
    "PKNAME",
    "PTTYPE",
    "PTUUID",
    "REV",
    "RM",
    "RO",
    "ROTA",
    "SERIAL",
    "SIZE",
    "START",
    "SUBSYSTEMS",
    "TRAN",
    "TYPE",
    "UUID",
    "VENDOR",
    "WWN",
    "ZONED",
)
"""What is asked for; an lsblk that does not know one (MOUNTPOINTS came with 2.37, PARTN with 2.39) is not asked for it."""

_NEEDED = frozenset({"KNAME", "TYPE"})
_INTEGERS = frozenset({"log-sec", "opt-io", "partn", "phy-sec", "size", "start"})
_FLAGS = frozenset({"rm", "ro", "rota"})


COLUMNS_COMMAND = ("lsblk", "--list-columns")


def lists_columns_apart(help_text: str) -> bool:
    """Return whether the columns stand no longer in the help, as since 2.40, but come from COLUMNS_COMMAND."""
    return COLUMNS_COMMAND[1] in help_text


def known_columns(help_text: str, listed: str) -> tuple[str, ...]:
    """Return those of COLUMNS that `listed` names, a line each; none when this lsblk is too old to be of use (no JSON, before 2.27)."""
    if "--json" not in help_text:
        return ()
    offered = {line.split()[0] for line in listed.splitlines() if line.startswith(" ") and line.split()}
    known = tuple(column for column in COLUMNS if column in offered)
    return known if _NEEDED.issubset(known) else ()


def list_command(columns: t.Iterable[str]) -> list[str]:
    """Return the command whose output parse_rows reads."""
    return ["lsblk", "--json", "--bytes", "--all", "--output", ",".join(columns)]


@reads("lsblk")
def parse_rows(text: str) -> Rows:
    """Return lsblk's JSON as rows; a device that several others carry (a mirror) is one row with all of them as parents.

    Raises ValueError when the text is not lsblk's JSON.
    """
    devices = read_mapping(text).get("blockdevices")
    if devices is None:
        raise ValueError("no list of blockdevices")
    rows: Rows = {}
    pending: list[tuple[Mapping[str, t.Any], t.Optional[str]]] = [(node, None) for node in reversed(as_rows(devices))]
    while pending:
        node, parent = pending.pop()
        name = as_text(node.get("kname")) or as_text(node.get("name"))
        if not name:
            raise ValueError("a device without a name")
        row = rows.setdefault(name, _row(node))
        for above in (parent, as_text(node.get("pkname"))):
            if above and above not in row["parents"]:
                row["parents"] = (*row["parents"], str(above))
        pending.extend((child, name) for child in reversed(as_rows(node.get("children"))))
    return rows


def _row(node: Mapping[str, t.Any]) -> Row:
    row: Row = {column: _value(column, value) for column, value in node.items() if column not in {"children", "mountpoint", "mountpoints"}}
    found = [*(node.get("mountpoints") or []), node.get("mountpoint")]
    row["mountpoints"] = tuple(dict.fromkeys(place for place in map(as_text, found) if place))
    row["parents"] = ()
    return row


def _value(column: str, value: t.Any) -> t.Any:
    """Return a column's value by its type: before 2.33 lsblk's JSON knew strings only."""
    if value is None or isinstance(value, (list, Mapping)):
        return None
    if column in _INTEGERS:
        return to_integer(value)
    if column in _FLAGS:
        return to_flag(value)
    return str(value).strip() or None


def to_integer(value: t.Any) -> t.Optional[int]:
    """Return the integer that a tool or sysfs wrote, None when it is none."""
    try:
        return int(value)
    except (OverflowError, TypeError, ValueError):
        return None


def to_flag(value: t.Any) -> t.Optional[bool]:
    """Return the truth of `1`, `"1"`, `True` and their opposites, None for anything else."""
    return {"1": True, "true": True, "0": False, "false": False}.get(str(value).strip().lower())
