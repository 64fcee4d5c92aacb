# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pieces: complete, within the disks, and few; small problems beside every possible packing."""

from __future__ import annotations

import itertools
import random

from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.place.flow import route
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.place.lay_out import Item, Shelf, lay
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import given, settings
from hypothesis import strategies as st


def test_in_order_when_nothing_is_gained_by_leaving_it() -> None:
    items = [Item(0, 1, 100), Item(1, 1, 100)]
    assert lay(items, Shelf((0, 0), (100, 100))) == {(0, 0): 100, (1, 1): 100}


def test_whole_pieces_rather_than_split_ones() -> None:
    items = [Item(0, 1, 60), Item(1, 1, 60)]
    assert lay(items, Shelf((0, 0), (100, 100))) == {(0, 0): 60, (1, 1): 60}


def test_best_fit_where_first_fit_splits() -> None:
    items = [Item(at, 1, amount) for at, amount in enumerate((30, 40, 70, 60))]
    assert len(lay(items, Shelf((0, 0), (100, 100)))) == 4


def test_a_piece_does_not_take_the_only_place_of_another() -> None:
    items = [Item(0, 0b11, 60), Item(1, 0b01, 60)]
    assert lay(items, Shelf((0, 1), (100, 100))) == {(0, 1): 60, (1, 0): 60}


def test_nothing_to_lay() -> None:
    assert lay([], Shelf((0,), (5,))) == {}


def made(source: random.Random) -> tuple[list[Item], Shelf]:
    """Return items that fit on the shelf together."""
    while True:
        disks = source.randint(1, 6)
        pools = source.randint(1, disks)
        pool = (*range(pools), *(source.randrange(pools) for _unused in range(disks - pools)))
        shelf = Shelf(pool, tuple(source.randint(1, 30) for _unused in range(disks)))
        items = [Item(at, source.randint(1, 2**pools - 1), source.randint(0, 25)) for at in range(source.randint(1, 7))]
        if not route([item.amount for item in items], [item.pools for item in items], shelf.pool_room())[1]:
            return items, shelf


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(200), deadline=None)
def test_all_is_laid_within_the_disks(seed: int) -> None:
    items, shelf = made(random.Random(seed))
    pieces = lay(items, shelf)
    assert all(amount > 0 for amount in pieces.values())
    for at, item in enumerate(items):
        assert sum(amount for (owner, _disk), amount in pieces.items() if owner == at) == item.amount
    for disk, room in enumerate(shelf.room):
        assert sum(amount for (_owner, place), amount in pieces.items() if place == disk) <= room
    assert all(items[owner].pools >> shelf.pool[disk] & 1 for owner, disk in pieces)
    if len(set(shelf.pool)) == 1:
        assert len(pieces) <= sum(1 for item in items if item.amount) + len(shelf.room) - 1


def test_rarely_splits_what_could_stay_whole() -> None:
    """Of random problems that can be packed without a split, first fit and best fit find such a packing nearly always."""
    source = random.Random(1)
    packable = split = 0
    while packable < 150:
        rooms = tuple(source.randint(50, 100) for _unused in range(3))
        amounts = [source.randint(10, 60) for _unused in range(source.randint(3, 6))]
        if not _packs(amounts, rooms):
            continue
        packable += 1
        split += len(lay([Item(at, 1, amount) for at, amount in enumerate(amounts)], Shelf((0, 0, 0), rooms))) > len(amounts)
    assert split <= 0.1 * packable


def _packs(amounts: list[int], rooms: tuple[int, ...]) -> bool:
    for choice in itertools.product(range(len(rooms)), repeat=len(amounts)):
        used = [0] * len(rooms)
        for amount, disk in zip(amounts, choice, strict=True):
            used[disk] += amount
        if all(amount <= room for amount, room in zip(used, rooms, strict=True)):
            return True
    return False
