# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write what the search chose, positions, as candidates, UUIDs and names. This is half the time of an unlimited search."""

from __future__ import annotations

import typing as t
from collections.abc import Callable

from ..request.model import UNSUFFIXED
from .levels import Levels
from .search import Choice


class Candidate(t.TypedDict):
    """One way to satisfy a request.

    `allocations` is {provider UUID: {class: amount}}, `mappings` {suffix: [provider UUIDs]}; `score` is the mean share in use, from 0 to 1,
    of what the candidate takes from, once it has taken it.
    """

    allocations: dict[str, dict[str, int]]
    mappings: dict[str, list[str]]
    score: float


def candidate_writer(levels: Levels) -> Callable[[Choice], Candidate]:
    """Return what writes the choices of a search's levels."""
    return _merging_writer(levels) if levels.contended or levels.splits else _plain_writer(levels)


def choice_loads(levels: Levels, choice: Choice) -> dict[tuple[int, str], int]:
    """Return what a choice takes, by position and class."""
    positions, parts = choice
    loads: dict[tuple[int, str], int] = {}
    for column, position in zip(levels.columns, positions, strict=True):
        for name, amount in column.amounts:
            loads[position, name] = loads.get((position, name), 0) + amount
    for column, filling in zip(levels.splits, parts, strict=True):
        name = column.amounts[0][0]
        for position, part in filling:
            loads[position, name] = loads.get((position, name), 0) + part
    return loads


def _plain_writer(levels: Levels) -> Callable[[Choice], Candidate]:
    """For searches in which no class is asked of a provider twice."""
    uuids, classes = levels.index.uuids, levels.index.classes
    columns = [(dict(column.amounts), [(classes[name].loads, amount) for name, amount in column.amounts]) for column in levels.columns]
    granular = [(column.group.suffix, level) for level, column in enumerate(levels.columns) if not column.unsuffixed]
    unsuffixed = [level for level, column in enumerate(levels.columns) if column.unsuffixed]
    count = sum(len(column.amounts) for column in levels.columns)

    def write(choice: Choice) -> Candidate:
        positions = choice[0]
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


def _merging_writer(levels: Levels) -> Callable[[Choice], Candidate]:
    """For all searches: amounts of the same class and provider are added up."""
    uuids = levels.index.uuids
    loads_of_class = {name: table.loads for name, table in levels.index.classes.items()}

    def write(choice: Choice) -> Candidate:
        positions, parts = choice
        allocations: dict[str, dict[str, int]] = {}
        shares = 0.0
        loads = choice_loads(levels, choice)
        for (position, name), amount in loads.items():
            allocations.setdefault(uuids[position], {})[name] = amount
            used, capacity = loads_of_class[name][position]
            shares += (used + amount) / capacity
        mappings: dict[str, list[str]] = {}
        for column, position in zip(levels.columns, positions, strict=True):
            mappings.setdefault(column.group.suffix, []).append(uuids[position])
        for filling in parts:
            mappings.setdefault(UNSUFFIXED, []).extend(uuids[position] for position, _part in filling)
        if UNSUFFIXED in mappings:
            mappings[UNSUFFIXED] = sorted(set(mappings[UNSUFFIXED]))
        return {"allocations": allocations, "mappings": mappings, "score": shares / len(loads)}

    return write
