# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fair planner: where everything lies, then how large it is.

`levels` finds the best placement; sizes follow exactly (`sizes`).
"""

from __future__ import annotations

from collections.abc import Mapping

from ....module_utils._data.errors import NoSolution
from ..._common.highs import Undecided
from ..conflict.contradiction import obvious_conflict
from ..conflict.refusal import Why, why
from ..conflict.shortage import Sums, is_divisible
from ..model import Allocation, Hardware, Piece, Schema, SpaceType
from ..place.search import only_placement, tight_placement, without_choice
from ..problem.formulate import formulate
from ..problem.model import Placement, Problem, Sizes, rank
from .last_check import checked
from .levels import Found, Plan, as_plan, best_plan
from .sizes import size_fairly
from .tidy import tidied

_FIRST_ON_DISK = (SpaceType.BIOS_GRUB, SpaceType.ESP)


def allocate_fair(hardware: Hardware, schema: Schema, *, reserve: int = 0, refuse: Why = why) -> Allocation:
    """Return a plan: preferences first, then weighted max-min fair sizes, everything used that anybody can use.

    `reserve` MiB of every disk stay free. A plan that is not proven to be the best says so. Raises NoSolution with the conflict (or
    saying that it is not known whether there is a plan), as `refuse` says it, InputError for kept data that cannot be planned around.
    """
    problem = formulate(hardware, schema, reserve)
    try:
        solved = _solve(problem)
        if solved is None and any(space.is_striped for space in schema.spaces):
            other = formulate(hardware, schema, reserve, heads_first=True)
            solved = _solve(other)
            problem = problem if solved is None else other
    except Undecided:
        message = "the search reached its limits without finding a plan; there may still be one"
        raise NoSolution(
            message, {"short": None, "constraints": [], "remedies": ["allow fewer disks for the spaces that lie on one disk"]}
        ) from None
    if solved is None:
        raise refuse(problem)
    return _allocation(schema, problem, *solved)


def best_levels(problem: Problem) -> Plan | None:
    """Return the plan that `allocate_fair` gives, as plans are compared; None where there is none, or none was found."""
    try:
        solved = _solve(problem)
    except Undecided:
        return None
    return None if solved is None else as_plan(problem, solved[0].placement, solved[1])


def _solve(problem: Problem) -> tuple[Found, Sizes] | None:
    if obvious_conflict(problem):
        return None
    if without_choice(problem):
        only = only_placement(problem)
        sizes = None if only is None else size_fairly(problem, only)
        best = None if only is None or sizes is None else (Found(only), sizes)
    else:
        best = best_plan(problem)
    # Where a minimum cut proves that there is no plan, no program need be asked.
    found = best or (None if is_divisible(problem) and Sums(problem).overflow() else _tight(problem))
    if found is None:
        return None
    tidy = tidied(problem, *found)
    last = checked(problem, *tidy)
    return tidy if last[0] is tidy[0] else tidied(problem, *last)


def _tight(problem: Problem) -> tuple[Found, Sizes] | None:
    """Return a plan of whole minimums, which may fit where rules and fractional sizes find nothing."""
    found = tight_placement(problem)
    if found is None:
        return None
    sizes = size_fairly(problem, found[0])
    return None if sizes is None else (Found(found[0]), sizes)


def _allocation(schema: Schema, problem: Problem, found: Found, sizes: Sizes) -> Allocation:
    pieces = [*_demand_pieces(problem, found.placement, sizes), *_part_pieces(problem, found.placement, sizes)]
    pieces += [
        (area, Piece(boot_partition.space, problem.areas[area].disk, dict(boot_partition.sizes)[area]))
        for boot_partition, areas in zip(problem.boot_partitions, found.placement.boot_partitions)
        for area in areas
    ]
    ordered = sorted(pieces, key=lambda placed: _place_on_disk(schema, problem, placed))
    return Allocation(
        pieces=_in_order(problem, schema, ordered),
        volumes=_volumes(schema, problem, sizes),
        proven=found.proven,
        gap=found.gap,
        open_level=tuple(dict.fromkeys(space for at in found.open_at if (space := problem.demands[at].space) is not None)),
        off_preferred=_off_preferred(problem, found.placement, sizes),
        warnings=problem.warnings,
        striped={
            demand.space: tuple(problem.areas[area].disk for area in areas)
            for demand, areas in zip(problem.demands, found.placement.areas_of_demand)
            if demand.group is not None and demand.space is not None
        },
    )


def _demand_pieces(problem: Problem, placement: Placement, sizes: Sizes) -> list[tuple[int, Piece]]:
    pieces = []
    for at, demand in enumerate(problem.demands):
        if demand.space is None or demand.group is not None:
            continue
        spaces = demand.copies or (demand.space,)
        each = demand.legs // len(spaces)
        for number, area in enumerate(placement.areas_of_demand[at]):
            pieces.append((area, Piece(spaces[number // each], problem.areas[area].disk, sizes.units[at])))
    return pieces


def _part_pieces(problem: Problem, placement: Placement, sizes: Sizes) -> list[tuple[int, Piece]]:
    """Return PVs and parts; the last PV of an area takes what is less than an extent, so that nothing lies idle behind it."""
    merged: dict[tuple[int, int], int] = {}
    last: dict[int, tuple[int, int]] = {}
    extents, heads = {pool.space: pool.extent_size for pool in problem.pools}, dict(problem.heads)
    for demand, areas, units in zip(problem.demands, placement.areas_of_demand, sizes.units):
        if (group := demand.group) is None or not units:
            continue
        for area in areas:
            merged[group, area] = merged.get((group, area), heads.get(group, 0)) + units
            last[area] = (group, extents[group])
    for (position, area), units in sizes.pvs.items():
        pool = problem.pools[position]
        # Sections of one vg share one PV; the heads that this saves stay in it.
        before = merged.get((pool.space, area), heads.get(pool.space, 0))
        merged[pool.space, area] = before + units * pool.extent_size + pool.metadata_size
        if pool.is_group:
            last[area] = (pool.space, pool.extent_size)
    for area, (space, extent_size) in last.items():
        if sizes.left[area] < extent_size:
            merged[space, area] += sizes.left[area]
    return [(area, Piece(space, problem.areas[area].disk, size)) for (space, area), size in merged.items()]


def _place_on_disk(schema: Schema, problem: Problem, placed: tuple[int, Piece]) -> tuple[int, int, int, int]:
    """Order: what firmware reads, then partitions and legs in schema order, PVs last, so that they can grow."""
    area, piece = placed
    kind = schema.spaces[piece.space].type
    group = 0 if kind in _FIRST_ON_DISK else 2 if kind is SpaceType.VOLUME_GROUP else 1
    return piece.disk, problem.areas[area].start, group, piece.space


def _in_order(problem: Problem, schema: Schema, ordered: list[tuple[int, Piece]]) -> tuple[Piece, ...]:
    """Return the pieces with those that are kept and whole disks, from disk to disk and from its start to its end."""
    placed = [((piece.disk, problem.areas[area].start, order), piece) for order, (area, piece) in enumerate(ordered)]
    placed += [((piece.disk, piece.start or 0, -1), piece) for piece in problem.kept]
    placed += [
        ((disk, 0, 0), Piece(position, disk, problem.disk_sizes[disk]))
        for position, space in enumerate(schema.spaces)
        if space.type is SpaceType.DISK
        for disk in space.allowed
    ]
    return tuple(piece for _place, piece in sorted(placed, key=lambda item: item[0]))


def _volumes(schema: Schema, problem: Problem, sizes: Sizes) -> Mapping[int, int]:
    volumes = dict(problem.kept_volumes)
    for demand, steps in zip(problem.demands, sizes.units):
        if demand.space is not None and schema.spaces[demand.space].volume_group is not None:
            size = steps * demand.unit
            volumes[demand.space] = size if demand.group is None or demand.data_in is None else demand.data_in(size)
    return dict(sorted(volumes.items()))


def _off_preferred(problem: Problem, placement: Placement, sizes: Sizes) -> Mapping[int, int]:
    off: dict[int, int] = {}
    for at, demand in enumerate(problem.demands):
        for area in placement.areas_of_demand[at]:
            if demand.preferred and demand.space is not None and rank(demand.preferred, area) == len(demand.preferred):
                off[demand.space] = off.get(demand.space, 0) + sizes.units[at]
    for (position, area), units in sizes.pvs.items():
        pool = problem.pools[position]
        if pool.preferred and rank(pool.preferred, area) == len(pool.preferred):
            off[pool.space] = off.get(pool.space, 0) + units * pool.extent_size
    return dict(sorted(off.items()))
