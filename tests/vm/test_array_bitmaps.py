# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write-intent bitmaps on real md: made as the plan says, changed while the array is in use, told by facts, and adopted."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk
from ansible_collections.bareon.allocator.tests.support.vm.recorded_disks import Served
from ansible_collections.bareon.allocator.tests.support.vm.user_mode import UserModeMachine
from ansible_collections.bareon.allocator.tests.vm.layout_host import LayoutHost

MIB = 1024**2
DISKS = (Disk("ONE", 300 * MIB), Disk("TWO", 300 * MIB))
Plain = dict[str, t.Any]


def schema(bitmap: str) -> list[Plain]:
    keys: Plain = {"level": "raid1", "legs": 2, "size": 200, "fs_type": "ext4", "mount": "/srv/data"}
    return [{"id": "data", "type": "raid", "bitmap": bitmap, **keys}]


def test_a_bitmap_is_as_the_plan_says_and_changes_with_it(image: Path, user_mode_root: Path, tmp_path: Path) -> None:
    machine = UserModeMachine(image, tmp_path)
    try:
        machine.start(DISKS, {disk.serial: Served(disk.size) for disk in DISKS}, user_mode_root)
        for disk in DISKS:
            machine.plug(disk)
        host = LayoutHost(machine)
        plan = host.plan(schema("none"))
        host.apply(plan["schema"])
        host.build_up_arrays()
        host.shell("mkdir -p /srv/data; mount /dev/md/data /srv/data; head -c 20000000 /dev/urandom >/srv/data/mark; sync")
        before = host.shell("sha256sum /srv/data/mark")
        for bitmap, kinds in (("none", []), ("internal", ["change_bitmap"]), ("none", ["change_bitmap"])):
            wanted = host.plan(schema(bitmap))["schema"]
            assert [step["kind"] for step in host.apply(wanted)["steps"]] == kinds
            assert told(host) == bitmap
            assert not host.apply(wanted)["changed"]
        assert host.shell("mdadm --detail /dev/md/data").count("Intent Bitmap : Internal") == 0
        assert host.adopt(DISKS)["schema"]["mds"][0]["bitmap"] == "none"
        assert host.shell("sha256sum /srv/data/mark") == before
    finally:
        machine.throw_away()


def told(host: LayoutHost) -> str:
    """The bitmap that facts have of the array."""
    (bitmap,) = {holder["bitmap"] for disk in host.facts()["disks"] for holder in disk["holders"] if holder["type"] == "raid1"}
    return str(bitmap)
