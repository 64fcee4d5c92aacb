# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The power is cut while a layout is made, at any moment, again and again; the next run completes it, and needs no `wipe` for what is ours.

A moment is a number of writes that the disks have taken, so that moments within steps are as likely as those between, and the load of
the machine does not matter. QEMU is killed then. What the machine had not flushed is lost: with what it had in memory, QEMU's own maps
of where on a disk the newest blocks lie. The disks are then plugged into a machine that knows nothing of what was.

TEST_POWER_CUTS says how often (9 times for each layout, and once at the end), TEST_POWER_SEED at which moments.
"""

from __future__ import annotations

import os
import random
import time
import typing as t
from dataclasses import dataclass
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk, Machine
from ansible_collections.bareon.allocator.tests.vm import leftovers
from ansible_collections.bareon.allocator.tests.vm.layout_host import LayoutHost, result_in

MIB = 1024**2
GIB = 1024 * MIB

CUTS = int(os.environ.get("TEST_POWER_CUTS", "9"))
CUTS_OF_A_TRIAL = 3
SEED = int(os.environ.get("TEST_POWER_SEED", "4"))

Plain = dict[str, t.Any]

BYSTANDER = Disk("BYSTANDER", 256 * MIB, "scsi")


@dataclass(frozen=True)
class Case:
    """A layout, the disks it is for, and what was on them before."""

    disks: tuple[Disk, ...]
    schema: tuple[Plain, ...]
    before: t.Callable[[LayoutHost, tuple[Disk, ...]], None]


def _volumes_before(host: LayoutHost, disks: tuple[Disk, ...]) -> None:
    leftovers.volumes_on_mirror(host, *disks[:2])
    leftovers.backup_table_only(host, disks[2])


def _mirrors_before(host: LayoutHost, disks: tuple[Disk, ...]) -> None:
    leftovers.mirror_of_whole_disks(host, *disks)


def _sealed_before(host: LayoutHost, disks: tuple[Disk, ...]) -> None:
    leftovers.sealed_volumes(host, disks[0])
    leftovers.whole_disk_volumes(host, disks[1])


CASES = {
    "volumes": Case(
        (Disk("V-HDD", 4 * GIB, "scsi", rotational=True), Disk("V-SSD", 3 * GIB, "scsi"), Disk("V-VIRTIO", 3 * GIB)),
        (
            {"id": "esp", "type": "esp", "size": 300, "mount": "/boot/efi", "disks": ["V-SSD"]},
            {"id": "boot", "type": "partition", "size": 300, "mount": "/boot", "fs_type": "ext4", "disks": ["V-SSD"]},
            {"id": "os", "type": "vg", "contains": ["root", "var", "swap"]},
            {"id": "root", "type": "lv", "size": 1500, "mount": "/", "fs_type": "ext4"},
            {"id": "var", "type": "lv", "min_size": 1000, "mount": "/var", "fs_type": "xfs"},
            {"id": "swap", "type": "lv", "size": 200, "fs_type": "swap"},
        ),
        _volumes_before,
    ),
    "mirrors": Case(
        (Disk("M-ONE", 3 * GIB, "scsi"), Disk("M-TWO", 3 * GIB, "scsi")),
        (
            {"id": "efi", "type": "raid", "level": "raid1", "legs": 2, "size": 300, "boot": True, "mount": "/boot/efi", "fs_type": "vfat"},
            {"id": "small", "type": "raid", "level": "raid1", "legs": 2, "size": 300, "mount": "/small", "fs_type": "btrfs"},
            {"id": "mirror", "type": "raid", "level": "raid1", "legs": 2, "min_size": 1000},
            {"id": "top", "type": "vg", "contains": ["mirror", "data"]},
            {"id": "data", "type": "lv", "min_size": 500, "mount": "/data", "fs_type": "ext4"},
        ),
        _mirrors_before,
    ),
    "sealed": Case(
        (Disk("S-ONE", 2 * GIB, "scsi"), Disk("S-4KN", 3 * GIB, "scsi", block=4096)),
        (
            {"id": "keys", "type": "partition", "size": 400, "encrypt": True, "mount": "/keys", "fs_type": "ext4"},
            {"id": "plain", "type": "partition", "size": 300, "mount": "/plain", "fs_type": "btrfs", "disks": ["S-4KN"]},
            {"id": "secret", "type": "vg", "contains": ["data"], "encrypt": True},
            {"id": "data", "type": "lv", "min_size": 500, "mount": "/data", "fs_type": "ext4"},
        ),
        _sealed_before,
    ),
}


class Trials:
    """A case with its disks as they are before every trial, and how many writes a run that nothing cuts off takes."""

    def __init__(self, name: str, case: Case, machine: Machine, start: Path) -> None:
        self.name = name
        self.disks = case.disks
        self.wipe = [disk.link for disk in case.disks]
        self._machine = machine
        self._start = start
        self._before: dict[Disk, str] = {}
        host = self.resumed((*case.disks, BYSTANDER))
        case.before(host, case.disks)
        leftovers.bystander(host, BYSTANDER)
        self.plan = host.plan(_with_links(case), *self.wipe)
        machine.run("sync")
        machine.cut_power()
        machine.save_disks("before")
        self._bystander = machine.content(BYSTANDER)
        host = self.fresh()
        self._before = {disk: signatures(host, disk) for disk in case.disks}
        began = machine.written(self.disks)
        host.apply(self.plan["schema"], wipe=self.wipe)
        self.writes = machine.written(self.disks) - began
        machine.cut_power()

    def resumed(self, disks: t.Sequence[Disk] | None = None) -> LayoutHost:
        """Return a machine that knows nothing of what was, with the disks as they are."""
        self._machine.resume(list(disks or self._machine.disks), self._start)
        return LayoutHost(self._machine)

    def fresh(self) -> LayoutHost:
        """Return a machine with the disks as they were before every trial."""
        self._machine.load_disks("before")
        return self.resumed()

    def run_and_cut(self, host: LayoutHost, writes: int) -> int:
        """Run until the disks have taken so many writes, or to the end, and cut the power then; return how many they took.

        `wipe` names only the disks that are still as they were before: what was begun on the others has to be enough.
        """
        began = self._machine.written(self.disks)
        process = host.begin(self.plan["schema"], wipe=self.untouched(host))
        while process.poll() is None and self._machine.written(self.disks) - began < writes:
            time.sleep(0.002)
        ended = process.poll() is not None
        taken = self._machine.written(self.disks) - began
        self._machine.cut_power()
        output, errors = process.communicate()
        if ended:
            result = result_in(output, errors)
            assert not result.get("failed"), result["msg"]
        return taken

    def untouched(self, host: LayoutHost) -> list[str]:
        """Return the ids of the disks that are known by what they were known by before every trial."""
        return [disk.link for disk in self.disks if signatures(host, disk) == self._before[disk]]

    def complete(self, host: LayoutHost) -> None:
        """Let a run come to its end."""
        host.apply(self.plan["schema"], wipe=self.untouched(host))
        self.confirm(host)

    def confirm(self, host: LayoutHost) -> None:
        """The layout is the plan, a further run finds nothing to do, and the bystander has every byte that it had."""
        again = host.apply(self.plan["schema"])
        assert (again["changed"], again["steps"]) == (False, [])
        host.check(self.plan)
        self._machine.cut_power()
        assert self._machine.content(BYSTANDER) == self._bystander


def signatures(host: LayoutHost, disk: Disk) -> str:
    """Return what a disk is known by: its table, and what is on it as a whole and on each partition."""
    return host.shell(f"sfdisk --json {disk.link} 2>/dev/null || true; wipefs --json --no-act {disk.link}*")


def _with_links(case: Case) -> list[Plain]:
    links = {disk.serial: disk.link for disk in case.disks}
    return [{**space, **({"disks": [links[serial] for serial in space["disks"]]} if "disks" in space else {})} for space in case.schema]


@pytest.fixture(scope="module", params=CASES)
def trials(request: pytest.FixtureRequest, image: Path, layout_start: Path, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Trials]:
    machine = Machine(image, tmp_path_factory.mktemp("machine"))
    try:
        yield Trials(request.param, CASES[request.param], machine, layout_start)
    finally:
        machine.throw_away()


@pytest.mark.parametrize("number", range(-(-CUTS // CUTS_OF_A_TRIAL)))
def test_what_power_cuts_left_is_completed(trials: Trials, number: int) -> None:
    """The first run is cut off, and so are the next ones, each on its way to the end; then one may complete the layout."""
    chance = random.Random(f"{SEED} {trials.name} {number}")
    host = trials.fresh()
    left = trials.writes
    for _cut in range(CUTS_OF_A_TRIAL):
        left -= trials.run_and_cut(host, chance.randint(1, max(left, trials.writes // 10)))
        host = trials.resumed()
    trials.complete(host)


def test_what_is_told_to_be_done_survives_a_power_cut(trials: Trials) -> None:
    trials.run_and_cut(trials.fresh(), 10 * trials.writes + 1000)
    host = trials.resumed()
    # What is encrypted is closed after a restart, groups in it as well, and nothing but opening that is left to do.
    assert {step["kind"] for step in host.apply(trials.plan["schema"])["steps"]} <= {"open_luks", "activate_group"}
    trials.confirm(host)
