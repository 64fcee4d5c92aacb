# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write what the search picked, positions, as candidates, UUIDs and names. This is half the time of an unlimited search."""

from __future__ import annotations

import typing as t
from collections.abc import Callable

from ..request.model import UNSUFFIXED
from .levels import Plan
from .search import Pick


class Candidate(t.TypedDict):
    """One way to satisfy a request.

    `allocations` is {provider UUID: {class: amount}}, `mappings` {suffix: [provider UUIDs]}; `score` is the mean share in use, from 0 to 1,
    of what the candidate takes from, once it has taken it.
    """

    allocations: dict[str, dict[str, int]]
    mappings: dict[str, list[str]]
    score: float


def candidate_writer(plan: Plan) -> Callable[[Pick], Candidate]:
    """Return what writes a plan's picks."""
    return _merging_writer(plan) if plan.contended or plan.splits else _plain_writer(plan)


def pick_loads(plan: Plan, pick: Pick) -> dict[tuple[int, str], int]:
    """Return what a pick takes, by position and class."""
    positions, parts = pick
    loads: dict[tuple[int, str], int] = {}
    for column, position in zip(plan.columns, positions, strict=True):
        for name, amount in column.amounts:
            loads[position, name] = loads.get((position, name), 0) + amount
    for column, filling in zip(plan.splits, parts, strict=True):
        name = column.amounts[0][0]
        for position, part in filling:
            loads[position, name] = loads.get((position, name), 0) + part
    return loads


def _plain_writer(plan: Plan) -> Callable[[Pick], Candidate]:
    """For plans in which no class is asked of a provider twice."""
    uuids, classes = plan.index.uuids, plan.index.classes
    columns = [(dict(column.amounts), [(classes[name].loads, amount) for name, amount in column.amounts]) for column in plan.columns]
    granular = [(column.group.suffix, level) for level, column in enumerate(plan.columns) if not column.unsuffixed]
    unsuffixed = [level for level, column in enumerate(plan.columns) if column.unsuffixed]
    count = sum(len(column.amounts) for column in plan.columns)

    def write(pick: Pick) -> Candidate:
        positions = pick[0]
        allocations: dict[str, dict[str, int]] = {}
        shares = 0.0
        for (amounts, asked), position in zip(columns, positions, strict=True):
            for loads, amount in asked:
                used, capacity = loads[position]
                shares += (used + amount) / capacity
            uuid = uuids[position]
            if uuid in allocations:
                allocations[uuid].update(amounts)
            elif amounts:
                allocations[uuid] = amounts.copy()
        mappings = {suffix: [uuids[positions[level]]] for suffix, level in granular}
        if unsuffixed:
            mappings[UNSUFFIXED] = sorted({uuids[positions[level]] for level in unsuffixed})
        return {"allocations": allocations, "mappings": mappings, "score": shares / count}

    return write


def _merging_writer(plan: Plan) -> Callable[[Pick], Candidate]:
    """For all plans: amounts of the same class and provider are added up."""
    uuids = plan.index.uuids
    loads_of_class = {name: table.loads for name, table in plan.index.classes.items()}

    def write(pick: Pick) -> Candidate:
        positions, parts = pick
        allocations: dict[str, dict[str, int]] = {}
        shares = 0.0
        loads = pick_loads(plan, pick)
        for (position, name), amount in loads.items():
            allocations.setdefault(uuids[position], {})[name] = amount
            used, capacity = loads_of_class[name][position]
            shares += (used + amount) / capacity
        mappings: dict[str, list[str]] = {}
        for column, position in zip(plan.columns, positions, strict=True):
            mappings.setdefault(column.group.suffix, []).append(uuids[position])
        for filling in parts:
            mappings.setdefault(UNSUFFIXED, []).extend(uuids[position] for position, _part in filling)
        if UNSUFFIXED in mappings:
            mappings[UNSUFFIXED] = sorted(set(mappings[UNSUFFIXED]))
        return {"allocations": allocations, "mappings": mappings, "score": shares / len(loads)}

    return write
