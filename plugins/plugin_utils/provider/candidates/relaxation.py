# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which single constraint stands in the way: the request without it, or with a smaller amount, is tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..request.model import Group, Request
from .columns import column_filters
from .index import Index, Mask


@dataclass(frozen=True)
class Relaxation:
    """A request that asks for one thing less; `place` is the argument that changes, `says` how."""

    place: str
    says: str
    request: Request


def relaxations(request: Request) -> Iterator[Relaxation]:
    """Yield the request without each of its constraints, one at a time; amounts stay as they are."""
    for number, group in enumerate(request.groups):
        for place, says, relaxed in _group_relaxations(group):
            groups = (*request.groups[:number], relaxed, *request.groups[number + 1 :])
            yield Relaxation(f"groups.{group.suffix or repr('')}.{place}", says, replace(request, groups=groups))
    for number, subtree in enumerate(request.subtrees):
        names = ", ".join([*subtree.together, *(f"!{suffix}" for suffix in subtree.apart)])
        rest = (*request.subtrees[:number], *request.subtrees[number + 1 :])
        yield Relaxation(f"same_subtree[{number}]", f"without same_subtree {names}", replace(request, subtrees=rest))
    if request.isolated:
        says = f"without isolating {', '.join(sorted(request.isolated))}"
        yield Relaxation("isolate", says, replace(request, isolated=frozenset()))
    yield from _root_relaxations(request)


def largest_that_fits(index: Index, request: Request, fits: Callable[[Request], bool]) -> Iterator[Relaxation]:
    """Yield for each amount that is too large by itself the largest smaller one with which the request fits."""
    for group in request.groups:
        for name, amount in group.resources:
            asking = partial(_asking, request, group, name)
            less = _largest(_smaller_pieces(index, name, amount), amount, _through(asking, fits))
            if less:
                says = f"with {less} {name} instead of {amount}"
                yield Relaxation(f"groups.{group.suffix or repr('')}.resources.{name}", says, asking(less))


def largest_free(index: Index, request: Request) -> Iterator[tuple[str, str, int, int, int]]:
    """Yield (suffix, class, amount asked, largest piece that is free, position of its provider) for each amount.

    Only providers that satisfy all else that the group asks of one provider are looked at, or all of them if there are none.
    """
    for group in request.groups:
        for name, amount in group.resources:
            table = index.classes.get(name)
            if table is None or not len(table.positions):
                continue
            allowed = _else_satisfied(index, group)[table.positions]
            most = np.where(table.most >= table.min_unit, table.most, 0)
            if allowed.any():
                most = np.where(allowed, most, -1)
            row = int(most.argmax())
            yield group.suffix, name, amount, max(0, int(most[row])), int(table.positions[row])


def _else_satisfied(index: Index, group: Group) -> Mask:
    """Where all that a group asks of one provider but the amounts holds."""
    holds = np.ones(index.size, dtype=bool)
    for found in column_filters(index, group, (), split=False):
        holds &= found.own
    return holds


def _group_relaxations(group: Group) -> Iterator[tuple[str, str, Group]]:
    for number, choice in enumerate(group.required):
        rest = (*group.required[:number], *group.required[number + 1 :])
        yield "required", f"without trait {' or '.join(sorted(choice))}", replace(group, required=rest)
    for trait in sorted(group.forbidden):
        yield "forbidden", f"with trait {trait} allowed", replace(group, forbidden=group.forbidden - {trait})
    for number, choice in enumerate(group.member_of):
        rest = (*group.member_of[:number], *group.member_of[number + 1 :])
        yield "member_of", f"outside aggregate {' or '.join(sorted(choice))}", replace(group, member_of=rest)
    for aggregate in sorted(group.not_member_of):
        yield "not_member_of", f"with aggregate {aggregate} allowed", replace(group, not_member_of=group.not_member_of - {aggregate})
    if group.in_tree is not None:
        yield "in_tree", f"outside the tree of {group.in_tree}", replace(group, in_tree=None)


def _root_relaxations(request: Request) -> Iterator[Relaxation]:
    for trait in sorted(request.root_required):
        yield Relaxation(
            "root_required", f"without trait {trait} at the root", replace(request, root_required=request.root_required - {trait})
        )
    for trait in sorted(request.root_forbidden):
        relaxed = replace(request, root_forbidden=request.root_forbidden - {trait})
        yield Relaxation("root_forbidden", f"with trait {trait} allowed at the root", relaxed)
    for number, choice in enumerate(request.root_member_of):
        rest = (*request.root_member_of[:number], *request.root_member_of[number + 1 :])
        yield Relaxation(
            "root_member_of", f"with a root outside aggregate {' or '.join(sorted(choice))}", replace(request, root_member_of=rest)
        )
    for aggregate in sorted(request.root_not_member_of):
        relaxed = replace(request, root_not_member_of=request.root_not_member_of - {aggregate})
        yield Relaxation("root_member_of", f"with a root in aggregate {aggregate} allowed", relaxed)


def _smaller_pieces(index: Index, name: str, amount: int) -> list[int]:
    """Return the largest piece below the amount that each provider can give, ascending and each only once."""
    table = index.classes.get(name)
    if table is None:
        return []
    ceiling = np.minimum(table.most, amount - 1)
    stepped = ceiling // table.step_size * table.step_size
    pieces = np.where(stepped >= table.min_unit, stepped, np.where(table.min_unit <= ceiling, table.min_unit, 0))
    return [piece for piece in np.unique(pieces).tolist() if piece > 0]


def _through(asking: Callable[[int], Request], fits: Callable[[Request], bool]) -> Callable[[int], bool]:
    return lambda less: fits(asking(less))


def _asking(request: Request, group: Group, name: str, less: int) -> Request:
    """Return the request with another amount of one class in one group."""
    resources = tuple((asked, less if asked == name else amount) for asked, amount in group.resources)
    return replace(request, groups=tuple(replace(one, resources=resources) if one is group else one for one in request.groups))


def _largest(pieces: Sequence[int], too_much: int, fits: Callable[[int], bool]) -> int:
    """Return the largest amount that fits, 0 if none does, by bisection: what fits with more fits with less, step sizes aside.

    The pieces that providers can give are tried first, so that step sizes are kept; then what lies between two of them.
    """
    tried = [0, *pieces, too_much]
    low, high = 0, len(tried) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(tried[middle]) else (low, middle)
    least, most = tried[low], tried[high]
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if fits(middle) else (least, middle)
    return least
