# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Power cuts that lose, reorder and tear what disks had not flushed, under whole runs of the role disk_layout.

Recorded disks keep every write and flush of a run. Of that any number of power cuts can be had: each is a moment of the run, and of what
was not flushed by then a part. The disks of a cut are plugged into a machine that knows nothing of what was, in any order, some of them
late, so that udev assembles what it can; then a run of the role has to complete the layout, without `wipe` for what was begun. That run is
kept as well, and the next cut is one of it. A machine has several sets of disks, each with a layout of its own, and each is cut by itself:
so one run of the role completes three, or more.

The machine is a User Mode Linux, which starts from the beginning for each cut: its kernel, systemd and udev are real, it has no initramfs.
With TEST_TORN_MACHINE=qemu it is one of QEMU, which goes on from a saved start, so that the kernel is that of a server: it takes three
times as long.

TEST_TORN_SEEDS says how many seeds there are (20), TEST_TORN_FIRST with which to begin, TEST_TORN_ROUNDS how many cuts of each set a seed
has (2), TEST_TORN_COPIES how many sets of each kind a machine has (1): all but the first begin with empty disks. TEST_TORN_RECORD names a
file that gets a line for each cut: its seed, round and set, after how many of the set's writes and flushes it was, and what became of it.
"""

from __future__ import annotations

import contextlib
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
from ansible_collections.bareon.allocator.tests.support.vm.recorded_disks import RecordedDisks, Served
from ansible_collections.bareon.allocator.tests.support.vm.torn_disks import Write
from ansible_collections.bareon.allocator.tests.support.vm.torn_runs import Run, Safe, State
from ansible_collections.bareon.allocator.tests.support.vm.user_mode import UserModeMachine
from ansible_collections.bareon.allocator.tests.vm import leftovers
from ansible_collections.bareon.allocator.tests.vm.layout_host import KEY_FILE, LayoutHost

GIB = 1024**3
RECORD = os.environ.get("TEST_TORN_RECORD")
SEEDS = int(os.environ.get("TEST_TORN_SEEDS", "20"))
FIRST = int(os.environ.get("TEST_TORN_FIRST", "0"))
ROUNDS = int(os.environ.get("TEST_TORN_ROUNDS", "2"))

COPIES = range(int(os.environ.get("TEST_TORN_COPIES", "1")))
QEMU = os.environ.get("TEST_TORN_MACHINE") == "qemu"
BUS = "scsi" if QEMU else "virtio"

Plain = dict[str, t.Any]

MIRRORS = [(Disk(f"M{copy}-ONE", GIB, BUS), Disk(f"M{copy}-TWO", GIB, BUS)) for copy in COPIES]
VOLUMES = [(Disk(f"V{copy}-ONE", 3 * GIB // 2, BUS, rotational=True), Disk(f"V{copy}-TWO", 3 * GIB // 2, BUS)) for copy in COPIES]
SEALED = [(Disk(f"S{copy}-ONE", GIB, BUS), Disk(f"S{copy}-4KN", GIB, BUS, block=4096)) for copy in COPIES]
SETS = {f"{kind}{copy}": pairs[copy] for kind, pairs in (("m", MIRRORS), ("v", VOLUMES), ("s", SEALED)) for copy in COPIES}
"""The disks of each set, by the folder of its mount points."""
DISKS = [disk for disks in SETS.values() for disk in disks]
BYSTANDER = Disk("BYSTANDER", GIB // 4, BUS)


def _on(*disks: Disk) -> Plain:
    return {"disks": [disk.link for disk in disks]}


def _mirror(name: str, one: Disk, two: Disk) -> list[Plain]:
    both = _on(one, two)
    boot = {"size": 100, "mount": f"/srv/{name}/boot", "fs_type": "ext4"}
    return [
        {"id": f"{name}_boot", "type": "raid", "level": "raid1", "legs": 2, **boot, **both},
        {"id": f"{name}_mirror", "type": "raid", "level": "raid1", "legs": 2, "size": 400, **both},
        {"id": f"{name}_safe", "type": "vg", "contains": [f"{name}_{part}" for part in ("mirror", "data", "swap")], "encrypt": True},
        {"id": f"{name}_data", "type": "lv", "size": 120, "mount": f"/srv/{name}/data", "fs_type": "ext4"},
        {"id": f"{name}_swap", "type": "lv", "size": 32, "fs_type": "swap"},
    ]


def _volumes(name: str, one: Disk, two: Disk) -> list[Plain]:
    return [
        {"id": f"{name}_boot", "type": "partition", "size": 100, "mount": f"/srv/{name}/boot", "fs_type": "ext4", **_on(one)},
        {"id": f"{name}_group", "type": "vg", "contains": [f"{name}_root", f"{name}_var"], **_on(one, two)},
        {"id": f"{name}_root", "type": "lv", "size": 900, "mount": f"/srv/{name}/root", "fs_type": "ext4"},
        {"id": f"{name}_var", "type": "lv", "size": 700, "mount": f"/srv/{name}/var", "fs_type": "xfs"},
    ]


def _sealed(name: str, one: Disk, two: Disk) -> list[Plain]:
    keys = {"size": 200, "encrypt": True, "mount": f"/srv/{name}/keys", "fs_type": "ext4"}
    return [
        {"id": f"{name}_keys", "type": "partition", **keys, **_on(one)},
        {"id": f"{name}_plain", "type": "partition", "size": 200, "mount": f"/srv/{name}/plain", "fs_type": "btrfs", **_on(two)},
    ]


_SPACES = {"m": _mirror, "v": _volumes, "s": _sealed}
PROFILE: list[Plain] = [space for name, disks in SETS.items() for space in _SPACES[name[0]](name, *disks)]
_GROWN = {"m": {"data": 200}, "v": {"root": 1000, "var": 900}, "s": {"keys": 300, "plain": 300}}
GROWN: list[Plain] = [{"id": f"{name}_{part}", "size": size} for name in SETS for part, size in _GROWN[name[0]].items()]
MOUNTS = sorted(str(space["mount"]) for space in PROFILE if "mount" in space)


@dataclass(frozen=True)
class Told:
    """What a run of the role told: the plan that it made, and the steps of its layout."""

    plan: Plain
    steps: list[Plain]
    destroys: list[Plain]


class Recorded(t.Protocol):
    """A machine with recorded disks."""

    server: RecordedDisks

    def begin(self, disks: State) -> LayoutHost:
        """Start it from the beginning or from a saved start, with these disks, none of which is plugged in yet."""

    def plug(self, disk: Disk) -> None: ...

    def cut_power(self) -> None: ...

    def throw_away(self) -> None: ...


class OfQemu:
    """A machine of QEMU, which goes on from a saved start."""

    def __init__(self, image: Path, start: Path, folder: Path) -> None:
        self.server = BlockServer()
        self._start = start
        self._machine = Machine(image, folder)

    def begin(self, disks: State) -> LayoutHost:
        self._machine.cut_power()
        self.server.insert(disks)
        self._machine.resume([], self._start)
        return LayoutHost(self._machine)

    def plug(self, disk: Disk) -> None:
        self._machine.plug_served(disk, self.server.path)

    def cut_power(self) -> None:
        self._machine.cut_power()

    def throw_away(self) -> None:
        self.server.close()
        self._machine.throw_away()


class OfUserMode:
    """A User Mode Linux, which starts from the beginning."""

    def __init__(self, image: Path, root: Path, folder: Path) -> None:
        self._root = root
        self._machine = UserModeMachine(image, folder)
        self.server = self._machine.server

    def begin(self, disks: State) -> LayoutHost:
        self._machine.start([disk for disk in (*DISKS, BYSTANDER) if disk.serial in disks], disks, self._root)
        host = LayoutHost(self._machine)
        host.calm_arrays()
        return host

    def plug(self, disk: Disk) -> None:
        self._machine.plug(disk)

    def cut_power(self) -> None:
        self._machine.cut_power()

    def throw_away(self) -> None:
        self._machine.throw_away()


class Bench:
    """The machine, which starts with any disks."""

    def __init__(self, machine: Recorded, folder: Path) -> None:
        self.server = machine.server
        self._machine = machine
        self._folder = folder
        (folder / "profile.yml").write_text(json.dumps(PROFILE), encoding="utf-8")

    def on(self, disks: State, chance: random.Random | None = None) -> LayoutHost:
        """Return a machine that knows nothing, with these disks: by chance in any order, and some of them when others were used already."""
        host = self._machine.begin(disks)
        # The machine's own disk is none of those whose power is cut, and this takes minutes.
        host.shell("ln --symbolic --force /bin/true /usr/sbin/update-initramfs")
        order = [disk for disk in (*DISKS, BYSTANDER) if disk.serial in disks]
        late = 0
        if chance is not None:
            chance.shuffle(order)
            late = chance.choice([0, 0, 1, 2, 3])
        for disk in order[: len(order) - late]:
            self._machine.plug(disk)
        if chance is not None and late:
            host.shell(chance.choice(HALVES))
        for disk in order[len(order) - late :]:
            self._machine.plug(disk)
        if chance is not None:
            host.shell(chance.choice(LEAVINGS))
        return host

    def off(self, host: LayoutHost) -> State:
        """Switch off in good order, and return the disks."""
        host.shell("sync")
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
        leftovers.mirror_of_whole_disks(host, *MIRRORS[0])
        leftovers.volumes_on_mirror(host, *VOLUMES[0])
        leftovers.sealed_volumes(host, SEALED[0][0])
        leftovers.whole_disk_volumes(host, SEALED[0][1])
        leftovers.bystander(host, BYSTANDER)
        self.old = bench.off(host)
        self.signatures = {disk.serial: bench.signature(disk, self.old[disk.serial]) for disk in DISKS}
        self.new = self._keep(self.old, [disk.link for disk in DISKS], [], Safe({}, frozenset()))

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
        kept = Run(disks, list(events), reported, synced, before, Safe(_identities(host), frozenset(MOUNTS)))
        if not before.files:
            self._made = self.bench.off(host)
        return kept

    def untouched(self, disks: State) -> list[str]:
        """Return the ids of the disks that are known by what they were known by in the beginning: what is begun needs no permission."""
        return [disk.link for disk in DISKS if self.bench.signature(disk, disks[disk.serial]) == self.signatures[disk.serial]]


@pytest.fixture(scope="module")
def stories(request: pytest.FixtureRequest, image: Path, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Stories]:
    name, kind = ("layout_start", OfQemu) if QEMU else ("user_mode_root", OfUserMode)
    machine = kind(image, request.getfixturevalue(name), tmp_path_factory.mktemp("machine"))
    try:
        yield Stories(Bench(machine, tmp_path_factory.mktemp("bench")))
    finally:
        machine.throw_away()


@dataclass(frozen=True)
class Cut:
    """The disks after a power cut, what has to be on them, and of each set how many of its events came before, and of how many."""

    disks: State
    safe: Safe
    moments: dict[str, tuple[int, int]]


def _cut(run: Run, chance: random.Random) -> Cut:
    """Cut each set by itself."""
    disks, identities, files = dict(run.disks), dict(run.before.identities), set(run.before.files)
    moments = {}
    for name, members in SETS.items():
        serials = {disk.serial for disk in members}
        mine = [(at, event) for at, event in enumerate(run.events) if event.disk in serials]
        count = torn_disks.moment([event for _at, event in mine], chance)
        for disk in members:
            own = [event for _at, event in mine[:count] if event.disk == disk.serial]
            disks[disk.serial] = Served(disk.size, torn_disks.after_cut(run.disks[disk.serial].content, own, disk.block, chance))
        moments[name] = count, len(mine)
        behind = mine[count - 1][0] + 1 if count else 0
        mounts = [mount for mount in MOUNTS if mount.startswith(f"/srv/{name}/")]
        identities.update({mount: run.after.identities[mount] for mount in mounts if behind >= run.reported})
        files.update(mount for mount in mounts if behind >= run.synced and mount in run.after.files)
    return Cut(disks, Safe(identities, frozenset(files)), moments)


@contextlib.contextmanager
def _recorded(seed: int, number: int, cut: Cut) -> t.Iterator[None]:
    """Record what becomes of a cut."""
    outcome = "not completed"
    try:
        yield
        outcome = "completed"
    finally:
        if RECORD is not None:
            with open(RECORD, "a", encoding="utf-8") as file:
                for name, (count, total) in cut.moments.items():
                    file.write(f"seed {seed} round {number} set {name}: cut after event {count} of {total}: {outcome}\n")


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_what_a_torn_power_cut_left_is_completed(stories: Stories, seed: int, tmp_path: Path) -> None:
    """Disks that are as they were in the beginning may still be wiped: what is begun needs no permission any more."""
    chance = random.Random(f"torn {seed}")
    run, overrides = (stories.grown, GROWN) if seed % 2 else (stories.new, [])
    for number in range(ROUNDS):
        cut = _cut(run, chance)
        (tmp_path / f"cut-{number}.pickle").write_bytes(pickle.dumps(cut))
        with _recorded(seed, number, cut):
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
