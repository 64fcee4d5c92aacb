# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a consumer has what a request asks for already: checked on what it has, never by looking for it among all candidates.

The world is cut down to what the consumer has: each inventory is exactly the amount that is held, in one piece or in many. When the
request asks as much of each class as is held altogether, a candidate in that world takes everything, and so equals the allocation. Room,
units and steps are not asked again: an inventory may have shrunk since, and a consumer keeps what it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from ..._common.libraries import np, npt
from ..request.model import Request
from ..world.model import Allocations, Inventory, Provider, World
from .columns import Column
from .find import Answer, SearchOptions, find_candidates
from .index import Index, build_index


def held_candidate(world: World, held: Allocations, request: Request, budget: int) -> Answer:
    """Return what is held as the one candidate of a request, or none when it is something else; `truncated` when that stays unknown.

    `world` needs only the trees in which something is held, where all of that is shared also those that may share it, and the trees of
    all that these may share: a group that asks for no resources can be satisfied there.
    """
    nothing = Answer([], truncated=False)
    if not held.keys() <= {provider.uuid for provider in world.providers} or _asked(request) != _total(held):
        return nothing
    known = world.known_names()
    index = build_index(World(_cut_down(world.providers, held), {}, known.traits, known.classes))
    return find_candidates(index, replace(request, limit=1, drained=True), SearchOptions(budget=budget), rank=_fewest_options)


def _fewest_options(index: Index, column: Column) -> npt.NDArray[np.float64]:
    """Choose first where there is least to choose from, and among those the largest amount: what is held then shows without a search."""
    options = int((column.own | column.shared).sum())
    return np.full(index.trees, options + 1 / (2 + max((amount for _name, amount in column.amounts), default=0)))


def _asked(request: Request) -> Counter[str]:
    asked: Counter[str] = Counter()
    for group in request.groups:
        for name, amount in group.resources:
            asked[name] += amount
    return asked


def _total(held: Allocations) -> Counter[str]:
    total: Counter[str] = Counter()
    for amounts in held.values():
        total.update(amounts)
    return total


def _cut_down(providers: Iterable[Provider], held: Allocations) -> tuple[Provider, ...]:
    return tuple(
        replace(provider, inventories={name: Inventory(total=amount) for name, amount in held.get(provider.uuid, {}).items()})
        for provider in providers
    )
