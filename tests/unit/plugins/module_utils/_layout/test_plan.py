# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is refused and why, what stays, and the order of steps; on the simulated host of the property tests."""

from __future__ import annotations

import dataclasses
import typing as t
from dataclasses import replace

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.blank import Remains
from ansible_collections.bareon.allocator.plugins.module_utils._facts.select import Selection
from ansible_collections.bareon.allocator.plugins.module_utils._layout.disks import FoundDisk, check_fingerprint, fingerprint
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._storage.gpt import partition_node
from ansible_collections.bareon.allocator.plugins.module_utils._storage.identity import BY_PATH
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.hardware import parse_hardware
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.static.fingerprint import fingerprint as planned_fingerprint
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import BY_ID
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import (
    MIB,
    host_with_table,
    installed,
    maker_on,
    new_host,
    plan,
    refusal,
    simple,
)
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import old_array, old_group
from ansible_collections.bareon.allocator.tests.support.host.simulated.steps import carry_out


def test_steps_build_from_the_disk_to_the_filesystem():
    names = [type(step).__name__ for step in plan(new_host(), simple().schema).steps]
    assert names == [
        "WritePartitionTable",
        "ClearSignatures",
        "CreatePhysicalVolume",
        "CreateVolumeGroup",
        "FinishPartitions",
        "MakeFilesystem",
        "FinishPartitions",
        "CreateLogicalVolume",
        "ClearSignatures",
        "MarkCleared",
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
    said = refusal(host, schema, fingerprint=planned_fingerprint(parse_hardware({"disks": facts})))
    assert "made for other disks" in said
    assert facts[1]["id"] in said


def test_a_plan_for_some_disks_is_compared_with_those_that_the_facts_were_asked_for():
    host = new_host()
    present = host.present()
    some = Selection(patterns=("*sda", "*sdb"))
    expected = fingerprint(some.of(present.disks), present)
    assert len(some.of(present.disks)) == 2 < len(present.disks)
    schema = simple().schema

    def says(selection):
        return plan_steps(parse_static_schema(schema), present, fingerprint=expected, selection=selection).refusals

    assert not says(some)
    (said,) = says(Selection())
    assert "made for other disks" in said
    (said,) = says(Selection(patterns=("*sda", "*sdb", "*sdc")))
    assert f"{BY_ID}sdc" in said
    assert not says(Selection(include=("loop",), patterns=("*sda", "*sdb")))


def test_a_plan_for_a_slot_is_for_whatever_disk_of_that_size_is_in_it():
    host = new_host()
    (disk, *_others) = host.present().disks
    slot = f"{BY_PATH}pci-0000:00:06.0-scsi-0:0:0:0"
    in_slot = replace(disk, path=slot, links=(*disk.links, slot))
    present = replace(host.present(), disks=(in_slot, *host.present().disks[1:]))
    (desired,) = parse_static_schema({"parteds": [{"name": slot, "disk_id": slot, "disk_size": disk.device.size // MIB}]}).disks
    found = [FoundDisk(desired, in_slot, disk.device, False)]

    def refused(**change: t.Any) -> bool:
        old = {
            "id": slot,
            "wwn": "old",
            "serial": "old",
            "size": disk.device.size // MIB,
            "size_bytes": disk.device.size,
            "logical_block": 512,
        }
        expected = planned_fingerprint(parse_hardware({"disks": [{**old, **change}]}))
        return bool(list(check_fingerprint(expected, found, present)))

    assert not refused()
    assert not refused(serial="new", wwn="new")
    assert refused(size_bytes=disk.device.size - 512)
    assert refused(logical_block=4096)
    assert refused(id=f"{BY_PATH}pci-0000:00:06.0-scsi-0:0:1:0")
    assert refused(id=disk.id, serial="new")


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
    assert "could not be searched" in found.refusals[0]


def test_wipe_names_disks_by_what_does_not_move():
    schema = simple().schema
    layout = parse_static_schema(schema)
    for name, says in (
        ("/dev/sda", f"can be another disk after a reboot; name {BY_ID}sda"),
        ("/dev/sdq", "not a disk of the schema"),
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
    assert partition_node("/dev/nvme0n1", 3) == "/dev/nvme0n1p3"
    assert partition_node("/dev/mapper/mpatha", 3) == "/dev/mapper/mpatha-part3"


def test_a_physical_volume_of_which_lvm_tells_nothing_is_not_destroyed():
    host = new_host()
    old_group(host, [host.media.disk("sda"), host.media.disk("sdb")], "old")
    present = dataclasses.replace(host.present(), physical=(), logical=())
    found = plan_steps(parse_static_schema(simple().schema), present, [f"{BY_ID}sda"])
    assert "/dev/sda is a physical volume of LVM" in found.refusals[0]


def on_two_paths(present):
    """The state where sda is reached on two ways."""
    mapped = dataclasses.replace(present.tree.devices["sda"], kind="mpath", parents=("sdp", "sdq"), dev="/dev/mapper/mpatha")
    one, two = (
        dataclasses.replace(mapped, name=name, kind="disk", parents=(), dev=f"/dev/{name}", table=None, signatures=())
        for name in mapped.parents
    )
    return dataclasses.replace(present, tree=present.tree.with_devices([mapped, one, two]))


def test_a_multipath_disk_is_a_disk():
    host = host_with_table("sda", (1, 1, 300, "x"))
    found = plan_steps(parse_static_schema(simple().schema), on_two_paths(host.present()), [f"{BY_ID}sda"])
    assert found.refusals == ()
    assert found.steps[1].devices == ("/dev/mapper/mpatha-part1", "/dev/mapper/mpatha-part2")
    (loss,) = found.losses
    assert (loss.disk, loss.why) == (f"{BY_ID}sda", "the disk is named in wipe")
    assert [content.device for content in loss.contents] == ["/dev/mapper/mpatha", "/dev/sda1"]


def test_a_volume_on_a_multipath_disk_goes_as_one_on_any_other():
    maker = simple()
    present = on_two_paths(installed(maker).present())
    maker.schema["lvs"], maker.schema["fss"] = [], maker.schema["fss"][:1]
    layout = parse_static_schema(maker.schema)
    assert plan_steps(layout, present, keep_unlisted=False).steps == ()
    found = plan_steps(layout, present, [f"{BY_ID}sda"], keep_unlisted=False)
    assert [step.says for step in found.steps] == ["remove the logical volume vg0/data"]
    assert [(loss.disk, loss.why) for loss in found.losses] == [(f"{BY_ID}sda", "the disk is named in wipe")]


@pytest.mark.parametrize("wipe", [(), ("sda",)])
def test_a_disk_that_cannot_be_read_is_not_written_wipe_or_not(wipe):
    present = new_host().present()
    device = dataclasses.replace(present.tree.devices["sda"], remains=Remains(0, "Input/output error"))
    unread = dataclasses.replace(present, tree=present.tree.with_devices([device]))
    (said,) = plan_steps(parse_static_schema(simple().schema), unread, [f"{BY_ID}{disk}" for disk in wipe]).refusals
    assert (
        "something unreadable at 0 MiB (Input/output error); a disk that cannot be read is never written to, whether wipe names it or not"
        in said
    )


def test_a_disk_that_a_process_has_open_is_refused_wipe_or_not():
    present = new_host().present()
    device = dataclasses.replace(present.tree.devices["sda"], openers=("postgres (812)",))
    used = dataclasses.replace(present, tree=present.tree.with_devices([device]))
    for wipe in ([], [f"{BY_ID}sda"]):
        found = plan_steps(parse_static_schema(simple().schema), used, wipe)
        assert found.steps == ()
        assert any("open in postgres (812)" in said for said in found.refusals)
