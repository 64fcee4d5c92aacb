# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Striped volumes on real LVM and device-mapper: planned, made, in use, grown with their data, adopted, and never made anew."""

from __future__ import annotations

import copy
import json
import typing as t
from pathlib import Path

from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk
from ansible_collections.bareon.allocator.tests.support.vm.torn_runs import Served
from ansible_collections.bareon.allocator.tests.support.vm.user_mode import UserModeMachine
from ansible_collections.bareon.allocator.tests.vm.layout_host import LayoutHost

MIB = 1024**2
DISKS = (Disk("ONE", 700 * MIB), Disk("TWO", 700 * MIB), Disk("THREE", 500 * MIB))
Plain = dict[str, t.Any]


def schema(size: int, **group: t.Any) -> list[Plain]:
    return [
        {"id": "os", "type": "vg", "contains": ["root", "wide"], **group},
        {"id": "root", "type": "lv", "size": 100, "fs_type": "ext4", "mount": "/srv/root"},
        {"id": "wide", "type": "lv", "stripes": 2, "stripe_size": "128 KiB", "size": size, "fs_type": "xfs", "mount": "/srv/wide"},
    ]


def segments(host: LayoutHost) -> list[tuple[str, str, int]]:
    """Stripes, size of each, and on how many devices, of each segment of the volume."""
    found = host.shell("lvs --reportformat json --segments --units k --nosuffix --options stripes,stripe_size,devices os/wide")
    rows = json.loads(found)["report"][0]["seg"]
    return [(row["stripes"], row["stripe_size"], len(set(row["devices"].split(",")))) for row in rows]


def test_stripes_from_plan_to_growth(image: Path, user_mode_root: Path, tmp_path: Path) -> None:
    machine = UserModeMachine(image, tmp_path)
    try:
        machine.start(DISKS, {disk.serial: Served(disk.size) for disk in DISKS}, user_mode_root)
        for disk in DISKS:
            machine.plug(disk)
        host = LayoutHost(machine)
        plan = host.plan(schema(400))
        foreseen = host.foresee(plan["schema"])
        made = [step["kind"] for step in foreseen["steps"] if step["kind"] in ("create_striped_volume", "create_logical_volume")]
        assert made == ["create_striped_volume", "create_logical_volume"]
        host.apply(plan["schema"])
        host.check(plan)
        assert segments(host) == [("2", "128.00", 2)]
        assert not host.apply(plan["schema"])["changed"]
        host.shell("mkdir -p /srv/wide; mount /dev/os/wide /srv/wide; head -c 50000000 /dev/urandom >/srv/wide/data; sync")
        before = host.shell("sha256sum /srv/wide/data")
        holders = [holder for disk in host.facts()["disks"] for holder in disk["holders"] if holder["name"] == "wide"]
        assert {holder["stripes"] for holder in holders} == {2}
        # It is in use, and grows in its stripes with the physical volumes that a larger plan has for it.
        larger = host.plan(schema(480))["schema"]
        kinds = [step["kind"] for step in host.apply(larger)["steps"]]
        assert {"resize_physical_volume", "extend_striped_volume", "grow_filesystem"} <= set(kinds), kinds
        assert {found[0] for found in segments(host)} == {"2"}
        assert int(host.shell("df --output=size --block-size=M /srv/wide | tail -1").strip().rstrip("M")) > 350
        assert host.shell("sha256sum /srv/wide/data") == before
        assert not host.apply(larger)["changed"]
        # Other stripes are named, whatever may be wiped.
        other = copy.deepcopy(larger)
        next(one for one in other["lvs"] if one["name"] == "wide").update(stripes=1, stripe_size=None, devices=[])
        for wipe in ([], [disk.link for disk in DISKS]):
            assert "has 2 stripes, but 1 are wanted" in host.refuse(other, wipe=wipe)
        found = next(one for one in host.adopt(DISKS)["schema"]["lvs"] if one["name"] == "wide")
        assert (found["stripes"], found["stripe_size"]) == (2, 128)
        assert host.shell("sha256sum /srv/wide/data") == before
    finally:
        machine.throw_away()
