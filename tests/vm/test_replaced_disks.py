# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks that still work are emptied onto others, in use and mounted, with md, LVM, LUKS and Btrfs of a kernel, and with power cuts.

Every write and flush of the run is kept; cuts are made of them, with what was not flushed lost, reordered and torn. Whatever was synced
before the run is whole after each cut, and the next run ends it. TEST_TORN_SEEDS is the number of cuts of each layout (4).
"""

from __future__ import annotations

import os
import random
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.vm import torn_disks
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk
from ansible_collections.bareon.allocator.tests.support.vm.recorded_disks import Served
from ansible_collections.bareon.allocator.tests.support.vm.torn_runs import State
from ansible_collections.bareon.allocator.tests.support.vm.user_mode import UserModeMachine
from ansible_collections.bareon.allocator.tests.vm.layout_host import KEY_FILE, LayoutHost

MIB = 1024**2
SEEDS = int(os.environ.get("TEST_TORN_SEEDS", "4"))
ONE, TWO, NEW = (Disk(name, 700 * MIB) for name in ("ONE", "TWO", "NEW"))
DISKS = (ONE, TWO, NEW)
Plain = dict[str, t.Any]


@dataclass
class Layout:
    """A static schema, made piece by piece; every disk is filled from its start. `mounts` are nodes by their mount points."""

    disks: tuple[Disk, ...]
    schema: Plain = field(default_factory=lambda: {kind: [] for kind in ("parteds", "mds", "luks", "pvs", "vgs", "lvs", "fss")})
    mounts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for disk in self.disks:
            self.schema["parteds"].append({"name": disk.link, "disk_id": disk.link, "partitions": []})

    def part(self, disk: Disk, size: int, space: str) -> str:
        (table,) = [table for table in self.schema["parteds"] if table["name"] == disk.link]
        there = table["partitions"]
        begin = there[-1]["end"] if there else 1
        there.append(
            {"name": f"{disk.link}-part{len(there) + 1}", "count": len(there) + 1, "begin": begin, "end": begin + size, "space_id": space}
        )
        return str(there[-1]["name"])

    def mirror(self, size: int, space: str, metadata: str) -> str:
        members = [self.part(disk, size, space) for disk in self.disks]
        self.schema["mds"].append({"name": f"/dev/md/{space}", "level": "raid1", "devices": members, "spares": [], "metadata": metadata})
        return f"/dev/md/{space}"

    def group(self, device: str, *volumes: tuple[str, int, str]) -> None:
        self.schema["pvs"].append({"name": device})
        self.schema["vgs"].append({"name": "vg0", "pvnames": [device]})
        for name, size, kind in volumes:
            self.schema["lvs"].append({"name": name, "vgname": "vg0", "size": size})
            self.filesystem(f"/dev/mapper/vg0-{name}", kind, f"/srv/{name}")

    def sealed(self, device: str) -> str:
        self.schema["luks"].append({"name": "os-crypt", "device": device})
        return "/dev/mapper/os-crypt"

    def filesystem(self, device: str, kind: str, mount: str, mounted: bool = True) -> None:
        self.schema["fss"].append({"device": device, "fs_type": kind, "mount": mount})
        if mounted:
            self.mounts[mount] = device


def mirrored(old: Disk) -> Layout:
    """/boot on a mirror with its metadata at the end, and a volume group on another one."""
    layout = Layout((old, TWO))
    layout.filesystem(layout.mirror(64, "boot", "1.0"), "ext4", "/srv/boot")
    layout.group(layout.mirror(520, "os", "1.2"), ("root", 120, "ext4"), ("data", 320, "xfs"))
    return layout


def single(old: Disk) -> Layout:
    """A volume group, a Btrfs, an ext4 that is not mounted, and swap, on one disk alone."""
    layout = Layout((old,))
    layout.group(layout.part(old, 200, "os"), ("root", 80, "ext4"), ("more", 60, "ext4"))
    layout.filesystem(layout.part(old, 200, "data"), "btrfs", "/srv/data")
    layout.filesystem(layout.part(old, 80, "spare"), "ext4", "/srv/spare", mounted=False)
    layout.schema["fss"].append({"device": layout.part(old, 32, "swap"), "fs_type": "swap", "mount": "swap"})
    return layout


def sealed(old: Disk) -> Layout:
    """A volume group in LUKS."""
    layout = Layout((old,))
    layout.group(layout.sealed(layout.part(old, 240, "os")), ("root", 120, "ext4"))
    return layout


LAYOUTS = {"mirrored": mirrored, "single": single, "sealed": sealed}


@dataclass(frozen=True)
class Moved:
    """What was on the disks before a run, all that it wrote, and what its files are."""

    before: State
    events: list[torn_disks.Event]
    sums: str


def started(image: Path, root: Path, folder: Path, contents: State) -> tuple[UserModeMachine, LayoutHost]:
    machine = UserModeMachine(image, folder)
    machine.start(DISKS, contents, root)
    host = LayoutHost(machine)
    host.shell("modprobe -a md_mod raid1 dm-mirror btrfs xfs || true")
    for disk in DISKS:
        machine.plug(disk)
    return machine, host


def mount_all(host: LayoutHost, layout: Layout) -> None:
    for mount, device in layout.mounts.items():
        host.shell(f"mkdir -p {mount}; mountpoint -q {mount} || mount $(readlink -f {device}) {mount}")


def sums(host: LayoutHost, layout: Layout) -> str:
    return host.shell(f"cd /srv; sha256sum {' '.join(f'{mount}/mark' for mount in sorted(layout.mounts))}")


def replace(host: LayoutHost, layout: Layout, **options: t.Any) -> Plain:
    return host.apply(layout.schema, replace={ONE.link: NEW.link}, **options)


@pytest.fixture(scope="module", params=LAYOUTS)
def moved(request: pytest.FixtureRequest, image: Path, user_mode_root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Moved]:
    """A run that moves everything while it is mounted and written to; the old disk is gone afterwards, and all is whole."""
    make, folder = LAYOUTS[request.param], tmp_path_factory.mktemp("moved")
    earlier, layout = make(ONE), make(NEW)
    machine, host = started(image, user_mode_root, folder, {disk.serial: Served(disk.size) for disk in DISKS})
    try:
        host.apply(earlier.schema)
        host.build_up_arrays()
        mount_all(host, earlier)
        for number, mount in enumerate(layout.mounts):
            host.shell(f"head -c {15000000 + number} /dev/urandom >{mount}/mark")
        spare = f"{ONE.link}-part3"
        if request.param == "single":
            host.shell(f"mount {spare} /mnt; echo spare >/mnt/mark; umount /mnt")
            host.refuse(layout.schema, replace={ONE.link: NEW.link}, protect=["NEW"])
            host.shell(f"mount {spare} /mnt")
            assert "umount /mnt" in host.refuse(layout.schema, replace={ONE.link: NEW.link})
            host.shell("umount /mnt")
        known = sums(host, earlier)
        host.shell("sync")
        before = {name: Served(disk.size, dict(disk.content)) for name, disk in machine.server.disks.items()}
        first = len(machine.server.events)
        told = [step["says"] for step in host.foresee(layout.schema, replace={ONE.link: NEW.link})["steps"]]
        host.shell(
            "; ".join(
                f"(while sleep 0.2; do date >>{mount}/log; sync {mount}/log; done) >/dev/null 2>&1 &" for mount in layout.mounts
            ).replace("&;", "&")
        )
        result = replace(host, layout)
        events = list(machine.server.events[first:])
        assert sorted(step["says"] for step in result["steps"]) == sorted(told)
        again = replace(host, layout)
        assert (again["changed"], again["steps"]) == (False, [])
        assert host.foresee(layout.schema)["steps"] == []
        assert sums(host, layout) == known
        host.shell(f"echo virtio0 >/sys/bus/virtio/drivers/virtio_blk/unbind; udevadm settle; test ! -e {ONE.link}")
        again = replace(host, layout)
        assert (again["changed"], again["steps"]) == (False, [])
        host.shell("sync; echo 3 >/proc/sys/vm/drop_caches")
        assert sums(host, layout) == known
        if request.param == "single":
            assert host.shell(f"mount {NEW.link}-part3 /mnt; cat /mnt/mark; umount /mnt") == "spare\n"
        if request.param == "mirrored":
            assert "[UU]" in host.shell("cat /proc/mdstat")
        return request.param, Moved(before, events, known)
    finally:
        machine.throw_away()


def test_everything_moves_while_it_is_mounted(moved: tuple[str, Moved]) -> None:
    """See the fixture."""
    assert len(moved[1].events) > 100


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_power_cut_at_any_moment_costs_nothing(
    moved: tuple[str, Moved], seed: int, image: Path, user_mode_root: Path, tmp_path: Path
) -> None:
    name, run = moved
    layout, chance = LAYOUTS[name](NEW), random.Random(seed)
    count = torn_disks.moment(run.events, chance)
    contents = {}
    for disk in DISKS:
        own = torn_disks.of_disks(run.events[:count], [disk.serial])
        served = run.before[disk.serial]
        contents[disk.serial] = Served(served.size, torn_disks.after_cut(served.content, own, disk.block, chance))
    machine, host = started(image, user_mode_root, tmp_path, contents)
    try:
        if name == "sealed":
            # What crypttab does at a start.
            opened = f"cryptsetup open --key-file {KEY_FILE} {ONE.link}-part1 os-crypt && vgchange --activate y vg0"
            host.shell(f"{opened} || true; udevadm settle")
        replace(host, layout)
        again = replace(host, layout)
        assert (again["changed"], again["steps"]) == (False, []), (seed, count)
        mount_all(host, layout)
        assert sums(host, layout) == run.sums, (seed, count)
    finally:
        machine.throw_away()
