# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks on which a profile puts nothing, and the override that would use them.

The author of a schema for a machine knows which disks it leaves; the author of a profile never saw the machine.
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
_Source = tuple[str, Sequence[Mapping[str, t.Any]]]
_Group = tuple[tuple[int, ...], Plain | None]

_LEAST = 1024
"""MiB of the smallest disk that gets an override: on smaller ones no useful file system fits."""
_ON_EACH: Mapping[str, t.Any] = {"type": "partition", "per_disk": True}
_WIDEST_ARRAY = 16
"""On more disks than this a third one fails while the second is built up again."""
_BELOW = "/srv/"
_DECISIVE = ("type", "transport", "size", "logical_block", "removable", "read_only")
"""All that groups, overrides and `dataDisks` ask of the facts of disks, but for their names."""
_WORD = re.compile(r"[a-z][a-z0-9_]*")


class IdleDisks:
    """Finds the disks on which plans from one schema put nothing, on machine after machine; of those alike it asks once."""

    def __init__(self, schema: t.Any, remark: str) -> None:
        """`schema` is what plans are made from, `remark` what its profile says of such disks."""
        self._schema, self._remark = schema, remark
        self._known: dict[str, list[_Group]] = {}

    def of(self, hardware: Hardware, disks: Sequence[Mapping[str, t.Any]]) -> list[Plain]:
        """Return the disks of a plan that nothing lies on, those that are alike together, as plain data; `disks` are those of the plan.

        Each has `disk_ids`, `size` (MiB of the smallest), `remark` and `override`, a space that takes them all; None for tiny ones.
        """
        used = {disk["disk_id"] for disk in disks if disk["spaces"]}
        positions = [at for at, disk in enumerate(hardware.disks) if disk.id not in used]
        if not positions:
            return []
        likeness = repr((positions, [[(key, disk.facts[key]) for key in _DECISIVE if key in disk.facts] for disk in hardware.disks]))
        if likeness not in self._known:
            self._known[likeness] = _groups(hardware, positions, self._schema)
        return [self._plain(hardware, *group) for group in self._known[likeness]]

    def _plain(self, hardware: Hardware, group: Sequence[int], override: Plain | None) -> Plain:
        ids = [hardware.disks[at].id for at in group]
        # What no expression selects is named, which differs from machine to machine.
        named = None if override is None else {**override, "disks": override["disks"] or sorted(ids)}
        return {"disk_ids": ids, "size": min(hardware.disks[at].size for at in group), "remark": self._remark, "override": named}


def _groups(hardware: Hardware, positions: Sequence[int], schema: Sequence[Mapping[str, t.Any]]) -> list[_Group]:
    """Return groups of idle disks (positions), each with its override."""
    taken = {str(space.get("id")).strip() for space in schema} | {str(space.get("mount")).removeprefix(_BELOW) for space in schema}
    sources = _sources([disk.facts for disk in hardware.disks])
    found: list[_Group] = []
    for group in groups_of_alike(hardware.disks, positions):
        alone = len({hardware.drives[at] for at in group}) == len(group)
        override = _override(sources, [hardware.disks[at] for at in group], taken, alone=alone)
        taken |= {override["id"]} if override else set()
        found.append((group, override))
    return found


def _override(sources: Sequence[_Source], disks: Sequence[Disk], taken: Collection[str], *, alone: bool) -> Plain | None:
    """Return the space for some disks, `alone` on their drives or not; `disks` are None where only names distinguish them from others."""
    if min(disk.size for disk in disks) < _LEAST:
        return None
    name = next(name for name in _names() if name not in taken)
    selected = _selection(sources, disks)
    return {"id": name, **(_shape(disks) if alone else _ON_EACH), "disks": selected, "mount": f"{_BELOW}{name}", "fs_type": "xfs"}


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
    return dict(_ON_EACH)


def _sources(everything: Sequence[Mapping[str, t.Any]]) -> list[_Source]:
    """Return what an expression may begin with, and the disks that it gives."""
    return [("$.disks.dataDisks()", data_disks(everything)), ("$.disks", everything)]


def _selection(sources: Sequence[_Source], disks: Sequence[Disk]) -> str | None:
    """Return the shortest expression that gives exactly these disks; None where there is none."""
    ids = {disk.id for disk in disks}
    for source, tests in _selections(sources, disks):
        # Tests stand for the expression here, as to evaluate it costs some hundred times as much.
        if {disk["id"] for disk in source[1] if all(test.holds(disk) for test in tests)} == ids:
            which = f".where({' and '.join(test.text for test in tests)})" if tests else ""
            return f"yaql={source[0]}{which}"
    return None


class _Test(t.NamedTuple):
    """What a disk is asked in an expression, and what that means."""

    text: str
    holds: Callable[[Mapping[str, t.Any]], bool]


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
