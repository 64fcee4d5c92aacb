# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How good a placement can be for how much data: the plans at different prices of data, those left out that another one beats.

kept = not_beaten(choices)
plan = preferred(plan, kept)        # a search may find at one price what is better, at another price, in everything
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .group import GroupPlan

PRICES = (0.0, 0.004, 0.0125, 0.04, 0.125, 0.4, 1.25, 4.0)
"""Points of the score for a TiB copied."""


@dataclass(frozen=True)
class Choice:
    """A plan and the price of data that led to it."""

    price: float
    plan: GroupPlan

    @property
    def merits(self) -> tuple[float, int, int]:
        """Return score, MiB copied and moves: each the better the less."""
        return self.plan.score_after, self.plan.data, len(self.plan.plan.moves)


def not_beaten(choices: Sequence[Choice]) -> list[Choice]:
    """Return the plans that no other one beats in score, data and moves alike, the best score first."""
    kept: list[Choice] = []
    for choice in sorted(choices, key=lambda one: one.merits):
        if not any(_beats(other, choice) for other in kept):
            kept.append(choice)
    return kept


def preferred(plan: GroupPlan, kept: Sequence[Choice]) -> GroupPlan:
    """Return a plan or, where it is not among those that are not beaten, the best of those that beat it in everything."""
    own = Choice(0.0, plan)
    beating = [choice.plan for choice in kept if choice.plan is not plan and _beats(choice, own)]
    return plan if any(choice.plan is plan for choice in kept) or not beating else beating[0]


def _beats(one: Choice, other: Choice) -> bool:
    """Return whether one is at least as good in everything."""
    return all(mine <= theirs for mine, theirs in zip(one.merits, other.merits))
