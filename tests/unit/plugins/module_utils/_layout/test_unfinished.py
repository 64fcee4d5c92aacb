# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run left unfinished is made again without a permission only while it is as that run left it."""

from __future__ import annotations

import copy
import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import Device
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._layout.read_traces import read_traces
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._steps.filesystem import MakeFilesystem
from ansible_collections.bareon.allocator.plugins.module_utils._steps.luks import FormatLuks, OpenLuks
from ansible_collections.bareon.allocator.plugins.module_utils._steps.lvm import ActivateGroup, FinishLogicalVolumes, RemoveLogicalVolume
from ansible_collections.bareon.allocator.plugins.module_utils._steps.md import CreateArray, StartArray
from ansible_collections.bareon.allocator.plugins.module_utils._steps.thin import CreateThinVolume
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import BY_ID, new_uuid
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import maker_on, new_host, plan, refusal
from ansible_collections.bareon.allocator.tests.support.host.simulated.runs import complete
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import old_group
from ansible_collections.bareon.allocator.tests.support.host.simulated.steps import carry_out


def two():
    maker = maker_on("sda")
    for space in ("one", "two"):
        maker.fill(maker.partition("sda", 100, space), 100, "fs", space, "ext4")
    return maker


def volumes():
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 600, "os"), 600, "pv", "os", "ext4")
    maker.volume("vg0", "first", 20, False, "ext4")
    maker.volume("vg0", "second", 20, False, "ext4")
    return maker


def pooled():
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 600, "os"), 600, "pv", "os", "ext4")
    maker.pool("vg0", "pool", 20)
    maker.thin("vg0", "pool", "web", 100, False, "ext4")
    return maker


def failed_at(maker, says):
    """A host on which a run failed at a step."""
    host = new_host()
    for step in plan(host, maker.schema).steps:
        if step.says == says:
            return host
        carry_out(host, step)
    raise AssertionError(f"no step says {says}")


def with_traces(host, **traces):
    return dataclasses.replace(host.present(), traces=traces)


def test_what_is_complete_is_finished_before_the_next_step_can_fail():
    host = failed_at(two(), "make ext4 on /dev/sda2")
    host.media.sign(host.blocks()["sda1"], "ext4", (new_uuid(), host.blocks()["sda1"].size))
    steps = plan(host, two().schema).steps
    assert {device for step in steps for device in getattr(step, "devices", ())} == {"/dev/sda2"}
    volumes_host = failed_at(volumes(), "make ext4 on /dev/mapper/vg0-second")
    assert [step.says for step in plan(volumes_host, volumes().schema).steps] == [
        "clear old signatures at both ends of /dev/mapper/vg0-second",
        "mark second in vg0 as cleared",
        "make ext4 on /dev/mapper/vg0-second",
        "mark second in vg0 as finished",
    ]


@pytest.mark.parametrize("kind", ["ext4", "xfs", "swap", "vfat", "crypto_LUKS", "zfs_member", "LVM2_member"])
def test_what_somebody_made_on_an_unfinished_partition_is_refused_and_a_loss_where_it_may_go(kind):
    host = failed_at(two(), "make ext4 on /dev/sda1")
    if kind == "LVM2_member":
        old_group(host, [host.blocks()["sda2"]], "theirs")
    else:
        host.media.sign(host.blocks()["sda2"], kind, (new_uuid(), 1))
    said = refusal(host, two().schema)
    assert f"/dev/sda2 is unfinished, but has {kind} at " in said
    assert f"name {BY_ID}sda in wipe" in said
    wiping = plan(host, two().schema, wipe=["sda"])
    assert [content.device for loss in wiping.losses for content in loss.contents if content.kind == kind] == ["/dev/sda2"]
    assert "/dev/sda1" not in [content.device for loss in wiping.losses for content in loss.contents]
    complete(host, parse_static_schema(two().schema), [f"{BY_ID}sda"])


def test_the_file_system_of_a_run_is_its_own_until_somebody_has_used_it():
    """mkfs was cut off behind its superblock, and the partition was not marked as finished."""
    maker = two()
    host = failed_at(maker, "make ext4 on /dev/sda1")
    layout = parse_static_schema(maker.schema)
    make = next(step for step in plan(host, maker.schema).steps if isinstance(step, MakeFilesystem))
    carry_out(host, make)
    again = plan(host, maker.schema)
    assert (again.refusals, again.losses) == ((), ())
    assert make in again.steps
    used = with_traces(host, sda1="it was mounted")
    found = plan_steps(layout, used)
    assert found.steps == ()
    assert found.refusals == (
        f"/dev/sda1 is unfinished, but somebody has used it: it was mounted; name {BY_ID}sda in wipe if it may be destroyed",
    )
    wiping = plan_steps(layout, used, [f"{BY_ID}sda"])
    assert [content.device for loss in wiping.losses for content in loss.contents] == ["/dev/sda1"]
    assert make in wiping.steps


def test_another_plan_removes_what_an_earlier_one_left_unfinished_unless_somebody_has_used_it():
    maker, larger = two(), maker_on("sda")
    for space in ("one", "two"):
        larger.fill(larger.partition("sda", 150, space), 150, "fs", space, "xfs")
    host = failed_at(maker, "make ext4 on /dev/sda1")
    carry_out(host, next(step for step in plan(host, maker.schema).steps if isinstance(step, MakeFilesystem)))
    other = copy.deepcopy(host)
    complete(other, parse_static_schema(larger.schema), [])
    found = plan_steps(parse_static_schema(larger.schema), with_traces(host, sda1="it was mounted"))
    assert found.steps == ()
    assert any("/dev/sda1 is unfinished, but somebody has used it" in line for line in found.refusals)


def test_what_lies_farther_inside_than_what_was_cleared_is_of_before():
    """A second header of LUKS, as a cut before the rest is cleared leaves it."""
    host = failed_at(two(), "clear old signatures at both ends of /dev/sda1, /dev/sda2")
    present = host.present()
    part = present.tree.devices["sda2"]
    for offset, refused in ((2 * 1024**2, False), (0, True)):
        signature = dataclasses.replace(present.tree.devices["sda"].signatures[0], type="crypto_LUKS", uuid=new_uuid(), offsets=(offset,))
        seen = dataclasses.replace(present, tree=present.tree.with_devices([dataclasses.replace(part, signatures=(signature,))]))
        assert bool(plan_steps(parse_static_schema(two().schema), seen).refusals) is refused


@pytest.mark.parametrize("traced", [False, True])
def test_a_cleared_volume_that_somebody_has_used_is_refused_and_a_loss_where_it_may_go(traced):
    maker = volumes()
    host = failed_at(maker, "make ext4 on /dev/mapper/vg0-second")
    block = host.by_node("/dev/mapper/vg0-second")
    layout = parse_static_schema(maker.schema)
    if not traced:
        host.media.sign(block, "xfs", (new_uuid(), 1))
    present = with_traces(host, **({block.name: "there are data without a signature at 0 MiB"} if traced else {}))
    found = plan_steps(layout, present)
    assert found.steps == ()
    assert "/dev/mapper/vg0-second is unfinished, but" in found.refusals[0]
    wiping = plan_steps(layout, present, [f"{BY_ID}sda"])
    assert [content.device for loss in wiping.losses for content in loss.contents] == ["/dev/mapper/vg0-second"]
    assert any(step.says == "make ext4 on /dev/mapper/vg0-second" for step in wiping.steps)


def test_a_volume_that_was_not_cleared_yet_may_have_what_lay_in_its_room_before():
    maker = volumes()
    host = failed_at(maker, "clear old signatures at both ends of /dev/mapper/vg0-first, /dev/mapper/vg0-second")
    host.media.sign(host.by_node("/dev/mapper/vg0-second"), "xfs", (new_uuid(), 1))
    found = plan(host, maker.schema)
    assert (found.refusals, found.losses) == ((), ())
    assert found.steps


def test_a_cleared_volume_that_does_not_run_is_looked_into_before_it_is_removed():
    maker, larger = volumes(), volumes()
    host = failed_at(maker, "make ext4 on /dev/mapper/vg0-second")
    host.media.sign(host.by_node("/dev/mapper/vg0-second"), "xfs", (new_uuid(), 1))
    larger.schema["lvs"][1]["size"] += 40
    host.active.clear()
    opening = plan(host, larger.schema)
    assert (opening.again, [type(step) for step in opening.steps]) == (True, [ActivateGroup])
    carry_out(host, opening.steps[0])
    assert "/dev/mapper/vg0-second is unfinished, but has xfs" in refusal(host, larger.schema)


@pytest.mark.parametrize("finished", [False, True])
def test_a_volume_that_was_activated_without_a_part_gets_it_back_first(finished):
    """A disk came late to a start. What LVM puts in its place gives errors, and stays until the volume is refreshed."""
    maker = volumes()
    host = failed_at(maker, "make ext4 on /dev/mapper/vg0-second")
    if finished:
        complete(host, parse_static_schema(maker.schema), [])
    present = host.present()
    volume = next(device for device in present.tree.devices.values() if device.dev == "/dev/mapper/vg0-second")
    uuid = f"LVM-{'a' * 64}-missing_0_0"
    stand_in = Device("dm-9", "/dev/mapper/vg0-second-missing_0_0", "lvm", volume.size, row={"dm-uuid": uuid})
    tree = present.tree.with_devices([stand_in, dataclasses.replace(volume, parents=(*volume.parents, "dm-9"))])
    found = plan_steps(parse_static_schema(maker.schema), dataclasses.replace(present, tree=tree))
    assert (found.again, [type(step) for step in found.steps], found.refusals) == (True, [ActivateGroup], ())


def test_an_unfinished_pool_goes_only_with_what_runs_left_in_it():
    maker, smaller = pooled(), pooled()
    host = failed_at(maker, "create the thin volume vg0/web with 100 MiB in pool")
    smaller.schema["thin_pools"][0]["size"] += 40
    untouched = plan(host, smaller.schema)
    assert any(isinstance(step, RemoveLogicalVolume) for step in untouched.steps)
    assert untouched.losses == ()
    carry_out(host, CreateThinVolume("vg0", "mine", "pool", 80 * 1024**2, "/dev/mapper/vg0-mine"))
    carry_out(host, FinishLogicalVolumes("vg0", ("mine",)))
    host.media.sign(host.by_node("/dev/mapper/vg0-mine"), "ext4", (new_uuid(), 1))
    assert "no run of this layout left the volume mine in it" in refusal(host, smaller.schema)
    wiping = plan(host, smaller.schema, wipe=["sda"])
    assert "/dev/mapper/vg0-mine" in [content.device for loss in wiping.losses for content in loss.contents]


def sealed_partition():
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 200, "secret"), 200, "luks-fs", "secret", "ext4")
    return maker


def with_sealed(present, **names):
    """What is there, with what is closed on devices and has something in it."""
    return dataclasses.replace(present, sealed=names)


def closed_by_a_cut(maker, says, unfinished):
    """A host on which a run was cut off at a step, after a start: containers are closed."""
    host = failed_at(maker, says)
    host.start_all()
    return host, with_sealed(host.present(), **{unfinished: "a closed LUKS container, and something was written into it at 17 MiB"})


def test_a_closed_container_into_which_nothing_was_written_is_made_again():
    maker = sealed_partition()
    host = failed_at(maker, "make ext4 on /dev/mapper/secret-crypt")
    host.start_all()
    found = plan(host, maker.schema)
    assert (found.again, found.refusals, found.losses) == (False, (), ())
    assert any(isinstance(step, FormatLuks) for step in found.steps)


def test_a_closed_container_with_something_in_it_is_opened_before_it_is_made_again():
    maker = sealed_partition()
    layout = parse_static_schema(maker.schema)
    host, present = closed_by_a_cut(maker, "make ext4 on /dev/mapper/secret-crypt", "sda1")
    opening = plan_steps(layout, present)
    assert (opening.again, opening.losses) == (True, ())
    assert opening.steps == (OpenLuks("/dev/sda1", "secret-crypt"),)
    carry_out(host, opening.steps[0])
    ours = copy.deepcopy(host)
    again = plan_steps(layout, ours.present())
    assert (again.refusals, again.losses) == ((), ())
    complete(ours, layout, [])
    host.media.sign(host.by_node("/dev/mapper/secret-crypt"), "xfs", (new_uuid(), 1))
    assert "/dev/mapper/secret-crypt is unfinished, but has xfs at 0 MiB" in refusal(host, maker.schema)


def test_a_closed_container_that_may_go_is_listed_with_what_is_destroyed():
    maker = sealed_partition()
    _host, present = closed_by_a_cut(maker, "make ext4 on /dev/mapper/secret-crypt", "sda1")
    wiping = plan_steps(parse_static_schema(maker.schema), present, [f"{BY_ID}sda"])
    assert [content.device for loss in wiping.losses for content in loss.contents] == ["/dev/sda1"]
    assert any(isinstance(step, FormatLuks) for step in wiping.steps)


def test_a_closed_container_that_another_plan_does_not_have_is_refused():
    _host, present = closed_by_a_cut(sealed_partition(), "make ext4 on /dev/mapper/secret-crypt", "sda1")
    plain = maker_on("sda")
    plain.fill(plain.partition("sda", 200, "secret"), 200, "fs", "secret", "ext4")
    found = plan_steps(parse_static_schema(plain.schema), present)
    assert found.steps == ()
    assert any("a closed LUKS container" in line and f"name {BY_ID}sda in wipe" in line for line in found.refusals)


def test_a_stopped_array_that_ran_is_started_before_it_is_made_again():
    maker = maker_on("sda", "sdb")
    maker.fill(maker.mirror(("sda", "sdb"), 200, "os", "1.2"), 198, "fs", "os", "ext4")
    layout = parse_static_schema(maker.schema)
    host = failed_at(maker, "make ext4 on /dev/md/os")
    host.arrays.clear()
    never = plan_steps(layout, host.present())
    assert any(isinstance(step, CreateArray) for step in never.steps)
    words = "a member of an array that ran, and is stopped"
    present = with_sealed(host.present(), sda1=words, sdb1=words)
    opening = plan_steps(layout, present)
    assert (opening.again, [type(step) for step in opening.steps]) == (True, [StartArray])
    carry_out(host, opening.steps[0])
    host.media.sign(host.by_node("/dev/md/os"), "xfs", (new_uuid(), 1))
    assert "/dev/md/os is unfinished, but has xfs" in refusal(host, maker.schema)
    # One member is gone: the array cannot be started.
    host.arrays.clear()
    host.media.wipe(host.blocks()["sdb1"])
    lacking = plan_steps(layout, with_sealed(host.present(), sda1=words))
    assert lacking.steps == ()
    assert any(words in line for line in lacking.refusals)


@pytest.mark.parametrize(
    ("own", "refused"),
    [((10, frozenset()), False), ((12, frozenset()), True), ((10, frozenset({0})), True)],
    ids=["nothing more", "later writes", "used alone"],
)
def test_a_member_that_an_array_runs_without_is_judged_by_what_runs(own, refused):
    """A disk came late to a start: mdadm takes its half back by hand only."""
    maker = maker_on("sda", "sdb")
    maker.fill(maker.mirror(("sda", "sdb"), 200, "os", "1.2"), 198, "fs", "os", "ext4")
    host = failed_at(maker, "make ext4 on /dev/md/os")
    host.start_all(late="sdb")
    present = with_sealed(host.present(), sdb1="a member of an array that ran, and is stopped")
    changed = {"sda1": (10, frozenset({1})), "sdb1": own}
    superblocks = {
        name: dataclasses.replace(present.superblocks[name], events=events, missing=missing) for name, (events, missing) in changed.items()
    }
    found = plan_steps(parse_static_schema(maker.schema), dataclasses.replace(present, superblocks=superblocks))
    assert any("and is stopped, which may be somebody's" in line for line in found.refusals) is refused
    assert any(isinstance(step, CreateArray) for step in found.steps) is not refused


def test_a_closed_container_on_an_unfinished_volume_is_opened_first():
    maker = maker_on("sda")
    maker.fill(maker.partition("sda", 600, "os"), 600, "pv", "os", "ext4")
    maker.volume("vg0", "first", 60, True, "ext4")
    host = failed_at(maker, "make ext4 on /dev/mapper/first-crypt")
    host.start_all()
    name = host.by_node("/dev/mapper/vg0-first").name
    layout = parse_static_schema(maker.schema)
    present = with_sealed(host.present(), **{name: "a closed LUKS container, and something was written into it at 17 MiB"})
    opening = plan_steps(layout, present)
    assert (opening.again, [type(step) for step in opening.steps]) == (True, [OpenLuks])
    wiping = plan_steps(layout, present, [f"{BY_ID}sda"])
    assert [content.device for loss in wiping.losses for content in loss.contents] == ["/dev/mapper/vg0-first"]


class Full:
    """A host all of whose devices have data everywhere. It can do nothing but read."""

    def read_bytes(self, _path: str, _start: int, size: int) -> bytes:
        return b"\1" * size

    def run(self, _command: list[str]) -> None:
        """No tool is there."""


def test_a_volume_of_another_group_with_the_same_names_hides_no_use_of_ours():
    """As on the disk of another host that a run was cut off on as well."""
    maker = volumes()
    host = failed_at(maker, "make ext4 on /dev/mapper/vg0-second")
    layout, present = parse_static_schema(maker.schema), host.present()
    ours = next(volume for volume in present.logical if volume.name == "second")
    twin = dataclasses.replace(ours, uuid=new_uuid(), group_uuid=new_uuid())
    for logical in (present.logical, (*present.logical, twin), (twin, *present.logical)):
        traces, _sealed = read_traces(Full(), dataclasses.replace(present, logical=logical), layout)
        assert host.by_node("/dev/mapper/vg0-second").name in traces


def test_another_group_on_an_unfinished_partition_of_which_a_part_is_not_attached_stays_though_wipe_names_the_disk():
    """Somebody uses sda2, which a failed run left, and another disk, which is gone for now; no run has emptied that."""
    host = failed_at(two(), "make ext4 on /dev/sda1")
    old_group(host, [host.blocks()["sda2"], host.blocks()["sdb"]], "theirs")
    there = host.blocks()["sdb"]
    assert "the volume group theirs is also on /dev/sdb" in refusal(host, two().schema, ["sda"])
    host.media.wipe(there)
    assert "belongs to the volume group theirs, of which one other is not attached" in refusal(host, two().schema, ["sda"])


def test_a_new_partition_is_no_sign_of_a_run_that_was_cut_off():
    """A group on another disk lacks a part, which no run has emptied: a partition is only added on the disk with the layout."""
    earlier = maker_on("sda", "sdb")
    earlier.fill(earlier.partition("sda", 100, "one"), 100, "fs", "one", "ext4")
    host = new_host()
    only = maker_on("sda")
    only.fill(only.partition("sda", 100, "one"), 100, "fs", "one", "ext4")
    complete(host, parse_static_schema(only.schema), [])
    old_group(host, [host.blocks()["sdb"], host.blocks()["sdc"]], "theirs")
    host.media.wipe(host.blocks()["sdc"])
    for disk in ("sda", "sdb"):
        earlier.fill(earlier.partition(disk, 100, f"new-{disk}"), 100, "fs", f"new-{disk}", "ext4")
    assert "belongs to the volume group theirs, of which one other is not attached" in refusal(host, earlier.schema, ["sdb"])
