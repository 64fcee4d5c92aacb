# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The most important instances that can leave together, where what shared storage keeps for failures lets not all of them go.

    best = most_that_hold(state, offers, reserves, above, most)

Room to restart is not a sum: one instance alone may strand others where two that leave together do not, so neither taking
them one by one nor forbidding single places finds every answer. Combinations are tried instead, the most important first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..cluster.moves import Place
from ..cluster.state import ClusterState
from ..metrics.evacuation_reserve import Reserves, holds
from ..place.assignment import got_worse

MOST_COMBINATIONS = 1000
"""Combinations that are looked at; where there are more, each instance is offered its cheapest places only."""


@dataclass(frozen=True)
class Offer:
    """Places that an instance may take, the cheapest first; `importance` is a whole number above 0."""

    instance: int
    places: tuple[Place, ...]
    importance: int


def most_that_hold(state: ClusterState, offers: Sequence[Offer], reserves: Reserves, above: int, most: int) -> dict[int, Place]:
    """Return the places with the greatest importance in all, more than `above` and at most `most`, that break no limit and hold.

    Among equals those that come first in their instances' offers; empty when there are none, or too many instances to try.
    """
    for chosen in _combinations(_shortened(offers), above, most):
        after = state.copy()
        for instance, place in chosen.items():
            after.place(instance, *place)
        if not got_worse(state, after) and holds(reserves, after, chosen):
            return chosen
    return {}


def _shortened(offers: Sequence[Offer]) -> list[Offer]:
    """Return the offers with so few places that all combinations can be tried; nothing when even one each is too much."""
    each = max((len(offer.places) for offer in offers), default=0)
    while each and math.prod(1 + min(len(offer.places), each) for offer in offers) > MOST_COMBINATIONS:
        each -= 1
    return [Offer(offer.instance, offer.places[:each], offer.importance) for offer in offers] if each else []


def _combinations(offers: Sequence[Offer], above: int, most: int) -> Iterator[dict[int, Place]]:
    """Yield choices of a place, or none, for each offer, the most important first."""
    found = []
    for choice in itertools.product(*([*range(len(offer.places)), None] for offer in offers)):
        taken = [(offer, position) for offer, position in zip(offers, choice) if position is not None]
        importance = sum(offer.importance for offer, _position in taken)
        if above < importance <= most:
            found.append((-importance, sum(position for _offer, position in taken), taken))
    for _importance, _cost, taken in sorted(found, key=lambda one: one[:2]):
        yield {offer.instance: offer.places[position] for offer, position in taken}
