# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nothing that is not named is destroyed: each content and use of others, on disks with and without marks of ours, outlives every run.

A run refuses each of these disks, has no steps, writes nothing, and says so in check mode as well; a permission for another disk, and to
remove what is not listed, changes none of it. The kernel, md, LVM, LUKS, bcache, LIO and udev are real, in a User Mode Linux.
"""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk
from ansible_collections.bareon.allocator.tests.support.vm.recorded_disks import Served
from ansible_collections.bareon.allocator.tests.support.vm.torn_runs import State
from ansible_collections.bareon.allocator.tests.support.vm.user_mode import UserModeMachine
from ansible_collections.bareon.allocator.tests.vm.foreign_content import CONTENTS, Foreign
from ansible_collections.bareon.allocator.tests.vm.foreign_uses import USES
from ansible_collections.bareon.allocator.tests.vm.layout_host import LayoutHost

MIB = 1024**2
Plain = dict[str, t.Any]
Pair = tuple[Disk, Disk]

PAIRS: dict[str, Pair] = {
    marks: (Disk(f"{marks}-1", 400 * MIB), Disk(f"{marks}-2", 400 * MIB)) for marks in ("none", "partitions", "mirror")
}
"""Disks by the layout of ours that they have carried, of which each tool leaves what it leaves."""
ALL = [disk for pair in PAIRS.values() for disk in pair]
OTHER = Disk("OTHER", 400 * MIB)

_CHECK = {"_ansible_check_mode": True, "_ansible_diff": True}
# The disk that `wipe` names is one of the schema, for all others are refused there.
_OPTIONS: tuple[Plain, ...] = ({}, {"wipe": [OTHER.link], "keep_unlisted": False})
RUNS = [{**options, **mode} for options in _OPTIONS for mode in (_CHECK, {})]


def on_partitions(pair: Pair) -> Plain:
    """A file system on each disk, and room behind it."""
    return {
        "parteds": [_table(disk) for disk in pair],
        "fss": [{"device": f"{disk.link}-part1", "fs_type": "ext4", "mount": f"/srv/{disk.serial}"} for disk in pair],
    }


def on_mirror(pair: Pair) -> Plain:
    """A file system on an array of both disks."""
    members = [f"{disk.link}-part1" for disk in pair]
    return {
        "parteds": [_table(disk) for disk in pair],
        "mds": [{"name": "/dev/md/ours", "level": "raid1", "devices": members, "spares": [], "metadata": "1.2"}],
        "fss": [{"device": "/dev/md/ours", "fs_type": "ext4", "mount": "/srv/ours"}],
    }


def _table(disk: Disk) -> Plain:
    part = {"name": f"{disk.link}-part1", "count": 1, "begin": 1, "end": 301, "space_id": "data"}
    return {"name": disk.link, "disk_id": disk.link, "partitions": [part]}


SCHEMAS = {"none": on_partitions, "partitions": on_partitions, "mirror": on_mirror}


def _together(*schemas: Plain) -> Plain:
    return {kind: [entry for schema in schemas for entry in schema.get(kind, [])] for kind in ("parteds", "mds", "fss")}


@pytest.fixture(scope="module")
def retired(image: Path, user_mode_root: Path, tmp_path_factory: pytest.TempPathFactory) -> State:
    """Disks of which some have carried a layout of ours, which was given up as people do: it was stopped, and its tables stayed."""
    machine = UserModeMachine(image, tmp_path_factory.mktemp("machine"))
    try:
        machine.start([*ALL, OTHER], {disk.serial: Served(disk.size) for disk in (*ALL, OTHER)}, user_mode_root)
        host = LayoutHost(machine)
        marked = {marks: PAIRS[marks] for marks in ("partitions", "mirror")}
        disks = [disk for pair in marked.values() for disk in pair]
        for disk in disks:
            machine.plug(disk)
        host.apply(_together(*(SCHEMAS[marks](pair) for marks, pair in marked.items())))
        host.shell(f"""
mdadm --stop --scan
udevadm settle
for disk in {" ".join(disk.link for disk in disks)}; do wipefs --all --quiet $disk-part1; partx --delete $disk || true; done
udevadm settle
sync
""")
        machine.cut_power()
        return dict(machine.server.disks)
    finally:
        machine.throw_away()


@pytest.mark.parametrize("foreign", [*CONTENTS, *USES], ids=lambda foreign: foreign.name)
def test_foreign_content_outlives_every_run(foreign: Foreign, image: Path, user_mode_root: Path, retired: State, tmp_path: Path) -> None:
    """The same on each pair of disks, which the refusals name one and all."""
    machine = UserModeMachine(image, tmp_path)
    try:
        machine.start([*ALL, OTHER], retired, user_mode_root)
        host = LayoutHost(machine)
        machine.plug(OTHER)
        host.shell("head -c 4194304 /dev/urandom >/root/mark")
        for marks, pair in PAIRS.items():
            for disk in pair:
                machine.plug(disk)
            host.shell(f"{_place(marks)}mkdir $M\n{foreign.make}\nsync; udevadm settle")
        known = {marks: [pair[0].link, *_names(host, pair[0])] for marks, pair in PAIRS.items()}
        written = machine.written(ALL)
        schema = _together(*(SCHEMAS[marks](pair) for marks, pair in PAIRS.items()), {"parteds": [_table(OTHER)]})
        for options, result in zip(RUNS, host.attempt_each(schema, RUNS), strict=True):
            assert result.get("failed"), (options, result)
            assert (result.get("steps", []), result.get("destroys", []), result["changed"]) == ([], [], False), (options, result)
            unnamed = [marks for marks, names in known.items() if not any(name in result["msg"] for name in names)]
            assert unnamed == [], (options, result["msg"])
        if foreign.rests:
            assert machine.written(ALL) == written
        for marks in PAIRS:
            host.shell(f"{_place(marks)}{foreign.whole}")
    finally:
        machine.throw_away()


def _place(marks: str) -> str:
    one, two = PAIRS[marks]
    return f"A={one.link} B={two.link} T=t{marks} M=/run/{marks} MARK=/root/mark\n"


def test_disks_with_other_names_after_a_start_keep_what_they_have(
    image: Path, user_mode_root: Path, retired: State, tmp_path: Path
) -> None:
    """Our layout and a file system of others change names: the one has nothing to do, the other is refused and keeps every byte."""
    ours, theirs = PAIRS["none"]
    machine = UserModeMachine(image, tmp_path)
    wanted = {"parteds": [_table(ours)], "fss": [{"device": f"{ours.link}-part1", "fs_type": "ext4", "mount": "/srv/ours"}]}
    unwanted = {"parteds": [_table(theirs)], "fss": [{"device": f"{theirs.link}-part1", "fs_type": "ext4", "mount": "/srv/theirs"}]}
    try:
        host = _with_disks(machine, retired, user_mode_root, ours, theirs)
        host.apply(wanted)
        host.shell(f"mkfs.ext4 -q -F {theirs.link}; sync")
        before = _names(host, ours, theirs)
        contents = {name: Served(disk.size, dict(disk.content)) for name, disk in machine.server.disks.items()}
        host = _with_disks(machine, contents, user_mode_root, theirs, ours)
        assert _names(host, ours, theirs) == before[::-1]
        for mode in (_CHECK, {}):
            again = host.attempt(wanted, **mode)
            assert (again.get("failed", False), again["changed"], again["steps"]) == (False, False, []), again
            host.refuse(unwanted, **mode)
        assert machine.server.disks[theirs.serial].content == contents[theirs.serial].content
    finally:
        machine.throw_away()


def _with_disks(machine: UserModeMachine, contents: State, root: Path, *disks: Disk) -> LayoutHost:
    """Start a machine and plug these disks in, in this order."""
    machine.start([*disks, OTHER], contents, root)
    for disk in (*disks, OTHER):
        machine.plug(disk)
    return LayoutHost(machine)


def _names(host: LayoutHost, *disks: Disk) -> list[str]:
    return host.shell(f"readlink --canonicalize {' '.join(disk.link for disk in disks)}").split()
