# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Weighted max-min fair sizes over pools of room: progressive filling, exact in whole numbers.

What sets of spaces can hold together is a polymatroid: sizes fit exactly when every set of spaces needs no more than the
pools it may use hold. All spaces grow at one level, `T = clamp(level * weight, low, high)`, until some set is full; that
set is settled with its pools, and the rest goes on rising (Megiddo 1974). The level is found from above, by Newton's
iteration on the minimum cut (Dinkelbach 1967; Radzik 1992): at too high a level the maximum flow names a set that
is too big, and the level at which that set just fits is the next one to try. Levels are fractions of integers and every
flow is scaled by their denominator, so nothing is ever compared with a tolerance.

A settled set holds a whole number of MiB, and its sizes in whole MiB are the bases of a matroid (total unimodularity of
the flow), so rounding down and handing the rest to the largest remainders, where it still fits, loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from ..place.flow import bits, route


@dataclass(frozen=True)
class Grower:
    """A space that may grow: the row its growth is drawn from, its whole-number weight and the bounds of its size."""

    row: int
    weight: int
    low: int
    high: int

    def scaled(self, level: Fraction) -> int:
        """Return its size at a level, times the level's denominator."""
        return min(max(level.numerator * self.weight, self.low * level.denominator), self.high * level.denominator)


def whole_weights(weights: Sequence[float]) -> list[int]:
    """Return integers in the same proportions; a float counts as the decimal number it is written as."""
    exact = {weight: Fraction(repr(float(weight))) for weight in set(weights)}
    common = lcm(*(weight.denominator for weight in exact.values()))
    whole = {weight: fraction.numerator * (common // fraction.denominator) for weight, fraction in exact.items()}
    return [whole[weight] for weight in weights]


def common_level(growers: Sequence[Grower], total: int) -> Fraction:
    """Return the level at which the clamped sizes add up to `total` (between the sums of lows and of highs).

    Settles demands that break a bound on the side that weighs more, and repeats with the others: exact, and a few rounds
    instead of a sort (the way flexible lengths are resolved in CSS).
    """
    free = [grower for grower in growers if grower.weight]
    rest = total - sum(grower.low for grower in growers if not grower.weight)
    level = Fraction(0)
    while free:
        weights = sum(grower.weight for grower in free)
        level = Fraction(rest, weights)
        numerator, denominator = level.numerator, level.denominator
        below = [g for g in free if numerator * g.weight < g.low * denominator]
        above = [g for g in free if numerator * g.weight > g.high * denominator]
        lacking = sum(g.low * denominator - numerator * g.weight for g in below)
        beyond = sum(numerator * g.weight - g.high * denominator for g in above)
        if lacking == beyond:
            return level
        settled = below if lacking > beyond else above
        rest -= sum(g.low if lacking > beyond else g.high for g in settled)
        chosen = set(map(id, settled))
        free = [g for g in free if id(g) not in chosen]
    return level


def fill(growers: Sequence[Grower], fixed: Sequence[int], masks: Sequence[int], capacity: Sequence[int]) -> list[int]:
    """Return the max-min fair whole size of every grower.

    `fixed` (R,) is what each row must hold in any case, the growers' lows included; `masks` (R,) the pools of each row as
    bits; `capacity` (P,). The fixed demands must fit.
    """
    sizes = [grower.low for grower in growers]
    growing = [index for index, grower in enumerate(growers) if grower.weight and grower.high > grower.low]
    rest = Filling(tuple(growers[index] for index in growing), tuple(fixed), tuple(masks), tuple(capacity))
    while growing:
        level, tight, used = rest.highest_level()
        settled = rest.whole_sizes(level, tight, used)
        for position, size in settled.items():
            sizes[growing[position]] = size
        keep = [position for position in range(len(growing)) if position not in settled]
        growing = [growing[position] for position in keep]
        rest = rest.without(keep, tight, used)
    return sizes


@dataclass(frozen=True)
class Filling:
    """What still rises: growers, demands (R,), masks (R,) and room (P,) of the rows and pools not settled yet."""

    growers: tuple[Grower, ...]
    fixed: tuple[int, ...]
    masks: tuple[int, ...]
    capacity: tuple[int, ...]

    def without(self, keep: Sequence[int], rows: int, pools: int) -> Filling:
        """Return what is left when a full set of rows and pools is taken out."""
        gone = [bool(rows >> row & 1) for row in range(len(self.masks))]
        return Filling(
            tuple(self.growers[position] for position in keep),
            tuple(0 if out else amount for out, amount in zip(gone, self.fixed, strict=True)),
            tuple(0 if out else mask & ~pools for out, mask in zip(gone, self.masks, strict=True)),
            self.capacity,
        )

    def highest_level(self) -> tuple[Fraction | None, int, int]:
        """Return the highest level at which all fits, and the rows and pools (as bits) that are full at it.

        None stands for no limit: every grower gets its high, and all rows count as settled.
        """
        level = None
        rows, pools = tight = (1 << len(self.masks)) - 1, self._pools_of((1 << len(self.masks)) - 1)
        if sum(self.demands(None)) <= self._room(pools):
            rows, pools = self._too_big(None)
        while rows:
            tight = rows, pools
            inside = [grower for grower in self.growers if rows >> grower.row & 1]
            fixed = sum(amount for row, amount in enumerate(self.fixed) if rows >> row & 1)
            level = common_level(inside, self._room(pools) - fixed + sum(grower.low for grower in inside))
            # A single row fits at the level that was found for it.
            rows, pools = self._too_big(level) if len(self.masks) > 1 else (0, 0)
        return level, *tight

    def whole_sizes(self, level: Fraction | None, rows: int, pools: int) -> dict[int, int]:
        """Return the whole sizes of the growers in the full rows, by position."""
        inside = [position for position, grower in enumerate(self.growers) if rows >> grower.row & 1]
        if level is None:
            return {position: self.growers[position].high for position in inside}
        parts = {position: divmod(self.growers[position].scaled(level), level.denominator) for position in inside}
        sizes = {position: whole for position, (whole, _remainder) in parts.items()}
        by_remainder = sorted((position for position in inside if parts[position][1]), key=lambda position: -parts[position][1])
        left = self._room(pools) - sum(self.demands_of(sizes, rows))
        for position in self._takers(by_remainder, left, sizes, rows, pools):
            sizes[position] += 1
        return sizes

    def demands(self, level: Fraction | None) -> list[int]:
        """Return (R,) what the rows need at a level, times the level's denominator."""
        scale = 1 if level is None else level.denominator
        needs = [amount * scale for amount in self.fixed]
        for grower in self.growers:
            needs[grower.row] += grower.high - grower.low if level is None else grower.scaled(level) - grower.low * scale
        return needs

    def demands_of(self, sizes: dict[int, int], rows: int) -> list[int]:
        """Return (R,) what these rows need when their growers have these sizes; 0 for other rows."""
        needs = [amount if rows >> row & 1 else 0 for row, amount in enumerate(self.fixed)]
        for position, size in sizes.items():
            grower = self.growers[position]
            needs[grower.row] += size - grower.low
        return needs

    def _takers(self, candidates: Sequence[int], left: int, sizes: dict[int, int], rows: int, pools: int) -> list[int]:
        """Return the demands that get one of the units left over, in the order of candidates where it still fits."""
        if left == 0:
            return []
        if rows.bit_count() == 1:
            return list(candidates[:left])
        transport, _short = route(self.demands_of(sizes, rows), [mask & pools for mask in self.masks], self.capacity)
        takers: list[int] = []
        for position in candidates:
            if len(takers) < left and transport.push(self.growers[position].row, 1):
                takers.append(position)
        return takers

    def _too_big(self, level: Fraction | None) -> tuple[int, int]:
        """Return the rows and pools of the minimum cut when the demands at a level do not fit, else (0, 0)."""
        scale = 1 if level is None else level.denominator
        transport, short = route(self.demands(level), self.masks, [room * scale for room in self.capacity])
        return transport.reach(short)

    def _pools_of(self, rows: int) -> int:
        union = 0
        for row in bits(rows):
            union |= self.masks[row]
        return union

    def _room(self, pools: int) -> int:
        return sum(self.capacity[pool] for pool in bits(pools))
