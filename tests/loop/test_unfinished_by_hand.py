# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What somebody makes by hand of what a failed run left, with the identities that the run would give: it is kept."""

from __future__ import annotations

import os
import pathlib
import struct
import subprocess
import typing as t
import uuid

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.untouched import left_by_tool, trace_of_use
from ansible_collections.bareon.allocator.plugins.module_utils._layout import apply as layout_run
from ansible_collections.bareon.allocator.plugins.module_utils._layout.apply import Request
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._layout.read_present import read_present
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine
from ansible_collections.bareon.allocator.tests.loop.layout_runs import MIB, Mounted, digest, merged, new_disk, run, schema
from ansible_collections.bareon.allocator.tests.support.host.loop_devices import Loops

SIZE = 340
FILES = "there are files in it"
MADE = {"fs_type": "ext4", "mount": "none"}


def xfs_with_a_prototype(device: str, folder: pathlib.Path) -> None:
    (folder / "precious").write_bytes(b"data" * 5000)
    (folder / "prototype").write_text(f"/\n0 0\nd--755 0 0\nprecious ---644 0 0 {folder / 'precious'}\n$\n$\n", encoding="utf-8")
    run("mkfs.xfs", "-q", "-p", str(folder / "prototype"), device)


def xfs_whose_log_was_cleared(device: str, folder: pathlib.Path) -> None:
    run("mkfs.xfs", "-q", device)
    with Mounted(device, folder / "mounted") as mounted:
        (mounted / "precious").write_bytes(b"data" * 5000)
    run("xfs_repair", "-L", device)


def btrfs_of_a_folder(size: int) -> t.Callable[[str, pathlib.Path], None]:
    def make(device: str, folder: pathlib.Path) -> None:
        (folder / "root").mkdir()
        (folder / "root" / "precious").write_bytes(os.urandom(size))
        run("mkfs.btrfs", "-q", "--rootdir", str(folder / "root"), device)

    return make


def fat_with_a_file(bits: int) -> t.Callable[[str, pathlib.Path], None]:
    """Make one and write the entry of a file by hand, as mtools do: this kernel has no FAT."""

    def make(device: str, _folder: pathlib.Path) -> None:
        run("mkfs.vfat", "-F", str(bits), device)
        with open(device, "r+b") as raw:
            head = raw.read(512)
            sector, _cluster, reserved, copies = struct.unpack_from("<HBHB", head, 11)
            of_each = struct.unpack_from("<I", head, 36)[0] if bits == 32 else struct.unpack_from("<H", head, 22)[0]
            raw.seek((reserved + copies * of_each) * sector)
            raw.write(b"PRECIOUSTXT\x20".ljust(26, b"\0") + struct.pack("<HI", 3, 400))
            os.fsync(raw.fileno())

    return make


BY_HAND: dict[str, tuple[str, t.Callable[[str, pathlib.Path], None]]] = {
    "a prototype of XFS": ("xfs", xfs_with_a_prototype),
    "XFS whose log was cleared": ("xfs", xfs_whose_log_was_cleared),
    "Btrfs of a folder": ("btrfs", btrfs_of_a_folder(8 * MIB)),
    "Btrfs of a small file": ("btrfs", btrfs_of_a_folder(10)),
    "FAT16": ("vfat", fat_with_a_file(16)),
    "FAT32": ("vfat", fat_with_a_file(32)),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_files_in_a_file_system_that_shows_no_mount_are_a_trace_of_use(loops: Loops, tmp_path: pathlib.Path, case: str) -> None:
    device = new_disk(loops, SIZE)
    kind, make = BY_HAND[case]
    make(device, tmp_path)
    assert trace_of_use(LocalMachine(), device, SIZE * MIB, kind, left_by_tool(kind)) == FILES


FRESH: dict[str, tuple[tuple[str, ...], ...]] = {
    "xfs": ((), ("-m", "rmapbt=1"), ("-m", "crc=0"), ("-i", "size=2048"), ("-b", "size=1024")),
    "btrfs": ((), ("--mixed",), ("--nodesize", "65536"), ("--metadata", "single")),
    "vfat": (("-F", "32"), ("-F", "16")),
}


@pytest.mark.parametrize(("kind", "words"), [(kind, words) for kind, several in FRESH.items() for words in several])
def test_a_fresh_file_system_has_no_files_whatever_its_options_are(loops: Loops, kind: str, words: tuple[str, ...]) -> None:
    device = new_disk(loops, SIZE)
    label = ("-n", "EFI") if kind == "vfat" else ("-L", "label")
    run(f"mkfs.{kind}", *label, *words, device)
    assert trace_of_use(LocalMachine(), device, SIZE * MIB, kind, left_by_tool(kind)) is None


def test_files_put_into_the_file_system_that_a_run_was_to_make_are_kept(loops: Loops, tmp_path: pathlib.Path) -> None:
    """By hand, with the UUID that follows from the plan."""
    disk = new_disk(loops, SIZE + 20)
    layout, machine = parse_static_schema(schema(disk, {"name": "data", "size": SIZE, "fs_type": "btrfs", "mount": "none"})), LocalMachine()
    steps = plan_steps(layout, read_present(machine, layout)).steps
    steps[0].run(machine)
    identity = next(str(vars(step)["uuid"]) for step in steps if "make btrfs" in step.says)
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "precious").write_bytes(b"data")
    run("mkfs.btrfs", "-q", "--uuid", identity, "--rootdir", str(tmp_path / "root"), f"{disk}p1")
    assert uuid.UUID(run("blkid", "-p", "-s", "UUID", "-o", "value", f"{disk}p1").strip()) == uuid.UUID(identity)
    before = digest(disk)
    report = layout_run.apply(Request(layout), machine, lambda: False)
    assert report.problem is not None
    assert FILES in report.problem
    assert (report.done, digest(disk)) == ((), before)


def test_a_table_that_was_copied_to_a_disk_in_wipe_hides_no_use_of_the_first_one(loops: Loops) -> None:
    """`sfdisk --dump` and sgdisk copy PARTUUIDs as well: what is read of one partition says nothing of the other one."""
    disk, other = new_disk(loops, 64), new_disk(loops, 64)
    first = schema(disk, {"name": "one", "size": 20, **MADE}, {"name": "two", "size": 20, **MADE})
    machine = LocalMachine()
    half = parse_static_schema(first)
    plan_steps(half, read_present(machine, half)).steps[0].run(machine)
    with open(f"{disk}p2", "r+b") as raw:
        raw.write(b"a database without a signature" * 5000)
        os.fsync(raw.fileno())
    subprocess.run(["sfdisk", "--quiet", other], input=run("sfdisk", "--dump", disk), text=True, check=True)
    layout = parse_static_schema(merged(first, schema(other, {"name": "three", "size": 20, **MADE})))
    before = digest(disk), digest(other)
    for report in (
        layout_run.foresee(Request(layout, wipe=(other,)), machine),
        layout_run.apply(Request(layout, wipe=(other,)), machine, lambda: False),
    ):
        assert report.problem is not None
        assert f"{disk}p2 is unfinished, but somebody has used it" in report.problem
        assert (report.done, report.pending) == ((), ())
    assert (digest(disk), digest(other)) == before
