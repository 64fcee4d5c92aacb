# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pieces of the same size as one: a program need not find out again and again that they can change places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..._common.libraries import np, npt
from ..problem.model import Kind, Placement, Problem
from ..problem.program import DiskProgram, follows, placement_of


@dataclass(frozen=True)
class Merged:
    """A problem in which the first of every group has the legs of all, the others none."""

    problem: Problem
    groups: tuple[tuple[int, ...], ...]


def merge(problem: Problem, narrowed: Problem, units: Sequence[int]) -> Merged:
    """Return `narrowed` with whole demands as one that have the same size and may lie on the same areas of `problem`."""
    if not problem.has_own_drives:
        return Merged(narrowed, ())
    boots = {at for boot in problem.boot_partitions for at in boot.demands}
    related = {at for relation in problem.relations for at in (*relation.one.demands, *relation.other.demands)}
    alike: dict[object, list[int]] = {}
    for at, demand in enumerate(problem.demands):
        if demand.kind is not Kind.VOLUME and not follows(demand) and at not in boots | related and demand.areas:
            small = demand.low if demand.preferred else 0
            alike.setdefault((units[at], demand.legs, demand.areas, demand.preferred, demand.growth_order, small), []).append(at)
    demands = list(narrowed.demands)
    groups = [tuple(members) for members in alike.values() if len(members) > 1]
    for members in groups:
        # Of disks that are alike the last has the most to try.
        widest = narrowed.demands[members[-1]]
        demands[members[0]] = replace(widest, legs=widest.legs * len(members))
        for at in members[1:]:
            demands[at] = replace(widest, areas=(), legs=0)
    return Merged(replace(narrowed, demands=tuple(demands)), tuple(groups))


def loosen(model: DiskProgram, merged: Merged) -> None:
    """Let as many pieces of a group lie on an area as it has members."""
    for members in merged.groups:
        for area in merged.problem.demands[members[0]].areas:
            model.program.upper[model.disk_choice[members[0], area]] = float(len(members))


def placement_apart(problem: Problem, merged: Merged, model: DiskProgram, values: npt.NDArray[np.float64]) -> Placement:
    """Return the placement of a solution with the pieces of every group dealt out: no two legs of one member on one area."""
    placement = placement_of(problem, model, values)
    areas_of_demand = list(placement.areas_of_demand)
    for members in merged.groups:
        own = merged.problem.demands[members[0]].areas
        pieces = [area for area in own for _piece in range(round(values[model.disk_choice[members[0], area]]))]
        # An area has at most as many as there are members, so that every so-many-th piece lies on another.
        for number, at in enumerate(members):
            areas_of_demand[at] = tuple(pieces[number :: len(members)])
    return replace(placement, areas_of_demand=tuple(areas_of_demand))
