# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What reaches something foreign is refused, whatever planned it; a table of ours is ours only where nothing else lies in its sectors."""

from __future__ import annotations

import copy
import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.signatures import Signature
from ansible_collections.bareon.allocator.plugins.module_utils._layout.disks import find_disks
from ansible_collections.bareon.allocator.plugins.module_utils._layout.gate import Given, check_steps
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import LayoutPlan
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._steps import reach
from ansible_collections.bareon.allocator.plugins.module_utils._steps.btrfs import CreateSubvolumes
from ansible_collections.bareon.allocator.plugins.module_utils._steps.cache import AttachCache
from ansible_collections.bareon.allocator.plugins.module_utils._steps.filesystem import (
    GrowFilesystem,
    MakeFilesystem,
    MakeSwap,
    RestoreSuperblock,
)
from ansible_collections.bareon.allocator.plugins.module_utils._steps.luks import FormatLuks, OpenLuks
from ansible_collections.bareon.allocator.plugins.module_utils._steps.lvm import (
    CreatePhysicalVolume,
    CreateVolumeGroup,
    DeactivateGroup,
    ExtendLogicalVolume,
    ExtendVolumeGroup,
    RemoveLogicalVolume,
    ResizePhysicalVolume,
    ShrinkLogicalVolume,
)
from ansible_collections.bareon.allocator.plugins.module_utils._steps.md import CreateArray, ReAddMembers, StopArray
from ansible_collections.bareon.allocator.plugins.module_utils._steps.partitions import (
    ClearGaps,
    FinishPartitions,
    TableEntry,
    WritePartitionTable,
)
from ansible_collections.bareon.allocator.plugins.module_utils._steps.signatures import ClearSignatures
from ansible_collections.bareon.allocator.plugins.module_utils._steps.step import Step
from ansible_collections.bareon.allocator.plugins.module_utils._steps.zfs import CreateZpool, ExtendZpool
from ansible_collections.bareon.allocator.plugins.module_utils._storage.derived import table_uuid
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import BY_ID, Raid, new_uuid
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import (
    LINUX,
    MIB,
    host_with_table,
    installed,
    maker_on,
    new_host,
    plan,
    refusal,
    simple,
)
from ansible_collections.bareon.allocator.tests.support.host.simulated.runs import complete
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import old_array, old_group
from ansible_collections.bareon.allocator.tests.support.host.step_kinds import all_kinds, sample

NOTHING = Given(frozenset(), frozenset())


# They make something in room that nobody has, or work on groups and pools that are judged by their devices.
REACHING_NOTHING = {
    *(
        "RewriteGroup",
        "ActivateGroup",
        "CreateLogicalVolume",
        "CreateStripedVolume",
        "CreateThinPool",
        "CreateThinVolume",
        "CreateCacheVolume",
    ),
    *("ShrinkZpool", "CreateDataset", "SetProperties", "ExportZpool"),
}


def test_every_kind_of_step_but_these_says_what_it_reaches():
    present = used().present()
    assert {kind.__name__ for kind in all_kinds() if sample(kind).reaches(present) is reach.NOTHING} == REACHING_NOTHING


def test_a_kind_of_step_that_does_not_say_what_it_reaches_cannot_be_made():
    class Shred(StopArray):
        reaches = Step.reaches

    with pytest.raises(TypeError, match="reaches"):
        Shred("/dev/sda")


def check(host, steps, wipe=(), given=NOTHING, present=None):
    layout, present = parse_static_schema(simple().schema), present or host.present()
    disks, _refusals = find_disks(layout, present, [f"{BY_ID}{disk}" for disk in wipe])
    return list(check_steps(present, disks, given, steps))


def used():
    """A disk with a FAT and a volume group of somebody else's."""
    host = host_with_table("sda", (1, 1, 300, "Windows"), (2, 301, 400, ""))
    host.media.sign(host.blocks()["sda1"], "vfat", ("label", 1))
    old_group(host, [host.blocks()["sda2"]], "theirs")
    host.start_all()
    return host


def entry(number, begin, size, clear=True):
    return TableEntry(number, begin * MIB, size * MIB, LINUX, new_uuid(), clear=clear)


def table(*entries, fresh=False, removed=()):
    return WritePartitionTable("/dev/sda", f"{BY_ID}sda", new_uuid(), 512, fresh, entries, removed)


DESTROYING = {
    "a fresh table": (table(fresh=True), "/dev/sda1 has vfat"),
    "a partition that is removed": (table(removed=(1,)), "/dev/sda1 has vfat"),
    "a partition over another one": (table(entry(9, 100, 50)), "/dev/sda1 has vfat"),
    "clearing": (ClearSignatures(("/dev/sda1",)), "/dev/sda1 has vfat at 82 bytes"),
    "a file system": (MakeFilesystem("/dev/sda1", "ext4", new_uuid(), "", ()), "/dev/sda1 has vfat"),
    "the second device of one": (MakeFilesystem("/dev/sdb1", "btrfs", new_uuid(), "", (), ("/dev/sda1",)), "/dev/sda1 has vfat"),
    "swap": (MakeSwap("/dev/sda1", new_uuid(), "", ()), "/dev/sda1 has vfat"),
    "a container": (FormatLuks("/dev/sda1", new_uuid(), aligned=False), "/dev/sda1 has vfat"),
    "an array": (CreateArray("/dev/md/m", "m", "raid1", ("/dev/sda1",), (), "1.2", new_uuid()), "/dev/sda1 has vfat"),
    "its spare": (CreateArray("/dev/md/m", "m", "raid1", (), ("/dev/sda1",), "1.2", new_uuid()), "/dev/sda1 has vfat"),
    "a physical volume": (CreatePhysicalVolume("/dev/sda2", 0, 1, aligned=False), "/dev/sda2 has LVM2_member at 536 bytes"),
    "a group": (CreateVolumeGroup("vg0", ("/dev/sda2",)), "/dev/sda2 has LVM2_member"),
    "a group that is extended": (ExtendVolumeGroup("vg0", ("/dev/sda2",)), "/dev/sda2 has LVM2_member"),
    "a volume that is removed": (RemoveLogicalVolume("theirs", "old"), "/dev/mapper/theirs-old has ext4"),
    "a volume that becomes a cache": (AttachCache("theirs", "x", "old", "writeback"), "/dev/mapper/theirs-old has ext4"),
    "a group that is closed": (DeactivateGroup("theirs"), "/dev/mapper/theirs-old has lvm running on it"),
    "a pool": (CreateZpool("tank", (("stripe", ("/dev/sda1",)),), 12), "/dev/sda1 has vfat"),
    "a pool that grows": (ExtendZpool("tank", "", (("stripe", ("/dev/sda1",)),)), "/dev/sda1 has vfat"),
}


@pytest.mark.parametrize("name", DESTROYING)
def test_a_step_that_destroys_something_foreign_is_refused_unless_its_disk_may_be_wiped(name):
    step, says = DESTROYING[name]
    host = used()
    assert any(line.startswith(says) and step.says in line and f"name {BY_ID}sda in wipe" in line for line in check(host, [step]))
    assert check(host, [step], wipe=["sda"]) == []
    everything = frozenset(host.present().tree.devices)
    assert check(host, [step], given=Given(everything, frozenset())) == []
    # What the layout has may be opened and changed, but not destroyed.
    assert check(host, [step], given=Given(frozenset(), everything))


KEEPING = [
    StopArray("/dev/md/m"),
    ResizePhysicalVolume("/dev/sda2"),
    GrowFilesystem("/dev/sda1", "vfat", None),
    RestoreSuperblock("/dev/sda1", "ext4", 1, 4096),
    OpenLuks("/dev/sda1", "x"),
    ReAddMembers("/dev/md/m", ("/dev/sda1",)),
    CreateSubvolumes("/dev/sda1", ("a",)),
    ExtendLogicalVolume("theirs", "old", 2, 1),
    ShrinkLogicalVolume("theirs", "old", 1, 2, "/dev/mapper/theirs-old", "ext4"),
]


@pytest.mark.parametrize("step", KEEPING)
def test_what_opens_or_changes_something_does_so_to_what_the_layout_has(step):
    host = used()
    old_array(host, [host.media.disk("sdb"), host.media.disk("sdc")], "1.2", "m")
    host.start_all()
    assert check(host, [step])
    assert check(host, [step], given=Given(frozenset(), frozenset(host.present().tree.devices))) == []


@pytest.mark.parametrize(
    ("offset", "refuses"),
    [(536, True), (4096, True), (17407, True), (17408, False), (-8192, True), (-20000, False), (0, False)],
)
def test_a_table_is_written_only_where_nothing_else_lies_in_its_sectors(offset, refuses):
    host = host_with_table("sda", (1, 1, 300, ""))
    present = host.present()
    disk = present.tree.devices["sda"]
    there = Signature("linux_raid_member", new_uuid(), None, (offset % disk.size,))
    seen = dataclasses.replace(present, tree=present.tree.with_devices([dataclasses.replace(disk, signatures=(*disk.signatures, there))]))
    for step in (table(entry(1, 1, 300, clear=False)), FinishPartitions("/dev/sda", 512, (1,), (new_uuid(),))):
        assert bool(check(host, [step], present=seen)) is refuses


def emptied():
    """A host of which a permitted run emptied a disk, and was cut off before it cleared what was there as a whole."""
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 300, "root"), 300, "fs", "root", "ext4")
    host = new_host()
    host.media.write_table("sda", table_uuid(f"{BY_ID}sda"), ())
    host.media.sign(host.media.disk("sda"), "md-0.90", Raid(new_uuid(), "old", "raid1", 1, "0.90", 0, host.media.sizes["sda"]))
    return maker, host


@pytest.mark.parametrize("runs", [False, True])
def test_what_was_on_a_disk_that_was_emptied_is_cleared_before_the_table_is_written(runs):
    """What the disk as a whole was a part of would come back as soon as the kernel looks at the table."""
    maker, host = emptied()
    if runs:
        host.start_all()
    steps = plan(host, maker.schema).steps
    expected = [*([StopArray] if runs else []), ClearGaps, WritePartitionTable]
    assert [type(step) for step in steps[: len(expected)]] == expected
    complete(host, parse_static_schema(maker.schema), [])
    assert list(host.media.signatures(host.media.disk("sda"))) == []


@pytest.mark.parametrize("grown", [0, 50])
def test_signatures_of_a_disk_as_a_whole_stay_beside_finished_partitions(grown):
    """They are somebody's: nothing is done where nothing is to be done, all else is refused unless the disk may be wiped."""
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 300, "root"), 300, "fs", "root", "ext4")
    host = installed(maker)
    host.media.sign(host.media.disk("sda"), "btrfs", (new_uuid(), 1))
    maker.schema["parteds"][0]["partitions"][0]["end"] += grown
    if not grown:
        assert plan(host, maker.schema) == LayoutPlan()
    else:
        assert "has btrfs at 65600 bytes as a whole" in refusal(host, maker.schema)
    wiping = plan(host, maker.schema, wipe=["sda"])
    assert wiping.steps[0] == ClearGaps("/dev/sda", f"{BY_ID}sda", (65600,))
    assert [(loss.disk, [content.kind for content in loss.contents]) for loss in wiping.losses] == [(f"{BY_ID}sda", ["btrfs"])]


@pytest.mark.parametrize("kind", ["md-1.2", "md-1.0", "LVM2_member", "f2fs", "swap", "ext4"])
@pytest.mark.parametrize("starts", [False, True])
def test_a_table_of_ours_under_something_else_is_not_ours(kind, starts):
    """One copy of the table is left; writing it anew as it is would destroy what lies over the other one."""
    maker = maker_on("sda", "sdb")
    maker.fill(maker.partition("sda", 300, "root"), 300, "fs", "root", "ext4")
    host = installed(maker)
    if kind.startswith("md-"):
        old_array(host, [host.media.disk("sda")], kind[3:], "theirs")
    else:
        host.media.sign(host.media.disk("sda"), kind, (new_uuid(), None))
    if starts:
        host.start_all()
    before = copy.deepcopy(host.media.marks)
    assert f"{BY_ID}sda (/dev/sda) is not empty; wiping it would destroy" in refusal(host, maker.schema)
    host.media.write_table("sdb", new_uuid(), ())
    both = plan(host, maker.schema)
    assert (both.steps, len(both.refusals)) == ((), 2)
    assert host.media.marks["sda"] == before["sda"]
    wiping = plan(host, maker.schema, wipe=["sda", "sdb"])
    assert any(isinstance(step, WritePartitionTable) and step.fresh for step in wiping.steps)
    complete(host, parse_static_schema(maker.schema), [f"{BY_ID}{disk}" for disk in ("sda", "sdb")])
    assert plan(host, maker.schema).steps == ()
