# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much more an array holds when it takes all of its members; what is done about it is tested in test_changes.py."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.signatures import TablePartition
from ansible_collections.bareon.allocator.plugins.module_utils._facts.stacks import Legs
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import Device
from ansible_collections.bareon.allocator.plugins.module_utils._layout.arrays import array_growth
from ansible_collections.bareon.allocator.plugins.module_utils._layout.partitions import PartitionMatch, Status
from ansible_collections.bareon.allocator.plugins.module_utils._layout.stack import Stack
from ansible_collections.bareon.allocator.plugins.module_utils._schema.model import DesiredArray, DesiredPartition

MIB = 1024**2


def stack(level, sizes, wanted):
    """An array of partitions of so many MiB; those of size 0 are not there yet."""
    matches = []
    for number, (size, size_wanted) in enumerate(zip(sizes, wanted, strict=True), start=1):
        entry = TablePartition(number, MIB, size * MIB, "linux")
        device = Device(f"sda{number}", f"/dev/sda{number}", "part", size * MIB, partition=entry) if size else None
        desired = DesiredPartition("p", f"/dev/a{number}", number, MIB, size_wanted * MIB, "linux", "uuid")
        matches.append(PartitionMatch(desired, None, Status.KEPT if size else Status.NEW, device))
    return Stack("/dev/md/m", tuple(matches), DesiredArray("mds[0]", "/dev/md/m", "m", level, tuple(m.desired.device for m in matches)))


def array(level, used, size, metadata="1.2"):
    return Device("md127", "/dev/md127", level, size * MIB, metadata=metadata, legs=Legs(used * MIB, MIB))


@pytest.mark.parametrize(
    ("level", "sizes", "wanted", "there", "more"),
    [
        ("raid1", (101, 101), (101, 101), (100, 100), 0),
        ("raid1", (101, 101), (201, 151), (100, 100), 50),
        ("raid1", (201, 151), (201, 151), (100, 100), 50),
        ("raid1", (101, 101, 0), (101, 101, 101), (100, 100), 0),
        ("raid5", (101, 101, 101), (101, 101, 101), (100, 200), 0),
        ("raid5", (101, 101, 101), (151, 151, 151), (100, 200), 100),
        ("raid5", (101, 101, 101, 0), (101, 101, 101, 101), (100, 200), 100),
        # md is spreading it over the fourth member, or was when the power went.
        ("raid5", (101, 101, 101, 101), (101, 101, 101, 101), (100, 200), 100),
        ("raid6", (101, 101, 101, 101, 0), (201, 201, 201, 201, 201), (100, 200), 400),
        ("raid10", (101, 101, 101, 101), (151, 151, 151, 151), (100, 200), 100),
        ("raid1", (104, 104), (104, 104), (100, 100), 0),
    ],
)
def test_what_an_array_gains(level, sizes, wanted, there, more):
    assert array_growth(stack(level, sizes, wanted), array(level, *there)) == more * MIB


def test_what_cannot_grow_or_is_not_known_gains_nothing():
    larger = stack("raid1", (101, 101), (201, 201))
    assert array_growth(larger, array("raid1", 100, 100, "1.0")) == 0
    assert array_growth(larger, array("raid0", 100, 200)) == 0
    assert array_growth(larger, None) == 0
    assert array_growth(larger, Device("md127", "/dev/md127", "raid1", 100 * MIB, metadata="1.2")) == 0
