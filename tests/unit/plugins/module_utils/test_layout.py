# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is refused and why, what stays, and the order of steps; on the simulated host of the property tests."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils import step_kinds as kinds
from ansible_collections.bareon.allocator.plugins.module_utils.layout import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils.layout_disks import fingerprint
from ansible_collections.bareon.allocator.plugins.module_utils.static_schema import parse_static_schema
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.fingerprint import fingerprint as planned_fingerprint
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.hardware import parse_hardware
from ansible_collections.bareon.allocator.tests.property.simulated_host import BY_ID, SimulatedHost, new_uuid
from ansible_collections.bareon.allocator.tests.property.simulated_schemas import DISK_SIZES, SchemaMaker, old_array, old_group
from ansible_collections.bareon.allocator.tests.property.simulated_steps import carry_out

MIB = 1024**2
LINUX = "0fc63daf-8483-4772-8e79-3d69d8477de4"


def new_host():
    return SimulatedHost.with_disks(dict(DISK_SIZES))


def host_with_table(disk="sda", *entries):
    """A host with a foreign table; entries are (number, begin, size, name) in MiB."""
    host = new_host()
    table = tuple(kinds.TableEntry(number, begin * MIB, size * MIB, LINUX, new_uuid(), name) for number, begin, size, name in entries)
    host.media.write_table(disk, new_uuid(), table)
    host.start_all()
    return host


def maker_on(*disks):
    maker = SchemaMaker()
    for disk in disks:
        maker.disk(disk, DISK_SIZES[disk])
    return maker


def simple():
    """Root on sda, and a volume group with a volume."""
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 100, "root"), 100, "ext4", "root", "ext4")
    maker.fill(maker.partition("sda", 200, "os"), 200, "pv", "os", "ext4")
    maker.volume("vg0", "data", 20, False, "xfs")
    return maker


def installed(maker):
    host = new_host()
    for step in plan_steps(parse_static_schema(maker.schema), host.present()).steps:
        carry_out(host, step)
    return host


def plan(host, schema, wipe=(), **options):
    return plan_steps(parse_static_schema(schema), host.present(), [f"{BY_ID}{disk}" for disk in wipe], **options)


def refusal(host, schema, wipe=(), **options):
    found = plan(host, schema, wipe, **options)
    assert found.steps == ()
    assert found.refusals
    return "\n".join(found.refusals)


def test_steps_build_from_the_disk_to_the_filesystem():
    names = [type(step).__name__ for step in plan(new_host(), simple().schema).steps]
    assert names == [
        "WritePartitionTable",
        "ClearSignatures",
        "CreatePhysicalVolume",
        "CreateVolumeGroup",
        "MakeFilesystem",
        "FinishPartitions",
        "CreateLogicalVolume",
        "ClearSignatures",
        "MakeFilesystem",
        "FinishLogicalVolumes",
    ]
    assert plan(installed(simple()), simple().schema).steps == ()


def test_steps_are_plain_data_and_words():
    steps = plan(new_host(), simple().schema).steps
    assert [step.plain()["step"] for step in steps] == [type(step).__name__ for step in steps]
    assert all(step.says and "{" not in step.says for step in steps)
    assert steps[0].says == f"write a new partition table on {BY_ID}sda: 1: root 100 MiB; 2: os 200 MiB"
    assert "make xfs on /dev/mapper/vg0-data" in [step.says for step in steps]


def test_a_disk_with_something_on_it_is_refused_and_what_would_be_lost_is_listed():
    host = host_with_table("sda", (1, 1, 300, "Windows"), (2, 301, 400, ""))
    host.media.sign(host.blocks()["sda1"], "vfat", ("label", 1))
    old_group(host, [host.blocks()["sda2"]], "precious")
    host.start_all()
    text = refusal(host, simple().schema)
    for part in (f"{BY_ID}sda (/dev/sda)", "a gpt table with 2 partitions", "'Windows'", "300 MiB", "vfat", "precious/old", "in wipe"):
        assert part in text


@pytest.mark.parametrize(
    "kind", ["ext4", "LVM2_member", "crypto_LUKS", "md-0.90", "md-1.0", "md-1.2", "zfs_member", "btrfs", "swap", "vfat"]
)
def test_any_signature_of_a_whole_disk_is_refused_without_a_word(kind):
    host = new_host()
    if kind.startswith("md-"):
        old_array(host, [host.media.disk("sda"), host.media.disk("sdb")], kind[3:], "old")
    elif kind == "LVM2_member":
        old_group(host, [host.media.disk("sda")], "old")
    else:
        host.media.sign(host.media.disk("sda"), kind, ("uuid", 1))
    host.start_all()
    assert "is not empty" in refusal(host, simple().schema)


def test_an_empty_table_of_somebody_is_not_nothing():
    assert "a gpt table with no partitions" in refusal(host_with_table("sda"), simple().schema)


@pytest.mark.parametrize("place", ["/srv", "[SWAP]"])
def test_what_is_mounted_stays_wipe_or_not(place):
    host = host_with_table("sda", (1, 1, 300, "x"))
    host.mounts["sda1"] = place
    text = refusal(host, simple().schema, wipe=["sda"])
    assert "/dev/sda1 would be destroyed" in text
    assert ("used as swap" if place == "[SWAP]" else "mounted on /srv") in text


def test_what_is_mounted_far_above_the_disk_stays_too():
    host = new_host()
    old_group(host, [host.media.disk("sda")], "old")
    host.start_all()
    (volume,) = [name for name in host.blocks() if name.startswith("dm-")]
    host.mounts[volume] = "/srv"
    assert "/dev/mapper/old-old would be destroyed, but is mounted on /srv" in refusal(host, simple().schema, wipe=["sda"])


@pytest.mark.parametrize("what", ["group", "array"])
def test_what_is_also_on_another_disk_names_that_disk(what):
    host = new_host()
    disks = [host.media.disk("sda"), host.media.disk("sdb")]
    if what == "group":
        old_group(host, disks, "old")
    else:
        old_array(host, disks, "1.2", "old")
    host.start_all()
    text = refusal(host, simple().schema, wipe=["sda"])
    assert f"is also on /dev/sdb on {BY_ID}sdb" in text
    schema = maker_on("sda", "sdb").schema
    assert "is not empty" in refusal(host, schema, wipe=["sda"])
    assert plan(host, schema, wipe=["sda", "sdb"]).steps[0].says.startswith(("deactivate", "stop"))


def test_all_refusals_come_at_once():
    host = host_with_table("sda", (1, 1, 300, "x"))
    host.media.sign(host.media.disk("sdb"), "ext4", ("uuid", 1))
    schema = maker_on("sda", "sdb", "sdc").schema
    schema["parteds"][2]["disk_size"] = 7
    found = plan(host, schema, fingerprint="0" * 32).refusals
    assert len(found) == 4
    assert [part for part in ("sda", "sdb", "for 7 MiB", "made for other disks") if not any(part in text for text in found)] == []


def test_fingerprints_are_those_of_the_planner():
    host = new_host()
    present = host.present()
    facts = [
        {
            "id": disk.id,
            "wwn": disk.source.row["wwn"],
            "serial": disk.source.row["serial"],
            "size": disk.device.size // MIB,
            "size_bytes": disk.device.size,
            "logical_block": 512,
            "type": "hdd",
        }
        for disk in present.disks
    ]
    planned = planned_fingerprint(parse_hardware({"disks": facts}))
    assert planned == fingerprint(present.disks, present)
    schema = simple().schema
    assert plan(host, schema, fingerprint=planned).steps
    assert plan(host, schema, fingerprint=planned_fingerprint(parse_hardware({"disks": facts[:1]}))).steps
    facts[0]["serial"] = "other"
    assert "made for other disks" in refusal(host, schema, fingerprint=planned_fingerprint(parse_hardware({"disks": facts})))


def test_a_disk_that_is_not_here_and_one_that_is_read_only():
    schema = maker_on("sda").schema
    schema["parteds"].append({"name": "/dev/disk/by-id/wwn-gone"})
    assert "there is no disk /dev/disk/by-id/wwn-gone here; there are" in refusal(new_host(), schema)
    host = new_host()
    present = host.present()
    device = present.tree.devices["sda"]
    locked = dataclasses.replace(present, tree=present.tree.with_devices([dataclasses.replace(device, row={**device.row, "ro": True})]))
    assert "is read-only" in plan_steps(parse_static_schema(maker_on("sda").schema), locked).refusals[0]


def test_a_disk_that_cannot_be_read_is_not_taken_for_empty():
    present = new_host().present()
    unread = present.tree.with_devices([dataclasses.replace(present.tree.devices["sda"], read=False)])
    found = plan_steps(parse_static_schema(simple().schema), dataclasses.replace(present, tree=unread), [f"{BY_ID}sda"])
    assert "could not be read" in found.refusals[0]


def test_wipe_names_disks_by_what_does_not_move():
    schema = simple().schema
    layout = parse_static_schema(schema)
    for name, says in (
        ("/dev/sda", f"can be another disk after a reboot; name {BY_ID}sda"),
        ("/dev/sdq", "none of the disks of the schema"),
    ):
        assert says in plan_steps(layout, new_host().present(), [name]).refusals[0]


def test_wipe_is_a_permission_and_not_an_order():
    maker = simple()
    host = installed(maker)
    assert plan(host, maker.schema, wipe=["sda"]).steps == ()
    assert plan(host, maker.schema, wipe=["sda"], keep_unlisted=False).steps == ()


def test_keep_data_beats_wipe():
    host = host_with_table("sda", (1, 1, 100, "old root"), (2, 101, 200, "home"))
    host.media.sign(host.blocks()["sda2"], "ext4", ("home", 200 * MIB))
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 100, "root"), 100, "ext4", "root", "xfs")
    maker.fill(maker.partition("sda", 200, "home"), 200, "ext4", "home", "ext4")
    maker.schema["parteds"][0]["partitions"][1]["keep_data"] = True
    steps = plan(host, maker.schema, wipe=["sda"]).steps
    assert {getattr(step, "device", "/dev/sda1") for step in steps} == {"/dev/sda1"}
    for step in steps:
        carry_out(host, step)
    assert host.media.signatures(host.blocks()["sda2"])["ext4"][0] == ("home", 200 * MIB)
    maker.schema["fss"][1]["fs_type"] = "xfs"
    assert "holds ext4, but xfs is wanted" in refusal(host, maker.schema, wipe=["sda"])
    maker.schema["parteds"][0]["partitions"][1]["begin"] += 3
    maker.schema["parteds"][0]["partitions"][1]["end"] += 3
    assert "keeps its data, but is not on" in refusal(host_with_table("sda", (1, 1, 9, "x")), maker.schema, wipe=["sda"])


@pytest.mark.parametrize(
    ("path", "change", "says"),
    [
        (("parteds", 0, "partitions", 0, "end"), -5, "would have to shrink from 100 MiB to 95 MiB"),
        (("parteds", 0, "partitions", 1, "begin"), 1, "would have to move from 101 MiB to 102 MiB"),
        (("lvs", 0, "size"), -8, "vg0/data would have to shrink from 80 MiB to 72 MiB"),
        (("lvs", 0, "size"), 4000, "are short"),
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
    assert [type(step).__name__ for step in steps][:3] == ["RemoveLogicalVolume", "WritePartitionTable", "WritePartitionTable"]
    assert not any(isinstance(step, kinds.CreateVolumeGroup) for step in steps)


def test_a_partition_grows_only_into_free_room():
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 100, "root"), 100, "ext4", "root", "ext4")
    host = installed(maker)
    maker.schema["parteds"][0]["partitions"][0]["end"] += 50
    write, grow = plan(host, maker.schema).steps
    assert write.summary == ("1: root grows from 100 MiB to 150 MiB",)
    assert (grow.type, grow.device, grow.mountpoint) == ("ext4", "/dev/sda1", None)
    entries = host.media.table("sda")
    mine = kinds.TableEntry(7, 120 * MIB, 50 * MIB, LINUX, new_uuid(), "mine")
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


def test_a_group_whose_physical_volumes_are_unfinished_is_written_to_all_of_them():
    maker, host = maker_on("sda"), new_host()
    maker.fill(maker.partition("sda", 200, "os"), 200, "pv", "os", "ext4")
    for step in plan(host, maker.schema).steps:
        if isinstance(step, kinds.FinishPartitions):
            break
        carry_out(host, step)
    assert [type(step) for step in plan(host, maker.schema).steps] == [kinds.RewriteGroup, kinds.FinishPartitions]


def test_members_of_arrays_do_not_grow_and_are_not_exchanged():
    maker = maker_on("sda", "sdb", "sdc")
    maker.fill(maker.mirror(("sda", "sdb"), 100, "m", "1.2"), 90, "ext4", "m", "ext4")
    host = installed(maker)
    for table in maker.schema["parteds"][:2]:
        table["partitions"][0]["end"] += 50
    assert "members of arrays do not" in refusal(host, maker.schema)
    for table in maker.schema["parteds"][:2]:
        table["partitions"][0]["end"] -= 50
    maker.schema["mds"][0]["devices"].append(maker.partition("sdc", 100, "m"))
    assert "members are not added to an array" in refusal(host, maker.schema)


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
    (write,) = plan(host, less, wipe=["sda"], keep_unlisted=False).steps
    assert write.removed == (1,)
    less["lvs"], less["fss"] = [], []
    steps = plan(host, less, wipe=["sda"], keep_unlisted=False).steps
    assert isinstance(steps[0], kinds.RemoveLogicalVolume)


def test_names_of_others_are_not_taken():
    host = new_host()
    old_group(host, [host.media.disk("sdc")], "vg0")
    old_array(host, [host.media.disk("sdb")], "1.2", "m")
    host.start_all()
    assert "there is a volume group vg0 already" in refusal(host, simple().schema)
    maker = maker_on("sda")
    legs = [maker.partition("sda", 100, "m"), maker.partition("sda", 100, "m2")]
    maker.schema["mds"].append({"name": "/dev/md/m", "level": "raid1", "devices": legs})
    assert "there is an array m already" in refusal(host, maker.schema)


def test_a_layout_is_taken_over_from_a_plan_with_other_identities():
    """A disk that was added gives the plan another fingerprint, and its partitions other UUIDs."""
    maker = simple()
    host = installed(maker)
    for part in maker.schema["parteds"][0]["partitions"]:
        part["uuid"] = new_uuid()
    assert plan(host, maker.schema).steps == ()
    assert plan(host, maker.schema, wipe=["sda"]).steps == ()


def test_containers_that_are_closed_are_opened_before_more_is_said():
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 200, "os"), 200, "luks-ext4", "os", "ext4")
    host = installed(maker)
    host.start_all()
    found = plan(host, maker.schema)
    assert found.again
    assert [step.says for step in found.steps] == ["open /dev/sda1 as /dev/mapper/os-crypt"]


def test_the_first_table_carries_types_flags_and_marks():
    maker = simple()
    maker.schema["parteds"][0]["partitions"][0].update(guid="", flags=["legacy_boot"])
    (write, *_rest) = plan(new_host(), maker.schema).steps
    layout = parse_static_schema(maker.schema)
    assert write.fresh
    assert [entry.clear for entry in write.entries] == [True, True]
    assert [entry.uuid for entry in write.entries] == [part.unfinished for part in layout.partitions()]
    assert write.entries[0].attrs == "LegacyBIOSBootable"
    assert write.node(2) == "/dev/sda2"
    assert kinds.partition_node("/dev/nvme0n1", 3) == "/dev/nvme0n1p3"
    assert kinds.partition_node("/dev/mapper/mpatha", 3) == "/dev/mapper/mpatha-part3"


def test_a_physical_volume_of_which_lvm_tells_nothing_is_not_destroyed():
    host = new_host()
    old_group(host, [host.media.disk("sda"), host.media.disk("sdb")], "old")
    present = dataclasses.replace(host.present(), physical=(), logical=())
    found = plan_steps(parse_static_schema(simple().schema), present, [f"{BY_ID}sda"])
    assert "/dev/sda is a physical volume of LVM" in found.refusals[0]


def test_a_multipath_disk_is_a_disk():
    host = host_with_table("sda", (1, 1, 300, "x"))
    present = host.present()
    mapped = dataclasses.replace(present.tree.devices["sda"], kind="mpath", parents=("sdp",), dev="/dev/mapper/mpatha")
    path = dataclasses.replace(mapped, name="sdp", kind="disk", parents=(), dev="/dev/sdp", table=None, signatures=())
    changed = dataclasses.replace(present, tree=present.tree.with_devices([mapped, path]))
    found = plan_steps(parse_static_schema(simple().schema), changed, [f"{BY_ID}sda"])
    assert found.refusals == ()
    assert found.steps[1].devices == ("/dev/mapper/mpatha-part1", "/dev/mapper/mpatha-part2")
