# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks on which a profile puts nothing, and the override that would use them.

Who wrote a schema for a machine knows which disks it leaves; the author of a profile never saw the machine.
"""

from __future__ import annotations

import functools
import re
import typing as t
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from .model import Disk, Hardware
from .schema.alike import groups_of_alike
from .schema.functions import data_disks

Plain = dict[str, t.Any]

_LEAST = 1024
"""Smaller disks are told of without an override: no file system of use fits."""
_WIDEST_ARRAY = 16
"""On more disks than this a third one fails while the second is built up again."""
_BELOW = "/srv/"
_WORD = re.compile(r"[a-z][a-z0-9_]*")


def idle_disks(hardware: Hardware, disks: Sequence[Mapping[str, t.Any]], schema: Sequence[Mapping[str, t.Any]], remark: str) -> list[Plain]:
    """Return the disks of a plan that nothing lies on, those that are alike together, as plain data.

    `disks` are those of the plan, `schema` is what it was made from, `remark` what the profile says of such disks. Each has
    `disk_ids`, `size` (MiB of the smallest), `remark` and `override`, a space that takes them all; None for tiny ones.
    """
    used = {disk["disk_id"] for disk in disks if disk["spaces"]}
    positions = [at for at, disk in enumerate(hardware.disks) if disk.id not in used]
    taken = {str(space.get("id")).strip() for space in schema} | {str(space.get("mount")).removeprefix(_BELOW) for space in schema}
    found = []
    for group in groups_of_alike(hardware.disks, positions):
        members = [hardware.disks[at] for at in group]
        override = _override(hardware, members, taken)
        taken |= {override["id"]} if override else set()
        size = min(disk.size for disk in members)
        found.append({"disk_ids": [disk.id for disk in members], "size": size, "remark": remark, "override": override})
    return found


def _override(hardware: Hardware, disks: Sequence[Disk], taken: Collection[str]) -> Plain | None:
    if min(disk.size for disk in disks) < _LEAST:
        return None
    name = next(name for name in _names() if name not in taken)
    selected = _selection(hardware, disks)
    return {"id": name, **_shape(disks), "disks": selected, "mount": f"{_BELOW}{name}", "fs_type": "xfs"}


def _names() -> Iterator[str]:
    yield from ("data", "more")
    number = 2
    while True:
        yield f"more{number}"
        number += 1


def _shape(disks: Sequence[Disk]) -> Plain:
    """Return what to make of disks that are alike: mirrors of SSDs, parity over some hard disks, and file systems on many."""
    count = len(disks)
    if count == 1:
        return {"type": "partition"}
    if count <= 3:
        return {"type": "raid", "level": "raid1", "spares": count - 2}
    if disks[0].type != "hdd":
        return {"type": "raid", "level": "raid10", "legs": count - count % 2, "spares": count % 2}
    if count <= _WIDEST_ARRAY:
        return {"type": "raid", "level": "raid6", "legs": "all"}
    return {"type": "partition", "per_disk": True}


def _selection(hardware: Hardware, disks: Sequence[Disk]) -> t.Any:
    """Return the shortest expression that gives exactly these disks, else their ids."""
    ids = {disk.id for disk in disks}
    everything = [disk.facts for disk in hardware.disks]
    try:
        sources = [("$.disks.dataDisks()", data_disks(everything)), ("$.disks", everything)]
    except KeyError:
        sources = [("$.disks", everything)]
    for source, tests in _selections(sources, disks):
        # What the expression means is looked at here, as to evaluate it costs some hundred times as much.
        if {disk["id"] for disk in source[1] if all(test.holds(disk) for test in tests)} == ids:
            which = f".where({' and '.join(test.text for test in tests)})" if tests else ""
            return f"yaql={source[0]}{which}"
    return sorted(ids)


class _Test(t.NamedTuple):
    """What a disk is asked in an expression, and what that means."""

    text: str
    holds: Callable[[Mapping[str, t.Any]], bool]


_Source = tuple[str, Sequence[Mapping[str, t.Any]]]


def _selections(sources: Sequence[_Source], disks: Sequence[Disk]) -> Iterator[tuple[_Source, list[_Test]]]:
    facts, block = disks[0].facts, disks[0].logical_block
    words = {key: value for key in ("type", "transport") if _WORD.fullmatch(value := str(facts.get(key) or ""))}
    tests = [_Test(f"$.get({key}) = {word}", functools.partial(_has, key, word)) for key, word in words.items()]
    low, high = min(disk.size for disk in disks), max(disk.size for disk in disks)
    says = f"$.size = {low}" if low == high else f"$.size >= {low} and $.size <= {high}"
    size = _Test(says, lambda disk: bool(low <= disk["size"] <= high))
    blocks = _Test(f"$.get(logical_block) = {block}", functools.partial(_has, "logical_block", block))
    for source in sources[:-1]:
        yield source, []
    for some in (*([test] for test in tests), tests, [*tests, size], [*tests, size, blocks]):
        for source in sources if some else ():
            yield source, some


def _has(key: str, value: t.Any, disk: Mapping[str, t.Any]) -> bool:
    return bool(disk.get(key) == value)
