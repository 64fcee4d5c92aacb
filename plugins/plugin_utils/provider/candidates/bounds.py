# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pigeon-hole bounds: see at once that a tree's columns ask for more than their providers have together.

Without them 9 equal groups on 8 devices would be tried in all 8! orders. A set of columns is looked at with all providers that any of
them can choose, for every distinct set of options (Hall's condition on those sets).
"""

from __future__ import annotations

from collections.abc import Sequence

from .constraints import Choices, Rules
from .levels import Plan, are_isolated


def cannot_hold(plan: Plan, options: Sequence[Choices]) -> bool:
    """Whether some of the columns certainly cannot be satisfied together in a tree with these options."""
    sets = [frozenset(choices) for choices in options]
    distinct = set(sets)
    return any(_lacks_room(plan, sets, union) or _lacks_providers(plan, sets, union) for union in distinct)


def _lacks_room(plan: Plan, sets: Sequence[frozenset[int]], union: frozenset[int]) -> bool:
    """Whether the columns that choose only within `union` ask more of a class than is free there, or more pieces than can be cut.

    Pieces are counted for each size: those of at least that size are at most as many as pieces of exactly that size could be cut.
    """
    for name, levels in plan.contended.items():
        amounts = sorted((amount for level, amount in levels if sets[level] <= union), reverse=True)
        rules: Rules = plan.index.classes[name].rules
        free = [max(0, rules[position][0]) for position in union if position in rules]
        if sum(amounts) > sum(free):
            return True
        if any(count > sum(most // amount for most in free) for count, amount in enumerate(amounts, start=1)):
            return True
    return False


def _lacks_providers(plan: Plan, sets: Sequence[frozenset[int]], union: frozenset[int]) -> bool:
    """Whether more columns that must all differ choose only within `union` than it has providers."""
    if not plan.request.isolated:
        return False
    inside = [plan.columns[level] for level, choices in enumerate(sets) if choices <= union and not plan.columns[level].unsuffixed]
    alone = [column for column in inside if column.group.suffix in plan.request.isolated]
    others = any(not are_isolated(plan.request, column, column) for column in inside)
    return len(alone) + others > len(union)
