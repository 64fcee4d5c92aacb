# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Members of arrays that fail, are replaced, come late, join, or are put together by half; on the simulated host of the property tests."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.stacks import Superblock
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import Tree
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._layout.preview import after, picture_of, render
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._steps.lvm import (
    CreateVolumeGroup,
)
from ansible_collections.bareon.allocator.plugins.module_utils._steps.md import (
    AddMembers,
    GrowArray,
    ReAddMembers,
    StartArray,
    StopArray,
    WidenArray,
)
from ansible_collections.bareon.allocator.plugins.module_utils._steps.partitions import FinishPartitions, WritePartitionTable
from ansible_collections.bareon.allocator.plugins.module_utils._steps.signatures import ClearSignatures
from ansible_collections.bareon.allocator.tests.support.host.simulated.checks import check_data, write_data
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import BY_ID
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import (
    MIB,
    installed,
    maker_on,
    new_host,
    plan,
    refusal,
)
from ansible_collections.bareon.allocator.tests.support.host.simulated.runs import complete
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import old_array
from ansible_collections.bareon.allocator.tests.support.host.simulated.steps import carry_out


def with_a_mirror(*disks, encrypt=False):
    """A mirror on sda and sdb, or on other disks, with ext4."""
    maker = maker_on(*disks)
    maker.fill(maker.mirror(disks[:2], 100, "m", "1.2"), 90, "luks" if encrypt else "fs", "m", "ext4")
    return maker


def without_disk(host, disk):
    """A host of which a disk has failed and was exchanged for an empty one in the same slot."""
    host.partitions.pop(disk, None)
    host.media.marks.pop(disk, None)
    host.media.version += 1
    host.media._seen.clear()
    return host


def test_a_member_that_failed_is_replaced():
    maker = with_a_mirror("sda", "sdb")
    host = installed(maker)
    (before,) = host.arrays
    without_disk(host, "sdb")
    found = plan(host, maker.schema)
    assert found.losses == ()
    assert [type(step) for step in found.steps] == [
        WritePartitionTable,
        ClearSignatures,
        AddMembers,
        FinishPartitions,
    ]
    assert "add /dev/sdb1 to the array /dev/md/m, for missing members and spares" in [step.says for step in found.steps]
    for step in found.steps:
        carry_out(host, step)
    assert plan(host, maker.schema).steps == ()
    host.start_all()
    assert list(host.arrays) == [before]
    assert plan(host, maker.schema).steps == ()


@pytest.mark.parametrize("wipe", [(), ("sda", "sdb")])
def test_a_replacement_that_was_cut_off_is_completed_and_loses_nothing(wipe):
    maker = with_a_mirror("sda", "sdb", encrypt=True)
    count = len(plan(without_disk(installed(maker), "sdb"), maker.schema).steps)
    for done in range(count):
        host = without_disk(installed(maker), "sdb")
        uuids = dict(host.arrays)
        for step in plan(host, maker.schema).steps[:done]:
            carry_out(host, step)
        again = plan(host, maker.schema, wipe=wipe)
        assert (again.refusals, again.losses) == ((), ()), done
        for step in again.steps:
            carry_out(host, step)
        assert plan(host, maker.schema).steps == (), done
        assert host.arrays == uuids


def test_a_spare_is_added_and_replaced():
    maker = with_a_mirror("sda", "sdb", "sdc")
    host = installed(maker)
    maker.schema["mds"][0]["spares"] = [maker.partition("sdc", 100, "m")]
    for _time in range(2):
        found = plan(host, maker.schema)
        assert (found.refusals, found.losses) == ((), ())
        assert [type(step) for step in found.steps][-2:] == [AddMembers, FinishPartitions]
        for step in found.steps:
            carry_out(host, step)
        assert plan(host, maker.schema).steps == ()
        host.start_all()
        assert plan(host, maker.schema).steps == ()
        without_disk(host, "sdc")


def test_an_array_is_made_with_its_spare_which_may_take_the_place_of_any_member():
    maker = with_a_mirror("sda", "sdb", "sdc")
    maker.schema["mds"][0]["spares"] = [maker.partition("sdc", 100, "m")]
    says = [step.says for step in plan(new_host(), maker.schema).steps]
    assert "create the array /dev/md/m, raid1 on /dev/sda1, /dev/sdb1, with /dev/sdc1 as spare" in says
    host = installed(maker)
    assert plan(host, maker.schema).steps == ()
    array = maker.schema["mds"][0]
    array["devices"][1], array["spares"][0] = array["spares"][0], array["devices"][1]
    assert plan(host, maker.schema).steps == ()


def test_a_disk_more_makes_a_mirror_of_three():
    maker = with_a_mirror("sda", "sdb", "sdc")
    host = installed(maker)
    maker.schema["mds"][0]["devices"].append(maker.partition("sdc", 100, "m"))
    found = plan(host, maker.schema)
    assert [type(step) for step in found.steps][-2:] == [WidenArray, FinishPartitions]
    for step in found.steps:
        carry_out(host, step)
    assert plan(host, maker.schema).steps == ()


def test_what_is_no_new_partition_does_not_join_an_array():
    """The half that is not a member may have what was written last."""
    maker = with_a_mirror("sda", "sdb")
    host = installed(maker)
    member = host.blocks()["sdb1"]
    host.media.wipe(member)
    assert "members that" in refusal(host, maker.schema)
    host.media.sign(member, "xfs", ("u", 1))
    assert " lacks /dev/" in refusal(host, maker.schema)


def started_without(disk, maker, events=0):
    """A host with data that was started without a disk, which came when its mirrors had counted so many events already."""
    host, layout = installed(maker), parse_static_schema(maker.schema)
    write_data(host, layout)
    host.start_all(late=disk)
    for uuid in host.arrays if events else ():
        host.use_array(uuid, events)
    return host


def finished(host, maker, wipe=()):
    """Complete a layout, with all data where they were, after another start as well."""
    layout = parse_static_schema(maker.schema)
    complete(host, layout, [f"{BY_ID}{disk}" for disk in wipe])
    check_data(host, layout)
    host.start_all()
    complete(host, layout, [])
    check_data(host, layout)
    assert all(host.left_out.get(uuid) is None for uuid in host.arrays)


@pytest.mark.parametrize("late", ["sda", "sdb"])
@pytest.mark.parametrize("encrypt", [False, True])
@pytest.mark.parametrize("events", [0, 8])
def test_a_member_that_came_late_is_taken_back(late, encrypt, events):
    maker = with_a_mirror("sda", "sdb", encrypt=encrypt)
    host = started_without(late, maker, events)
    found = plan(host, maker.schema)
    assert (found.steps, found.again) == ((ReAddMembers("/dev/md/m", (f"/dev/{late}1",)),), True)
    assert found.losses == ()
    assert found.steps[0].says == f"re-add /dev/{late}1 to the array /dev/md/m, which started without"
    picture = picture_of(host.present(), ["sda", "sdb"])
    assert render(picture).count("  m raid1, ") - 1 == render(after(picture, found.steps)).count("  m raid1, ") == 1
    finished(host, maker)


def test_members_that_came_late_are_taken_back_before_the_array_grows():
    maker = with_a_mirror("sda", "sdb")
    host = started_without("sdb", maker)
    for table in maker.schema["parteds"]:
        table["partitions"][0]["end"] += 50
    (step,) = plan(host, maker.schema).steps
    carry_out(host, step)
    assert isinstance(step, ReAddMembers)
    assert GrowArray in [type(step) for step in plan(host, maker.schema).steps]
    finished(host, maker)


@pytest.mark.parametrize("wipe", [(), ("sda",)])
def test_an_older_state_of_an_array_is_not_overwritten_unasked(wipe):
    maker = with_a_mirror("sda", "sdb")
    host = started_without("sdb", maker, events=9)
    says = "the array /dev/md/m runs without /dev/sdb1 and was changed since, so that /dev/sdb1 has an older state (9 events behind)"
    refused = refusal(host, maker.schema, wipe=wipe)
    assert says in refused
    assert refused.endswith("mdadm --manage /dev/md/m --re-add /dev/sdb1")


@pytest.mark.parametrize("wipe", [("sdb",), ("sda", "sdb")])
def test_an_older_state_of_an_array_on_a_disk_to_wipe_is_named_and_overwritten(wipe):
    """The other half is never made anew for it, although it is on a disk to wipe, too."""
    maker = with_a_mirror("sda", "sdb")
    host = started_without("sdb", maker, events=9)
    found = plan(host, maker.schema, wipe=wipe)
    assert found.steps == (ReAddMembers("/dev/md/m", ("/dev/sdb1",)),)
    (loss,) = found.losses
    assert loss.disk.endswith("sdb")
    assert [(content.device, content.kind, content.part_of) for content in loss.contents] == [
        ("/dev/sdb1", "linux_raid_member", "the array m")
    ]
    finished(host, maker, wipe)


@pytest.mark.parametrize("wipe", [(), ("sdb",), ("sda", "sdb")])
def test_halves_that_were_both_in_use_are_left_to_a_person(wipe):
    maker = with_a_mirror("sda", "sdb")
    host = started_without("sda", maker, events=3)
    host.start_all(late="sdb")
    assert "runs without /dev/sdb1, which was in use without the others" in refusal(host, maker.schema, wipe=wipe)
    host.start_all(late="sda")
    assert [type(step) for step in plan(host, maker.schema).steps] == [ReAddMembers]


def behind_by(events):
    """A mirror that runs without a member whose superblock was written by so many events before or after that of the other one."""
    maker = with_a_mirror("sda", "sdb")
    host = started_without("sdb", maker)
    present = host.present()
    there = {name: dataclasses.replace(superblock, events=50) for name, superblock in present.superblocks.items()}
    there["sdb1"] = dataclasses.replace(there["sdb1"], events=50 - events)
    return plan_steps(parse_static_schema(maker.schema), dataclasses.replace(present, superblocks=there))


@pytest.mark.parametrize("events", [-1, 0, 1, 8])
def test_superblocks_that_differ_as_a_torn_write_or_a_start_leaves_them_are_of_one_state(events):
    assert [type(step) for step in behind_by(events).steps] == [ReAddMembers]


@pytest.mark.parametrize(("events", "says"), [(-2, "may have what the other lacks"), (9, "an older state")])
def test_superblocks_that_differ_more_are_not(events, says):
    (refused,) = behind_by(events).refusals
    assert says in refused


def test_a_member_is_not_taken_back_where_no_member_that_runs_tells_its_events():
    maker = with_a_mirror("sda", "sdb")
    present = started_without("sdb", maker).present()
    alone = {name: superblock for name, superblock in present.superblocks.items() if name == "sdb1"}
    for wipe in ([], [f"{BY_ID}sda", f"{BY_ID}sdb"]):
        (refused,) = plan_steps(parse_static_schema(maker.schema), dataclasses.replace(present, superblocks=alone), wipe).refusals
        assert "runs without /dev/sdb1, and mdadm --examine does not show" in refused


def test_an_array_is_not_made_anew_where_its_halves_run_apart_or_do_not_say_what_they_have_seen():
    maker = with_a_mirror("sda", "sdb")
    present, layout = started_without("sdb", maker).present(), parse_static_schema(maker.schema)
    devices = present.tree.devices
    apart = {name: dataclasses.replace(device, dev="/dev/md126", size=99 * MIB) for name, device in devices.items() if name[:3] == "md:"}
    for tree in (present.tree, Tree({**devices, **apart})):
        unsaid = dataclasses.replace(present, tree=tree, superblocks={})
        (refused,) = plan_steps(layout, unsaid, [f"{BY_ID}sda", f"{BY_ID}sdb"]).refusals
        assert "the array /dev/md/m lacks /dev/sdb1; former members" in refused


def superblocks_changed(host, **changes):
    """A host's state with other superblocks of some members."""
    present = host.present()
    changed = {name: dataclasses.replace(present.superblocks[name], **those) for name, those in changes.items()}
    return dataclasses.replace(present, superblocks={**present.superblocks, **changed})


def test_a_member_that_was_still_built_up_has_no_state_to_keep():
    maker = with_a_mirror("sda", "sdb")
    host = started_without("sdb", maker, events=500)
    found = plan_steps(parse_static_schema(maker.schema), superblocks_changed(host, sdb1={"partial": True, "missing": frozenset({0})}))
    assert (found.steps, found.losses) == ((ReAddMembers("/dev/md/m", ("/dev/sdb1",)),), ())


def with_three_copies():
    maker = maker_on("sda", "sdb", "sdc")
    maker.fill(maker.mirror(("sda", "sdb", "sdc"), 100, "m", "1.2"), 90, "fs", "m", "ext4")
    return maker


def test_a_copy_comes_back_before_the_place_of_another_one_that_failed_long_before_is_filled():
    maker = with_three_copies()
    host = started_without("sdc", maker, events=100)
    without_disk(host, "sdc").start_all(late="sdb")
    assert plan(host, maker.schema).steps == (ReAddMembers("/dev/md/m", ("/dev/sdb1",)),)
    finished(host, maker)


def test_a_copy_stays_out_where_not_all_that_run_tell_what_they_have_seen():
    maker = with_three_copies()
    present = started_without("sdc", maker).present()
    some = {name: superblock for name, superblock in present.superblocks.items() if name != "sda1"}
    (refused,) = plan_steps(parse_static_schema(maker.schema), dataclasses.replace(present, superblocks=some)).refusals
    assert "mdadm --examine does not show the event counts of its other members" in refused


def test_a_copy_stays_out_that_was_in_use_without_one_of_those_that_run():
    maker = with_three_copies()
    host = started_without("sdc", maker, events=3)
    (uuid,) = host.arrays
    host.left_out[uuid] = frozenset({"sda1"})
    apart = superblocks_changed(host, sdc1={"events": 3})
    (refused,) = plan_steps(parse_static_schema(maker.schema), apart).refusals
    assert "runs without /dev/sda1, which was in use without the others" in refused


NOT_ANEW = "/dev/md/m runs without a member, so it is not replaced, even with wipe: "


def test_what_a_failed_disk_left_of_an_array_is_not_made_anew_for_a_disk_more():
    maker = with_a_mirror("sda", "sdb", "sdc")
    host = without_disk(installed(maker), "sdb")
    maker.schema["mds"][0]["devices"].append(maker.partition("sdc", 100, "m"))
    assert refusal(host, maker.schema, wipe=["sda", "sdb", "sdc"]).startswith(NOT_ANEW)


@pytest.mark.parametrize("metadata", ["1.2", "1.0"])
def test_an_array_whose_other_member_was_cleared_by_hand_is_not_made_anew(metadata):
    maker = with_a_mirror("sda", "sdb")
    host = installed(maker)
    host.media.wipe(host.blocks()["sdb1"])
    maker.schema["mds"][0]["metadata"] = metadata
    assert refusal(host, maker.schema, wipe=["sda", "sdb"]).startswith(NOT_ANEW)


@pytest.mark.parametrize("wipe", [(), ("sda", "sdb", "sdc")])
def test_a_copy_whose_place_a_spare_has_taken_is_left_to_a_person(wipe):
    """md does not know it again, and adds it only as a new one."""
    maker = with_a_mirror("sda", "sdb", "sdc")
    maker.schema["mds"][0]["spares"] = [maker.partition("sdc", 100, "m")]
    host = installed(maker)
    host.start_all(late="sdb")
    running = superblocks_changed(host, sda1={"events": 12}, sdb1={"missing": frozenset()})
    taken = {**running.superblocks, "sdc1": Superblock(running.superblocks["sda1"].uuid, 12, 1, partial=True)}
    (refused,) = plan_steps(
        parse_static_schema(maker.schema), dataclasses.replace(running, superblocks=taken), [f"{BY_ID}{disk}" for disk in wipe]
    ).refusals
    assert "runs without /dev/sdb1, whose place a spare has taken; to have it stand by, give it up: mdadm --zero-superblock" in refused


def test_a_spare_that_came_late_is_added_whatever_happened_since():
    maker = with_a_mirror("sda", "sdb", "sdc")
    maker.schema["mds"][0]["spares"] = [maker.partition("sdc", 100, "m")]
    host = installed(maker)
    host.start_all(late="sdc")
    (uuid,) = host.arrays
    host.use_array(uuid, 50)
    found = plan(host, maker.schema)
    assert (found.steps, found.losses) == ((AddMembers("/dev/md/m", ("/dev/sdc1",)),), ())
    complete(host, parse_static_schema(maker.schema), [])
    assert not host.left_out


@pytest.mark.parametrize("late", ["sda", "sdb"])
def test_a_run_that_was_cut_off_after_a_group_took_a_mirror_is_completed_where_a_disk_comes_late(late):
    maker = maker_on("sda", "sdb")
    maker.fill(maker.mirror(("sda", "sdb"), 200, "os", "1.2"), 190, "pv", "os", "ext4")
    maker.volume("vg0", "data", 20, False, "xfs")
    layout = parse_static_schema(maker.schema)
    steps = plan(new_host(), maker.schema).steps
    first = next(number for number, step in enumerate(steps) if isinstance(step, CreateVolumeGroup))
    for done in range(len(steps) + 1):
        host = new_host()
        for step in plan(host, maker.schema).steps[:done]:
            carry_out(host, step)
        (group,) = host.groups(host.blocks()) or (None,)
        host.start_all(late=late)
        complete(host, layout, [])
        assert done <= first or group in host.groups(host.blocks()), done
        assert not host.left_out, done


def with_array(present, *devices):
    """The state with these devices in the place of the array that runs."""
    tree = present.tree
    others = {name: device for name, device in tree.devices.items() if not device.kind.startswith("raid")}
    return dataclasses.replace(present, tree=Tree({**others, **{device.name: device for device in devices}}))


@pytest.mark.parametrize("held", [("sda1", "sdb1"), ("sda1",)])
def test_an_array_that_was_put_together_and_not_started_is_stopped_and_started_whole(held):
    """After a power cut: `md127 : inactive sda1(S) sdb1(S)`."""
    maker = maker_on("sda", "sdb")
    maker.fill(maker.mirror(("sda", "sdb"), 100, "data", "1.2"), 99, "fs", "data", "ext4")
    host, layout = installed(maker), parse_static_schema(maker.schema)
    present = host.present()
    (array,) = [device for device in present.tree.devices.values() if device.kind.startswith("raid")]
    inactive = dataclasses.replace(array, name="md127", dev="/dev/md127", kind="md", size=0, parents=held, filesystem=None, signatures=())
    found = plan_steps(layout, with_array(present, inactive))
    assert (found.steps, found.again) == ((StopArray("/dev/md127"),), True)
    stopped = dataclasses.replace(inactive, name="md:x", dev=None, kind="raid1", parents=("sda1", "sdb1"))
    found = plan_steps(layout, with_array(present, stopped))
    assert [type(step) for step in found.steps] == [StartArray]
    assert found.again


@pytest.mark.parametrize("wipe", [(), ("sda", "sdb")])
def test_a_half_that_was_put_together_beside_the_array_that_runs_is_stopped_and_taken_back(wipe):
    maker = with_a_mirror("sda", "sdb")
    host = started_without("sdb", maker)
    present, disks = host.present(), [f"{BY_ID}{disk}" for disk in wipe]
    (left_out,) = [device for name, device in present.tree.devices.items() if name.startswith("md:")]
    half = dataclasses.replace(left_out, name="md126", dev="/dev/md126", kind="md")
    tree = Tree({**{name: device for name, device in present.tree.devices.items() if device is not left_out}, "md126": half})
    found = plan_steps(parse_static_schema(maker.schema), dataclasses.replace(present, tree=tree, superblocks={}), disks)
    assert (found.steps, found.losses, found.again) == ((StopArray("/dev/md126"),), (), True)
    assert [type(step) for step in plan(host, maker.schema, wipe=wipe).steps] == [ReAddMembers]


def test_an_inactive_array_of_others_is_named_and_stopped_where_its_disks_may_be_wiped():
    host = new_host()
    old_array(host, [host.media.disk("sda"), host.media.disk("sdb")], "1.2", "theirs")
    host.start_all()
    present = host.present()
    (array,) = [device for device in present.tree.devices.values() if device.kind.startswith("raid")]
    inactive = dataclasses.replace(array, name="md127", dev="/dev/md127", kind="md", size=0, filesystem=None, signatures=())
    maker = maker_on("sda", "sdb")
    for disk in ("sda", "sdb"):
        maker.fill(maker.partition(disk, 100, f"new{disk}"), 100, "fs", f"new{disk}", "ext4")
    layout = parse_static_schema(maker.schema)
    assert all("md /dev/md127" in said for said in plan_steps(layout, with_array(present, inactive)).refusals)
    wipe = [disk.id for disk in layout.disks]
    (one,) = plan_steps(layout, with_array(present, inactive), wipe[:1]).refusals[:1]
    assert one
    assert plan_steps(layout, with_array(present, inactive), wipe).steps[0] == StopArray("/dev/md127")
