# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps that move contents off a disk begin wherever an earlier run was cut off, and ask the tools for no more than is left."""

from __future__ import annotations

import json

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._steps.btrfs import ReplaceDevice
from ansible_collections.bareon.allocator.plugins.module_utils._steps.filesystem import CopyContents
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import CommandFailed, LocalMachine, StepFailed
from ansible_collections.bareon.allocator.plugins.module_utils._steps.md import ForgetMember, ReplaceMember
from ansible_collections.bareon.allocator.plugins.module_utils._steps.pvmove import LeaveGroup, MoveExtents
from ansible_collections.bareon.allocator.plugins.module_utils._steps.signatures import ClearSignatures
from ansible_collections.bareon.allocator.plugins.module_utils._steps.zfs import ReplaceVdev
from ansible_collections.bareon.allocator.tests.support.host.recording_machine import RecordingMachine

MIB = 1024**2
MD = "/sys/block/md0/md"
ADD, REPLACE = "mdadm --manage /dev/md0 --add /dev/sdc1", "mdadm --manage /dev/md0 --replace /dev/sda1 --with /dev/sdc1"
MARK = "mdadm --manage /dev/md0 --replace /dev/sda1"
REMOVE, ZERO = "mdadm --manage /dev/md0 --remove /dev/sda1", "mdadm --zero-superblock /dev/sda1"


class Md(RecordingMachine):
    """A mirror of sda1 and sdb1, of which mdadm changes what the kernel says. It refuses to replace by what is no spare."""

    def __init__(self, old: str, new: str) -> None:
        super().__init__()
        self.files = {f"{MD}/dev-sda1/state": old, f"{MD}/dev-sdb1/state": "in_sync", f"{MD}/dev-sdc1/state": new}

    def change(self, command, *arguments, **options):
        words = " ".join(command)
        old, new = (f"{MD}/dev-{name}/state" for name in ("sda1", "sdc1"))
        if words == ADD:
            assert not self.files[new]
            self.files[new] = "spare"
        elif words == REPLACE:
            assert self.files[new] == "spare"
            self.files.update({old: "in_sync,want_replacement", new: "spare,replacement"})
        elif words == MARK:
            assert "replacement" in self.files[new]
            self.files[old] = "in_sync,want_replacement"
        elif words == "mdadm --wait /dev/md0" and "want_replacement" in self.files[old]:
            self.files.update({old: "faulty", new: "in_sync"})
        elif words == REMOVE:
            assert "faulty" in self.files[old]
            self.files[old] = ""
        elif words == ZERO:
            assert not self.files[old]
        return super().change(command, *arguments, **options)

    def run(self, command):
        if list(command)[:2] == ["mdadm", "--detail"]:
            self.answers[" ".join(command)] = "".join(
                f"MD_DEVICE_dev_{name}_DEV=/dev/{name}\n" for name in ("sda1", "sdb1", "sdc1") if self.files[f"{MD}/dev-{name}/state"]
            )
        return super().run(command)


@pytest.mark.parametrize(
    ("old", "new", "commands"),
    [
        ("in_sync", "", [ADD, REPLACE, REMOVE, ZERO]),
        ("in_sync", "spare", [REPLACE, REMOVE, ZERO]),
        ("in_sync", "spare,replacement", [MARK, REMOVE, ZERO]),
        ("in_sync,want_replacement", "spare,replacement", [REMOVE, ZERO]),
        ("faulty", "in_sync", [REMOVE, ZERO]),
        ("", "in_sync", [ZERO]),
    ],
)
def test_a_member_is_replaced_from_where_it_was(old: str, new: str, commands: list[str]) -> None:
    machine = Md(old, new)
    ReplaceMember("/dev/md0", "md0", "/dev/sda1", "/dev/sdc1").run(machine)
    assert [command for command in machine.commands if "--wait" not in command] == commands


def test_md_may_take_the_new_member_before_mdadm_names_it() -> None:
    """A spare of the array becomes the replacement as soon as the old member is marked; mdadm then finds its slot busy."""

    class Busy(Md):
        def change(self, command, *arguments, **options):
            said = super().change(command, *arguments, **options)
            if " ".join(command) == REPLACE and 1 not in options["accepted"]:
                raise CommandFailed(command, 1, "Device or resource busy")
            return said

    machine = Busy("in_sync", "spare")
    ReplaceMember("/dev/md0", "md0", "/dev/sda1", "/dev/sdc1").run(machine)
    assert machine.commands[-2:] == [REMOVE, ZERO]


def test_a_member_that_md_does_not_begin_to_replace_stays() -> None:
    class Idle(Md):
        def change(self, command, *arguments, **options):
            return "" if " ".join(command) == REPLACE else super().change(command, *arguments, **options)

    machine = Idle("in_sync", "spare")
    with pytest.raises(StepFailed, match="/proc/mdstat"):
        ReplaceMember("/dev/md0", "md0", "/dev/sda1", "/dev/sdc1").run(machine)
    assert not {REMOVE, ZERO} & set(machine.commands)


def test_a_new_member_that_fails_costs_nothing() -> None:
    machine = Md("in_sync,want_replacement", "faulty")
    machine.files[f"{MD}/dev-sda1/state"] = "in_sync"
    with pytest.raises(StepFailed, match="sda1 is still its member"):
        ReplaceMember("/dev/md0", "md0", "/dev/sda1", "/dev/sdc1").run(machine)
    assert ZERO not in machine.commands


@pytest.mark.parametrize(("metadata", "wiped"), [("1.2", False), ("1.0", True), ("0.90", True)])
def test_what_shows_through_a_member_is_cleared(metadata: str, wiped: bool) -> None:
    """With metadata at the end the file system of the array begins where the member does."""
    machine = RecordingMachine()
    ForgetMember("/dev/md0", "/dev/sda1", metadata).run(machine)
    assert ("wipefs --all --quiet /dev/sda1" in machine.commands) is wiped


def report(kind: str, **row: str) -> str:
    return json.dumps({"report": [{kind: [row]}]})


ALLOCATED = "pvs --reportformat json --units b --nosuffix --options pv_pe_alloc_count /dev/sda2"
GROUP = "pvs --reportformat json --units b --nosuffix --options pv_name,vg_name /dev/sda2"


def test_extents_are_moved_only_where_there_are_some() -> None:
    moving = "pvmove --yes --interval 5 /dev/sda2 /dev/sdc2"
    for before, after, commands in (("7", "0", [moving]), ("0", "0", [])):
        machine = RecordingMachine(answers={ALLOCATED: [report("pv", pv_pe_alloc_count=count) for count in (before, after)]})
        MoveExtents("os", "/dev/sda2", ("/dev/sdc2",)).run(machine)
        assert [command for command in machine.commands if "pvs" not in command] == commands
    machine = RecordingMachine(answers={ALLOCATED: report("pv", pv_pe_alloc_count="3")})
    with pytest.raises(StepFailed, match="3 extents"):
        MoveExtents("os", "/dev/sda2", ("/dev/sdc2",)).run(machine)


@pytest.mark.parametrize(
    ("group", "commands"),
    [
        ("os", ["vgreduce --yes --quiet os /dev/sda2", "pvremove --yes --quiet /dev/sda2"]),
        ("", ["pvremove --yes --quiet /dev/sda2"]),
    ],
)
def test_a_physical_volume_leaves_its_group_once(group: str, commands: list[str]) -> None:
    machine = RecordingMachine(answers={GROUP: report("pv", pv_name="/dev/sda2", vg_name=group)})
    LeaveGroup("os", "/dev/sda2").run(machine)
    assert [command for command in machine.commands if "pvs" not in command] == commands


def test_half_written_metadata_of_a_volume_in_no_group_is_cleared(monkeypatch) -> None:
    cleared = []
    monkeypatch.setattr(ClearSignatures, "run", lambda self, machine: cleared.extend(self.devices))
    machine = RecordingMachine(answers={GROUP: report("pv", pv_name="/dev/sda2", vg_name="")}, failing={"pvremove": 5})
    LeaveGroup("os", "/dev/sda2").run(machine)
    assert cleared == ["/dev/sda2"]


def test_a_physical_volume_of_another_group_stays_in_it() -> None:
    machine = RecordingMachine(answers={GROUP: report("pv", pv_name="/dev/sda2", vg_name="other")})
    with pytest.raises(StepFailed, match="other"):
        LeaveGroup("os", "/dev/sda2").run(machine)
    assert [command for command in machine.commands if "pvs" not in command] == []


def test_signatures_go_only_behind_the_copy() -> None:
    machine = RecordingMachine(answers={"": ""})
    with pytest.raises(StepFailed, match="after the one was copied"):
        CopyContents("/dev/sda3", "/dev/sdc3", 100 * MIB, "ext4").run(machine)
    kinds = [event[0] if event[0] == "copy" else event[1].split()[0] for event in machine.events if event[0] in ("copy", "change")]
    assert kinds == ["copy", "wipefs"]


def test_a_copy_is_whole_and_compared(tmp_path) -> None:
    """Files stand in for devices; the kernel lets nobody else have those."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(bytes(range(256)) * 4096 * 3 + b"end")
    other.write_bytes(b"x" * (4 * MIB))
    size = one.stat().st_size
    LocalMachine().copy(str(one), str(other), size)
    assert other.read_bytes()[:size] == one.read_bytes()
    assert other.read_bytes()[size:] == b"x" * (4 * MIB - size)
    with pytest.raises(StepFailed, match="cannot copy"):
        LocalMachine().copy(str(one), str(other), size + MIB)
    with pytest.raises(StepFailed, match="cannot copy"):
        LocalMachine().copy(str(tmp_path / "none"), str(other), size)


@pytest.mark.parametrize("begun", [True, False])
def test_a_vdev_is_replaced_once(begun: bool) -> None:
    status, health = "zpool status tank", "zpool list -H -o name,guid,health"
    going, gone = "  replacing-0  ONLINE\n", "  sdc1  ONLINE\n"
    machine = RecordingMachine(answers={status: [going, going, gone] if begun else [gone, going, gone], health: "tank\t1\tONLINE\n"})
    machine.give_way = lambda: None  # type: ignore[method-assign]
    try:
        ReplaceVdev("tank", "/dev/sda1", "/dev/sdc1", "/dev/disk/by-id/wwn-1-part1").run(machine)
    except StepFailed as error:
        pytest.fail(str(error))
    assert ("zpool replace tank /dev/sda1 /dev/disk/by-id/wwn-1-part1" in machine.commands) is not begun


class Btrfs(RecordingMachine):
    """A shell that says on which devices the Btrfs is in the end."""

    def __init__(self, *devices: str) -> None:
        super().__init__()
        self.shown = "".join(f"\tdevid    {number} size 1 used 1 path {device}\n" for number, device in enumerate(devices, 1))

    def change(self, command, *arguments, **options):
        said = super().change(command, *arguments, **options)
        return self.shown if command[0] in ("sh", "unshare") else said


@pytest.mark.parametrize(("mountpoint", "program"), [("/srv/data", "sh"), (None, "unshare")])
def test_a_btrfs_leaves_a_device(mountpoint: str | None, program: str) -> None:
    machine = Btrfs("/dev/sdb2", "/dev/sdc2")
    ReplaceDevice("/dev/sda2", "/dev/sdc2", mountpoint).run(machine)
    assert [command.split()[0] for command in machine.commands] == [program, "wipefs"]


@pytest.mark.parametrize("devices", [["/dev/sda2"], ["/dev/sda2", "/dev/sdc2"], []])
def test_a_btrfs_that_has_not_moved_keeps_its_device(devices: list[str]) -> None:
    machine = Btrfs(*devices)
    with pytest.raises(StepFailed, match="the btrfs is on"):
        ReplaceDevice("/dev/sda2", "/dev/sdc2", None).run(machine)
    assert not any(command.startswith("wipefs") for command in machine.commands)
