# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._mounting import Entry, carry_out, entry_of, plan_mounts
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import CommandFailed, StepFailed
from ansible_collections.bareon.allocator.tests.support.host.mounting_machine import MountingMachine, mountinfo
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine


def entries(folder):
    return [Entry("UUID=1", f"{folder}/srv", "xfs"), Entry("UUID=2", f"{folder}/srv/log", "ext4", "noatime")]


@pytest.mark.parametrize("systemd", [True, False])
def test_fstab_is_written_once_and_all_is_mounted_in_order(tmp_path, systemd):
    wanted = entries(tmp_path)
    machine = MountingMachine(files={"/proc/self/mountinfo": mountinfo("/")}, folders={"/run/systemd": ["system"] if systemd else []})
    plan = plan_mounts(wanted, "", machine.read("/proc/self/mountinfo"))

    carry_out(plan, "/etc/fstab", machine, lambda text: machine.events.append(("write", text)))

    assert plan.changes
    assert [event for event in machine.events if event[0] == "write"] == [("write", "".join(f"{entry.line}\n" for entry in wanted))]
    assert machine.events[0][0] == "write"
    reload = ["systemctl daemon-reload"] if systemd else []
    assert machine.commands == [*reload, *(f"mount --fstab /etc/fstab {entry.path}" for entry in wanted)]
    assert (tmp_path / "srv").is_dir()
    assert (tmp_path / "srv" / "log").is_dir()


def test_what_is_so_already_is_left_alone(tmp_path):
    wanted = entries(tmp_path)
    text = "".join(f"{entry.line}\n" for entry in wanted)
    machine = MountingMachine(files={"/proc/self/mountinfo": mountinfo(*(entry.path for entry in wanted))})
    plan = plan_mounts(wanted, text, machine.read("/proc/self/mountinfo"))
    assert (plan.changes, plan.new, plan.changed) == (False, (), ())
    carry_out(plan, "/etc/fstab", machine, machine.events.append)
    assert machine.events == []


def test_other_options_are_taken_over_while_it_is_mounted(tmp_path):
    wanted = entries(tmp_path)
    machine = MountingMachine(files={"/proc/self/mountinfo": mountinfo(*(entry.path for entry in wanted))})
    plan = plan_mounts(wanted, f"{wanted[0].line}\nUUID=2 {wanted[1].path} ext4\n", machine.read("/proc/self/mountinfo"))
    assert (plan.changes, plan.new, plan.changed) == (True, (), (wanted[1],))
    carry_out(plan, "/etc/fstab", machine, lambda text: None)
    assert machine.commands == [f"mount --fstab /etc/fstab -o remount {wanted[1].path}"]


def test_what_is_only_missing_from_the_mounts_leaves_fstab_alone(tmp_path):
    wanted = entries(tmp_path)[:1]
    machine = MountingMachine(files={"/proc/self/mountinfo": ""}, folders={"/run/systemd": ["system"]})
    plan = plan_mounts(wanted, f"{wanted[0].line}\n", "")
    carry_out(plan, "/etc/fstab", machine, machine.events.append)
    assert machine.commands == [f"mount --fstab /etc/fstab {wanted[0].path}"]


def test_a_mount_that_fails_and_one_that_only_seems_to_come_are_failures(tmp_path):
    wanted = entries(tmp_path)[:1]
    failing = MountingMachine(files={"/proc/self/mountinfo": ""}, failing={"mount": 32})
    with pytest.raises(StepFailed, match="failed with code 32"):
        carry_out(plan_mounts(wanted, "", ""), "/etc/fstab", failing, lambda text: None)
    with pytest.raises(StepFailed, match="not mounted, although"):
        carry_out(plan_mounts(wanted, "", ""), "/etc/fstab", RecordingMachine(), lambda text: None)


def test_what_no_table_is_to_have_is_mounted_by_what_is_given(tmp_path):
    wanted = entries(tmp_path)
    machine = MountingMachine(files={"/proc/self/mountinfo": mountinfo(wanted[0].path)}, folders={"/run/systemd": ["system"]})
    plan = plan_mounts(wanted, None, machine.read("/proc/self/mountinfo"))
    assert (plan.changes, plan.new, plan.changed) == (True, (wanted[1],), ())
    carry_out(plan, None, machine, pytest.fail)
    assert machine.commands == [f"mount -t ext4 -o noatime UUID=2 {wanted[1].path}"]
    assert not plan_mounts(wanted, None, machine.read("/proc/self/mountinfo")).changes


@pytest.mark.parametrize(
    ("root", "path", "place"), [("/target", "/", "/target"), ("/target/", "/srv/", "/target/srv"), ("/", "/srv", "/srv"), ("/", "/", "/")]
)
def test_a_new_system_is_mounted_below_its_directory(root, path, place):
    entry = Entry("UUID=1", path, "xfs", "noatime", passno="2")
    assert entry.below(root) == Entry("UUID=1", place, "xfs", "noatime", passno="2")


class UncheckedMachine(MountingMachine):
    """A machine that mounts nothing before it was checked."""

    def change(self, command, *given, **options):
        if command[0] == "mount" and not any(done.startswith("fsck ") for done in self.commands):
            raise CommandFailed(command, 32, "Structure needs cleaning")
        return super().change(command, *given, **options)


def test_what_a_start_checks_is_checked_where_it_cannot_be_mounted(tmp_path):
    checked, unchecked = (Entry("UUID=1", f"{tmp_path}/srv", "ext4", passno=number) for number in ("2", "0"))
    machine = UncheckedMachine(files={"/proc/self/mountinfo": ""})
    carry_out(plan_mounts([checked], "", ""), "/etc/fstab", machine, lambda text: None)
    assert machine.commands == ["fsck -T -M -a UUID=1", f"mount --fstab /etc/fstab {checked.path}"]

    machine = UncheckedMachine(files={"/proc/self/mountinfo": ""})
    with pytest.raises(StepFailed, match="Structure needs cleaning"):
        carry_out(plan_mounts([unchecked], "", ""), "/etc/fstab", machine, lambda text: None)
    assert machine.commands == []


def test_what_a_check_cannot_correct_is_told_with_what_mount_said(tmp_path):
    entry = Entry("UUID=1", f"{tmp_path}/srv", "ext4", passno="2")
    machine = MountingMachine(files={"/proc/self/mountinfo": ""}, failing={"mount": 32, "fsck": 4})
    with pytest.raises(StepFailed, match=r"mount .* failed with code 32: .*; fsck -T -M -a UUID=1 failed with code 4"):
        carry_out(plan_mounts([entry], "", ""), "/etc/fstab", machine, lambda text: None)


def test_a_mount_point_that_cannot_be_made_is_a_failure(tmp_path):
    (tmp_path / "srv").touch()
    with pytest.raises(StepFailed, match="cannot make the mount point"):
        carry_out(plan_mounts(entries(tmp_path)[:1], "", ""), "/etc/fstab", RecordingMachine(), lambda text: None)


def test_entries_are_read_by_their_names():
    given = {"src": "UUID=1", "path": "/srv", "fstype": "xfs", "opts": "noatime", "dump": "0", "passno": "2", "target": "/srv"}
    assert entry_of(given) == Entry("UUID=1", "/srv", "xfs", "noatime", "0", "2")
