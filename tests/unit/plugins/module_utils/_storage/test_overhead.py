# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Overheads against what the tools really do: figures measured with sgdisk, pvcreate, mdadm and cryptsetup."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage import overhead


def test_a_gpt_costs_a_mib_at_each_end_whatever_the_blocks() -> None:
    assert overhead.usable(10240) == 10238
    assert overhead.usable(1) == 0
    # 34 sectors at the start and 33 at the end, of 512 bytes or (6 and 5) of 4096: always below one MiB.
    assert 34 * 512 < 1024**2
    assert 6 * 4096 < 1024**2


def test_luks_lies_below_an_encrypted_pv() -> None:
    assert overhead.pv_head(True) == 17


@pytest.mark.parametrize(
    ("leg", "reserve"),
    [(200, 1), (1023, 1), (1024, 2), (2047, 2), (2048, 3), (10240, 9), (65535, 33), (102400, 65), (131072, 129), (4_000_000, 129)],
)
def test_md_with_metadata_in_front_keeps_a_headroom(leg: int, reserve: int) -> None:
    # Data offsets of mirrors, mdadm 4.2: 2 MiB of 1 GiB, 9 of 10 GiB, 65 of 100 GiB, 129 from 128 GiB on.
    assert overhead.md_reserve(leg, "1.2", data=1) == reserve


@pytest.mark.parametrize(("leg", "reserve"), [(200, 2), (777, 2), (1001, 2), (1024, 2), (2049, 3), (140001, 129)])
def test_md_with_chunks_keeps_two_mib_at_least(leg: int, reserve: int) -> None:
    # Data offsets of raid0, 5, 6 and 10, mdadm 4.2 with chunks of 512 KiB.
    assert overhead.md_reserve(leg, "1.2", data=2) == reserve
    assert overhead.md_reserve(leg, "1.2", data=5) == reserve


def test_md_with_metadata_at_the_end_keeps_next_to_nothing() -> None:
    assert overhead.md_reserve(4_000_000, "1.0", data=1) == 1
    assert overhead.md_metadata(boot=True) == "1.0"
    assert overhead.md_metadata(boot=False) == "1.2"


@pytest.mark.parametrize(("data", "head"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (6, 3), (7, 4), (16, 8)])
def test_extents_on_an_array_begin_with_a_stripe(data: int, head: int) -> None:
    # pe_start of pvcreate: 1 MiB, with 3 legs of data 1.5 MiB, with 4 of them 2 MiB, and so on.
    assert overhead.array_pv_head(data, encrypted=False) == head


@pytest.mark.parametrize(("data", "head"), [(1, 17), (2, 17), (3, 18), (4, 18), (5, 20), (6, 21)])
def test_luks_on_an_array_begins_its_data_with_a_stripe_too(data: int, head: int) -> None:
    # Payload offsets of luksFormat: 16 MiB, with 3 legs of data 16.5 MiB, with 6 of them 18 MiB.
    assert overhead.array_pv_head(data, encrypted=True) == head


def test_fat32_needs_its_clusters() -> None:
    assert overhead.esp_minimum(512) == 33
    assert overhead.esp_minimum(4096) == 260
