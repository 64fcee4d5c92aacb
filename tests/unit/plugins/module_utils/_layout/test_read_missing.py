# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What lies in free room that partitions of a layout take, on devices that are stated here."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.present import Present
from ansible_collections.bareon.allocator.plugins.module_utils._facts.select import Disk
from ansible_collections.bareon.allocator.plugins.module_utils._facts.signatures import Table, TablePartition
from ansible_collections.bareon.allocator.plugins.module_utils._facts.stacks import Luks
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import Device, Filesystem, Tree
from ansible_collections.bareon.allocator.plugins.module_utils._layout.read_missing import read_loose
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema

MIB = 1024**2
ENTRY = TablePartition(1, MIB, 100 * MIB, None)


class Blank:
    """A host whose devices have zeros everywhere."""

    def read_bytes(self, path: str, start: int, size: int) -> bytes:
        return bytes(size)


def present(size: int) -> Present:
    """A disk with a partition of 100 MiB, an open container on the partition, and in the container an ext4 of `size` MiB."""
    disk = Device("sda", "/dev/sda", "disk", 1000 * MIB, table=Table("gpt", "uuid", (ENTRY,)))
    part = Device("sda1", "/dev/sda1", "part", 100 * MIB, ("sda",), partition=ENTRY, filesystem=Filesystem("crypto_LUKS", "uuid", None))
    opened = Device("dm-0", "/dev/mapper/x", "crypt", 84 * MIB, ("sda1",), luks=Luks(2, None, 1, 16 * MIB))
    devices = {each.name: each for each in (disk, part, replace(opened, filesystem=Filesystem("ext4", "uuid", None)))}
    return Present(Tree(devices), (Disk(disk, "/dev/sda", None, (), None, disk, (disk,)),), (), (), filesystem_sizes={"dm-0": size * MIB})


@pytest.mark.parametrize(
    ("size", "begin", "end", "found"),
    [(84, 101, 200, []), (85, 101, 200, [101]), (150, 120, 200, [120]), (150, 167, 200, []), (150, 1, 200, []), (190, 1, 200, [])],
)
def test_the_end_of_a_file_system_in_luks_is_in_the_room_behind_its_partition(size, begin, end, found):
    """From MiB 1 on it is the partition itself that grows, and gets back what is its own."""
    layout = parse_static_schema({"parteds": [{"name": "/dev/sda", "partitions": [{"begin": begin, "end": end}]}]})
    state = present(size)
    loose = read_loose(Blank(), state, layout, state.disks)["sda"]
    assert [(one.type, one.offsets[0] // MIB) for one in loose] == [
        ("the end of the ext4 in the LUKS container of /dev/sda1", place) for place in found
    ]
