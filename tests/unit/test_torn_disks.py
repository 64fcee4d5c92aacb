# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What power cuts leave of disks for tests/vm/test_torn.py: all that was flushed, of the rest any part, and sectors always whole."""

from __future__ import annotations

import random

import pytest
from ansible_collections.bareon.allocator.tests.support.vm import torn_disks
from ansible_collections.bareon.allocator.tests.support.vm.torn_disks import Content, Flush, Write, after_cut, moment, read

SIZE = 64 * 1024


def written(offset: int, letter: bytes, size: int = 8192, through: bool = False) -> Write:
    return Write("disk", offset, size, letter * size, through)


def cuts(events: list[Write | Flush], sector: int = 512, before: Content | None = None) -> list[bytes]:
    return [read(after_cut(before or {}, events, sector, random.Random(seed)), 0, SIZE) for seed in range(100)]


def test_what_was_flushed_or_written_through_is_there_whatever_comes_behind_it() -> None:
    events = [written(512, b"a"), Flush("disk"), written(16384, b"b", through=True), written(30000 // 512 * 512, b"c")]
    for disk in cuts(events):
        assert disk[512 : 512 + 8192] == b"a" * 8192
        assert disk[16384 : 16384 + 8192] == b"b" * 8192


def test_what_was_not_flushed_is_there_or_not_in_whatever_order_it_was_written() -> None:
    found = {(b"a" in disk[:8192], b"b" in disk[16384:]) for disk in cuts([written(0, b"a"), written(16384, b"b")])}
    assert found == {(False, False), (False, True), (True, False), (True, True)}


def test_of_two_writes_at_one_place_either_may_be_left() -> None:
    assert {disk[:1] for disk in cuts([written(0, b"a", 512), written(0, b"b", 512)], before={0: b"o" * 4096})} == {b"o", b"a", b"b"}


@pytest.mark.parametrize("sector", [512, 4096])
def test_sectors_are_whole_and_writes_are_not(sector: int) -> None:
    disks = cuts([written(0, b"a", 4 * 4096)], sector)
    for disk in disks:
        assert all(len(set(disk[at : at + sector])) == 1 for at in range(0, SIZE, sector))
    assert any(0 < disk.count(b"a") < 4 * 4096 for disk in disks)


def test_zeros_of_any_size_take_what_was_there() -> None:
    content: Content = {}
    torn_disks.write(content, written(1000, b"a", 10000))
    torn_disks.write(content, Write("disk", 4096, 1 << 40, None))
    assert read(content, 0, SIZE) == (bytes(1000) + b"a" * 3096).ljust(SIZE, b"\0")
    torn_disks.write(content, Write("disk", 0, 4096, None))
    assert content == {}


def test_a_moment_is_any_of_a_run_and_often_between_two_flushes_that_are_close() -> None:
    events: list[Write | Flush] = [written(0, b"a"), Flush("disk"), *[written(0, b"b")] * 997, Flush("disk")]
    found = [moment(events, random.Random(seed)) for seed in range(300)]
    assert all(0 <= at <= len(events) for at in found)
    assert sum(at < 2 for at in found) > 20
    assert sum(at > 500 for at in found) > 100
