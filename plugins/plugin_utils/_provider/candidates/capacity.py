# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many consumers with one and the same request fit at once.

Whatever consumers take, the candidates that are left are among those of now, because room only shrinks. So the answer is the largest number
of candidates, each as often as one likes, that together stay within the room of every inventory. Candidates that share no inventory do not
matter to each other: each such part is counted by itself, and parts that are alike once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .find import Answer
from .index import Index

Key = tuple[str, str]
"""A provider's UUID and a class."""

_STEPS = 20_000
"""How many ways one part is tried."""

Loads = tuple[tuple[int, int], ...]
"""Amounts that one candidate takes, each with the number of its inventory in the part."""


@dataclass(frozen=True)
class Capacity:
    """How many fit, by the name of the tree's root; no more than `most` do, which is the same where the answer is exact."""

    by_root: Mapping[str, int]
    most: int

    @property
    def count(self) -> int:
        """How many fit in all trees."""
        return sum(self.by_root.values())


def count_copies(answer: Answer) -> Capacity:
    """Return how many consumers fit that each get one of the candidates, which are all that a request has."""
    loads = [
        {(uuid, name): amount for uuid, amounts in candidate["allocations"].items() for name, amount in amounts.items()}
        for candidate in answer.candidates
    ]
    by_root: Counter[str] = Counter()
    most = 0
    known: dict[tuple[tuple[Loads, ...], tuple[int, ...]], tuple[tuple[int, ...], int]] = {}
    for numbers in _parts(loads):
        keys = {key: place for place, key in enumerate(dict.fromkeys(key for number in numbers for key in loads[number]))}
        rooms = tuple(_room(answer.anchors[numbers[0]][0], key) for key in keys)
        shape = tuple(tuple((keys[key], amount) for key, amount in loads[number].items()) for number in numbers)
        if (shape, rooms) not in known:
            known[shape, rooms] = _fill(shape, rooms)
        times, bound = known[shape, rooms]
        most += bound
        for number, count in zip(numbers, times, strict=True):
            if count:
                index, root = answer.anchors[number]
                by_root[index.providers[root].name] += count
    return Capacity(dict(sorted(by_root.items())), most)


def _room(index: Index, key: Key) -> int:
    used, capacity = index.classes[key[1]].loads[index.positions[key[0]]]
    return capacity - used


def _parts(loads: Sequence[Mapping[Key, int]]) -> Iterator[list[int]]:
    """Yield the numbers of the candidates that share inventories, directly or by way of others."""
    above = list(range(len(loads)))

    def top(number: int) -> int:
        while above[number] != number:
            above[number] = above[above[number]]
            number = above[number]
        return number

    first: dict[Key, int] = {}
    for number, keys in enumerate(loads):
        for key in keys:
            above[top(number)] = top(first.setdefault(key, number))
    parts: dict[int, list[int]] = {}
    for number in range(len(loads)):
        parts.setdefault(top(number), []).append(number)
    yield from parts.values()


def _fill(shape: Sequence[Loads], rooms: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """Return how often each candidate is taken so that as many as possible are, and a number that none exceeds."""
    left = list(rooms)
    times = [0] * len(shape)
    best, best_times, steps = -1, tuple(times), 0
    bound = _bound(shape, left, 0)
    # Each level takes a candidate as often as it fits first, then less often; a level is left where the rest cannot do better.
    stack: list[int] = []
    total = 0
    while True:
        steps += 1
        level = len(stack)
        if level < len(shape) and total + _bound(shape, left, level) > best:
            count = min(left[place] // amount for place, amount in shape[level])
            _take(shape[level], left, count)
            stack.append(count)
            total += count
        else:
            if total > best and level == len(shape):
                best, best_times = total, tuple(stack)
            if best == bound or steps > _STEPS:
                break
            while stack and not stack[-1]:
                stack.pop()
            if not stack:
                break
            _take(shape[len(stack) - 1], left, -1)
            stack[-1] -= 1
            total -= 1
    return (best_times if best >= 0 else tuple(times)), (bound if steps > _STEPS else max(best, 0))


def _take(loads: Loads, left: list[int], count: int) -> None:
    for place, amount in loads:
        left[place] -= count * amount


def _bound(shape: Sequence[Loads], left: Sequence[int], first: int) -> int:
    """Return how many of the candidates from the first one on fit at most: each takes something of one inventory of each kind."""
    if first == len(shape):
        return 0
    places = {place for loads in shape[first:] for place, _amount in loads}
    least = {place: min(amount for loads in shape[first:] for other, amount in loads if other == place) for place in places}
    fits = {place: left[place] // least[place] for place in places}
    # No candidate can do without some inventory of any set that all of them need one of.
    return min(sum(fits[place] for place, _amount in needed) for needed in _needed(shape[first:]))


def _needed(shape: Sequence[Loads]) -> list[Loads]:
    """Return sets of inventories of which each candidate takes something: by the order in which a candidate takes from them."""
    depth = min(len(loads) for loads in shape)
    found = []
    for position in range(depth):
        places = {loads[position][0] for loads in shape}
        found.append(tuple((place, 0) for place in sorted(places)))
    return found
