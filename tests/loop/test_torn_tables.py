# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes of partition tables that a power cut tears: the next run completes the layout without `wipe`, and nothing on partitions is lost.

sfdisk writes a table in five pieces, and flushes the disk after each: entries and header of the backup, those of the first copy, and the
protective MBR. So a cut leaves some of the pieces, and of one more any of the sectors. tests/vm/test_torn.py tears whole runs, and these
writes but seldom.
"""

from __future__ import annotations

import random
import subprocess

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._layout import apply as layout_run
from ansible_collections.bareon.allocator.plugins.module_utils._layout.apply import Request
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine
from ansible_collections.bareon.allocator.tests.loop.layout_runs import EXT4, MIB, Mounted, new_disk, probe, run, schema

END = 150 * MIB
FIRST = [{"name": "boot", "size": 20, **EXT4}, {"name": "data", "size": 30, **EXT4, "mount": "/srv", "fs_label": ""}]
MORE = [FIRST[0], {**FIRST[1], "size": 50}, {"name": "new", "size": 20, **EXT4, "mount": "/new", "fs_label": ""}]
OLD = {
    "nothing": "true",
    "partitions": "printf 'label: gpt\\nsize=30MiB\\nsize=40MiB\\nsize=50MiB\\n' | sfdisk --quiet --no-reread --no-tell-kernel $0",
    "dos": "printf 'label: dos\\nsize=30MiB\\nsize=40MiB\\n' | sfdisk --quiet --no-reread --no-tell-kernel $0",
    "ext4": "mkfs.ext4 -q -F $0",
}


class Watched(LocalMachine):
    """A machine that keeps a disk before every write of its table, and the sectors that the write changed, in their pieces."""

    def __init__(self, disk, file, folder, sector):
        self.disk, self.file, self.folder, self.sector = disk, file, folder, sector
        self.writes = []

    def change(self, command, given=b"", patience=600, accepted=(0,)):
        if command[0] != "sfdisk" or not given:
            return super().change(command, given, patience, accepted)
        before = self.folder / f"before-{len(self.writes)}"
        run("sync", self.disk)
        run("cp", "--sparse=always", str(self.file), str(before))
        said = super().change(command, given, patience, accepted)
        self.writes.append((before, self._pieces(before)))
        return said

    def _pieces(self, before):
        sector, header = self.sector, END - self.sector
        changed = {}
        with open(before, "rb") as old, open(self.file, "rb") as new:
            for start in (0, END - MIB):
                old.seek(start), new.seek(start)
                was, now = old.read(MIB), new.read(MIB)
                places = (at for at in range(0, MIB, sector) if was[at : at + sector] != now[at : at + sector])
                changed.update({start + at: now[at : at + sector] for at in places})
        rooms = [(END - MIB, header), (header, END), (2 * sector, MIB), (sector, 2 * sector), (0, sector)]
        pieces = [{at: changed[at] for at in changed if start <= at < end} for start, end in rooms]
        return [piece for piece in pieces if piece]


def cut(disk, machine, write, chance):
    """Take the disk back to before a write of its table, with what a power cut left of that; return the places of that."""
    subprocess.run(["partx", "--delete", disk], check=False, capture_output=True)
    run("losetup", "--detach", disk)
    before, pieces = write
    run("cp", "--sparse=always", str(before), str(machine.file))
    number, likely = chance.randrange(len(pieces)), chance.choice([0.1, 0.5, 0.9])
    left = {at: content for piece in pieces[:number] for at, content in piece.items()}
    left.update({at: content for at, content in pieces[number].items() if chance.random() < likely})
    with open(machine.file, "r+b") as image:
        for at, content in left.items():
            image.seek(at)
            image.write(content)
    run("losetup", f"--sector-size={machine.sector}", disk, str(machine.file))
    subprocess.run(["partx", "--add", disk], check=False, capture_output=True)
    return sorted(left)


def old_life(disk):
    """Return what is on a disk that is none of ours; of a table that can be read one copy may be torn."""
    done = subprocess.run(["sfdisk", "--json", disk], capture_output=True, text=True, check=False)
    types = run("wipefs", "--noheadings", "--output", "TYPE", disk).split()
    return done.stdout, set(types) - {"gpt", "PMBR"}


def copies(disk):
    """Return where a GPT is whole."""
    lines = [line.split() for line in run("wipefs", "--noheadings", "--output", "OFFSET,TYPE", disk).splitlines()]
    return sorted(int(line[0], 16) for line in lines if line[1] == "gpt")


@pytest.mark.parametrize("sector", [512, 4096])
@pytest.mark.parametrize("before", OLD)
def test_a_table_that_was_torn_is_completed_and_nothing_on_partitions_is_lost(loops, tmp_path, before, sector):
    chance = random.Random(f"{before} {sector}")
    disk = new_disk(loops, size=END // MIB, sector=sector)
    run("sh", "-c", OLD[before], disk)
    old = old_life(disk)
    machine = Watched(disk, tmp_path / "disk0", tmp_path, sector)
    first, more = (parse_static_schema(schema(disk, *spaces)) for spaces in (FIRST, MORE))
    assert layout_run.apply(Request(first, wipe=(disk,)), machine, lambda: False).problem is None
    of_first = len(machine.writes)
    with Mounted(f"{disk}p2", tmp_path / "data") as folder:
        (folder / "precious").write_text("data")
    assert layout_run.apply(Request(more), machine, lambda: False).problem is None
    for number, write in enumerate(machine.writes):
        left = cut(disk, machine, write, chance)
        wipe = (disk,) if number == 0 and old_life(disk) == old else ()
        layout = first if number < of_first else more
        report = layout_run.apply(Request(layout, wipe=wipe), LocalMachine(), lambda: False)
        assert report.problem is None, (number, left, report.problem)
        assert copies(disk) == [sector, END - sector], (number, left)
        assert [probe(f"{disk}p{one}").get("TYPE") for one in (1, 2)] == ["ext4", "ext4"]
        if number >= of_first:
            with Mounted(f"{disk}p2", tmp_path / "data") as folder:
                assert (folder / "precious").read_text() == "data"
