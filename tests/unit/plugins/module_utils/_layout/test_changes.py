# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What changes after an install, what grows, and what says why it cannot; on the simulated host of the property tests."""

from __future__ import annotations

import copy
import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._layout.preview import after, picture_of, render
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._steps.filesystem import GrowFilesystem, RestoreSuperblock
from ansible_collections.bareon.allocator.plugins.module_utils._steps.luks import ResizeLuks
from ansible_collections.bareon.allocator.plugins.module_utils._steps.lvm import (
    CreateVolumeGroup,
    ExtendLogicalVolume,
    RemoveLogicalVolume,
    ResizePhysicalVolume,
    RewriteGroup,
)
from ansible_collections.bareon.allocator.plugins.module_utils._steps.md import (
    CreateArray,
    GrowArray,
)
from ansible_collections.bareon.allocator.plugins.module_utils._steps.partitions import FinishPartitions, TableEntry, WritePartitionTable
from ansible_collections.bareon.allocator.tests.support.host.simulated.checks import check_data, write_data
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import BY_ID, TORN, new_uuid
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import (
    LINUX,
    MIB,
    installed,
    maker_on,
    new_host,
    plan,
    refusal,
    simple,
)
from ansible_collections.bareon.allocator.tests.support.host.simulated.runs import complete, ids, run_until
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import old_array, old_group
from ansible_collections.bareon.allocator.tests.support.host.simulated.steps import carry_out, perform


def test_nothing_takes_the_room_behind_an_unlisted_volume_that_is_smaller_than_its_file_system():
    maker = two_volumes()
    host = installed(maker)
    device = host.by_node("/dev/mapper/vg0-old").name
    maker.schema["parteds"][0]["partitions"][0]["end"] += 100
    del maker.schema["lvs"][0], maker.schema["fss"][0]
    layout = parse_static_schema(maker.schema)
    present = host.present()
    cut_off = dataclasses.replace(present, filesystem_sizes={**present.filesystem_sizes, device: 121 * MIB})
    assert plan_steps(layout, cut_off).refusals == plan_steps(layout, present).refusals == ()
    maker.schema["lvs"][0]["size"] += 40
    layout = parse_static_schema(maker.schema)
    assert plan_steps(layout, present).refusals == ()
    for wipe in ([], ids(["sda"])):
        (refused,) = plan_steps(layout, cut_off, wipe).refusals
        assert "/dev/mapper/vg0-old has 120 MiB, but the ext4 on it 121 MiB" in refused
    gone = plan_steps(layout, cut_off, ids(["sda"]), keep_unlisted=False)
    assert [content.device for loss in gone.losses for content in loss.contents] == ["/dev/mapper/vg0-old"]


@pytest.mark.parametrize(
    ("path", "change", "says"),
    [
        (("parteds", 0, "partitions", 0, "end"), -5, "would have to shrink from 100 MiB to 95 MiB"),
        (("parteds", 0, "partitions", 1, "begin"), 1, "would have to move from 101 MiB to 102 MiB"),
        (("lvs", 0, "size"), -8, "vg0/data would have to shrink from 80 MiB to 72 MiB"),
        (("lvs", 0, "size"), 4000, "too few"),
    ],
)
def test_what_cannot_be_changed_says_why(path, change, says):
    maker = simple()
    host = installed(maker)
    place = maker.schema
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] += change
    assert says in refusal(host, maker.schema)


def two_volumes():
    """A volume group with an ext4 and an xfs that leave it nothing."""
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 208, "os"), 208, "pv", "os", "ext4")
    maker.volume("vg0", "old", 30, False, "ext4")
    maker.volume("vg0", "other", 20, False, "xfs")
    return maker


def test_a_volume_that_is_named_shrinks_and_another_takes_the_room():
    maker = two_volumes()
    host = installed(maker)
    device = host.by_node("/dev/mapper/vg0-old").name
    maker.schema["lvs"][0]["size"] = 62
    maker.schema["lvs"][1]["size"] += 56
    assert "name vg0/old in allow_shrink if its ext4 may be made smaller" in refusal(host, maker.schema)
    host.mounts[device] = "/srv"
    assert "unmount it (from /srv)" in refusal(host, maker.schema, allow_shrink=["vg0/old"])
    del host.mounts[device]
    full = dataclasses.replace(host.present(), filesystem_uses={device: 90 * MIB})
    layout = parse_static_schema(maker.schema).with_shrinking(["vg0/old"])
    assert "90 MiB are in use" in plan_steps(layout, full).refusals[0]
    found = plan(host, maker.schema, allow_shrink=["vg0/old"])
    assert [step.says for step in found.steps] == [
        "shrink the ext4 on the logical volume vg0/old, and then the volume, from 120 MiB to 64 MiB",
        "grow the logical volume vg0/other from 80 MiB to 136 MiB",
        "grow the xfs on /dev/mapper/vg0-other to the size of its device",
    ]
    assert found.losses == ()
    for step in found.steps:
        carry_out(host, step)
    assert host.by_node("/dev/mapper/vg0-old").size == 64 * MIB
    assert plan(host, maker.schema, allow_shrink=["vg0/old"]).steps == plan(host, maker.schema).steps == ()


def test_what_shrank_by_half_is_completed_or_grows_back():
    """The file system is smaller, its volume is not yet."""
    maker = two_volumes()
    host = installed(maker)
    whole = maker.schema["lvs"][0]["size"]
    maker.schema["lvs"][0]["size"] = 64
    (step,) = plan(host, maker.schema, allow_shrink=["vg0/old"]).steps
    performer = perform(host, step)
    next(performer, None)
    assert plan(host, maker.schema, allow_shrink=["vg0/old"]).steps == (step,)
    maker.schema["lvs"][0]["size"] = whole
    assert [type(one) for one in plan(host, maker.schema).steps] == [GrowFilesystem]


@pytest.mark.parametrize(("fs_type", "encrypted"), [("xfs", False), ("ext4", True)])
def test_what_cannot_be_made_smaller_is_not_whatever_is_named(fs_type, encrypted):
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 208, "os"), 208, "pv", "os", "ext4")
    maker.volume("vg0", "old", 30, encrypted, fs_type)
    host = installed(maker)
    maker.schema["lvs"][0]["size"] = 64
    assert "only volumes with ext2, ext3, ext4 can be made smaller" in refusal(host, maker.schema, allow_shrink=["vg0/old"])


def test_a_volume_of_less_than_an_extent_more_is_as_wanted():
    maker = simple()
    host = installed(maker)
    for size in (77, 78, 79, 80):
        maker.schema["lvs"][0]["size"] = size
        assert plan(host, maker.schema).steps == ()


def test_another_filesystem_is_refused_and_made_where_it_may_be():
    maker = simple()
    host = installed(maker)
    maker.schema["fss"][0]["fs_type"] = "xfs"
    maker.schema["fss"][1]["fs_type"] = "btrfs"
    text = refusal(host, maker.schema)
    assert "/dev/sda1 holds ext4, but xfs is wanted" in text
    assert "/dev/mapper/vg0-data holds xfs, but btrfs is wanted" in text
    steps = plan(host, maker.schema, wipe=["sda"]).steps
    assert [type(step).__name__ for step in steps][:3] == ["WritePartitionTable", "RemoveLogicalVolume", "WritePartitionTable"]
    assert not any(isinstance(step, CreateVolumeGroup) for step in steps)


def test_a_partition_gets_a_flag_when_its_entry_is_written_anew():
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 100, "root"), 100, "ext4", "root", "ext4")
    host = installed(maker)
    maker.schema["parteds"][0]["partitions"][0]["end"] += 50
    maker.schema["parteds"][0]["partitions"][0]["flags"] = ["legacy_boot"]
    write, _grow = plan(host, maker.schema).steps
    assert write.entries[0].attrs == "LegacyBIOSBootable"
    carry_out(host, write)
    maker.schema["parteds"][0]["partitions"][0]["end"] += 50
    assert plan(host, maker.schema).steps[0].entries[0].attrs == "LegacyBIOSBootable"


def test_a_partition_grows_only_into_free_room():
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 100, "root"), 100, "ext4", "root", "ext4")
    host = installed(maker)
    maker.schema["parteds"][0]["partitions"][0]["end"] += 50
    write, grow = plan(host, maker.schema).steps
    assert write.summary == ("1: root grows from 100 MiB to 150 MiB",)
    assert (grow.type, grow.device, grow.mountpoint) == ("ext4", "/dev/sda1", None)
    entries = host.media.table("sda")
    mine = TableEntry(7, 120 * MIB, 50 * MIB, LINUX, new_uuid(), "mine")
    host.media.write_table("sda", entries[1], (*entries[2], mine))
    host.start_all()
    assert "partition 7 'mine' (50 MiB) is in the way of root" in refusal(host, maker.schema)


@pytest.mark.parametrize(("content", "fs_type", "says"), [("ext4", "vfat", "vfat cannot"), ("swap", "swap", "swap cannot")])
def test_what_cannot_grow_says_so(content, fs_type, says):
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 100, "x"), 100, content, "x", fs_type)
    host = installed(maker)
    maker.schema["parteds"][0]["partitions"][0]["end"] += 50
    assert says in refusal(host, maker.schema)


@pytest.mark.parametrize("content", ["fs", "luks-fs"])
def test_a_btrfs_grows_only_to_what_kernels_let_it_grow_to(content):
    overhead = 16 if content == "luks-fs" else 0
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 500, "os"), 500, "pv", "os", "btrfs")
    maker.volume("vg0", "x", 30, content != "fs", "btrfs")
    maker.fill(maker.partition("sda", 120, "y"), 120, content, "y", "btrfs")
    host = installed(maker)
    volume, part = maker.schema["lvs"][0], maker.schema["parteds"][0]["partitions"][1]
    volume["size"], part["end"] = 252 + overhead, part["begin"] + 255 + overhead
    says = "would have to grow, but kernels grow btrfs to no less than 256 MiB, not to"
    text = refusal(host, maker.schema)
    assert f"vg0/x {says} 252 MiB; give it 256 MiB" in text
    assert f"/dev/sda2 {says} 255 MiB; give it 256 MiB" in text
    volume["size"], part["end"] = 256 + overhead, part["begin"] + 256 + overhead
    assert [step.type for step in plan(host, maker.schema).steps if isinstance(step, GrowFilesystem)] == ["btrfs", "btrfs"]


def test_each_device_of_a_btrfs_that_grows_has_what_kernels_want():
    maker = maker_on("sda", "sdb")
    maker.spread(("sda", "sdb"), 200, "data")
    host = installed(maker)
    first, second = (table["partitions"][0] for table in maker.schema["parteds"])
    first["end"] += 100
    assert "not to 200 MiB; give it 256 MiB" in refusal(host, maker.schema)
    second["end"] += 100
    assert plan(host, maker.schema).steps[-1] == GrowFilesystem("/dev/sda1", "btrfs", None, several=True)


def with_members(present, names):
    """The state with what Btrfs calls its devices; those with one name are copies."""
    changed = [dataclasses.replace(present.tree.devices[device], member=name) for device, name in names.items()]
    return dataclasses.replace(present, tree=present.tree.with_devices(changed))


@pytest.mark.parametrize("copied_to", ["sdb", "sdc"])
def test_a_copy_of_one_device_of_a_btrfs_does_not_stand_for_one_that_failed(copied_to):
    """sdb has failed, and was exchanged; the copy is in its place, or on another disk."""
    maker = maker_on("sda", "sdb")
    maker.spread(("sda", "sdb"), 300, "data")
    host = installed(maker)
    if copied_to == "sdc":
        host.media.wipe_table("sdb")
        host.media.wipe(host.by_node("/dev/sdb1"))
        host.media.write_table("sdc", new_uuid(), host.media.table("sda")[2])
        host.start_all()
        host.media.copy(host.by_node("/dev/sda1"), host.by_node("/dev/sdc1"))
    maker.schema["parteds"][0]["partitions"][0]["end"] -= 20
    layout, disks = parse_static_schema(maker.schema), [f"{BY_ID}{disk}" for disk in ("sda", "sdb")]
    present = with_members(host.present(), {"sda1": "one", f"{copied_to}1": "one"})
    found = plan_steps(layout, present, disks)
    assert found.steps == ()
    assert "may be all that a failed disk left" in "\n".join(found.refusals)
    # Devices of their own are all that there is: then the plan is another one.
    found = plan_steps(layout, with_members(host.present(), {"sda1": "one", f"{copied_to}1": "two"}), disks)
    assert "failed disk" not in "\n".join(found.refusals)
    assert bool(found.steps) == (copied_to == "sdb")


def test_a_group_whose_physical_volumes_are_unfinished_is_written_to_all_of_them():
    maker, host = maker_on("sda"), new_host()
    maker.fill(maker.partition("sda", 200, "os"), 200, "pv", "os", "ext4")
    for step in plan(host, maker.schema).steps:
        if isinstance(step, FinishPartitions):
            break
        carry_out(host, step)
    assert [type(step) for step in plan(host, maker.schema).steps] == [RewriteGroup, FinishPartitions]


def group_on_mirror(content="pv"):
    """A mirror with a volume group, in LUKS or not, and a volume that takes nearly all of it."""
    maker = maker_on("sda", "sdb")
    maker.fill(maker.mirror(("sda", "sdb"), 150, "m", "1.2"), 148, content, "m", "ext4")
    maker.volume("vg0", "data", 28, False, "ext4")
    return maker


def grow_members(maker, size, disks=2):
    for table in maker.schema["parteds"][:disks]:
        table["partitions"][0]["end"] += size


def test_an_array_grows_with_its_members_and_what_is_on_it():
    maker = maker_on("sda", "sdb")
    maker.fill(maker.mirror(("sda", "sdb"), 100, "m", "1.2"), 90, "ext4", "m", "ext4")
    host = installed(maker)
    grow_members(maker, 50)
    found = plan(host, maker.schema)
    assert found.losses == ()
    assert [step.says for step in found.steps[2:]] == [
        "grow the array /dev/md/m to the size of its members, when it is built up",
        "grow the ext4 on /dev/md/m to the size of its device",
    ]
    assert [type(step) for step in found.steps[:2]] == [WritePartitionTable] * 2
    for step in found.steps:
        carry_out(host, step)
    assert plan(host, maker.schema).steps == ()


@pytest.mark.parametrize("content", ["pv", "luks-pv"])
def test_volumes_take_what_an_array_below_them_gains(content):
    maker = group_on_mirror(content)
    host = installed(maker)
    grow_members(maker, 64)
    maker.schema["lvs"][0]["size"] += 60
    found = plan(host, maker.schema)
    sealed = [ResizeLuks] if content == "luks-pv" else []
    assert [type(step) for step in found.steps[2:]] == [
        GrowArray,
        *sealed,
        ResizePhysicalVolume,
        ExtendLogicalVolume,
        GrowFilesystem,
    ]
    for step in found.steps:
        carry_out(host, step)
    assert plan(host, maker.schema).steps == ()
    maker.schema["lvs"][0]["size"] += 400
    assert "too few" in refusal(host, maker.schema)


@pytest.mark.parametrize("moment", range(14))
def test_an_array_that_grew_by_half_is_completed(moment):
    maker = group_on_mirror()
    host = installed(maker)
    grow_members(maker, 64)
    maker.schema["lvs"][0]["size"] += 60
    layout = parse_static_schema(maker.schema)
    run_until(host, plan(host, maker.schema), moment)
    host.start_all()
    complete(host, layout, [])
    assert host.by_node("/dev/mapper/vg0-data").size == (28 * 4 + 60) * MIB


def test_an_array_grows_with_its_smallest_member_only():
    maker = group_on_mirror()
    host = installed(maker)
    grow_members(maker, 64, disks=1)
    assert [type(step) for step in plan(host, maker.schema).steps] == [WritePartitionTable]
    maker.schema["lvs"][0]["size"] += 60
    assert "too few" in refusal(host, maker.schema)


def test_members_with_metadata_at_their_end_do_not_grow():
    maker = maker_on("sda", "sdb")
    maker.fill(maker.mirror(("sda", "sdb"), 100, "m", "1.0"), 90, "ext4", "m", "ext4")
    host = installed(maker)
    grow_members(maker, 50)
    assert "/dev/sda1 would have to grow, but members of raid1 with metadata 1.0 cannot" in refusal(host, maker.schema)


def test_what_the_schema_does_not_have_stays_until_it_is_told_otherwise():
    maker = simple()
    host = installed(maker)
    schema = maker.schema
    schema["parteds"][0]["partitions"][0]["end"] = 101
    less = simple().schema
    del less["parteds"][0]["partitions"][0], less["fss"][0]
    less["parteds"][0]["partitions"][0]["count"] = 2
    assert plan(host, less).steps == ()
    assert plan(host, less, wipe=["sda"]).steps == ()
    assert plan(host, less, keep_unlisted=False).steps == ()
    mark, write = plan(host, less, wipe=["sda"], keep_unlisted=False).steps
    assert (mark.removed, write.removed) == ((), (1,))
    less["lvs"], less["fss"] = [], []
    steps = plan(host, less, wipe=["sda"], keep_unlisted=False).steps
    assert isinstance(steps[1], RemoveLogicalVolume)


def test_names_of_others_are_not_taken():
    host = new_host()
    old_group(host, [host.media.disk("sdc")], "vg0")
    old_array(host, [host.media.disk("sdb")], "1.2", "m")
    host.start_all()
    assert "a volume group vg0 already exists" in refusal(host, simple().schema)
    maker = maker_on("sda")
    legs = [maker.partition("sda", 100, "m"), maker.partition("sda", 100, "m2")]
    maker.schema["mds"].append({"name": "/dev/md/m", "level": "raid1", "devices": legs})
    assert "an array m already exists" in refusal(host, maker.schema)


def test_a_layout_is_taken_over_from_a_plan_with_other_identities():
    """A disk that was added gives the plan another fingerprint, and its partitions other UUIDs."""
    maker = simple()
    host = installed(maker)
    for part in maker.schema["parteds"][0]["partitions"]:
        part["uuid"] = new_uuid()
    assert plan(host, maker.schema).steps == ()
    assert plan(host, maker.schema, wipe=["sda"]).steps == ()


@pytest.mark.parametrize(("present", "wanted"), [("1.2", "1.0"), ("1.0", "1.2")])
def test_the_metadata_of_an_array_is_not_changed_behind_its_data(present, wanted):
    """What the firmware reads has its superblock at the end: an array that is there otherwise is refused, or made anew where it may be."""
    maker = maker_on("sda", "sdb")
    maker.fill(maker.mirror(("sda", "sdb"), 100, "boot", present), 99, "fs", "boot", "ext4")
    host = installed(maker)
    assert plan(host, maker.schema).steps == ()
    maker.schema["mds"][0]["metadata"] = wanted
    assert f"has metadata {present}, which is not changed to {wanted}" in refusal(host, maker.schema)
    (made,) = [step for step in plan(host, maker.schema, wipe=["sda", "sdb"]).steps if isinstance(step, CreateArray)]
    assert made.metadata == wanted


SLACK = {"ext4": 8 * MIB, "xfs": 17 * MIB, "btrfs": MIB, "f2fs": 2 * MIB}


@pytest.mark.parametrize("fs_type", SLACK)
@pytest.mark.parametrize("in_volume", [False, True])
def test_what_a_cut_off_run_left_small_grows_from_the_slack_on(fs_type, in_volume):
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 300, "root"), 300, "fs", "root", fs_type)
    maker.fill(maker.partition("sda", 400, "os"), 400, "pv", "os", fs_type)
    maker.volume("vg0", "data", 70, False, fs_type)
    host = installed(maker)
    block = host.by_node("/dev/mapper/vg0-data" if in_volume else "/dev/sda1")
    (uuid, size, *subvolumes), _offsets = host.media.signatures(block)[fs_type]
    host.media.sign(block, fs_type, (uuid, size - SLACK[fs_type] + 1, *subvolumes))
    assert plan(host, maker.schema).steps == ()
    host.media.sign(block, fs_type, (uuid, size - SLACK[fs_type], *subvolumes))
    assert plan(host, maker.schema).steps == (GrowFilesystem(block.node, fs_type, None),)


@pytest.mark.parametrize("device", ["/dev/sda1", "/dev/mapper/sealed-crypt", "/dev/mapper/vg0-data"])
def test_an_ext4_whose_superblock_was_torn_as_it_grew_is_restored_if_it_is_the_layouts_own(device):
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 100, "root"), 100, "fs", "root", "ext4")
    maker.fill(maker.partition("sda", 200, "os"), 200, "pv", "os", "ext4")
    maker.fill(maker.partition("sda", 100, "sealed"), 100, "luks-fs", "sealed", "ext4")
    maker.volume("vg0", "data", 20, False, "ext4")
    host = installed(maker)
    block = host.by_node(device)
    (uuid, size), _offsets = host.media.signatures(block)["ext4"]
    host.media.sign(block, "ext4", (uuid, size - 20 * MIB, TORN))
    restored = plan(host, maker.schema)
    assert (restored.steps, restored.again) == ((RestoreSuperblock(device, "ext4", 8193, 1024),), True)
    text = render(picture_of(host.present(), ["sda"]))
    changed = [line for line in text.splitlines() if line not in render(after(picture_of(host.present(), ["sda"]), restored.steps))]
    assert len(changed) == 1
    assert changed[0].endswith("ext4 with a torn superblock")
    for piece in perform(host, restored.steps[0]):
        assert piece is None
    assert plan(host, maker.schema).steps == (GrowFilesystem(device, "ext4", None),)
    host.media.sign(block, "ext4", ("of another", size, TORN))
    says = f"{device} has an ext4 with a torn superblock and the UUID of another, which is not what this layout has there"
    assert refusal(host, maker.schema).startswith(says)


@pytest.mark.parametrize("in_volume", [False, True])
def test_what_grows_only_unmounted_is_refused_while_it_is_mounted(in_volume):
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 200, "os"), 200, "pv", "os", "f2fs")
    maker.volume("vg0", "data", 20, False, "f2fs")
    maker.fill(maker.partition("sda", 100, "root"), 100, "fs", "root", "f2fs")
    host = installed(maker)
    host.mounts[host.by_node("/dev/mapper/vg0-data" if in_volume else "/dev/sda2").name] = "/srv"
    assert plan(host, maker.schema).steps == ()
    maker.schema["lvs"][0]["size"] += 20
    maker.schema["parteds"][0]["partitions"][1]["end"] += 20
    what = "vg0/data" if in_volume else "/dev/sda2"
    assert refusal(host, maker.schema) == f"{what} would have to grow, but f2fs cannot while it is mounted (on /srv); unmount it"
    host.mounts.clear()
    grown = [step for step in plan(host, maker.schema).steps if isinstance(step, GrowFilesystem)]
    assert [step.type for step in grown] == ["f2fs", "f2fs"]


@pytest.mark.parametrize("content", ["fs", "luks-fs", "pv", "luks-pv"])
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("wipe", [(), ("sda", "sdb")])
def test_what_the_kernel_does_not_know_is_told_to_it_before_it_is_opened_or_measured(content, mirrored, wipe):
    """After a power cut that left the backup of a table alone; a permission to wipe destroys nothing that could not be looked into."""
    maker = maker_on("sda", "sdb")
    device = maker.mirror(("sda", "sdb"), 300, "os", "1.2") if mirrored else maker.partition("sda", 300, "os")
    maker.fill(device, 290, content, "os", "ext4")
    if content.endswith("pv"):
        maker.volume("vg0", "data", 20, False, "ext4")
    host = installed(maker)
    write_data(host, parse_static_schema(maker.schema))
    host.media.tear_table("sda")
    host.start_all()
    assert not any(device.running for device in host.present().tree.children("sda"))
    told = plan(host, maker.schema, wipe)
    assert [step.says for step in told.steps] == [f"change the partition table on {BY_ID}sda: nothing; the kernel does not know it yet"]
    assert told.again
    assert not any(loss.disk.endswith("sda") for loss in told.losses)
    complete(host, parse_static_schema(maker.schema), [f"{BY_ID}{disk}" for disk in wipe])
    check_data(host, parse_static_schema(maker.schema))


def test_a_filesystem_that_the_kernel_does_not_know_grows_in_the_same_run():
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 300, "root"), 300, "fs", "root", "ext4")
    host = installed(maker)
    block = host.by_node("/dev/sda1")
    (uuid, size), _offsets = host.media.signatures(block)["ext4"]
    host.media.sign(block, "ext4", (uuid, size - 100 * MIB))
    host.media.tear_table("sda")
    host.start_all()
    told = plan(host, maker.schema)
    assert ([type(step) for step in told.steps], told.again) == ([WritePartitionTable], True)
    carry_out(host, told.steps[0])
    assert plan(host, maker.schema).steps == (GrowFilesystem("/dev/sda1", "ext4", None),)


def test_a_table_of_which_only_the_backup_is_whole_is_written_before_it_is_changed():
    """A change begins with the backup: a second cut would leave nothing of the table, and of a partition that somebody added by hand."""
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 300, "root"), 300, "fs", "root", "ext4")
    host = new_host()
    first = plan(host, maker.schema)
    for step in first.steps[:1]:
        carry_out(host, step)
    _kind, uuid, entries = host.media.table("sda")
    added = dataclasses.replace(entries[0], number=9, start=entries[0].start + 400 * MIB, size=50 * MIB, uuid=new_uuid(), name="mine")
    host.media.write_table("sda", uuid, (*entries, added))
    host.media.tear_table("sda")
    host.start_all()
    told = plan(host, maker.schema)
    assert [step.says for step in told.steps] == [f"change the partition table on {BY_ID}sda: nothing; the kernel does not know it yet"]
    assert told.again
    moments = len(list(perform(copy.deepcopy(host), told.steps[0])))
    for moment in range(moments):
        cut = copy.deepcopy(host)
        run_until(cut, told, moment)
        cut.start_all()
        complete(cut, parse_static_schema(maker.schema), [])
        assert added in cut.media.table("sda")[2]
    assert moments > 2


def test_a_table_that_the_kernel_knows_is_made_whole_as_well():
    maker = simple()
    host = installed(maker)
    host.media.tear_table("sda")
    told = plan(host, maker.schema)
    assert [step.says for step in told.steps] == [f"change the partition table on {BY_ID}sda: nothing; only its backup is whole"]
    carry_out(host, told.steps[0])
    assert plan(host, maker.schema).steps == ()


def test_a_mark_is_not_written_into_a_table_of_which_only_the_backup_is_whole():
    """Its write would begin with the backup. What the kernel still has of before keeps the table from being mended first."""
    earlier, later = maker_on("sda", "sdb", "sdc"), maker_on("sda", "sdb", "sdc")
    earlier.spread(("sda", "sdb"), 120, "tank")
    later.spread(("sdb", "sdc"), 120, "tank")
    host, wipe = new_host(), ["sda", "sdb", "sdc"]
    complete(host, parse_static_schema(earlier.schema), [])
    marking = plan(host, later.schema, wipe=wipe).steps[0]
    assert (marking.disk, marking.summary) == ("/dev/sdb", ("mark partition 1 as to be made again",))
    host.media.tear_table("sdb")
    stale = dataclasses.replace(host.partitions["sdb"][0], number=9, start=700 * MIB)
    host.partitions["sdb"] = (*host.partitions["sdb"], stale)
    assert "partx --delete /dev/sdb" in refusal(host, later.schema, wipe=wipe)
    # After a restart the kernel knows nothing of it: the table is mended first, in a round of its own.
    host.start_all()
    mending = plan(host, later.schema, wipe=wipe)
    assert (mending.again, [step.disk for step in mending.steps]) == (True, ["/dev/sdb"])
    complete(host, parse_static_schema(later.schema), ids(wipe))


@pytest.mark.parametrize("keeper", ["lvs", "luks", "fss"])
@pytest.mark.parametrize("change", ["its partition", "its pool", "what is on it"])
def test_a_volume_keeps_its_data_although_wipe_names_its_disk(keeper, change):
    def made(size=600, extents=40, kind="ext4"):
        maker = maker_on("sda")
        maker.fill(maker.partition("sda", size, "os"), size, "pv", "os", "ext4")
        maker.pool("vg0", "pool", extents)
        maker.thin("vg0", "pool", "web", 100, True, kind)
        return maker

    host = installed(made())
    wanted = {"its partition": made(size=500), "its pool": made(extents=20), "what is on it": made(kind="xfs")}[change].schema
    assert plan(host, wanted, wipe=["sda"]).steps
    for entry in wanted[keeper]:
        entry["keep_data"] = True
    says = {"its partition": "would have to shrink", "its pool": "would have to shrink", "what is on it": "holds ext4, but xfs is wanted"}
    assert says[change] in refusal(host, wanted, wipe=["sda"])


@pytest.mark.parametrize("keeper", ["vgs", "lvs", "luks", "fss"])
def test_no_new_table_is_made_where_anything_is_to_keep_its_data(keeper):
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 600, "os"), 600, "pv", "os", "ext4")
    maker.volume("vg0", "web", 40, True, "ext4")
    host = new_host()
    old_group(host, [host.blocks()["sda"]], "theirs")
    assert plan(host, maker.schema, wipe=["sda"]).steps
    for entry in maker.schema[keeper]:
        entry["keep_data"] = True
    assert "keeps its data, but is not on" in refusal(host, maker.schema, wipe=["sda"])
    assert plan(new_host(), maker.schema, wipe=["sda"]).steps


@pytest.mark.parametrize("keeper", ["luks", "fss"])
def test_what_lies_on_an_unfinished_partition_is_kept_where_anything_is_to_keep_its_data(keeper):
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 100, "data"), 100, "luks-fs", "data", "ext4")
    host = new_host()
    carry_out(host, plan(host, maker.schema).steps[0])
    host.media.sign(host.blocks()["sda1"], "xfs", (new_uuid(), 1))
    assert plan(host, maker.schema, wipe=["sda"]).steps
    for entry in maker.schema[keeper]:
        entry["keep_data"] = True
    assert "take keep_data away" in refusal(host, maker.schema, wipe=["sda"])


@pytest.mark.parametrize("keeper", ["lvs", "fss"])
@pytest.mark.parametrize("there", ["another group", "a table of ours"])
def test_a_disk_with_something_else_joins_a_group_that_keeps_its_data(keeper, there):
    def made(*disks):
        maker = maker_on("sda", "sdb")
        for disk in disks:
            maker.schema["pvs"].append({"name": maker.partition(disk, 600, f"os-{disk}")})
        maker.schema["vgs"].append({"name": "vg0", "pvnames": [volume["name"] for volume in maker.schema["pvs"]]})
        maker.room["vg0"] = 148
        maker.volume("vg0", "web", 40, False, "ext4")
        return maker

    first, both = made("sda"), made("sda", "sdb").schema
    if there == "a table of ours":
        first.fill(first.partition("sdb", 300, "other"), 300, "fs", "other", "ext4")
    host = installed(first)
    if there == "another group":
        old_group(host, [host.blocks()["sdb"]], "theirs")
    for entry in both[keeper]:
        entry["keep_data"] = True
    assert plan(host, both, wipe=["sdb"]).steps


@pytest.mark.parametrize("keeper", ["lvs", "luks", "fss"])
@pytest.mark.parametrize("gone", ["a volume", "a pool"])
def test_no_volume_goes_while_one_that_keeps_its_data_is_not_there(keeper, gone):
    def made(name, extents=40):
        maker = maker_on("sda")
        maker.fill(maker.partition("sda", 600, "os"), 600, "pv", "os", "ext4")
        if gone == "a volume":
            maker.volume("vg0", name, 40, True, "ext4")
        else:
            maker.pool("vg0", "pool", extents)
            maker.thin("vg0", "pool", name, 100, True, "ext4")
        return maker

    host, wanted = installed(made("data")), made("renamed", 20).schema
    assert plan(host, wanted, wipe=["sda"], keep_unlisted=False).steps
    for entry in wanted[keeper]:
        entry["keep_data"] = True
    assert "take keep_data away" in refusal(host, wanted, wipe=["sda"], keep_unlisted=False)
    # What stays is in nobody's way.
    assert gone == "a pool" or plan(host, wanted, wipe=["sda"]).steps
