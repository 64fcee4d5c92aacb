# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Spaces that share no disk with others, or lie on disks of others only, and what follows for them from earlier placements.

A relation is the same whichever of two disks that are alike somebody lies on, so all that is said of disks by their sizes holds with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..model import Piece, Schema
from .model import Area, Demand, Kind, Party, Placement, Pool, Problem, Relation

Places = Mapping[int, Sequence[int]]
"""Areas by position, of those that are placed already."""


def relations_of(
    schema: Schema,
    areas: Sequence[Area],
    demands: Sequence[Demand],
    pools: Sequence[Pool],
    kept: Sequence[Piece],
    drives: Sequence[int] = (),
) -> Iterator[Relation]:
    """Give the relations that a schema asks for; none with a space that is not there, and none that every placement has."""
    wishes = {space.wish: space for space in schema.spaces}
    related = {name: space for name, space in wishes.items() if space.apart_from or space.together_with}
    named = {*related, *(other for space in related.values() for other in (*space.apart_from, *space.together_with))}
    parties = {name: _party(schema, name, demands, pools, kept) for name in wishes if name in named}
    for name, space in related.items():
        for apart, others in ((True, space.apart_from), (False, space.together_with)):
            found = (Relation(name, other, apart, parties[name], parties[other]) for other in others if other in parties)
            yield from (relation for relation in found if not _goes_without_saying(relation, areas, demands, pools, drives))


def _goes_without_saying(
    relation: Relation, areas: Sequence[Area], demands: Sequence[Demand], pools: Sequence[Pool], drives: Sequence[int]
) -> bool:
    """Return whether two have no drive in common that both may use; or whether one is on all disks that the other may use."""

    def disks_of(places: Iterable[int]) -> frozenset[int]:
        return frozenset(areas[area].disk for area in places)

    def may_use(party: Party) -> frozenset[int]:
        own = [demands[at].areas for at in party.demands] + [pools[at].areas for at in party.pools]
        return party.disks.union(*map(disks_of, own))

    if relation.apart:
        one, other = (frozenset(drives[disk] if drives else disk for disk in may_use(party)) for party in (relation.one, relation.other))
        return not one & other
    there = (demands[at] for at in relation.other.demands if demands[at].lo > 0)
    sure = [disks for demand in there if len(disks := disks_of(demand.areas)) == demand.legs]
    return may_use(relation.one) <= relation.other.disks.union(*sure)


def _party(schema: Schema, name: str, demands: Sequence[Demand], pools: Sequence[Pool], kept: Sequence[Piece]) -> Party:
    positions = {at for at, space in enumerate(schema.spaces) if space.wish == name}
    own = frozenset(at for at, pool in enumerate(pools) if pool.space in positions)
    solid = {at for at, demand in enumerate(demands) if demand.space in positions and demand.kind is not Kind.VOLUME}
    solid |= {at for at, demand in enumerate(demands) if demand.group in positions}
    arrays = {array for at in own for array in pools[at].arrays}
    contained = {member for at in positions for member in schema.spaces[at].contains}
    spaces = positions | {at for at, space in enumerate(schema.spaces) if space.id in contained}
    disks = frozenset(piece.disk for piece in kept if piece.space in spaces)
    return Party(frozenset(solid | arrays), frozenset(at for at in own if not pools[at].arrays), disks)


def barred(problem: Problem, demand: int | None, pool: int | None, demands: Places, pools: Places) -> frozenset[int]:
    """Return the disks where a demand or a pool (a position, the other None) may not lie, given what is placed already."""
    everywhere = frozenset(area.disk for area in problem.areas)
    found: frozenset[int] = frozenset()
    for relation in problem.relations:
        for own, other in ((relation.one, relation.other), (relation.other, relation.one)):
            if demand in own.demands or pool in own.pools:
                there = _disks(problem, other, demands, pools)
                if relation.apart:
                    found |= _on_drives_of(problem, there)
                elif own is relation.one and other.demands <= demands.keys():
                    found |= everywhere - there
    return found


def _disks(problem: Problem, party: Party, demands: Places, pools: Places) -> frozenset[int]:
    placed = [demands.get(at, ()) for at in party.demands] + [pools.get(at, ()) for at in party.pools]
    return party.disks | {problem.areas[area].disk for areas in placed for area in areas}


def in_turn(problem: Problem, order: Iterable[int]) -> list[int]:
    """Return demands in an order in which a demand on the disks of others comes after those."""
    following: dict[int, set[int]] = {}
    for relation in problem.relations:
        if not relation.apart:
            for at in relation.one.demands:
                following.setdefault(at, set()).update(relation.other.demands)
    pending, done = list(order), []
    while pending:
        # In a circle somebody has to be first.
        first = next((at for at in pending if not following.get(at, set()) & set(pending) - {at}), pending[0])
        pending.remove(first)
        done.append(first)
    return done


def holds(problem: Problem, placement: Placement) -> bool:
    """Return whether a placement is as its relations have it; what is kept is where it is."""
    demands, pools = dict(enumerate(placement.areas_of_demand)), dict(enumerate(placement.pvs))
    for relation in problem.relations:
        one, other = (_disks(problem, party, demands, pools) for party in (relation.one, relation.other))
        if not relation.apart and one - other - relation.one.disks:
            return False
        if relation.apart and _drives(problem, one) & _drives(problem, other) - (
            _drives(problem, relation.one.disks) & _drives(problem, relation.other.disks)
        ):
            return False
    return True


def _drives(problem: Problem, disks: Iterable[int]) -> frozenset[int]:
    return frozenset(map(problem.drive_of, disks))


def _on_drives_of(problem: Problem, disks: frozenset[int]) -> frozenset[int]:
    """Return all disks on the drives of some."""
    if not problem.drives:
        return disks
    drives = _drives(problem, disks)
    return frozenset(disk for disk, drive in enumerate(problem.drives) if drive in drives)


def widened(problem: Problem, placement: Placement) -> Placement:
    """Return a placement in which pools that have relations, and no other reason to be on few disks, are wherever they may be."""
    demands, pools = dict(enumerate(placement.areas_of_demand)), dict(enumerate(placement.pvs))
    carrying = {at for boot in problem.boot_partitions for at in boot.pools}
    for at in sorted({at for relation in problem.relations for at in (*relation.one.pools, *relation.other.pools)}):
        pool = problem.pools[at]
        if at in carrying or (pool.max_pvs is not None and pool.max_pvs < len(pool.areas)):
            continue
        shut = barred(problem, None, at, demands, pools) | {problem.areas[area].disk for area in pools[at]}
        roomiest: dict[int, int] = {}
        for area in sorted(pool.areas, key=lambda area: (problem.areas[area].size, -area)):
            roomiest[problem.areas[area].disk] = area
        more = [area for disk, area in roomiest.items() if disk not in shut]
        pools[at] = tuple(sorted((*pools[at], *more)))
    return replace(placement, pvs=tuple(tuple(pools[at]) for at in range(len(problem.pools))))
