# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nothing changes on a disk that `wipe` does not name, where that takes a kernel with md and device-mapper; see tests/loop for the rest."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk
from ansible_collections.bareon.allocator.tests.vm.layout_host import LayoutHost

Plain = dict[str, t.Any]
Plugged = t.Callable[[t.Sequence[Disk]], LayoutHost]

ONE, TWO = (Disk(serial, 1024**3, "scsi") for serial in ("ONE", "TWO"))
PRECIOUS = "/mnt/precious"


def schema(*disks: Disk, size: int, **lists: list[Plain]) -> Plain:
    """Return a static schema with a partition of so many MiB on each disk, and the other lists as they are given."""
    parts = [{"name": part(disk), "count": 1, "begin": 1, "end": 1 + size, "space_id": "os"} for disk in disks]
    return {"parteds": [{"name": disk.link, "disk_id": disk.link, "partitions": [one]} for disk, one in zip(disks, parts)], **lists}


def part(disk: Disk) -> str:
    return f"{disk.link}-part1"


def assert_same(host: LayoutHost, wanted: Plain) -> None:
    """Another run finds nothing to do."""
    again = host.apply(wanted)
    assert (again["changed"], again["steps"]) == (False, [])


def test_arrays_on_disks_that_once_carried_a_layout_are_kept(layout_host: Plugged) -> None:
    """mdadm leaves a copy of our tables, and its superblock lies over the other one: running or stopped, with each metadata."""
    host = layout_host([ONE, TWO])
    old = schema(ONE, TWO, size=200, fss=[{"device": part(disk), "fs_type": "ext4"} for disk in (ONE, TWO)])
    for metadata in ("1.2", "1.0", "1.1"):
        host.apply(old, wipe=[ONE.link, TWO.link])
        options = f"--run --metadata={metadata} --level=1 --raid-devices=2 --homehost=any --bitmap=none"
        host.shell(f"mdadm --create /dev/md/theirs {options} {ONE.link} {TWO.link}; udevadm settle")
        host.shell(f"mkfs.ext4 -q -F /dev/md/theirs; mount /dev/md/theirs /mnt; echo data >{PRECIOUS}; umount /mnt; sync")
        running = [host.refuse(old), host.refuse(old, wipe=[TWO.link])]
        host.shell("mdadm --stop /dev/md/theirs; udevadm settle")
        for said in (*running, host.refuse(old), host.refuse(old, wipe=[TWO.link])):
            assert f"{ONE.link}" in said, metadata
        host.shell(f"mdadm --assemble /dev/md/theirs {ONE.link} {TWO.link}; udevadm settle; mount /dev/md/theirs /mnt")
        assert host.shell(f"cat {PRECIOUS}; grep -c '\\[UU\\]' /proc/mdstat").split() == ["data", "1"], metadata
        host.shell("umount /mnt")
    seen = host.foresee(old, wipe=[ONE.link, TWO.link])
    assert "theirs" in str(seen["destroys"])
    host.apply(old, wipe=[ONE.link, TWO.link])
    assert_same(host, old)


@pytest.mark.parametrize("used", [False, True])
def test_a_volume_of_a_run_that_failed_is_kept_once_somebody_uses_it(layout_host: Plugged, used: bool) -> None:
    host = layout_host([ONE])
    volumes = [{"name": name, "vgname": "tank", "size": size} for name, size in (("first", 100), ("second", 400))]
    filesystems = [{"device": f"/dev/mapper/tank-{name}", "fs_type": kind} for name, kind in (("first", "ext4"), ("second", "xfs"))]
    groups = [{"name": "tank", "pvnames": [part(ONE)]}]
    wanted = schema(ONE, size=900, pvs=[{"name": part(ONE)}], vgs=groups, lvs=volumes, fss=filesystems)
    host.shell("printf '#!/bin/sh\\nexit 1\\n' >/usr/local/sbin/mkfs.xfs; chmod +x /usr/local/sbin/mkfs.xfs")
    assert host.attempt(wanted)["failed"]
    host.shell(f"rm /usr/local/sbin/mkfs.xfs; mount /dev/mapper/tank-first /mnt; echo data >{PRECIOUS}; umount /mnt")
    assert host.shell("lvs --noheadings --options lv_tags tank/first").strip() == ""
    if used:
        host.shell(f"mkfs.ext4 -q -L mine /dev/mapper/tank-second; mount -L mine /mnt; echo data >{PRECIOUS}; umount /mnt")
        assert "/dev/mapper/tank-second is unfinished, but has ext4 'mine'" in host.refuse(wanted)
        assert host.shell(f"mount -L mine /mnt; cat {PRECIOUS}; umount /mnt").strip() == "data"
    done = host.apply(wanted, wipe=[ONE.link] if used else [])
    assert bool(done["destroys"]) is used
    assert host.shell(f"mount /dev/mapper/tank-first /mnt; cat {PRECIOUS}; umount /mnt").strip() == "data"
    assert_same(host, wanted)
