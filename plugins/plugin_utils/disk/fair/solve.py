# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fair planner: where everything lies, then how large it is.

What a quick placement (`greedy`) cannot settle, a mixed-integer program does (`search`); sizes follow exactly (`sizing`).
"""

from __future__ import annotations

from collections.abc import Mapping

from ...common.errors import NoSolution
from ...common.highs import Undecided
from ..flat.share import only_divisible, share_out
from ..model import Allocation, Hardware, Piece, Schema, SpaceType
from ..problem.conflict import explain, obvious_conflict
from ..problem.formulate import formulate
from ..problem.model import Placement, Problem, Sizes, rank
from .heuristic import cannot_be_better, distance, highest_level, is_better, level_bounds, quality, quick_placements
from .search import Found, find_placement, find_tight_placement, only_placement, without_placement, worth_searching
from .sizes import size_fairly

_FIRST_ON_DISK = (SpaceType.BIOS_GRUB, SpaceType.ESP)


def allocate_fair(hardware: Hardware, schema: Schema, *, reserve: int = 0, time_limit: float = 4.0) -> Allocation:
    """Return a plan: preferences first, then weighted max-min fair sizes, everything used that anybody can use.

    `reserve` MiB of every disk stay free. `time_limit` (seconds) bounds every search; a plan that is not proven to be the best
    says so. Raises NoSolution with the conflict (or saying that the time was too short to know), InputError for kept data that
    cannot be planned around.
    """
    problem = formulate(hardware, schema, reserve)
    try:
        solved = _solve(problem, time_limit)
    except Undecided:
        message = f"no plan was found within {time_limit:g} s, and it is not proven that there is none"
        raise NoSolution(
            message, {"short": None, "constraints": [], "remedies": ["allow fewer disks for the spaces that lie on one disk"]}
        ) from None
    if solved is None:
        reason = explain(problem, time_limit)
        raise NoSolution(reason.message, reason.data)
    return _allocation(schema, problem, *solved)


def _solve(problem: Problem, time_limit: float) -> tuple[Found, Sizes] | None:
    if obvious_conflict(problem):
        return None
    if only_divisible(problem):
        shared = share_out(problem)
        return None if shared is None else (Found(shared[0]), shared[1])
    best = _best(problem, time_limit)
    if best is not None:
        return best
    # Fractional sizes may fit where whole ones do not; then the whole minimums decide what lies where.
    return _sized(problem, find_tight_placement(problem, time_limit))


def _best(problem: Problem, time_limit: float) -> tuple[Found, Sizes] | None:
    if without_placement(problem):
        return _sized(problem, only_placement(problem))
    bound = highest_level(problem)
    quick = None
    for placement in quick_placements(problem, bound):
        quick = _better(problem, quick, _sized(problem, Found(placement)))
        if quick is not None and cannot_be_better(quality(problem, quick[0].placement, quick[1]), level_bounds(problem, quick[1], bound)):
            return quick
    if quick is not None and not worth_searching(problem):
        return _unproven(problem, quick, bound)
    searched = _sized(problem, find_placement(problem, time_limit))
    best = _better(problem, searched, quick)
    if best is None or searched is None:
        return None if best is None else _unproven(problem, best, bound)
    # What is no worse than a proven best is one, too.
    return Found(best[0].placement, searched[0].proven, searched[0].gap), best[1]


def _better(problem: Problem, first: tuple[Found, Sizes] | None, second: tuple[Found, Sizes] | None) -> tuple[Found, Sizes] | None:
    if first is None or second is None:
        return first or second
    ranks = [quality(problem, found.placement, sizes) for found, sizes in (first, second)]
    return second if is_better(ranks[1], ranks[0]) else first


def _unproven(problem: Problem, plan: tuple[Found, Sizes], bound: float) -> tuple[Found, Sizes]:
    gap = distance(problem, quality(problem, plan[0].placement, plan[1]), level_bounds(problem, plan[1], bound))
    return Found(plan[0].placement, proven=False, gap=gap), plan[1]


def _sized(problem: Problem, found: Found | None) -> tuple[Found, Sizes] | None:
    sizes = size_fairly(problem, found.placement) if found is not None else None
    return None if found is None or sizes is None else (found, sizes)


def _allocation(schema: Schema, problem: Problem, found: Found, sizes: Sizes) -> Allocation:
    pieces = [*_demand_pieces(problem, found.placement, sizes), *_part_pieces(problem, sizes)]
    pieces += [
        (area, Piece(boot_partition.space, problem.areas[area].disk, dict(boot_partition.sizes)[area]))
        for boot_partition, areas in zip(problem.boot_partitions, found.placement.boot_partitions)
        for area in areas
    ]
    ordered = sorted(pieces, key=lambda placed: _place_on_disk(schema, problem, placed))
    return Allocation(
        pieces=_with_kept(problem, ordered),
        volumes=_volumes(schema, problem, sizes),
        volume_disks=_volume_disks(problem, sizes),
        proven=found.proven,
        gap=found.gap,
        off_preferred=_off_preferred(problem, found.placement, sizes),
        warnings=problem.warnings,
    )


def _demand_pieces(problem: Problem, placement: Placement, sizes: Sizes) -> list[tuple[int, Piece]]:
    pieces = []
    for at, demand in enumerate(problem.demands):
        for area in placement.areas_of_demand[at]:
            if demand.space is not None:
                pieces.append((area, Piece(demand.space, problem.areas[area].disk, sizes.units[at])))
    return pieces


def _part_pieces(problem: Problem, sizes: Sizes) -> list[tuple[int, Piece]]:
    """Return PVs and parts; the last PV of an area takes what is less than an extent, so that nothing lies idle beside it."""
    merged: dict[tuple[int, int], int] = {}
    last: dict[int, tuple[int, int]] = {}
    for (position, area), units in sizes.pvs.items():
        pool = problem.pools[position]
        # Sections of one vg share one PV; the heads that this saves stay in it.
        merged[pool.space, area] = merged.get((pool.space, area), 0) + units * pool.extent_size + pool.metadata_size
        if pool.extent_size > 1:
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


def _with_kept(problem: Problem, ordered: list[tuple[int, Piece]]) -> tuple[Piece, ...]:
    placed = [((piece.disk, problem.areas[area].start, order), piece) for order, (area, piece) in enumerate(ordered)]
    placed += [((piece.disk, piece.start or 0, -1), piece) for piece in problem.kept]
    return tuple(piece for _place, piece in sorted(placed, key=lambda item: item[0]))


def _volumes(schema: Schema, problem: Problem, sizes: Sizes) -> Mapping[int, int]:
    volumes = dict(problem.kept_volumes)
    for demand, steps in zip(problem.demands, sizes.units):
        if demand.space is not None and schema.spaces[demand.space].volume_group is not None:
            volumes[demand.space] = steps * demand.unit
    return dict(sorted(volumes.items()))


def _volume_disks(problem: Problem, sizes: Sizes) -> Mapping[int, tuple[int, ...]]:
    """Return the disks of every lv whose vg has sections, narrowest section first: in that order nothing is in the way of another."""
    sections: dict[int, list[int]] = {}
    for position, pool in enumerate(problem.pools):
        sections.setdefault(pool.space, []).append(position)
    several = [position for positions in sections.values() if len(positions) > 1 for position in positions]
    there = {position: sorted({problem.areas[area].disk for pool, area in sizes.pvs if pool == position}) for position in several}
    disks: dict[int, tuple[int, ...]] = {}
    for position in sorted(several, key=lambda at: (len(there[at]), at)):
        for volume in problem.pools[position].volumes:
            space = problem.demands[volume].space
            if space is not None:
                disks[space] = tuple(there[position])
    return disks


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
