# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order in which what is built on a disk is closed."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.present import PhysicalVolume, Present, Zpool
from ansible_collections.bareon.allocator.plugins.module_utils._facts.signatures import Signature
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import Device, Filesystem, Tree
from ansible_collections.bareon.allocator.plugins.module_utils._layout.teardown import (
    Destroyed,
    staying_devices,
    teardown_refusals,
    teardown_steps,
)
from ansible_collections.bareon.allocator.plugins.module_utils._steps.luks import CloseMapping
from ansible_collections.bareon.allocator.plugins.module_utils._steps.lvm import DeactivateGroup
from ansible_collections.bareon.allocator.plugins.module_utils._steps.md import StopArray

MIB = 1024**2


def volume(name: str, *parents: str) -> Device:
    return Device(name, f"/dev/{name}", "lvm", 100 * MIB, parents, title=name, group="old")


def test_a_group_with_a_thin_pool_is_closed_once_after_what_is_on_it_and_before_its_array():
    devices = [
        Device("sda", "/dev/sda", "disk", 1024 * MIB),
        Device("sdb", "/dev/sdb", "disk", 1024 * MIB),
        Device("md0", "/dev/md0", "raid1", 1000 * MIB, ("sda", "sdb")),
        volume("dm-0", "md0"),
        volume("dm-1", "md0"),
        volume("dm-2", "dm-0", "dm-1"),
        volume("dm-3", "dm-2"),
        Device("dm-4", "/dev/mapper/sealed", "crypt", 90 * MIB, ("dm-3",)),
    ]
    tree = Tree({device.name: device for device in devices})
    steps = teardown_steps(Present(tree, ()), Destroyed((devices[0], devices[1])))
    assert steps == (CloseMapping("sealed"), DeactivateGroup("old"), StopArray("/dev/md0"))


@pytest.mark.parametrize(
    ("filesystem", "staying"),
    [
        pytest.param(Filesystem("btrfs", "1b9d"), {"sdb"}, id="a Btrfs on both"),
        pytest.param(Filesystem("btrfs"), set(), id="blkid names none"),
        pytest.param(Filesystem("ext4", "1b9d"), set(), id="a copy of the disk"),
    ],
)
def test_what_is_on_several_disks_cannot_live_without_one(filesystem, staying):
    disks = [Device(name, f"/dev/{name}", "disk", 1024 * MIB, filesystem=filesystem) for name in ("sda", "sdb")]
    others = [Device("sdc", "/dev/sdc", "disk", 1024 * MIB, filesystem=Filesystem(filesystem.type, filesystem.uuid and "27c0"))]
    present = Present(Tree({device.name: device for device in (*disks, *others)}), ())
    assert staying_devices(present, Destroyed((disks[0],))) == staying
    assert staying_devices(present, Destroyed((*disks,))) == set()


def physical(device, group="nas"):
    return PhysicalVolume(device, group, group and f"uuid of {group}", 1000 * MIB, 1024 * MIB, MIB, 0, 4 * MIB)


def member(name, uuid):
    return Device(name, f"/dev/{name}", "disk", 1024 * MIB, signatures=(Signature("LVM2_member", uuid),))


def test_a_group_that_lacks_a_disk_is_not_destroyed_on_the_other_unless_it_is_the_layouts_own():
    disk = member("sda", "a")
    present = Present(Tree({"sda": disk}), (), (physical("sda"), physical(None)))
    (said,) = teardown_refusals(present, Destroyed((disk,)))
    assert "the volume group nas" in said
    assert "vgreduce --removemissing nas" in said
    assert not list(teardown_refusals(present, Destroyed((disk,)), own_groups=("sda",)))
    assert not list(teardown_refusals(Present(Tree({"sda": disk}), (), (physical("sda"),)), Destroyed((disk,))))


def test_a_copy_of_a_physical_volume_can_be_destroyed_where_lvm_uses_the_original():
    original, copy = member("sda", "a"), member("sdb", "a")
    tree = Tree({"sda": original, "sdb": copy})
    assert not list(teardown_refusals(Present(tree, (), (physical("sda"),)), Destroyed((copy,))))
    # Where LVM knows neither, it may be either of them.
    (said,) = teardown_refusals(Present(tree, ()), Destroyed((copy,)))
    assert "LVM does not say which group" in said
    running = tree.with_devices([Device("dm-0", "/dev/dm-0", "lvm", MIB, ("sdb",), title="data", group="nas")])
    assert list(teardown_refusals(Present(running, (), (physical("sda"),)), Destroyed((copy,))))


def test_what_is_used_out_of_sight_is_called_by_its_use():
    disk = Device("sda", "/dev/sda", "disk", MIB, uses=("exported by LIO as iblock_0/data",), claimed=True)
    (said,) = teardown_refusals(Present(Tree({"sda": disk}), ()), Destroyed((disk,)))
    assert "exported by LIO as iblock_0/data" in said


def test_a_cache_of_bcache_goes_only_with_the_device_whose_data_it_has():
    cache, backing = (Device(name, f"/dev/{name}", "disk", MIB, signatures=(Signature("bcache"),)) for name in ("sda", "sdb"))
    present = Present(Tree({"sda": cache, "sdb": backing}), (), unflushed={"sda": ("sdb",)})
    (said,) = teardown_refusals(present, Destroyed((cache,)))
    assert said.startswith("data of the bcache on /dev/sdb is also on /dev/sdb")
    assert not list(teardown_refusals(present, Destroyed((cache, backing))))
    assert not list(teardown_refusals(present, Destroyed((backing,))))


@pytest.mark.parametrize(
    ("level", "slots", "refused"),
    [
        ("raid0", 2, True),
        ("raid0", 1, False),
        ("linear", 3, True),
        ("raid1", 2, False),
        *((level, 2, True) for level in ("raid4", "raid5", "raid6", "raid10")),
        ("raid5", 1, False),
        ("raid10", None, False),
    ],
)
def test_an_array_that_lacks_a_member_is_not_destroyed_on_the_others_unless_each_has_all(level, slots, refused):
    disk = Device("sda", "/dev/sda", "disk", MIB, signatures=(Signature("linux_raid_member", "u"),))
    array = Device("md:u", None, level, 0, ("sda",), title="nas:data", uuid="u", slots=slots)
    said = list(teardown_refusals(Present(Tree({"sda": disk, "md:u": array}), ()), Destroyed((disk,))))
    assert bool(said) is refused
    assert not refused or "nas:data" in said[0]


def test_a_pool_that_is_not_imported_is_called_so_with_the_command_that_does_it():
    there = Filesystem("zfs_member", "4711", "tank")
    disks = [Device(name, f"/dev/{name}", "disk", 1024 * MIB, filesystem=there) for name in ("sda", "sdb")]
    present = Present(Tree({device.name: device for device in disks}), ())
    (said,) = teardown_refusals(present, Destroyed((disks[0],)))
    assert "zpool import tank" in said
    imported = Present(present.tree, (), zpools=(Zpool("tank", "4711", "ONLINE", {}, (), ()),))
    (said,) = teardown_refusals(imported, Destroyed((disks[0],)))
    assert "zpool import" not in said
