# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lay totals on disks in few pieces and in order.

Disks that the same items may use form a pool; whatever lies on one disk of a pool may lie on any other, so a maximum flow
over pools says at every step what may still be taken without leaving something else unplaceable. Three ways of laying are
tried and the one with the fewest pieces is kept, the earlier one on a tie:

* in order: the north-west-corner rule, each item on the first disks with room. At most items + disks - 1 pieces, and what
  the order of the seed asks for (its objective is an inverse Monge array, so that rule is its optimum);
* whole items first, in order, each on the first disk that holds it; then the others in order;
* whole items first, biggest first, each on the disk it fills best; then the others on the disks with most room.

Fewest pieces in general is bin packing; these are its classic first-fit and best-fit-decreasing rules.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from .flow import Transport, bits, route


@dataclass(frozen=True)
class Item:
    """An amount of a space and the pools (as bits) it may lie on."""

    space: int
    pools: int
    amount: int


@dataclass(frozen=True)
class Shelf:
    """Where items go: the pool and the room of each disk, in order."""

    pool: tuple[int, ...]
    room: tuple[int, ...]

    def pool_room(self) -> list[int]:
        """Return the room of each pool."""
        totals = [0] * (max(self.pool, default=-1) + 1)
        for pool, room in zip(self.pool, self.room, strict=True):
            totals[pool] += room
        return totals


_FEW = 8

Pieces = dict[tuple[int, int], int]
"""(item, disk) -> amount."""


def lay(items: Sequence[Item], shelf: Shelf) -> Pieces:
    """Return pieces that add up to every item's amount; the items must fit on their pools together."""
    best = _laid(_in_order, items, shelf)
    # How many pieces there are at least, had every item the shelf for itself: as many as fill the largest disks.
    reach: dict[int, list[int]] = {}
    for pools in {item.pools for item in items}:
        rooms = sorted((room for pool, room in zip(shelf.pool, shelf.room, strict=True) if pools >> pool & 1), reverse=True)
        reach[pools] = list(accumulate(rooms))
    fewest = sum(bisect_left(reach[item.pools], item.amount) + 1 for item in items if item.amount)
    if not _may_gain(items, shelf):
        return best
    for way in (_whole_then_in_order, _biggest_first):
        if len(best) > fewest:
            best = min(best, _laid(way, items, shelf), key=len)
    return best


def _may_gain(items: Sequence[Item], shelf: Shelf) -> bool:
    """Return whether leaving the order can save pieces.

    On one pool that is filled to the brim it saves one only where some items fill some disks exactly. With few items that
    is worth a try; with many, whose sizes are as good as random, only if one or two of them fill a disk.
    """
    if len(set(shelf.pool)) > 1 or len(items) <= _FEW or sum(item.amount for item in items) < sum(shelf.room):
        return True
    amounts = {item.amount for item in items}
    return any(room in amounts or not amounts.isdisjoint(room - amount for amount in amounts) for room in set(shelf.room))


def _laid(way: Callable[[_Laying], None], items: Sequence[Item], shelf: Shelf) -> Pieces:
    laying = _Laying(items, shelf)
    way(laying)
    return laying.pieces


class _Laying:
    """A layout under construction. `left` (items,) is what has no place yet, `room` (disks,) what is free."""

    def __init__(self, items: Sequence[Item], shelf: Shelf) -> None:
        self.items = items
        self.pool = shelf.pool
        self.room = list(shelf.room)
        self._open = [disk for disk, room in enumerate(shelf.room) if room]
        self.left = [item.amount for item in items]
        self.pieces: Pieces = {}
        rows: dict[int, int] = {}
        self._row = [rows.setdefault(item.pools, len(rows)) for item in items]
        masks = list(dict.fromkeys(item.pools for item in items))
        demand = [0] * len(masks)
        for row, item in zip(self._row, items, strict=True):
            demand[row] += item.amount
        self._transport: Transport = route(demand, masks, shelf.pool_room())[0]

    def disks_of(self, item: int) -> list[int]:
        """Return the disks with room that the item may use, in order."""
        mask = self.items[item].pools
        return [disk for disk in self._open if mask >> self.pool[disk] & 1]

    def holding(self, item: int) -> list[int]:
        """Return the disks that could hold all that is left of the item, in order."""
        mask = self.items[item].pools
        wanted = self.left[item]
        return [disk for disk in self._open if self.room[disk] >= wanted and mask >> self.pool[disk] & 1]

    def unplaceable(self) -> list[int]:
        """Return the items of which something is left."""
        return [item for item, amount in enumerate(self.left) if amount]

    def take_along(self, item: int, disks: Sequence[int]) -> None:
        """Put on each disk in turn as much of the item as can be without leaving something else unplaceable."""
        for disk in disks:
            self._put(item, disk, self._claim(item, self.pool[disk], min(self.left[item], self.room[disk])))
            if not self.left[item]:
                return

    def take_whole(self, item: int, disks: Sequence[int]) -> None:
        """Put the item on the first of the disks that can hold it whole without making another item unplaceable, if any."""
        wanted = self.left[item]
        for disk in disks:
            got = self._claim(item, self.pool[disk], wanted)
            if got == wanted:
                self._put(item, disk, got)
                return
            self._transport.restore(self._row[item], self.pool[disk], got)

    def _put(self, item: int, disk: int, amount: int) -> None:
        if amount:
            self.pieces[item, disk] = self.pieces.get((item, disk), 0) + amount
            self.left[item] -= amount
            self.room[disk] -= amount
            if self.room[disk] == 0:
                self._open.remove(disk)

    def _claim(self, item: int, pool: int, wanted: int) -> int:
        """Set room of a pool aside for the item, moving the flow of others where needed; return how much there was."""
        row = self._row[item]
        transport = self._transport
        got = min(wanted, transport.flow[row][pool])
        transport.reserve(row, pool, got)
        missing = wanted - got
        if missing == 0:
            return got
        for other in bits(transport.masks[row] & ~(1 << pool)):
            amount = min(missing, transport.flow[row][other])
            transport.withdraw(row, other, amount)
            missing -= amount
        withdrawn = wanted - got - missing
        more = transport.push_into(row, pool, withdrawn)
        transport.reserve(row, pool, more)
        transport.push(row, withdrawn - more)
        return got + more


def _in_order(laying: _Laying) -> None:
    for item in laying.unplaceable():
        laying.take_along(item, laying.disks_of(item))


def _whole_then_in_order(laying: _Laying) -> None:
    for item in laying.unplaceable():
        laying.take_whole(item, laying.holding(item))
    _in_order(laying)


def _biggest_first(laying: _Laying) -> None:
    for item in sorted(laying.unplaceable(), key=lambda item: -laying.left[item]):
        laying.take_whole(item, sorted(laying.holding(item), key=laying.room.__getitem__))
    for item in laying.unplaceable():
        laying.take_along(item, sorted(laying.disks_of(item), key=lambda disk: -laying.room[disk]))
