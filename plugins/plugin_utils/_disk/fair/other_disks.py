# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Spaces with parts on every disk (`per_disk`) that share none with others (`apart_from`): they are on all disks but those.

So the others take as few of these disks as they need, those that leave the best plan, and stay there.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ....module_utils._data.errors import NoSolution
from ....module_utils._data.words import listed
from ..existing import is_used
from ..model import Allocation, Hardware, Schema, Space, SpaceType
from ..problem.formulate import canonical_order
from ..problem.kept import find_kept
from .levels import Plan, is_better, is_worth_its_price
from .solve import allocate_fair, best_levels

_MOST_CHOICES = 60


def on_all_other_disks(hardware: Hardware, schema: Schema, reserve: int = 0) -> Schema:
    """Return the schema in which spaces on every disk may use the disks alone that the spaces from which they are apart leave them.

    Raises NoSolution where these have no place, or leave no disk.
    """
    spreading = {space.id for space in schema.spaces if space.per_disk and space.apart_from}
    if not spreading:
        return schema
    named = {name for space in schema.spaces if space.id in spreading for name in space.apart_from} - spreading
    parts = {name: _parts(schema, name) for name in named}
    if len({frozenset(space.apart_from) for space in schema.spaces if space.id in spreading}) == 1:
        best = _on_best_disks(hardware, schema, reserve, spreading, parts)
        if best is not None:
            return best
    # Not all choices of many kinds of disks can be tried: then the others lie where they would by themselves.
    first = None
    for smallest_first in (False, True):
        others = _others(hardware, schema, spreading, parts, smallest_first=smallest_first)
        if not others.spaces:
            return schema
        allocation = allocate_fair(hardware, others, reserve=reserve)
        disks = {name: _disks(others, allocation, own) for name, own in parts.items()}
        settled = _settled(hardware, schema, spreading, parts, disks)
        first = first or settled
        try:
            allocate_fair(hardware, settled, reserve=reserve)
            return settled
        except NoSolution:
            # Where the others lie on disks that the space needs, they may do with smaller ones.
            continue
    return first or schema


def _on_best_disks(
    hardware: Hardware, schema: Schema, reserve: int, spreading: Collection[str], parts: Mapping[str, frozenset[str]]
) -> Schema | None:
    """Return the schema with the others on the disks that leave the best plan, of as few as there is one with; None where none is found."""
    apart = frozenset().union(*parts.values())
    kept = {piece.disk for piece in find_kept(hardware, schema).pieces if schema.spaces[piece.space].id in apart}
    wanted = frozenset().union(*(space.allowed for space in _named(schema, frozenset(spreading))))
    free = frozenset(range(len(hardware.disks))) - _on_drives_of(hardware, wanted)
    best: tuple[int, Schema, Plan] | None = None
    # With a disk its whole drive is lost.
    found = itertools.islice(_choices(hardware, schema, wanted), _MOST_CHOICES)
    choices = dict.fromkeys(_on_drives_of(hardware, chosen) & wanted for chosen in found)
    for chosen in sorted(choices, key=len):
        if best is not None and len(chosen) > best[0]:
            break
        if not (taken := chosen | free | kept):
            continue
        try:
            settled = _settled(hardware, schema, spreading, parts, dict.fromkeys(parts, taken))
        except NoSolution:
            continue
        if all(space.allowed or space.id not in apart for space in settled.spaces):
            plan = best_levels(hardware, settled, reserve)
            if plan is not None and (best is None or is_better(plan, best[2]) or is_worth_its_price(plan, best[2])):
                best = len(chosen), settled, plan
    return None if best is None else best[1]


def _on_drives_of(hardware: Hardware, disks: Collection[int]) -> frozenset[int]:
    """Return all disks on the drives of some."""
    drives = {hardware.drives[disk] for disk in disks}
    return frozenset(disk for disk, drive in enumerate(hardware.drives) if drive in drives)


def _choices(hardware: Hardware, schema: Schema, among: Collection[int]) -> Iterator[frozenset[int]]:
    """Yield which of some disks others may take, few before many; of disks that are alike the first."""
    shared = Counter(hardware.drives)
    kinds: dict[Hashable, list[int]] = {}
    for at in sorted(canonical_order(hardware.disks), key=lambda at: is_used(hardware.disks[at])):
        if at in among:
            disk, drive = hardware.disks[at], hardware.drives[at]
            may_use = tuple((at in space.allowed, *(at in tier for tier in space.preferred_disks)) for space in schema.spaces)
            alike = disk.size, disk.logical_block, disk.existing, is_used(disk), may_use, drive if shared[drive] > 1 else None
            kinds.setdefault(alike, []).append(at)
    for count in range(len(among)):
        for counts in _counts(count, [len(disks) for disks in kinds.values()]):
            yield frozenset(at for many, disks in zip(counts, kinds.values(), strict=True) for at in disks[:many])


def _counts(total: int, most: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield all ways to make a total of numbers that are bounded."""
    if not most:
        yield from [()] if total == 0 else []
        return
    for first in range(min(total, most[0]), -1, -1):
        yield from ((first, *rest) for rest in _counts(total - first, most[1:]))


def _parts(schema: Schema, wish: str) -> frozenset[str]:
    """Return the spaces (ids) that lie where a space does: its copies, and of a vg its volumes and arrays."""
    own = {space.id for space in schema.spaces if space.wish == wish}
    inside = {space.id for space in schema.spaces if space.volume_group in own}
    return frozenset(own | inside | {member for space in schema.spaces if space.id in own for member in space.contains})


def _others(
    hardware: Hardware, schema: Schema, spreading: Iterable[str], parts: Mapping[str, frozenset[str]], *, smallest_first: bool
) -> Schema:
    """Return the schema without the spaces on every disk; what may be on any number of disks takes no more than it must."""
    may_be_cut = {
        name
        for own in parts.values()
        if any(space.type in (SpaceType.VOLUME_GROUP, SpaceType.PARTITIONS) and not space.per_disk for space in _named(schema, own))
        for name in own
    }
    small = [frozenset({at}) for at in sorted(range(len(hardware.disks)), key=lambda at: (hardware.disks[at].size, at))]

    def changed(space: Space) -> Space:
        space = replace(space, apart_from=tuple(name for name in space.apart_from if name not in spreading))
        space = replace(space, together_with=tuple(name for name in space.together_with if name not in spreading))
        space = replace(space, weight=0.0) if space.id in may_be_cut else space
        apart = any(space.id in own for own in parts.values())
        return replace(space, preferred_disks=tuple(small)) if smallest_first and apart and not space.preferred_disks else space

    return replace(schema, spaces=tuple(changed(space) for space in schema.spaces if space.id not in spreading))


def _named(schema: Schema, names: frozenset[str]) -> list[Space]:
    return [space for space in schema.spaces if space.id in names]


def _disks(schema: Schema, allocation: Allocation, names: frozenset[str]) -> frozenset[int]:
    return frozenset(piece.disk for piece in allocation.pieces if schema.spaces[piece.space].id in names)


def _settled(
    hardware: Hardware,
    schema: Schema,
    spreading: Iterable[str],
    parts: Mapping[str, frozenset[str]],
    disks: Mapping[str, frozenset[int]],
) -> Schema:
    spaces = []
    for space in schema.spaces:
        if space.id in spreading:
            taken = {hardware.drives[disk] for name in space.apart_from for disk in disks.get(name, ())}
            allowed = frozenset(disk for disk in space.allowed if hardware.drives[disk] not in taken)
            if not allowed:
                raise _no_disk_left(space)
            spaces.append(replace(space, allowed=allowed))
            continue
        own = [disks[name] for name, members in parts.items() if space.id in members and disks[name]]
        spaces.append(replace(space, allowed=space.allowed & own[0]) if own else space)
    return replace(schema, spaces=tuple(spaces))


def _no_disk_left(space: Space) -> NoSolution:
    others = listed(list(space.apart_from))
    says = f"{space.id} is on every disk but those of {others}, which leave none"
    remedies = [f"restrict {others} to some disks with disks", f"let {space.id} share disks with {others}, without apart_from"]
    return NoSolution(
        f"No plan: {says}", {"short": None, "constraints": [{"name": f"apart:{space.id}", "says": says}], "remedies": remedies}
    )
