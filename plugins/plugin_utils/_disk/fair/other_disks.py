# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Spaces with parts on every disk (`per_disk`) that share none with others (`apart_from`): they are on all disks but those.

So the others take as few of these disks as they need, those that leave the best plan, and stay there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ....module_utils._data.errors import NoSolution
from ....module_utils._data.words import listed
from ..conflict.contradiction import obvious_conflict
from ..conflict.refusal import Why, unsaid, why
from ..model import Allocation, Hardware, Schema, Space, SpaceType
from ..place.search import has_no_choice
from ..problem.formulate import formulate
from ..problem.kept import find_kept
from ..problem.model import Problem
from .levels import Plan, is_better, is_worth_its_price
from .solve import allocate_fair, best_levels
from .taken_disks import Bounds, Levels, Spread, Taken, on_drives_of

_MOST_CHOICES = 5000
"""The number of choices of disks that are looked at."""
_FEW_CHOICES = 60
"""Up to this number all are planned; of more, those that may be better than the best so far."""
_MOST_WORK = 2400
"""What plans for choices of disks may cost: each its number of areas times demands, for each demand that grows and has a choice."""
_LEAST_WORK = 40
"""What a plan costs where nothing has a choice, or where there is none."""
_NOTICED = 1.001
_A_LITTLE = 1e-9
"""What preferences may win is no part of a level."""


@dataclass(frozen=True)
class Gap:
    """These spaces (ids) might be larger by this part with other disks."""

    spaces: frozenset[str]
    part: float


@dataclass(frozen=True)
class Settled:
    """A schema in which what is apart has disks of its own; `gap` is None where no other disks are known that may be better."""

    schema: Schema
    gap: Gap | None = None


def on_all_other_disks(hardware: Hardware, schema: Schema, reserve: int = 0, refuse: Why = why) -> Settled:
    """Return the schema in which spaces on every disk may use the disks alone that the spaces from which they are apart leave them.

    Raises NoSolution where these have no place, or leave no disk.
    """
    spread = Spread(hardware, schema, frozenset(space.id for space in schema.spaces if space.per_disk and space.apart_from))
    if not spread.spaces:
        return Settled(schema)
    # What is on every disk, and apart from nothing, has all of its disks.
    on_all = {space.id: space.allowed for space in schema.spaces if space.per_disk and space.id not in spread.spaces}
    schema = _settled(hardware, schema, spread.spaces, {}, on_all)
    spread = replace(spread, schema=schema)
    if not spread.groups:
        return Settled(schema)
    parts = {name: _parts(schema, name) for name in sorted(frozenset().union(*spread.groups.values()))}
    best = _OnBestDisks(spread, parts, reserve).find()
    if best is not None:
        return best
    # Where there is no plan, the others lie where they would by themselves, for the reason to be found.
    first = None
    for smallest_first in (False, True):
        others = _others(hardware, schema, spread.spaces, parts, smallest_first=smallest_first)
        if not others.spaces:
            return Settled(schema)
        allocation = allocate_fair(hardware, others, reserve=reserve, refuse=refuse)
        disks = {name: _disks(others, allocation, own) for name, own in parts.items()}
        settled = _settled(hardware, schema, spread.spaces, parts, disks)
        first = first or settled
        try:
            allocate_fair(hardware, settled, reserve=reserve, refuse=unsaid)
            return Settled(settled, Gap(frozenset(parts) | spread.spaces, 1.0))
        except NoSolution:
            # Where the others lie on disks that the space needs, they may do with smaller ones.
            continue
    return Settled(first or schema)


def left_open(allocation: Allocation, schema: Schema, gap: Gap) -> Allocation:
    """Return a plan that says which spaces might be larger on other disks, and by how much."""
    level = tuple(at for at, space in enumerate(schema.spaces) if space.id in gap.spaces)
    return replace(allocation, proven=False, gap=max(allocation.gap, gap.part), open_level=allocation.open_level or level)


class _OnBestDisks:
    """The search for the disks that others take: as few as there is a plan with, and of these those that leave the best."""

    def __init__(self, spread: Spread, parts: Mapping[str, frozenset[str]], reserve: int) -> None:
        self._spread, self._parts, self._reserve = spread, parts, reserve
        self._members = {own: frozenset().union(*(parts[name] for name in names)) for own, names in spread.groups.items()}
        self._bounds = Bounds(spread, self._members, reserve)
        self._prefers = any(space.preferred_disks for space in spread.schema.spaces)
        kept = find_kept(spread.hardware, spread.schema).pieces
        self._everywhere = frozenset().union(*(_parts(spread.schema, name) for name in spread.spaces))
        every_disk = frozenset(range(len(spread.hardware.disks)))
        # Where what is kept lies, and on disks that no space wants that may not be there.
        self._free = {
            own: every_disk - on_drives_of(spread.hardware, spread.wanted(own))
            | {piece.disk for piece in kept if spread.schema.spaces[piece.space].id in self._members[own]}
            for own in self._members
        }

    def find(self) -> Settled | None:
        """Return the schema with the best choice of disks; None where none is known to have a plan."""
        spaces = frozenset(self._parts) | self._spread.spaces
        # Where a limit ends the search among fewer disks before it has a plan, those may have been enough.
        part = 0.0
        for count in range(len(self._spread.wanted(self._spread.spaces)) + 1):
            choices = [(taken, self._possible(taken)) for taken in itertools.islice(self._spread.choices(count), _MOST_CHOICES)]
            possible = [(taken, levels) for taken, levels in choices if levels is not None]
            if len(possible) > _FEW_CHOICES:
                possible.sort(key=lambda choice: choice[1], reverse=True)
            tried = self._tried(possible)
            part = max(part, tried.open)
            if len(choices) == _MOST_CHOICES:
                part = max(part, _gain(self._bounds.of_any(count, self._free), tried.best[1]) if tried.best else 1.0)
            if tried.best is not None:
                return Settled(tried.best[0], Gap(spaces, part) if part > 0 else None)
        return None

    def _possible(self, taken: Taken) -> Levels | None:
        """Return the levels that a choice leaves at most; None where it leaves too little for minimums."""
        return self._bounds.of({own: disks | self._free[own] for own, disks in taken.items()}, self._lost(taken))

    def _alone(self, taken: Taken) -> Problem:
        """Return the problem of a choice without what is everywhere."""
        apart = {name: taken[own] | self._free[own] for own, names in self._members.items() for name in names}
        spaces = [
            replace(space, allowed=space.allowed & apart[space.id]) if space.id in apart else space
            for space in self._spread.schema.spaces
            if space.id not in self._everywhere
        ]
        return formulate(self._spread.hardware, _alone(self._spread.schema, spaces), self._reserve)

    def _possible_alone(self, alone: Problem, taken: Taken) -> Levels | None:
        """Return the levels that a choice leaves at most where all but what is everywhere has a plan; None where none is found."""
        plan = best_levels(alone)
        return None if plan is None else self._bounds.with_what_is_everywhere(plan.levels[-1], self._lost(taken))

    def _lost(self, taken: Taken) -> Mapping[str, frozenset[int]]:
        """Return the disks that each space on every disk loses."""
        return {
            name: on_drives_of(self._spread.hardware, frozenset().union(*(disks for own, disks in taken.items() if name in own)))
            for name in self._spread.spaces
        }

    def _tried(self, choices: Sequence[tuple[Taken, Levels]]) -> _Tried:
        """Return the best of some choices. Where these are many, only those that may be better than the best so far have a plan made."""
        best: tuple[Schema, Plan] | None = None
        many, left, open_part = len(choices) > _FEW_CHOICES, _MOST_WORK, 0.0
        for taken, levels in choices:
            part = 1.0 if best is None else _gain(levels, best[1])
            if best is not None and part and many and left > 0:
                alone = self._alone(taken)
                left -= _work(alone)
                part = _gain(self._possible_alone(alone, taken) or levels, best[1])
            # A choice may also be better by what lies on preferred disks, of which the levels say nothing.
            part = max(part, _A_LITTLE) if self._prefers else part
            if left <= 0:
                open_part = max(open_part, part)
            elif part > 0 or not many:
                settled = self._settled(taken)
                problem = None if settled is None else formulate(self._spread.hardware, settled, self._reserve)
                if settled is None or problem is None or obvious_conflict(problem):
                    continue
                plan = best_levels(problem)
                left -= max(_LEAST_WORK, 0 if plan is None else _work(problem))
                if plan is not None and (best is None or is_better(plan, best[1]) or is_worth_its_price(plan, best[1])):
                    best = settled, plan
        return _Tried(best, open_part)

    def _settled(self, taken: Taken) -> Schema | None:
        """Return the schema with others on some disks; None where these leave something none."""
        spread, disks = self._spread, {own: chosen | self._free[own] for own, chosen in taken.items()}
        by_name = {name: disks[own] for own, names in spread.groups.items() for name in names}
        if not all(by_name.values()):
            return None
        try:
            settled = _settled(spread.hardware, spread.schema, spread.spaces, self._parts, by_name)
        except NoSolution:
            return None
        apart = frozenset().union(*self._members.values())
        return settled if all(space.allowed or space.id not in apart for space in settled.spaces) else None


@dataclass(frozen=True)
class _Tried:
    """The best of choices that were planned, and by which part the first level that differs might be higher with others."""

    best: tuple[Schema, Plan] | None
    open: float


def _alone(schema: Schema, spaces: Sequence[Space]) -> Schema:
    """Return the schema with some of its spaces alone, and their relations to each other."""
    there = {space.id for space in spaces}
    apart = [tuple(name for name in space.apart_from if name in there) for space in spaces]
    together = [tuple(name for name in space.together_with if name in there) for space in spaces]
    kept = [replace(space, apart_from=one, together_with=other) for space, one, other in zip(spaces, apart, together, strict=True)]
    return replace(schema, spaces=tuple(kept))


def _work(problem: Problem) -> int:
    choosing = [at for at, demand in enumerate(problem.demands) if demand.high != demand.low and not has_no_choice(problem, demand)]
    return len(problem.areas) * len(problem.demands) * len(choosing)


def _gain(possible: Levels, plan: Plan) -> float:
    """Return by which part the first level that differs noticeably is above that of a plan; what is not above has no gain."""
    for own, its in zip(sorted(plan.levels[-1]), possible, strict=False):
        if abs(own - its) > (_NOTICED - 1) * max(own, its):
            return max(0.0, its / own - 1) if own else 1.0
    return 0.0


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
