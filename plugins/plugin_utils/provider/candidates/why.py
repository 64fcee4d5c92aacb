# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why there is no candidate, or too few: for each group and constraint how many providers are left, and what would help.

The filters are those of the search (columns.py), counted one after the other; what would help is found by trying (relaxation.py).
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..request.model import UNSUFFIXED, Group, Request
from .columns import Filter, column_amounts, column_filters, request_columns, required_together, root_filters, trees_with
from .find import Manner, find_candidates
from .index import Index, Mask
from .relaxation import largest_free, largest_that_fits, relaxations

TRIAL_BUDGET = 200_000
"""How many choices one trial of a relaxed request looks at, at most."""


def explain(index: Index, request: Request, have: int = 0) -> dict[str, t.Any]:
    """Return why a request has only `have` candidates, as plain data.

    `says` are sentences. `first` names the first constraint that leaves nothing (None when single constraints leave something).
    `roots` and `combination` count trees, `groups` counts providers: {suffix: [{resources, constraints: [{kind, says, left}], trees}]},
    the unsuffixed group with an entry for each class. `relax` lists the single changes that bring more candidates; `largest` the largest
    piece of each class that is free.
    """
    roots = _count_roots(index, request)
    groups = {group.suffix: _count_group(index, request, group) for group in request.groups}
    combination = _count_combination(index, request)
    relax = list(_what_helps(index, request, have))
    largest = [_largest_entry(index, entry) for entry in largest_free(index, request)]
    first = _first_empty(roots, groups, combination)
    return {
        "says": list(_sentences(index, first, relax, largest, have)),
        "first": first,
        "roots": roots,
        "groups": groups,
        "combination": combination,
        "relax": relax,
        "largest": largest,
    }


def resource_steps(index: Index, name: str, amount: int, split: bool) -> Iterator[Filter]:
    """Yield what asking for one amount means, step by step; together they are the search's filter."""
    table = index.classes.get(name)
    if table is None:
        nowhere = np.zeros(index.size, dtype=bool)
        yield Filter("inventory", f"has an inventory of {name}", nowhere, nowhere)
        return
    steps: list[tuple[str, str, Mask]] = [("inventory", f"has an inventory of {name}", np.ones(len(table.positions), dtype=bool))]
    if split:
        steps.append(("room", f"has a piece of {name} free", table.min_unit <= table.most))
    else:
        steps.append(("unit", f"gives {amount} {name} at once (min_unit, max_unit, step_size)", table.allows_piece(amount)))
        steps.append(("room", f"has {amount} {name} free", table.room >= amount))
    for kind, says, rows in steps:
        holds = index.mask(table.positions[rows])
        yield Filter(kind, says, holds, holds)


def _count_roots(index: Index, request: Request) -> dict[str, t.Any]:
    left = np.ones(index.trees, dtype=bool)
    constraints = []
    for kind, says, holds in root_filters(index, request):
        left &= holds
        constraints.append({"kind": kind, "says": says, "left": int(left.sum())})
    return {"trees": index.trees, "constraints": constraints}


def _count_group(index: Index, request: Request, group: Group) -> list[dict[str, t.Any]]:
    return [_count_column(index, group, amounts, split) for amounts, split in column_amounts(group, request.can_split)]


def _count_column(index: Index, group: Group, amounts: tuple[tuple[str, int], ...], split: bool) -> dict[str, t.Any]:
    own, shared = np.ones(index.size, dtype=bool), np.ones(index.size, dtype=bool)
    constraints = []
    for found in _steps(index, group, amounts, split):
        own &= found.own
        shared &= found.shared
        constraints.append({"kind": found.kind, "says": found.says, "left": int((own | shared & _sharing(index)).sum())})
    return {"resources": dict(amounts), "constraints": constraints, "trees": int(trees_with(index, own, shared).sum())}


def _steps(index: Index, group: Group, amounts: tuple[tuple[str, int], ...], split: bool) -> Iterator[Filter]:
    for name, amount in amounts:
        yield from resource_steps(index, name, amount, split)
    yield from (found for found in column_filters(index, group, amounts, split) if found.kind != "resources")


def _sharing(index: Index) -> Mask:
    return index.mask(np.array(sorted(index.sharing), dtype=np.int64))


def _count_combination(index: Index, request: Request) -> list[dict[str, t.Any]]:
    """Count the trees in which one group after the other has a provider, then what the unsuffixed group needs together."""
    left = np.ones(index.trees, dtype=bool)
    for _kind, _says, holds in root_filters(index, request):
        left &= holds
    columns = request_columns(index, request)
    counts = []
    for group in request.groups:
        of_group = [column for column in columns if column.group is group]
        for column in of_group:
            left &= trees_with(index, column.own, column.shared)
        counts.append({"group": group.suffix, "says": f"{_name(group.suffix)} has a provider in the same tree", "left": int(left.sum())})
        if group.suffix == UNSUFFIXED:
            own = np.logical_or.reduce([column.own for column in of_group])
            shared = np.logical_or.reduce([column.shared for column in of_group])
            for choice in required_together(group, of_group):
                has = index.any_trait(choice)
                left &= trees_with(index, own & has, shared & has)
                says = f"one of its providers has trait {' or '.join(sorted(choice))}"
                counts.append({"group": group.suffix, "says": says, "left": int(left.sum())})
    return counts


def _first_empty(roots: dict[str, t.Any], groups: dict[str, t.Any], combination: list[dict[str, t.Any]]) -> dict[str, t.Any] | None:
    """Return the first constraint after which nothing is left, with what was left before it."""
    before = roots["trees"]
    for entry in roots["constraints"]:
        if entry["left"] == 0:
            return {"where": "roots", "says": entry["says"], "before": before}
        before = entry["left"]
    for suffix, columns in groups.items():
        for column in columns:
            before = None
            for entry in column["constraints"]:
                if entry["left"] == 0:
                    return {"where": "group", "group": suffix, "kind": entry["kind"], "says": entry["says"], "before": before}
                before = entry["left"]
    before = None
    for entry in combination:
        if entry["left"] == 0:
            return {"where": "combination", "group": entry["group"], "says": entry["says"], "before": before}
        before = entry["left"]
    return None


def _what_helps(index: Index, request: Request, have: int) -> Iterator[dict[str, str]]:
    """Yield the single changes that bring more than `have` candidates."""

    def fits(relaxed: Request) -> bool:
        answer = find_candidates(index, replace(relaxed, limit=have + 1), Manner(budget=TRIAL_BUDGET))
        return len(answer.candidates) > have

    for relaxation in relaxations(request):
        if fits(relaxation.request):
            yield {"place": relaxation.place, "says": relaxation.says}
    for relaxation in largest_that_fits(index, request, fits):
        yield {"place": relaxation.place, "says": relaxation.says}


def _largest_entry(index: Index, entry: tuple[str, str, int, int, int]) -> dict[str, t.Any]:
    suffix, name, asked, free, position = entry
    provider = index.providers[position]
    return {"group": suffix, "resource_class": name, "asked": asked, "free": free, "provider": provider.uuid, "name": provider.name}


def _sentences(
    index: Index, first: dict[str, t.Any] | None, relax: list[dict[str, str]], largest: list[dict[str, t.Any]], have: int
) -> Iterator[str]:
    if not index.size:
        yield "There are no providers at all."
        return
    if first is not None:
        yield _sentence_of_first(first)
    elif have == 0:
        yield "Some trees have a provider for every group, but not for all together: merged amounts, isolation or same_subtree."
    for entry in largest:
        if entry["free"] < entry["asked"]:
            yield (
                f"{_name(entry['group'])} asks for {entry['asked']} {entry['resource_class']}; the largest piece that is free is "
                f"{entry['free']}, of {entry['name']}."
            )
    if relax:
        changes = "; or ".join(f"{entry['says']} ({entry['place']})" for entry in relax)
        yield f"{'More would fit' if have else 'It would fit'} {changes}."
    elif have == 0:
        yield "No single change would help."


def _sentence_of_first(first: dict[str, t.Any]) -> str:
    if first["where"] == "roots":
        return f"No tree is left after: {first['says']} ({first['before']} before)."
    before = "" if first["before"] is None else f" ({first['before']} before)"
    if first["where"] == "group":
        return f"{_name(first['group'])}: no provider is left after: {first['says']}{before}."
    return f"No tree has a provider for every group; none is left after: {_name(first['group'])}: {first['says']}{before}."


def _name(suffix: str) -> str:
    return f"Group {suffix}" if suffix else "The group without a suffix"
