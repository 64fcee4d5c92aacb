# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What somebody put into a LUKS container or an array of a run that failed, and closed or stopped: real tools, and their kernel."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk
from ansible_collections.bareon.allocator.tests.support.vm.recorded_disks import Served
from ansible_collections.bareon.allocator.tests.support.vm.user_mode import UserModeMachine
from ansible_collections.bareon.allocator.tests.vm.layout_host import LayoutHost

Plain = dict[str, t.Any]

GIB = 1024**3
DISKS = (Disk("ONE", GIB), Disk("TWO", GIB))
NO_TOOL = "printf '#!/bin/sh\\nexit 1\\n' >/usr/local/sbin/mkfs.ext4; chmod +x /usr/local/sbin/mkfs.ext4"
USED = "/usr/sbin/mkfs.ext4 -q -L mine {}; mount {} /mnt; echo data >/mnt/precious; umount /mnt; sync"


def part(disk: Disk) -> str:
    return f"{disk.link}-part1"


def schema(top: str, **lists: list[Plain]) -> Plain:
    """Return a schema of a partition on each disk, with an ext4 on `top`."""
    parts = [{"name": part(disk), "count": 1, "begin": 1, "end": 401, "space_id": "os"} for disk in DISKS]
    tables = [{"name": disk.link, "disk_id": disk.link, "partitions": [one]} for disk, one in zip(DISKS, parts)]
    return {"parteds": tables, "fss": [{"device": top, "fs_type": "ext4"}], **lists}


CONTAINER = schema("/dev/mapper/secret", luks=[{"name": "secret", "device": part(DISKS[0])}])
ARRAY = schema("/dev/md/both", mds=[{"name": "/dev/md/both", "level": "raid1", "devices": [part(disk) for disk in DISKS]}])


@pytest.fixture
def host(image: Path, user_mode_root: Path, tmp_path: Path) -> Iterator[LayoutHost]:
    machine = UserModeMachine(image, tmp_path)
    try:
        machine.start(DISKS, {disk.serial: Served(disk.size) for disk in DISKS}, user_mode_root)
        found = LayoutHost(machine)
        found.calm_arrays()
        for disk in DISKS:
            machine.plug(disk)
        yield found
    finally:
        machine.throw_away()


def fail(host: LayoutHost, wanted: Plain) -> None:
    """Have a run fail as it makes the file system."""
    host.shell(NO_TOOL)
    assert host.attempt(wanted)["failed_step"]["kind"] == "make_filesystem"
    host.shell("rm /usr/local/sbin/mkfs.ext4; udevadm settle")


def is_kept(host: LayoutHost, opened: str, node: str, closed: str, wanted: Plain, says: str, **options: t.Any) -> None:
    """See that a run without a permission refuses, in check mode as well, and that all is there when somebody opens it."""
    for mode in ({"_ansible_check_mode": True}, {}):
        result = host.attempt(wanted, **mode, **options)
        if not mode or result.get("failed"):
            assert says in result["msg"], result
        assert (result.get("destroys"), [step for step in result["steps"] if step["kind"].startswith(("clear", "make", "format"))]) == (
            [],
            [],
        )
    host.shell(f"test -e {node} || {opened}; udevadm settle")
    assert host.shell(f"mount {node} /mnt; cat /mnt/precious; umount /mnt").strip() == "data"
    host.shell(f"{closed}; udevadm settle")


def test_a_closed_container_is_made_again_only_while_nobody_has_used_it(host: LayoutHost) -> None:
    opened = f"cryptsetup open --key-file /root/layout-key {part(DISKS[0])} secret"
    closed = "cryptsetup close secret"
    fail(host, CONTAINER)
    host.shell(closed)
    assert host.apply(CONTAINER)["destroys"] == []
    host.shell(f"{closed}; partx -d {DISKS[0].link} || true")
    host.shell(f"blkdiscard --force {DISKS[0].link}; udevadm settle")
    fail(host, CONTAINER)
    host.shell(f"{USED.format('/dev/mapper/secret', '/dev/mapper/secret')}; {closed}; udevadm settle")
    is_kept(host, opened, "/dev/mapper/secret", closed, CONTAINER, "ext4 'mine'")
    host.shell("umask 077; printf %s 'another key of 16 letters' >/root/wrong")
    is_kept(host, opened, "/dev/mapper/secret", closed, CONTAINER, "does not open", luks_key_file="/root/wrong")
    done = host.apply(CONTAINER, wipe=[DISKS[0].link])
    assert [loss["disk"] for loss in done["destroys"]] == [DISKS[0].link]
    assert host.apply(CONTAINER)["changed"] is False


def test_a_stopped_array_is_made_again_only_while_nobody_has_used_it(host: LayoutHost) -> None:
    opened = f"mdadm --assemble /dev/md/both {' '.join(map(part, DISKS))}"
    closed = "mdadm --stop /dev/md/both"
    fail(host, ARRAY)
    host.shell(f"{closed}; udevadm settle")
    assert host.apply(ARRAY)["destroys"] == []
    assert host.apply(ARRAY)["changed"] is False
    emptied = f"for disk in {' '.join(disk.link for disk in DISKS)}; do blkdiscard --force $disk; partx -d $disk || true; done"
    host.shell(f"{closed}; {emptied}; udevadm settle")
    fail(host, ARRAY)
    host.shell(f"{USED.format('/dev/md/both', '/dev/md/both')}; {closed}; udevadm settle")
    is_kept(host, opened, "/dev/md/both", closed, ARRAY, "ext4 'mine'")
    host.shell(f"mdadm --zero-superblock {part(DISKS[1])}; wipefs --all --quiet {part(DISKS[1])}; udevadm settle")
    lone = f"mdadm --assemble --run /dev/md/both {part(DISKS[0])}"
    host.shell(f"test ! -e /dev/md/both || {closed}")
    result = host.attempt(ARRAY)
    assert result["failed"]
    assert result["destroys"] == []
    host.shell(f"test -e /dev/md/both || {lone}; udevadm settle; mount /dev/md/both /mnt")
    assert host.shell("cat /mnt/precious; umount /mnt").strip() == "data"
