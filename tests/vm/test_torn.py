# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Power cuts that lose, reorder and tear what disks had not flushed, under whole runs of the role disk_layout.

A block server keeps every write and flush of a run. Of that any number of power cuts can be had: each is a moment of the run, and of what
was not flushed by then a part. The disks of a cut are plugged into a machine that knows nothing of what was, in any order, some of them
late, so that udev assembles what it can; then a run of the role has to complete the layout, without `wipe` for what was begun. That run is
kept as well, and the next cut is one of it. A machine has several sets of disks, each with a layout of its own, and each is cut by itself:
so one run of the role completes three.

TEST_TORN_SEEDS says how many seeds there are (20), TEST_TORN_FIRST with which to begin, TEST_TORN_ROUNDS how many cuts of each set a seed
has (2).
"""

from __future__ import annotations

import functools
import json
import os
import pickle
import random
import typing as t
from dataclasses import dataclass
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.vm import torn_disks
from ansible_collections.bareon.allocator.tests.support.vm.ansible_run import ROOT, play
from ansible_collections.bareon.allocator.tests.support.vm.block_server import BlockServer
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk, Machine
from ansible_collections.bareon.allocator.tests.support.vm.recorded_disks import Served
from ansible_collections.bareon.allocator.tests.support.vm.torn_disks import Write
from ansible_collections.bareon.allocator.tests.support.vm.torn_runs import Run, Safe, State
from ansible_collections.bareon.allocator.tests.vm import leftovers
from ansible_collections.bareon.allocator.tests.vm.layout_host import KEY_FILE, LayoutHost

GIB = 1024**3
SEEDS = int(os.environ.get("TEST_TORN_SEEDS", "20"))
FIRST = int(os.environ.get("TEST_TORN_FIRST", "0"))
ROUNDS = int(os.environ.get("TEST_TORN_ROUNDS", "2"))

Plain = dict[str, t.Any]

M_ONE, M_TWO = Disk("M-ONE", GIB, "scsi"), Disk("M-TWO", GIB, "scsi")
V_ONE, V_TWO = Disk("V-ONE", 3 * GIB // 2, "scsi", rotational=True), Disk("V-TWO", 3 * GIB // 2, "scsi")
S_ONE, S_4KN = Disk("S-ONE", GIB, "scsi"), Disk("S-4KN", GIB, "scsi", block=4096)
SETS = {"mirror": (M_ONE, M_TWO), "volumes": (V_ONE, V_TWO), "sealed": (S_ONE, S_4KN)}
DISKS = [disk for disks in SETS.values() for disk in disks]
BYSTANDER = Disk("BYSTANDER", GIB // 4, "scsi")


def _on(*disks: Disk) -> Plain:
    return {"disks": [disk.link for disk in disks]}


PROFILE: list[Plain] = [
    {
        "id": "m_boot",
        "type": "raid",
        "level": "raid1",
        "legs": 2,
        "size": 100,
        "mount": "/srv/m/boot",
        "fs_type": "ext4",
        **_on(M_ONE, M_TWO),
    },
    {"id": "m_mirror", "type": "raid", "level": "raid1", "legs": 2, "size": 400, **_on(M_ONE, M_TWO)},
    {"id": "m_safe", "type": "vg", "contains": ["m_mirror", "m_data", "m_swap"], "encrypt": True},
    {"id": "m_data", "type": "lv", "size": 120, "mount": "/srv/m/data", "fs_type": "ext4"},
    {"id": "m_swap", "type": "lv", "size": 32, "fs_type": "swap"},
    {"id": "v_boot", "type": "partition", "size": 100, "mount": "/srv/v/boot", "fs_type": "ext4", **_on(V_ONE)},
    {"id": "v_group", "type": "vg", "contains": ["v_root", "v_var"], **_on(V_ONE, V_TWO)},
    {"id": "v_root", "type": "lv", "size": 900, "mount": "/srv/v/root", "fs_type": "ext4"},
    {"id": "v_var", "type": "lv", "size": 700, "mount": "/srv/v/var", "fs_type": "xfs"},
    {"id": "s_keys", "type": "partition", "size": 200, "encrypt": True, "mount": "/srv/s/keys", "fs_type": "ext4", **_on(S_ONE)},
    {"id": "s_plain", "type": "partition", "size": 200, "mount": "/srv/s/plain", "fs_type": "btrfs", **_on(S_4KN)},
]
GROWN: list[Plain] = [
    {"id": "m_data", "size": 200},
    {"id": "v_root", "size": 1000},
    {"id": "v_var", "size": 900},
    {"id": "s_keys", "size": 300},
    {"id": "s_plain", "size": 300},
]
MOUNTS = sorted(str(space["mount"]) for space in PROFILE if "mount" in space)


@dataclass(frozen=True)
class Told:
    """What a run of the role told: the plan that it made, and the steps of its layout."""

    plan: Plain
    steps: list[Plain]
    destroys: list[Plain]


class Bench:
    """The machine and its block server, which start with any disks."""

    def __init__(self, machine: Machine, server: BlockServer, start: Path, folder: Path) -> None:
        self.server = server
        self._machine = machine
        self._start = start
        self._folder = folder
        (folder / "profile.yml").write_text(json.dumps(PROFILE), encoding="utf-8")

    def on(self, disks: State, chance: random.Random | None = None) -> LayoutHost:
        """Return a machine that knows nothing, with these disks: by chance in any order, and some of them when others were used already."""
        self._machine.cut_power()
        self.server.insert(disks)
        self._machine.resume([], self._start)
        host = LayoutHost(self._machine)
        # The machine's own disk is none of those whose power is cut, and this takes an emulated processor minutes.
        host.shell("ln --symbolic --force /bin/true /usr/sbin/update-initramfs")
        order = [disk for disk in (*DISKS, BYSTANDER) if disk.serial in disks]
        late = 0
        if chance is not None:
            chance.shuffle(order)
            late = chance.choice([0, 0, 1, 2, 3])
        for disk in order[: len(order) - late]:
            self._machine.plug_served(disk, self.server.path)
        if chance is not None and late:
            host.shell(chance.choice(HALVES))
        for disk in order[len(order) - late :]:
            self._machine.plug_served(disk, self.server.path)
        if chance is not None:
            host.shell(chance.choice(LEAVINGS))
        return host

    def off(self) -> State:
        """Switch off in good order, and return the disks."""
        self._machine.run("sync")
        self._machine.cut_power()
        return dict(self.server.disks)

    def play(self, host: LayoutHost, wipe: t.Sequence[str], overrides: t.Sequence[Plain]) -> Told:
        variables = {
            "bareon_profile": str(self._folder / "profile.yml"),
            "bareon_overrides": list(overrides),
            "bareon_devices": [disk.link for disk in DISKS],
            "bareon_wipe": list(wipe),
            "bareon_eligible": [] if overrides else ["in_use"],
            "bareon_become": False,
            "bareon_luks_key_file": KEY_FILE,
        }
        output = play(host.machine, self._folder, ROOT / "playbooks" / "apply.yml", variables).output
        results = {
            task["name"].rpartition(" : ")[2]: task["hosts"]["machine"]
            for task in json.loads(output)["tasks"]
            if "machine" in task["hosts"]
        }
        layout = results["Carry the layout out"]
        return Told(results["Plan the disks"]["plan"], layout["steps"], layout["destroys"])

    def signature(self, disk: Disk, served: Served) -> str:
        file = self._folder / "disk.img"
        torn_disks.save(served.content, served.size, file)
        return torn_disks.signature(file)


_ARRAYS = "for array in /sys/block/md*/md; do"
_INACTIVE = '[ "$(cat $array/array_state)" = inactive ]'
_RUN_WITHOUT = f"{_ARRAYS} if {_INACTIVE}; then mdadm --run /dev/$(basename $(dirname $array)) || true; fi; done; udevadm settle"
HALVES = [
    "udevadm settle",
    _RUN_WITHOUT,
    f"{_RUN_WITHOUT}; {_ARRAYS} if mount /dev/$(basename $(dirname $array)) /mnt; then sync; umount /mnt; fi; done",
    "udevadm settle; vgchange --quiet --activate y --activationmode partial || true",
]
"""What a start does with the disks that it has when others come late: waits, runs arrays without them, mounts what is on these, activates
groups without them."""
LEAVINGS = [
    "udevadm settle",
    "udevadm settle; for volume in $(lvs --noheadings --options lv_path | head -n 1); do lvchange --activate n $volume || true; done",
    f"udevadm settle; {_ARRAYS} mdadm --stop /dev/$(basename $(dirname $array)) || true; done",
    "udevadm settle; for volume in $(lvs --noheadings --options lv_path | tail -n 1); do lvchange --activate y $volume || true; done",
]
"""How far a start may have come when the next run begins."""


def _identities(host: LayoutHost) -> dict[str, str]:
    found = json.loads(host.shell("findmnt --json --list --real --output TARGET,UUID"))["filesystems"]
    return {entry["target"]: entry["uuid"] for entry in found if entry["target"].startswith("/srv/")}


def _write_files(host: LayoutHost) -> None:
    lines = [f"echo {mount} | tee {mount}/kept >/dev/null" for mount in MOUNTS]
    host.shell("\n".join([*lines, "sync"]))


def _write_more(host: LayoutHost) -> None:
    """What nobody has waited for may be lost, and nothing else with it."""
    host.shell("\n".join(f"head --bytes=200000 /dev/urandom >{mount}/more" for mount in MOUNTS))


def _kept(host: LayoutHost) -> list[str]:
    """Return the mount points that have their file, whole."""
    return host.shell("\n".join(f'[ "$(cat {mount}/kept 2>/dev/null)" != {mount} ] || echo {mount}' for mount in MOUNTS)).split()


class Stories:
    """Two runs of the role: one makes all anew on disks with former lives, the other one makes what is there larger."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        host = bench.on({disk.serial: Served(disk.size) for disk in (*DISKS, BYSTANDER)})
        leftovers.mirror_of_whole_disks(host, M_ONE, M_TWO)
        leftovers.volumes_on_mirror(host, V_ONE, V_TWO)
        leftovers.sealed_volumes(host, S_ONE)
        leftovers.whole_disk_volumes(host, S_4KN)
        leftovers.bystander(host, BYSTANDER)
        self.old = bench.off()
        self.signatures = {disk.serial: bench.signature(disk, self.old[disk.serial]) for disk in DISKS}
        self.new = self._keep(self.old, [disk.link for disk in DISKS], [], Safe({}, frozenset()))
        self._made = bench.off()

    @functools.cached_property
    def grown(self) -> Run:
        return self._keep(self._made, [], GROWN, self.new.after)

    def _keep(self, disks: State, wipe: t.Sequence[str], overrides: t.Sequence[Plain], before: Safe) -> Run:
        host, events = self.bench.on(disks), self.bench.server.events
        self.bench.play(host, wipe, overrides)
        reported = len(events)
        if not before.files:
            _write_files(host)
        synced = len(events)
        _write_more(host)
        assert _kept(host) == MOUNTS
        return Run(disks, list(events), reported, synced, before, Safe(_identities(host), frozenset(MOUNTS)))

    def untouched(self, disks: State) -> list[str]:
        """Return the ids of the disks that are known by what they were known by in the beginning: what is begun needs no permission."""
        return [disk.link for disk in DISKS if self.bench.signature(disk, disks[disk.serial]) == self.signatures[disk.serial]]


@pytest.fixture(scope="module")
def stories(image: Path, layout_start: Path, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Stories]:
    machine = Machine(image, tmp_path_factory.mktemp("machine"))
    server = BlockServer()
    try:
        yield Stories(Bench(machine, server, layout_start, tmp_path_factory.mktemp("bench")))
    finally:
        server.close()
        machine.throw_away()


@dataclass(frozen=True)
class Cut:
    """The disks after a power cut, and what has to be on them."""

    disks: State
    safe: Safe


def _cut(run: Run, chance: random.Random) -> Cut:
    """Cut each set by itself."""
    disks, identities, files = dict(run.disks), dict(run.before.identities), set(run.before.files)
    for name, members in SETS.items():
        serials = {disk.serial for disk in members}
        mine = [(at, event) for at, event in enumerate(run.events) if event.disk in serials]
        count = torn_disks.moment([event for _at, event in mine], chance)
        for disk in members:
            own = [event for _at, event in mine[:count] if event.disk == disk.serial]
            disks[disk.serial] = Served(disk.size, torn_disks.after_cut(run.disks[disk.serial].content, own, disk.block, chance))
        behind = mine[count - 1][0] + 1 if count else 0
        mounts = [mount for mount in MOUNTS if mount.startswith(f"/srv/{name[0]}/")]
        identities.update({mount: run.after.identities[mount] for mount in mounts if behind >= run.reported})
        files.update(mount for mount in mounts if behind >= run.synced and mount in run.after.files)
    return Cut(disks, Safe(identities, frozenset(files)))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_what_a_torn_power_cut_left_is_completed(stories: Stories, seed: int, tmp_path: Path) -> None:
    """Disks that are as they were in the beginning may still be wiped: what is begun needs no permission any more."""
    chance = random.Random(f"torn {seed}")
    run, overrides = (stories.grown, GROWN) if seed % 2 else (stories.new, [])
    for number in range(ROUNDS):
        cut = _cut(run, chance)
        (tmp_path / f"cut-{number}.pickle").write_bytes(pickle.dumps(cut))
        host, events = stories.bench.on(cut.disks, chance), stories.bench.server.events
        told = stories.bench.play(host, stories.untouched(cut.disks), overrides)
        run = Run(cut.disks, list(events), len(events), len(events), cut.safe, Safe(_identities(host), cut.safe.files))
        assert run.after.identities | cut.safe.identities == run.after.identities, told.steps
        assert sorted(run.after.identities) == MOUNTS
        assert cut.safe.files <= set(_kept(host)), told.steps
        assert not any(isinstance(event, Write) and event.disk == BYSTANDER.serial for event in events)
        host.check(told.plan)
        again = host.attempt(told.plan["schema"])
        assert (again.get("failed", False), again["changed"], again["steps"]) == (False, False, []), again["msg"]
