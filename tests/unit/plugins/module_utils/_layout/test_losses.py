# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is told of what will be destroyed, and that nothing else is destroyed than what was confirmed."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._layout import apply as layout_run
from ansible_collections.bareon.allocator.plugins.module_utils._layout.apply import Request
from ansible_collections.bareon.allocator.plugins.module_utils._layout.losses import digest, paragraph
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._storage.derived import table_uuid
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import BY_ID
from ansible_collections.bareon.allocator.tests.support.host.simulated.layouts import (
    host_with_table,
    installed,
    maker_on,
    new_host,
    plan,
    simple,
)
from ansible_collections.bareon.allocator.tests.support.host.simulated.schemas import old_array, old_group
from ansible_collections.bareon.allocator.tests.support.host.simulated.steps import carry_out
from ansible_collections.bareon.allocator.tests.support.host.step_kinds import all_kinds


def windows_and_a_group():
    host = host_with_table("sda", (1, 1, 300, "Windows"), (2, 301, 400, ""))
    host.media.sign(host.blocks()["sda1"], "vfat", ("label", 1))
    old_group(host, [host.blocks()["sda2"]], "precious")
    host.start_all()
    return host


def test_everything_on_a_wiped_disk_is_named_with_what_it_is_a_part_of():
    (loss,) = plan(windows_and_a_group(), simple().schema, wipe=["sda"]).losses
    assert (loss.disk, loss.why) == (f"{BY_ID}sda", "the disk is named in wipe")
    assert [(one.device, one.kind, one.label, one.size, one.part_of) for one in loss.contents] == [
        ("/dev/sda", "gpt table", "", 1500, ""),
        ("/dev/sda1", "vfat", "Windows", 300, ""),
        ("/dev/sda2", "LVM2_member", "", 400, "the volume group precious"),
        ("/dev/mapper/precious-old", "ext4", "", 392, "the volume group precious"),
    ]
    said = paragraph([loss])
    assert said.startswith(
        f"Destroyed for good: on {BY_ID}sda (the disk is named in wipe): gpt table on /dev/sda (1500 MiB); vfat 'Windows'"
    )
    assert "ext4 on /dev/mapper/precious-old (392 MiB, of the volume group precious)." in said


def test_an_array_loses_both_its_members():
    host = new_host()
    old_array(host, [host.media.disk("sda"), host.media.disk("sdb")], "1.2", "nas")
    host.start_all()
    maker = maker_on("sda", "sdb")
    for disk in ("sda", "sdb"):
        maker.fill(maker.partition(disk, 100, disk), 100, "fs", disk, "ext4")
    losses = plan(host, maker.schema, wipe=["sda", "sdb"]).losses
    assert [loss.disk for loss in losses] == [f"{BY_ID}sda", f"{BY_ID}sdb"]
    assert all("the array nas" in content.part_of for loss in losses for content in loss.contents if content.kind == "linux_raid_member")


def test_where_a_file_system_was_mounted_last_is_told():
    host = windows_and_a_group()
    present = dataclasses.replace(host.present(), last_mounts={"sda1": "/media/windows"})
    (loss,) = layout_run.plan_steps(parse_static_schema(simple().schema), present, [f"{BY_ID}sda"]).losses
    assert "vfat 'Windows' on /dev/sda1 (300 MiB, last mounted on /media/windows)" in paragraph([loss])


def test_the_host_that_made_something_is_told():
    host = windows_and_a_group()
    present = host.present()
    volumes = tuple(dataclasses.replace(volume, host="web1") for volume in present.logical)
    (loss,) = layout_run.plan_steps(
        parse_static_schema(simple().schema), dataclasses.replace(present, logical=volumes), [f"{BY_ID}sda"]
    ).losses
    assert [content.host for content in loss.contents] == ["", "", "web1", "web1"]
    assert "(392 MiB, of the volume group precious, made by web1)" in paragraph([loss])

    old_array(host, [host.media.disk("sdb"), host.media.disk("sdc")], "1.2", "nas:data")
    host.start_all()
    maker = maker_on("sdb", "sdc")
    losses = plan(host, maker.schema, wipe=["sdb", "sdc"]).losses
    assert {content.host for loss in losses for content in loss.contents if content.kind == "linux_raid_member"} == {"nas"}


def test_an_empty_disk_and_what_is_there_as_it_should_be_lose_nothing():
    maker = simple()
    assert plan(new_host(), maker.schema).losses == ()
    host = installed(maker)
    assert plan(host, maker.schema, wipe=["sda"]).losses == ()
    maker.schema["lvs"][0]["size"] += 20
    grown = plan(host, maker.schema, wipe=["sda"])
    assert grown.steps
    assert grown.losses == ()


@pytest.mark.parametrize("done", [1, 2, 4, 6, 8, 9])
def test_the_unfinished_work_of_a_run_that_was_cut_off_is_no_loss(done):
    maker, host = simple(), new_host()
    steps = plan(host, maker.schema).steps
    for step in steps[:done]:
        carry_out(host, step)
    again = plan(host, maker.schema)
    assert again.steps
    assert again.losses == ()


def test_what_only_the_kernel_still_knows_goes_without_permission_and_the_reason_says_so():
    """A run was killed between the first write of its table and telling the kernel."""
    host = host_with_table("sda", (1, 1, 300, "Windows"))
    host.media.sign(host.blocks()["sda1"], "vfat", ("label", 1))
    present = host.present()
    disk = present.tree.devices["sda"]
    table = dataclasses.replace(disk.table, uuid=table_uuid(f"{BY_ID}sda"), partitions=())
    begun = dataclasses.replace(present, tree=present.tree.with_devices([dataclasses.replace(disk, table=table)]))
    found = layout_run.plan_steps(parse_static_schema(simple().schema), begun)
    assert (bool(found.steps), found.refusals) == (True, ())
    (loss,) = found.losses
    assert (loss.disk, loss.why) == (f"{BY_ID}sda", "a run that was cut off has replaced its partition table already")
    assert [content.kind for content in loss.contents] == ["vfat"]


def test_a_volume_that_is_not_in_the_schema_any_more_is_a_loss_of_its_own():
    maker = simple()
    host = installed(maker)
    maker.schema["lvs"], maker.schema["fss"] = [], maker.schema["fss"][:1]
    assert plan(host, maker.schema, wipe=["sda"]).losses == ()
    (loss,) = plan(host, maker.schema, wipe=["sda"], keep_unlisted=False).losses
    assert [(content.device, content.kind) for content in loss.contents] == [("/dev/mapper/vg0-data", "xfs")]


class Run:
    """Runs on a simulated host, of which the steps are carried out."""

    def __init__(self, monkeypatch, host, schema):
        self.host, self.layout = host, parse_static_schema(schema)
        self.machine = RecordingMachine(files={"/proc/misc": "device-mapper", "/proc/devices": "9 md"})
        monkeypatch.setattr(layout_run, "read_present", lambda *_arguments: host.present())
        for kind in all_kinds():
            monkeypatch.setattr(kind, "run", lambda step, _machine: carry_out(host, step))

    def request(self, confirm):
        return Request(self.layout, wipe=tuple(disk.id for disk in self.layout.disks), confirm=confirm)

    def foresee(self, confirm=None):
        return layout_run.foresee(self.request(confirm), self.machine)

    def apply(self, confirm=None):
        return layout_run.apply(self.request(confirm), self.machine, lambda: False)


def test_what_was_seen_in_check_mode_is_applied_and_nothing_else(monkeypatch):
    run = Run(monkeypatch, windows_and_a_group(), simple().schema)
    seen = digest(run.foresee().losses)
    assert run.foresee(confirm=seen).problem is None
    run.host.media.sign(run.host.blocks()["sda1"], "xfs", ("label", 1))
    for report in (run.foresee(confirm=seen), run.apply(confirm=seen)):
        assert f"confirm is {seen}, but the digest of what would be destroyed now is " in str(report.problem)
        assert "vfat 'Windows' on /dev/sda1" in str(report.problem) or "xfs 'Windows' on /dev/sda1" in str(report.problem)
        assert report.done == ()
    now = digest(run.foresee().losses)
    done = run.apply(confirm=now)
    assert (done.problem, digest(done.losses)) == (None, now)
    again = run.apply(confirm=now)
    assert (again.problem, again.done, again.losses) == (None, (), ())


def test_what_one_round_of_a_run_destroys_stays_confirmed_and_listed_in_the_next(monkeypatch):
    """A member that is taken back has lost its older state when the next round looks at what else is to go."""
    maker, member = simple(), maker_on("sdb", "sdc")
    member.fill(member.mirror(("sdb", "sdc"), 100, "m", "1.2"), 90, "fs", "m", "ext4")
    host = installed(member)
    host.start_all(late="sdc")
    for uuid in host.arrays:
        host.use_array(uuid, 50)
    host.media.sign(host.blocks()["sda"], "xfs", ("label", 1))
    maker.schema["parteds"] += member.schema["parteds"]
    maker.schema["mds"], maker.schema["fss"] = member.schema["mds"], [*maker.schema["fss"], *member.schema["fss"]]
    run = Run(monkeypatch, host, maker.schema)
    seen = run.foresee()
    assert [content.device for loss in seen.losses for content in loss.contents] == ["/dev/sda", "/dev/sdc1"]
    said: list[str] = []
    done = layout_run.apply(run.request(digest(seen.losses)), run.machine, lambda: False, said.append)
    assert (done.problem, done.losses, said) == (None, seen.losses, [paragraph(seen.losses)])


def test_it_is_announced_before_the_first_step(monkeypatch):
    run = Run(monkeypatch, windows_and_a_group(), simple().schema)
    said: list[str] = []
    for kind in all_kinds():
        monkeypatch.setattr(kind, "run", lambda step, _machine: (said.append(step.says), carry_out(run.host, step)))
    report = layout_run.apply(run.request(None), run.machine, lambda: False, said.append)
    assert (report.problem, said[0]) == (None, paragraph(report.losses))
    assert len(said) == 1 + len(report.done)
    said.clear()
    assert layout_run.apply(run.request(None), run.machine, lambda: False, said.append).done == ()
    assert said == []
