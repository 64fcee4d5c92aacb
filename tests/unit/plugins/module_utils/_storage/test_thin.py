# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.thin import divide, is_chunk, is_part, metadata_of, room_for
from hypothesis import given
from hypothesis import strategies as st

TIB = 1024**2


@pytest.mark.parametrize(
    ("size", "chunk", "metadata"), [(1, 64, 2), (TIB, 64, 1024), (TIB, 512, 128), (TIB + 1, 512, 129), (50 * TIB, 64, 16128)]
)
def test_metadata_are_64_bytes_for_each_chunk_within_the_bounds_of_lvm(size: int, chunk: int, metadata: int) -> None:
    assert metadata_of(size, chunk) == metadata


@pytest.mark.parametrize(("room", "chunk"), [(131072, 64), (131076, 128), (TIB, 512), (1024 * TIB, 524288), (10**10, 1024 * 1024)])
def test_chunks_double_until_the_metadata_are_small(room: int, chunk: int) -> None:
    assert divide(room, 4).chunk == chunk


def test_what_is_asked_for_is_taken() -> None:
    assert divide(1000, 4, 128, 10) == (1000 - 2 * 12, 12, 128)
    assert divide(4, 4) == (0, 4, 64)


@given(st.integers(1, 10**8), st.sampled_from([1, 4, 32, 1024]), st.none() | st.sampled_from([64, 256]), st.none() | st.integers(2, 5000))
def test_in_the_room_for_a_size_there_is_that_size(size: int, extent: int, chunk: int | None, metadata: int | None) -> None:
    room = room_for(size, extent, chunk, metadata)
    parts = divide(room, extent, chunk, metadata)
    assert parts.size >= size
    assert room % extent == parts.size % extent == parts.metadata % extent == 0
    assert parts.size + 2 * parts.metadata == room
    assert parts.metadata >= min(metadata_of(parts.size, parts.chunk), metadata or 10**9)
    # Where chunks double there may be a little more.
    assert parts.size - size <= max(extent, 2 * 128 + extent)
    assert divide(room - extent, extent, chunk, metadata).size < size


@pytest.mark.parametrize("doubled", [1, 2, 8, 64])
@pytest.mark.parametrize("extent", [1, 4, 64])
def test_a_size_takes_no_more_room_than_it_was_divided_from_where_chunks_double(doubled: int, extent: int) -> None:
    for room in range(131072 * doubled - 3 * extent, 131072 * doubled + 8 * extent, extent):
        assert room_for(divide(room, extent).size, extent) <= room


@pytest.mark.parametrize(("metadata", "chunk"), [(2, 256), (8, 64), (512, 64)])
def test_chunks_double_until_the_metadata_that_are_given_hold_them(metadata: int, chunk: int) -> None:
    parts = divide(8192, 4, metadata=metadata)
    assert parts.chunk == chunk
    assert metadata_of(parts.size, chunk) <= metadata


def test_chunks_are_multiples_of_64_kib() -> None:
    assert [size for size in (0, 32, 64, 96, 192, 1024**2, 1024**2 + 64) if is_chunk(size)] == [64, 192, 1024**2]


def test_parts_of_pools_are_known_by_their_names() -> None:
    assert [name for name in ("pool", "pool_tdata", "p_tmeta", "pool-tpool", "lvol0_pmspare", "my_data", "tpool") if is_part(name)] == [
        "pool_tdata",
        "p_tmeta",
        "pool-tpool",
        "lvol0_pmspare",
    ]
