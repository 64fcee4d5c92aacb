# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Constraints between the choices of one candidate: each narrows a column's choices by what was chosen before.

The search fixes one column after the other, a level each. A constraint gets the choices that are left at its level, what was chosen at
the levels before, and the options of every level in this tree; it returns the choices that can still become a candidate.
"""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Positions = list[int]
Rules = Mapping[int, tuple[int, int, int]]
"""(most, min_unit, step_size) of a class by position."""


class Constraint(t.Protocol):
    """What every constraint offers."""

    def __call__(self, choices: Positions, chosen: Sequence[int], options: Sequence[Positions]) -> Positions:
        """Return the choices that are left."""


@dataclass(frozen=True, slots=True)
class Isolated:
    """No provider that was chosen at the levels."""

    levels: tuple[int, ...]

    def __call__(self, choices: Positions, chosen: Sequence[int], options: Sequence[Positions]) -> Positions:
        taken = {chosen[level] for level in self.levels}
        return [position for position in choices if position not in taken]


@dataclass(frozen=True, slots=True)
class NotBefore:
    """Interchangeable groups take their providers in the options' order, so that each set of providers is found once.

    It needs the level's whole options, so it must be the first constraint of its level.
    """

    level: int
    strictly: bool

    def __call__(self, choices: Positions, chosen: Sequence[int], options: Sequence[Positions]) -> Positions:
        return choices[choices.index(chosen[self.level]) + self.strictly :]


@dataclass(frozen=True, slots=True)
class LeavesEnough:
    """What is left from a choice on must be enough pieces for this column and the `later` ones that are interchangeable with it.

    It needs the order of the options, so only NotBefore may come before it.
    """

    later: int
    amounts: tuple[tuple[int, Rules], ...]
    once: bool

    def __call__(self, choices: Positions, chosen: Sequence[int], options: Sequence[Positions]) -> Positions:
        pieces = 0
        for place in range(len(choices) - 1, -1, -1):
            pieces += 1 if self.once else min(rules[choices[place]][0] // amount for amount, rules in self.amounts)
            if pieces > self.later:
                return choices[: place + 1]
        return []


@dataclass(frozen=True, slots=True)
class Room:
    """What all columns take of one class from one provider together must be free there, and at most its max_unit."""

    amount: int
    before: tuple[tuple[int, int], ...]
    rules: Rules

    def __call__(self, choices: Positions, chosen: Sequence[int], options: Sequence[Positions]) -> Positions:
        loads = loads_of(self.before, chosen)
        return [position for position in choices if position not in loads or loads[position] + self.amount <= self.rules[position][0]]


@dataclass(frozen=True, slots=True)
class MergedSteps:
    """At the last level of a class: the merged amount of each provider keeps to its min_unit and step_size."""

    amount: int
    before: tuple[tuple[int, int], ...]
    rules: Rules

    def __call__(self, choices: Positions, chosen: Sequence[int], options: Sequence[Positions]) -> Positions:
        loads = loads_of(self.before, chosen)
        broken = {position for position, amount in loads.items() if not keeps_step(amount, self.rules[position])}
        return [
            position
            for position in choices
            if broken <= {position} and keeps_step(loads.get(position, 0) + self.amount, self.rules[position])
        ]


@dataclass(frozen=True, slots=True)
class Together:
    """One of the chosen providers of the levels must be the ancestor of all of them, or be them all (same_subtree, seed 003)."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    ends: Sequence[int]

    def __call__(self, choices: Positions, chosen: Sequence[int], options: Sequence[Positions]) -> Positions:
        if not self.before:
            return choices
        positions = [chosen[level] for level in self.before]
        low, high = min(positions), max(positions)
        ends = self.ends
        if not self.after:
            if high < ends[low]:
                end = ends[low]
                return [position for position in choices if (position < end if position >= low else ends[position] > high)]
            return [position for position in choices if position <= low and high < ends[position]]
        return [position for position in choices if self._may_hold(min(low, position), max(high, position), options)]

    def _may_hold(self, low: int, high: int, options: Sequence[Positions]) -> bool:
        ends = self.ends
        if high < ends[low]:
            return True
        return any(position <= low and high < ends[position] for level in self.after for position in options[level])


@dataclass(frozen=True, slots=True)
class Apart:
    """The provider of one level must not be in one subtree with those of the others; this level is the last of them all."""

    together: tuple[int, ...]
    other: int
    here: int
    ends: Sequence[int]

    def __call__(self, choices: Positions, chosen: Sequence[int], options: Sequence[Positions]) -> Positions:
        positions = [chosen[level] for level in (*self.together, self.other) if level != self.here]
        low, high = min(positions), max(positions)
        return [position for position in choices if max(high, position) >= self.ends[min(low, position)]]


@dataclass(frozen=True, slots=True)
class RequiredTogether:
    """At the last level of the group without a suffix: its providers together have a trait of each required set."""

    before: tuple[int, ...]
    masks: tuple[bytes, ...]

    def __call__(self, choices: Positions, chosen: Sequence[int], options: Sequence[Positions]) -> Positions:
        missing = [mask for mask in self.masks if not any(mask[chosen[level]] for level in self.before)]
        if not missing:
            return choices
        return [position for position in choices if all(mask[position] for mask in missing)]


def loads_of(before: Sequence[tuple[int, int]], chosen: Sequence[int]) -> dict[int, int]:
    """Return the amount by position that the levels of `before`, (level, amount) each, take where they chose."""
    loads: dict[int, int] = {}
    for level, amount in before:
        loads[chosen[level]] = loads.get(chosen[level], 0) + amount
    return loads


def keeps_step(amount: int, rules: tuple[int, int, int]) -> bool:
    """Whether an amount is min_unit or a multiple of step_size."""
    _most, min_unit, step_size = rules
    return amount == min_unit or amount % step_size == 0
