# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who a disk is."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.hardware import parse_hardware
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.static.fingerprint import fingerprint

DISKS = [
    {"id": "/dev/disk/by-id/wwn-1", "dev": "/dev/sda", "wwn": "1", "serial": "A", "size": 100, "size_bytes": 104857600},
    {"id": "/dev/disk/by-id/wwn-2", "dev": "/dev/sdb", "wwn": "2", "serial": "B", "size": 100, "size_bytes": 104857600},
]


def of(disks: list[dict[str, t.Any]], **facts: t.Any) -> str:
    return fingerprint(parse_hardware({**facts, "disks": disks}))


def test_order_kernel_names_and_memory_do_not_matter() -> None:
    renamed = [{**DISKS[1], "dev": "/dev/sda"}, {**DISKS[0], "dev": "/dev/sdb", "partitions": []}]
    assert of(DISKS, ram=1) == of(renamed, ram=2)
    assert len(of(DISKS)) == 32


@pytest.mark.parametrize(
    "change",
    [{"id": "/dev/disk/by-id/wwn-3"}, {"wwn": "3"}, {"serial": "C"}, {"size_bytes": 104857088}, {"logical_block": 4096}],
)
def test_another_disk_is_noticed(change: dict[str, t.Any]) -> None:
    assert of(DISKS) != of([DISKS[0], {**DISKS[1], **change}])


@pytest.mark.parametrize(
    ("change", "is_noticed"),
    [({"wwn": "3"}, False), ({"serial": "C"}, False), ({"size_bytes": 104857088}, True), ({"logical_block": 4096}, True)],
)
def test_a_disk_of_a_slot_may_be_exchanged_for_one_like_it(change: dict[str, t.Any], is_noticed: bool) -> None:
    of_slot = {**DISKS[1], "id": "/dev/disk/by-path/pci-0000:00:06.0-ata-2"}
    assert (of([DISKS[0], of_slot]) != of([DISKS[0], {**of_slot, **change}])) is is_noticed


def test_a_disk_more_or_less_is_noticed() -> None:
    assert of(DISKS) != of(DISKS[:1])


def test_without_bytes_the_size_in_mib_counts() -> None:
    assert of([{"id": "sda", "size": 100}]) != of([{"id": "sda", "size": 101}])
