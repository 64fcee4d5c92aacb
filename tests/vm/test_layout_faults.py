# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults of hosts under arrays, LUKS and volumes: a /run that is full or read-only, tools that are missing, several runs at once.

Nothing is lost, and the next run completes what one could not. The machines are User Mode Linuxes; TEST_MACHINE_SUITE chooses the release,
and with it the versions of Python and of all tools.
"""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk
from ansible_collections.bareon.allocator.tests.support.vm.recorded_disks import Served
from ansible_collections.bareon.allocator.tests.support.vm.user_mode import UserModeMachine
from ansible_collections.bareon.allocator.tests.vm.layout_host import LayoutHost, result_in

GIB = 1024**3
Plain = dict[str, t.Any]

DISKS = (Disk("ONE", GIB), Disk("TWO", GIB))
SCHEMA: list[Plain] = [
    {"id": "boot", "type": "raid", "level": "raid1", "legs": 2, "size": 100, "mount": "/srv/boot", "fs_type": "ext4"},
    {"id": "mirror", "type": "raid", "level": "raid1", "legs": 2, "size": 400},
    {"id": "safe", "type": "vg", "contains": ["mirror", "data", "swap"], "encrypt": True},
    {"id": "data", "type": "lv", "size": 120, "mount": "/srv/data", "fs_type": "ext4"},
    {"id": "swap", "type": "lv", "size": 32, "fs_type": "swap"},
]
TOOLS = ("mdadm", "cryptsetup", "lvm", "mkfs.ext4", "sfdisk", "wipefs", "blkid")

FILL = "head -c 2G /dev/zero >/run/full 2>/dev/null || true; ! echo more >/run/more 2>/dev/null"


class Host(LayoutHost):
    """A machine with the disks, and the plan for them."""

    def __init__(self, machine: UserModeMachine) -> None:
        super().__init__(machine)
        self.calm_arrays()
        for disk in DISKS:
            machine.plug(disk)
        self.schema = t.cast("Plain", self.plan(SCHEMA, *(disk.link for disk in DISKS))["schema"])

    def writes(self) -> int:
        """Return how many writes the disks have taken, once arrays rest: what these are built up with is none of our work."""
        self.shell("sync; for action in /sys/block/md*/md/sync_action; do test ! -e $action || echo frozen >$action; done")
        return self.writes_at_rest(DISKS)

    def complete(self) -> None:
        """Complete the layout, see that it is the one of the plan, and that a further run has nothing to do."""
        self.apply(self.schema)
        self.confirm()

    def confirm(self) -> None:
        again = self.apply(self.schema)
        assert (again["changed"], again["steps"]) == (False, [])
        self.shell("udevadm settle; mkdir -p /srv/data; mount /dev/mapper/safe-data /srv/data; umount /srv/data")


@pytest.fixture
def host(image: Path, user_mode_root: Path, tmp_path: Path) -> t.Iterator[Host]:
    machine = UserModeMachine(image, tmp_path)
    try:
        machine.start(DISKS, {disk.serial: Served(disk.size) for disk in DISKS}, user_mode_root)
        yield Host(machine)
    finally:
        machine.throw_away()


def test_a_layout_is_made_once(host: Host) -> None:
    plan = host.plan(SCHEMA, *(disk.link for disk in DISKS))
    assert host.foresee(plan["schema"])["changed"]
    host.complete()
    host.check(plan)


@pytest.mark.parametrize("made", [False, True])
def test_a_read_only_run_is_refused_before_anything_is_written(host: Host, made: bool) -> None:
    if made:
        host.complete()
    before = host.writes()
    host.shell("touch /run/before")
    read_only = "mount --bind /run /run && mount -o remount,bind,ro /run && ! touch /run/after 2>/dev/null"
    module = "env PYTHONPATH=/root/python python3 -m ansible_collections.bareon.allocator.plugins.modules.disk_layout"
    text = json.dumps({"ANSIBLE_MODULE_ARGS": {"schema": host.schema, "luks_key_file": "/root/layout-key"}})
    done = host.machine.attempt("unshare", "--mount", "--propagation", "private", "sh", "-c", f"{read_only} && exec {module}", text=text)
    result = result_in(done.stdout, done.stderr)
    assert result["failed"]
    assert "/run/bareon-disk-layout.lock: Read-only file system" in result["msg"]
    assert host.writes() == before
    host.complete()


@pytest.mark.parametrize("made", [False, True])
def test_a_full_run_is_refused_before_anything_is_written(host: Host, made: bool) -> None:
    """udev and LVM keep notes there, for which cryptsetup would wait without end. With nothing to do there is nothing to refuse."""
    if made:
        host.complete()
    host.shell(FILL)
    if made:
        host.confirm()
        host.shell(f"rm /run/full; vgchange --quiet --activate n safe; cryptsetup close safe-crypt; udevadm settle; {FILL}")
    before = host.writes()
    for mode in ({"_ansible_check_mode": True}, {}):
        result = host.attempt(host.schema, **mode)
        assert "there is no room in /run" in str(result), result
        assert result.get("failed", False) is not bool(mode)
    assert host.writes() == before
    host.shell("rm /run/full")
    host.complete()


@pytest.mark.parametrize("made", [False, True])
def test_a_run_without_a_tool_says_so_and_writes_nothing(host: Host, made: bool) -> None:
    """A host without a tool sees less of what is on its disks; what it does not see it does not destroy."""
    if made:
        host.complete()
    before = host.writes()
    for tool in TOOLS:
        host.shell(
            f"cd /usr; for place in bin/{tool} sbin/{tool}; do test ! -e $place || mv $place $place.away; done; ! type {tool} 2>/dev/null"
        )
        host.attempt(host.schema, _ansible_check_mode=True)
        result = host.attempt(host.schema)
        assert (result["changed"], result.get("destroys", [])) == (False, []), (tool, result)
        assert not any(step["done"] for step in result.get("steps", [])), (tool, result)
        assert result.get("failed") or (made and result["steps"] == []), (tool, result)
        host.shell(f"cd /usr; for place in bin/{tool} sbin/{tool}; do test ! -e $place.away || mv $place.away $place; done")
    assert host.writes() == before
    host.complete()


@pytest.mark.parametrize("waits", [False, True])
def test_of_two_runs_at_once_one_makes_it_and_the_other_one_waits_or_changes_nothing(host: Host, waits: bool) -> None:
    runs = [host.begin(host.schema, lock_timeout=600 if waits else 0) for _run in range(2)]
    results = [result_in(*run.communicate()) for run in runs]
    made = [result for result in results if result.get("changed", False)]
    others = [result for result in results if not result.get("changed", False)]
    assert (len(made), len(others)) == (1, 1), results
    assert not made[0].get("failed"), made
    assert bool(others[0].get("failed")) is not waits, others
    assert not any(step["done"] for step in others[0].get("steps", [])), others
    assert waits or "another run of disk_layout is active on this host" in others[0]["msg"]
    host.confirm()


def test_volumes_that_a_start_activated_without_a_disk_get_it_back(host: Host) -> None:
    """LVM puts errors in the place of what is not there, and leaves them there when the disk comes."""
    spaces = [
        {"id": "group", "type": "vg", "contains": ["both"], "disks": [disk.link for disk in DISKS]},
        {"id": "both", "type": "lv", "size": 1200, "mount": "/srv/both", "fs_type": "ext4"},
    ]
    schema = t.cast("Plain", host.plan(spaces, *(disk.link for disk in DISKS))["schema"])
    host.apply(schema)
    host.shell(f"""
mkdir -p /srv/both; mount /dev/mapper/group-both /srv/both; head -c 1100M /dev/zero >/srv/both/kept; umount /srv/both
vgchange --quiet --activate n group; udevadm settle
late=$(basename $(realpath /sys/class/block/$(basename $(readlink -f {DISKS[1].link}))/device))
echo $late >/sys/bus/virtio/drivers/virtio_blk/unbind; udevadm settle
vgchange --quiet --activate y --activationmode partial group; udevadm settle
echo $late >/sys/bus/virtio/drivers/virtio_blk/bind; udevadm settle
! dd if=/dev/mapper/group-both of=/dev/null bs=1M status=none
""")
    opened = host.apply(schema)
    assert [step["says"] for step in opened["steps"] if step["done"]] == ["activate the volume group group"]
    again = host.apply(schema)
    assert (again["changed"], again["steps"]) == (False, [])
    host.shell("mount /dev/mapper/group-both /srv/both; cmp --bytes=1153433600 /srv/both/kept /dev/zero; umount /srv/both")
