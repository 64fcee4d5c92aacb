# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks that share identities: copies, and disks of hosts that were made alike."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.select import Disk
from ansible_collections.bareon.allocator.plugins.module_utils._facts.signatures import Signature, Table, TablePartition
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import Device, Tree
from ansible_collections.bareon.allocator.plugins.module_utils._facts.twins import find_twins, twin_notes


def made(name, table="t", partition="p", *contents):
    """A disk with a partition that has these signatures."""
    entry = TablePartition(1, 1 << 20, 1 << 30, None, None, partition)
    disk = Device(name, f"/dev/{name}", "disk", 2 << 30, table=Table("gpt", table, (entry,)), read=True)
    part = Device(f"{name}1", f"/dev/{name}1", "part", 1 << 30, (name,), partition=entry, signatures=contents, read=True)
    return disk, part


def tree_of(*disks):
    devices = [device for disk in disks for device in disk]
    return Tree({device.name: device for device in devices}), [
        Disk(disk[0], f"id-{disk[0].name}", None, (), "sata", disk[0], (disk[0],)) for disk in disks
    ]


def kinds(found, name):
    return [(twin.kind, twin.other) for twin in found.get(name, ())]


def test_a_copy_of_a_disk_has_all_its_identities():
    tree, disks = tree_of(
        made("sda", "T", "p", Signature("ext4", "u")), made("sdb", "t", "P", Signature("ext4", "U")), made("sdc", "x", "y")
    )
    found = find_twins(tree, disks)
    assert kinds(found, "sda") == [("table", "sdb"), ("partition", "sdb1"), ("ext4", "sdb1")]
    assert kinds(found, "sdb") == [("table", "sda"), ("partition", "sda1"), ("ext4", "sda1")]
    assert "sdc" not in found
    (said,) = twin_notes(tree, disks, ["sdb"])
    assert said.startswith("/dev/sda and /dev/sdb have the same identities")
    assert not list(twin_notes(tree, disks, ["sdc"]))


@pytest.mark.parametrize("kind", ["btrfs", "zfs_member", "linux_raid_member"])
def test_members_of_one_whole_are_no_twins(kind):
    contents = [Signature(kind, "u"), *([Signature("vfat", "v")] if kind == "linux_raid_member" else [])]
    tree, disks = tree_of(made("sda", "a", "b", *contents), made("sdb", "c", "d", *contents))
    assert find_twins(tree, disks) == {}


@pytest.mark.parametrize("whole", [False, True])
def test_a_copy_of_a_member_of_md_is_a_twin_and_another_member_is_none(whole):
    """Whole disks have no table that would tell."""

    def member(name, uuid):
        disk, part = made(name, name, name)
        signed = {"signatures": (Signature("linux_raid_member", "array"),), "member": uuid}
        if whole:
            return (dataclasses.replace(disk, table=None, **signed),)
        return disk, dataclasses.replace(part, **signed)

    tree, disks = tree_of(member("sda", "one"), member("sdb", "two"), member("sdc", "one"))
    found = find_twins(tree, disks)
    assert kinds(found, "sda") == [("member", "sdc" if whole else "sdc1")]
    assert "sdb" not in found
    (said,) = twin_notes(tree, disks, ["sda"])
    assert "UUID of a member one" in said


@pytest.mark.parametrize("kind", ["LVM2_member", "crypto_LUKS", "swap", "xfs"])
def test_a_copy_of_a_partition_is_a_twin(kind):
    tree, disks = tree_of(made("sda", "a", "b", Signature(kind, "u")), made("sdb", "c", "d", Signature(kind, "u")))
    assert kinds(find_twins(tree, disks), "sda") == [(kind, "sdb1")]


def test_the_members_of_an_array_of_a_controller_show_what_is_on_the_array():
    pair = [(dataclasses.replace(disk, signatures=(Signature("isw_raid_member"),)), part) for disk, part in (made("sda"), made("sdb"))]
    assert find_twins(*tree_of(*pair)) == {}


def test_disks_with_one_serial_number_are_twins():
    tree, (one, other) = tree_of(made("sda", "a", "b"), made("sdb", "c", "d"))
    named = [dataclasses.replace(one, twins=("sdb",)), dataclasses.replace(other, twins=("sda",))]
    assert kinds(find_twins(tree, named), "sda") == [("disk", "sdb")]
    assert len(list(twin_notes(tree, named, ["sda", "sdb"]))) == 1
