# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""can_split: one class of the group without a suffix from several providers of a tree.

Every set of providers that can give the amount together is one filling, the smallest sets first. Among the ways to divide the amount over
a set there is one canonical one: as much as possible from the first provider in the order of their names, then from the second, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

Part = tuple[int, int]
"""(position, amount)"""


@dataclass(frozen=True, slots=True)
class Source:
    """What one provider can give: min_unit or a multiple of step_size, at most `most` of which other groups took `load`."""

    position: int
    most: int
    min_unit: int
    step_size: int
    load: int = 0

    def allows(self, amount: int) -> bool:
        """Whether this very piece may be taken, by itself and merged with what other groups take."""
        return self.min_unit <= amount <= self.most - self.load and self._keeps_step(amount) and self._keeps_step(amount + self.load)

    def _keeps_step(self, amount: int) -> bool:
        return amount == self.min_unit or amount % self.step_size == 0

    @property
    def largest(self) -> int:
        """The largest piece, 0 if there is none."""
        whole = (self.most - self.load) // self.step_size * self.step_size
        return next((amount for amount in (whole, self.min_unit) if self.allows(amount)), 0)


def fillings(amount: int, sources: Sequence[Source], spend: Callable[[int], None]) -> Iterator[tuple[Part, ...]]:
    """Yield the canonical filling of every set of sources that can give the amount, smaller sets first.

    `spend` gets the number of steps, so that the caller can end a search that takes too long.
    """
    usable = [source for source in sources if source.largest]
    largest = sorted((source.largest for source in usable), reverse=True)
    smallest = sorted(source.min_unit for source in usable)
    for size in range(1, len(usable) + 1):
        if sum(largest[:size]) < amount or sum(smallest[:size]) > amount:
            continue
        for chosen in combinations(usable, size):
            filling = _fill(amount, chosen, spend)
            if filling is not None:
                yield tuple((source.position, part) for source, part in zip(chosen, filling, strict=True))


def _fill(amount: int, sources: Sequence[Source], spend: Callable[[int], None]) -> tuple[int, ...] | None:
    """Return the lexicographically greatest parts that sum up to the amount, None if there are none."""
    spend(1)
    if len(sources) == 1:
        return (amount,) if sources[0].allows(amount) else None
    source, rest = sources[0], sources[1:]
    least = max(source.min_unit, amount - sum(other.largest for other in rest))
    most = min(source.largest, amount - sum(other.min_unit for other in rest))
    for part in _pieces(source, least, most):
        filling = _fill(amount - part, rest, spend)
        if filling is not None:
            return (part, *filling)
    return None


def _pieces(source: Source, least: int, most: int) -> Iterator[int]:
    """Yield the pieces that a source allows between two bounds, the largest first."""
    for part in range(most // source.step_size * source.step_size, least - 1, -source.step_size):
        if source.allows(part):
            yield part
    if least <= source.min_unit <= most and source.min_unit % source.step_size and source.allows(source.min_unit):
        yield source.min_unit
