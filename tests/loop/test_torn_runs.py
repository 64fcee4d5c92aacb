# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Power cuts that lose, reorder and tear what disks had not flushed, under whole runs of playbooks/apply.yml on loop devices.

What tests/vm/test_torn.py does in machines, with arrays, LUKS and LVM, is done here without any, so that two dozen cuts take a few
minutes: partitions and file systems only. A block server keeps every write and flush; qemu-storage-daemon makes a file of each of its
disks, and a loop device is made of that. There are several sets of disks, and each is cut by itself, so that one run of the playbook
completes them all.

TEST_TORN_SEEDS says how many seeds there are (2), TEST_TORN_FIRST with which to begin, TEST_TORN_SETS how many sets of disks (6). Each seed
has two cuts of every set, the second one of the run that completed the first.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import signal
import subprocess
import sys
import time
import typing as t
from collections.abc import Mapping
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.loop.layout_runs import MIB, attempt, run
from ansible_collections.bareon.allocator.tests.support.results_as_json import RESULTS_AS_JSON
from ansible_collections.bareon.allocator.tests.support.vm import torn_disks
from ansible_collections.bareon.allocator.tests.support.vm.block_server import BlockServer
from ansible_collections.bareon.allocator.tests.support.vm.recorded_disks import Served
from ansible_collections.bareon.allocator.tests.support.vm.torn_runs import Run, Safe, State

ROOT = Path(__file__).parents[2]
SEEDS = int(os.environ.get("TEST_TORN_SEEDS", "2"))
FIRST = int(os.environ.get("TEST_TORN_FIRST", "0"))
CUTS = 2

SIZE = 400 * MIB
SETS = {number: {f"one-{number}": 512, f"two-{number}": 4096} for number in range(int(os.environ.get("TEST_TORN_SETS", "6")))}
"""Pairs of disks, by name, with their sectors."""
SECTORS = {name: sector for members in SETS.values() for name, sector in members.items()}

Plain = dict[str, t.Any]


def _mounts(number: int) -> dict[str, str]:
    """Return where spaces of a set are mounted; the first set has the root of them all, of the others two are made and not mounted."""
    if number == 0:
        return {"root": "/", "boot": "/boot", "data": "/data", "logs": "/logs"}
    return {"root": f"/{number}", "logs": f"/{number}/logs"}


def _may_grow_what_is_mounted() -> bool:
    """Return whether this process may resize an ext4 that is mounted: CAP_SYS_RESOURCE."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return bool(int(status.partition("CapEff:")[2].split()[0], 16) >> 24 & 1)


def _profile(devices: Mapping[str, str]) -> list[Plain]:
    return [
        {
            "id": f"{name}-{number}",
            "type": "partition",
            "size": size,
            "mount": _mounts(number).get(name, "none"),
            "fs_type": kind,
            "disks": [devices[disk]],
        }
        for number, (one, two) in SETS.items()
        for name, size, kind, disk in (
            ("boot", 64, "ext4", one),
            ("root", 100, "ext4", one),
            ("logs", 60, "ext4", two),
            ("data", 150, "btrfs", two),
        )
    ]


# An ext4 that is not mounted is mounted to grow, for without its journal a cut may break it; few containers may do that. No kernel has a
# Btrfs grow to less than 256 MiB.
LARGER = (("data", 300), *((("root", 160),) if _may_grow_what_is_mounted() else ()))
GROWN: list[Plain] = [{"id": f"{name}-{number}", "size": size} for number in SETS for name, size in LARGER]
MOUNTS = sorted(mount for number in SETS for mount in _mounts(number).values())


class Bench:
    """Loop devices whose disks can be exchanged; they keep their numbers, for a layout is that of its disks.

    Without a disk they show a file, so that nobody else on this machine is given their numbers.
    """

    def __init__(self, folder: Path) -> None:
        self.server = BlockServer()
        self.target = folder / "target"
        self._folder = folder
        self._daemon: subprocess.Popen[bytes] | None = None
        for name in SECTORS:
            for file in (self._file(name), self._placeholder(name)):
                with open(file, "wb") as image:
                    image.truncate(SIZE)
        self.devices = {name: run("losetup", "--find", "--show", str(self._placeholder(name))).strip() for name in SECTORS}
        (folder / "profile.yml").write_text(json.dumps(_profile(self.devices)), encoding="utf-8")

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.img"

    def _placeholder(self, name: str) -> Path:
        return self._folder / f"{name}.placeholder"

    def plug(self, disks: State) -> None:
        self.unplug()
        self.server.insert(disks)
        command = ["qemu-storage-daemon"]
        for name in SECTORS:
            node = f"nbd,node-name={name},server.type=unix,server.path={self.server.path},export={name},discard=unmap"
            export = f"fuse,id=file-{name},node-name={name},mountpoint={self._file(name)},writable=on"
            command += ["--blockdev", node, "--export", export]
        self._daemon = subprocess.Popen(command)
        for name in SECTORS:
            file = self._file(name)
            _await(lambda file=file: os.path.ismount(file) or _is_served(file), f"{file} is not served: is there /dev/fuse?")
            self._show(name, file)
            subprocess.run(["partx", "--add", self.devices[name]], check=False, capture_output=True)

    def unplug(self) -> State:
        """Take the disks out, and return them."""
        subprocess.run(["umount", "--recursive", str(self.target)], check=False, capture_output=True)
        if self._daemon is not None:
            for name in SECTORS:
                self._show(name, self._placeholder(name))
            self._daemon.send_signal(signal.SIGTERM)
            self._daemon.wait(60)
            self._daemon = None
        return dict(self.server.disks)

    def _show(self, name: str, file: Path) -> None:
        """Have the device of a disk show another file."""
        self._release(name)
        run("losetup", f"--sector-size={SECTORS[name]}", self.devices[name], str(file))

    def _release(self, name: str) -> None:
        subprocess.run(["partx", "--delete", self.devices[name]], check=False, capture_output=True)
        subprocess.run(["losetup", "--detach", self.devices[name]], check=False, capture_output=True)

    def close(self) -> None:
        self.unplug()
        for name in SECTORS:
            self._release(name)
        self.server.close()

    def play(self, wipe: t.Sequence[str], overrides: t.Sequence[Plain]) -> Plain:
        """Run the playbook, and return the schema of its layout."""
        given = {
            "bareon_profile": str(self._folder / "profile.yml"),
            "bareon_overrides": list(overrides),
            "bareon_devices": list(self.devices.values()),
            "bareon_include": ["loop"],
            "bareon_wipe": list(wipe),
            "bareon_root": str(self.target),
            "bareon_new_system": True,
            "bareon_become": False,
            "ansible_python_interpreter": sys.executable,
        }
        environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_HOME": str(self._folder / "home"),
            **RESULTS_AS_JSON,
        }
        command = ["-m", "ansible", "playbook", "--inventory", "localhost,", "--connection", "local", "playbooks/apply.yml"]
        done = subprocess.run(
            [sys.executable, *command, "--extra-vars", json.dumps(given)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr
        results = {task["name"].rpartition(" : ")[2]: task["hosts"] for task in json.loads(done.stdout)["tasks"]}
        return t.cast("Plain", results["Plan the disks"]["localhost"]["plan"]["schema"])

    def identities(self) -> dict[str, str]:
        """Return the UUIDs of what is mounted, by mount point."""
        found = json.loads(run("findmnt", "--json", "--list", "--real", "--output", "TARGET,UUID"))["filesystems"]
        below = {
            entry["target"].removeprefix(str(self.target)) or "/": entry["uuid"] for entry in found if str(self.target) in entry["target"]
        }
        return {place: uuid for place, uuid in below.items() if place in MOUNTS}

    def file(self, mount: str) -> Path:
        return self.target / mount.lstrip("/") / "kept"

    def kept(self) -> frozenset[str]:
        """Return the mount points that have their file, whole."""
        return frozenset(mount for mount in MOUNTS if self.file(mount).exists() and self.file(mount).read_bytes() == _words(mount))

    def signature(self, name: str, served: Served) -> str:
        file = self._folder / "look.img"
        torn_disks.save(served.content, served.size, file)
        return torn_disks.signature(file)


def _words(mount: str) -> bytes:
    return mount.encode() * 4000


def _is_served(file: Path) -> bool:
    """Return whether a file is one of a FUSE: its disk is served."""
    return bool(run("stat", "--file-system", "--format=%T", str(file)).strip().startswith("fuse"))


def _await(ready: t.Callable[[], bool], complaint: str) -> None:
    end = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < end, complaint
        time.sleep(0.05)


class Stories:
    """Two runs: one makes all anew, on disks with a former life and blank ones, the other one makes what is there larger."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        bench.plug({name: Served(SIZE) for name in SECTORS})
        for one, _two in SETS.values():
            run("mkfs.ext4", "-q", "-F", bench.devices[one])
        old = bench.unplug()
        self.signatures = {name: bench.signature(name, disk) for name, disk in old.items()}
        self.new = self._keep(old, list(bench.devices.values()), [], Safe({}, frozenset()))
        self._made = bench.unplug()

    @functools.cached_property
    def grown(self) -> Run:
        return self._keep(self._made, [], GROWN, self.new.after)

    def _keep(self, disks: State, wipe: t.Sequence[str], overrides: t.Sequence[Plain], before: Safe) -> Run:
        self.bench.plug(disks)
        self.bench.play(wipe, overrides)
        events = self.bench.server.events
        reported = len(events)
        # What is written a second time is cut off first: a power cut in between may leave nothing of it.
        for mount in MOUNTS if not before.files else ():
            self.bench.file(mount).write_bytes(_words(mount))
            run("sync", "--file-system", str(self.bench.file(mount)))
        synced = len(events)
        for mount in MOUNTS:
            self.bench.file(mount).with_name("more").write_bytes(os.urandom(200_000))
        return Run(disks, list(events), reported, synced, before, Safe(self.bench.identities(), self.bench.kept()))

    def untouched(self, disks: State) -> list[str]:
        """Return the disks that are as they were in the beginning: what is begun needs no permission any more."""
        return [device for name, device in self.bench.devices.items() if self.bench.signature(name, disks[name]) == self.signatures[name]]


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Stories]:
    bench = Bench(tmp_path_factory.mktemp("bench"))
    with contextlib.closing(bench):
        yield Stories(bench)


def _cut(run_of: Run, chance: random.Random) -> tuple[State, Safe]:
    """Return the disks after a power cut of each set by itself, and what has to be on them."""
    disks, identities, files = dict(run_of.disks), dict(run_of.before.identities), set(run_of.before.files)
    for number, members in SETS.items():
        mine = [(at, event) for at, event in enumerate(run_of.events) if event.disk in members]
        count = torn_disks.moment([event for _at, event in mine], chance) if mine else 0
        done = [event for _at, event in mine[:count]]
        for name, sector in members.items():
            content = torn_disks.after_cut(run_of.disks[name].content, torn_disks.of_disks(done, [name]), sector, chance)
            disks[name] = Served(SIZE, content)
        behind = mine[count - 1][0] + 1 if count else 0
        mounts = _mounts(number).values()
        identities.update({mount: run_of.after.identities[mount] for mount in mounts if behind >= run_of.reported})
        files.update(mount for mount in mounts if behind >= run_of.synced and mount in run_of.after.files)
    return disks, Safe(identities, frozenset(files))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_what_a_torn_power_cut_left_is_completed(stories: Stories, seed: int) -> None:
    chance = random.Random(f"torn {seed}")
    bench = stories.bench
    kept, overrides = (stories.grown, GROWN) if seed % 2 else (stories.new, [])
    for _number in range(CUTS):
        disks, safe = _cut(kept, chance)
        bench.plug(disks)
        schema = bench.play(stories.untouched(disks), overrides)
        found = bench.identities()
        assert sorted(found) == MOUNTS
        assert found | safe.identities == found
        assert safe.files <= bench.kept()
        events = bench.server.events
        kept = Run(disks, list(events), len(events), len(events), safe, Safe(found, safe.files))
        again = attempt({"schema": schema})
        assert (again.get("failed", False), again["changed"]) == (False, False), again["msg"]
