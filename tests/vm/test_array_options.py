# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of arrays on real md: chunks and layouts are made, reported, adopted and never changed; write-mostly members are changed."""

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


def schema(**keys: t.Any) -> list[Plain]:
    space: Plain = {"level": "raid10", "legs": 2, "size": 200, "fs_type": "ext4", "mount": "/srv/data"}
    return [{"id": "data", "type": "raid", **space, **keys}]


def test_an_array_is_made_as_the_plan_says_and_stays_so(image: Path, user_mode_root: Path, tmp_path: Path) -> None:
    machine = UserModeMachine(image, tmp_path)
    try:
        machine.start(DISKS, {disk.serial: Served(disk.size) for disk in DISKS}, user_mode_root)
        for disk in DISKS:
            machine.plug(disk)
        host = LayoutHost(machine)
        wanted = host.plan(schema(chunk="64 KiB", layout="f2"))["schema"]
        host.apply(wanted)
        host.build_up_arrays()
        assert (reported(host, "chunk"), reported(host, "layout")) == (64, "f2")
        assert not host.apply(wanted)["changed"]
        adopted = host.adopt(DISKS[:2])["schema"]["mds"][0]
        assert (adopted["chunk"], adopted["layout"]) == (64, "f2")
        detail = host.shell("mdadm --detail /dev/md/data")
        assert "Layout : far=2" in detail
        assert "Chunk Size : 64K" in detail
        assert not host.apply(host.plan(schema())["schema"])["changed"]
        for keys, says in (
            ({"chunk": "128 KiB"}, "chunk 64, which is not changed to 128"),
            ({"layout": "o2"}, "layout f2, which is not changed to o2"),
        ):
            assert says in host.refuse(host.plan(schema(**keys))["schema"])
    finally:
        machine.throw_away()


def test_a_slow_member_is_made_kept_and_changed(image: Path, user_mode_root: Path, tmp_path: Path) -> None:
    mirror: Plain = {"id": "data", "type": "raid", "level": "raid1", "legs": 2, "size": 200, "fs_type": "ext4", "mount": "/srv/data"}
    machine = UserModeMachine(image, tmp_path)
    try:
        machine.start(DISKS, {disk.serial: Served(disk.size) for disk in DISKS}, user_mode_root)
        for disk in DISKS:
            machine.plug(disk)
        host = LayoutHost(machine)
        two = [disk.link for disk in DISKS[:2]]
        plans = {
            slow: host.plan([{**mirror, "write_mostly": slow}], *two)["schema"] for slow in ("yaql=$.disks.take(1)", "yaql=$.disks.skip(1)")
        }
        for slow, wanted in plans.items():
            assert host.apply(wanted)["changed"], slow
            host.build_up_arrays()
            assert not host.apply(wanted)["changed"], slow
            (node,) = wanted["mds"][0]["write_mostly"]
            assert slow_members(host) == [host.shell(f"realpath {node}").strip()]
            assert host.shell("mdadm --detail /dev/md/data").count("writemostly") == 1
            assert len(host.adopt(DISKS[:2])["schema"]["mds"][0]["write_mostly"]) == 1
        assert not host.apply(host.plan([mirror], *two)["schema"])["changed"]
        assert host.apply(host.plan([{**mirror, "write_mostly": []}], *two)["schema"])["changed"]
        assert slow_members(host) == []
        assert "writemostly" not in host.shell("mdadm --detail /dev/md/data")
    finally:
        machine.throw_away()


def slow_members(host: LayoutHost) -> list[str]:
    """What facts say of the members of the mirror."""
    found = [holder for disk in host.facts()["disks"] for holder in disk["holders"] if holder["type"] == "raid1"]
    assert found
    assert all(holder == found[0] for holder in found)
    return found[0].get("write_mostly", [])


def reported(host: LayoutHost, key: str) -> t.Any:
    """What facts say of the array."""
    (value,) = {holder[key] for disk in host.facts()["disks"] for holder in disk["holders"] if holder["type"] == "raid10"}
    return value
