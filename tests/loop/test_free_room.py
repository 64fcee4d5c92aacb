# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What lies in room of our own table that no partition has: it is kept, unless `wipe` names the disk or a permitted run gave it up."""

from __future__ import annotations

import pathlib
import re
import subprocess
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._layout import apply as layout_run
from ansible_collections.bareon.allocator.plugins.module_utils._layout.apply import Report, Request
from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._layout.read_present import read_present
from ansible_collections.bareon.allocator.plugins.module_utils._schema.model import Layout
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine
from ansible_collections.bareon.allocator.plugins.module_utils._steps.partitions import WritePartitionTable
from ansible_collections.bareon.allocator.plugins.module_utils._storage.filesystems import FILESYSTEMS
from ansible_collections.bareon.allocator.tests.loop.layout_runs import MIB, Mounted, digest, new_disk, run, schema
from ansible_collections.bareon.allocator.tests.support.host.loop_devices import Loops

SIZE = 120
FIRST = {"name": "first", "size": 20, "fs_type": "ext4", "mount": "none"}
MADE: dict[str, tuple[str, ...]] = {
    "ext4": ("mkfs.ext4", "-q", "-F"),
    "ext2": ("mke2fs", "-q", "-F", "-t", "ext2"),
    "swap": ("mkswap", "--quiet"),
    "vfat": ("mkfs.vfat",),
    "crypto_LUKS": ("cryptsetup", "luksFormat", "-q", "--pbkdf=pbkdf2", "--pbkdf-force-iterations=1000"),
    "LVM2_member": ("pvcreate", "--yes", "-ff"),
    "btrfs": ("mkfs.btrfs", "-q", "-f", "--mixed"),
}
"""What makes a content on a device of 30 MiB."""


def layout(disk: str, *spaces: dict[str, t.Any]) -> Layout:
    return parse_static_schema(schema(disk, *spaces))


def carry_out(wanted: Layout, **options: t.Any) -> Report:
    return layout_run.apply(Request(wanted, **options), LocalMachine(), lambda: False)


def foresee(wanted: Layout, **options: t.Any) -> Report:
    return layout_run.foresee(Request(wanted, **options), LocalMachine())


def put(loops: Loops, kind: str, disk: str, begin: int) -> None:
    """Write a content to a place of a disk, in MiB, that nobody was told of."""
    device = new_disk(loops, 30)
    subprocess.run([*MADE[kind], device], input=b"a passphrase", check=True, capture_output=True)
    run("dd", f"if={device}", f"of={disk}", "bs=1M", f"seek={begin}", "conv=notrunc,fsync", "status=none")


@pytest.mark.parametrize("begin", [21, 26, 57])
@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("how", ["new", "grown"])
def test_what_lies_in_free_room_of_our_table_is_kept(loops: Loops, kind: str, begin: int, how: str) -> None:
    disk = new_disk(loops, SIZE)
    assert carry_out(layout(disk, FIRST)).problem is None
    put(loops, kind, disk, begin)
    more = layout(disk, FIRST, {"name": "second", "size": 90}) if how == "new" else layout(disk, {**FIRST, "size": 110})
    before = digest(disk)
    for report in (foresee(more), carry_out(more)):
        assert report.problem is not None
        assert f"{kind} in no partition at {begin} MiB" in report.problem
        assert disk in report.problem
        assert (report.pending, report.done, report.losses) == ((), (), ())
    assert digest(disk) == before
    wiping = foresee(more, wipe=(disk,))
    assert kind in [content.kind for loss in wiping.losses for content in loss.contents]
    done = carry_out(more, wipe=(disk,))
    assert done.problem is None
    assert done.losses == wiping.losses
    assert foresee(more).pending == ()


def test_what_lies_in_room_that_the_layout_does_not_take_is_nobodys_business(loops: Loops) -> None:
    disk = new_disk(loops, SIZE)
    assert carry_out(layout(disk, FIRST)).problem is None
    put(loops, "ext4", disk, 80)
    assert carry_out(layout(disk, FIRST, {"name": "second", "size": 50})).problem is None
    with_third = layout(disk, FIRST, {"name": "second", "size": 50}, {"name": "third", "size": 40})
    assert "ext4 in no partition at 80 MiB" in str(foresee(with_third).problem)


def steps_with_table(wanted: Layout, disk: str) -> list[t.Any]:
    return list(plan_steps(wanted, read_present(LocalMachine(), wanted), (disk,), keep_unlisted=False).steps)


@pytest.mark.parametrize("moment", ["marked", "cleared", "done"])
def test_a_permitted_removal_that_was_cut_off_is_completed_without_a_permission(loops: Loops, moment: str, tmp_path: pathlib.Path) -> None:
    """What was there shows no more in the room of what comes, whenever the run ended."""
    disk = new_disk(loops, SIZE)
    theirs = layout(disk, FIRST, {"name": "old", "size": 40, "fs_type": "ext4", "mount": "none"})
    assert carry_out(theirs).problem is None
    with Mounted(f"{disk}p2", tmp_path / "mounted") as mounted:
        (mounted / "file").write_bytes(b"data" * 5000)
    wanted = layout(disk, FIRST, {"name": "new", "size": 60, "fs_type": "ext4", "mount": "none"})
    mark, write = [step for step in steps_with_table(wanted, disk) if isinstance(step, WritePartitionTable)]
    assert mark.summary == ("mark partition 2 as to be removed",)
    mark.run(LocalMachine())
    if moment == "cleared":
        run("dd", "if=/dev/zero", f"of={disk}", "bs=1M", "seek=21", "count=1", "conv=notrunc,fsync", "status=none")
    if moment == "done":
        write.run(LocalMachine())
    done = carry_out(wanted)
    assert done.problem is None
    assert foresee(wanted).pending == ()


def test_a_mark_of_removal_permits_nothing_on_a_copy_of_the_disk(loops: Loops) -> None:
    disk, copy = new_disk(loops, SIZE), new_disk(loops, SIZE)
    old, new = ({"name": name, "size": size, "fs_type": "ext4", "mount": "none"} for name, size in (("old", 40), ("new", 60)))
    assert carry_out(layout(disk, FIRST, old)).problem is None
    steps_with_table(layout(disk, FIRST, new), disk)[0].run(LocalMachine())
    run("dd", f"if={disk}", f"of={copy}", "bs=1M", "conv=fsync", "status=none")
    run("partx", "--update", copy)
    before = digest(copy)
    wanted = layout(copy, FIRST, new)
    for report in (foresee(wanted), carry_out(wanted)):
        assert f"name {copy} in wipe" in str(report.problem)
        assert (report.pending, report.done) == ((), ())
    assert digest(copy) == before
    assert carry_out(layout(disk, FIRST, new)).problem is None


def test_a_marked_partition_that_is_mounted_is_kept(loops: Loops, tmp_path: pathlib.Path) -> None:
    disk = new_disk(loops, SIZE)
    assert carry_out(layout(disk, FIRST, {"name": "old", "size": 40, "fs_type": "ext4", "mount": "none"})).problem is None
    wanted = layout(disk, FIRST, {"name": "new", "size": 60, "fs_type": "ext4", "mount": "none"})
    steps_with_table(wanted, disk)[0].run(LocalMachine())
    with Mounted(f"{disk}p2", tmp_path / "mounted"):
        assert "mounted on" in str(carry_out(wanted).problem)


def test_what_a_permitted_run_removed_does_not_refuse_what_comes_later(loops: Loops) -> None:
    disk = new_disk(loops, SIZE)
    assert carry_out(layout(disk, FIRST, {"name": "old", "size": 40, "fs_type": "ext4", "mount": "none"})).problem is None
    assert carry_out(layout(disk, FIRST), wipe=(disk,), keep_unlisted=False).problem is None
    assert carry_out(layout(disk, FIRST, {"name": "new", "size": 60, "fs_type": "ext4", "mount": "none"})).problem is None


def test_what_a_new_table_replaced_does_not_refuse_what_comes_later(loops: Loops) -> None:
    """The disk had partitions of another tool, one of them in room that the layout takes only later."""
    disk = new_disk(loops, SIZE)
    subprocess.run(["sfdisk", "--quiet", disk], input="label: gpt\n,30M\n,40M\n", text=True, check=True, capture_output=True)
    run("partx", "--update", disk)
    run("mkfs.ext4", "-q", "-F", f"{disk}p2")
    assert carry_out(layout(disk, FIRST), wipe=(disk,)).problem is None
    assert carry_out(layout(disk, FIRST, {"name": "new", "size": 90})).problem is None


@pytest.mark.parametrize("kind", ["ext4", "ext2", "btrfs"])
def test_copies_of_what_was_on_the_whole_disk_do_not_refuse_what_comes_later(loops: Loops, kind: str) -> None:
    disk = new_disk(loops, 400)
    run(*MADE[kind], disk)
    assert carry_out(layout(disk, FIRST), wipe=(disk,)).problem is None
    assert carry_out(layout(disk, {**FIRST, "size": 300}, {"name": "second", "size": 90})).problem is None


RAW = b"records of a database without a signature".ljust(512, b"\1") * 64


@pytest.mark.parametrize("at_end", [False, True], ids=["begin", "end"])
@pytest.mark.parametrize("whose", ["the layout's", "somebody's"])
def test_raw_data_of_a_partition_that_the_kernel_alone_has_are_kept(loops: Loops, whose: str, at_end: bool) -> None:
    """As sgdisk leaves it while another partition is in use: the entry is gone, and the kernel could not read the table again."""
    disk, raw = new_disk(loops, SIZE), {"name": "raw", "size": 30}
    if whose == "the layout's":
        made = wanted = layout(disk, FIRST, raw)
    else:
        made, wanted = layout(disk, FIRST), layout(disk, FIRST, {"name": "new", "size": 60})
    assert carry_out(made).problem is None
    if whose == "somebody's":
        subprocess.run(["sfdisk", "--quiet", "--append", disk], input="start=30MiB, size=30MiB\n", text=True, check=True)
        subprocess.run(["partx", "--update", disk], check=True)
    begin = 21 if whose == "the layout's" else 30
    with open(disk, "r+b") as file:
        file.seek(begin * MIB if not at_end else (begin + 30) * MIB - len(RAW))
        file.write(RAW)
    run("sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", "--delete", disk, "2")
    before = digest(disk)
    for report in (foresee(wanted), carry_out(wanted)):
        assert report.problem is not None
        assert "data of partition 2, which the kernel still has" in report.problem
        assert (report.done, report.pending, report.losses) == ((), (), ())
    assert digest(disk) == before
    assert [loss.disk for loss in foresee(wanted, wipe=(disk,)).losses] == [disk]


def test_a_partition_that_the_kernel_alone_has_and_that_is_blank_is_no_loss(loops: Loops) -> None:
    disk = new_disk(loops, SIZE)
    wanted = layout(disk, FIRST, {"name": "raw", "size": 30})
    assert carry_out(wanted).problem is None
    run("sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", "--delete", disk, "2")
    report = carry_out(wanted)
    assert (report.problem, report.losses) == (None, ())
    assert foresee(wanted).pending == ()


def change_table(disk: str, change: t.Callable[[str], str]) -> None:
    """Write the table as its script says it after a change, and leave the kernel with what it has."""
    dump = subprocess.run(["sfdisk", "--dump", disk], check=True, capture_output=True, text=True).stdout
    command = ["sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", "--force", "--wipe=never", "--wipe-partitions=never", disk]
    subprocess.run(command, input=change(dump), text=True, check=True, capture_output=True)


@pytest.mark.parametrize("wipe", [False, True], ids=["unnamed", "named"])
@pytest.mark.parametrize("what", ["its number is elsewhere", "its entry is smaller"])
def test_data_of_a_partition_are_kept_that_the_kernel_has_elsewhere_than_the_table(loops: Loops, what: str, wipe: bool) -> None:
    """As sgdisk leaves it while the disk is in use: the kernel could not read the table again."""
    disk, sectors = new_disk(loops, SIZE), MIB // 512
    if what == "its number is elsewhere":
        made, wanted, begin, size = layout(disk, FIRST), layout(disk, FIRST, {"name": "new", "size": 39}), 30, 30
        then = f"start={85 * sectors}, size={30 * sectors}"
    else:
        made, begin, size = layout(disk, FIRST, {"name": "raw", "size": 30}), 21, 30
        wanted = layout(disk, FIRST, {"name": "raw", "size": 10}, {"name": "new", "size": 20})
        then = f"start={21 * sectors}, size={10 * sectors}"
    assert carry_out(made).problem is None
    number = 5 if what == "its number is elsewhere" else 2
    if number == 5:
        change_table(disk, lambda dump: f"{dump}{disk}p5 : start={begin * sectors}, size={size * sectors}\n")
        run("partx", "--update", "--nr", "1:5", disk)
    with open(disk, "r+b") as file:
        file.seek((begin + size) * MIB - len(RAW))
        file.write(RAW)
    change_table(disk, lambda dump: re.sub(rf"(p{number} : )start= *[0-9]+, size= *[0-9]+", rf"\g<1>{then}", dump))
    before = digest(disk)
    permitted = (disk,) if wipe else ()
    for report in (foresee(wanted, wipe=permitted), carry_out(wanted, wipe=permitted)):
        assert report.problem is not None
        assert f"the kernel has {disk}p{number} with 30 MiB from {begin} MiB on" in report.problem
        assert f"partprobe {disk}" in report.problem
        assert (report.done, report.pending, report.losses) == ((), (), ())
    assert digest(disk) == before


@pytest.mark.parametrize("wipe", [False, True], ids=["unnamed", "named"])
def test_an_unfinished_partition_that_somebody_made_smaller_in_the_table_alone_is_refused(loops: Loops, wipe: bool) -> None:
    """Runs make no partition smaller while the kernel has it, so that what lies behind its new end is somebody's."""
    disk = new_disk(loops, SIZE)
    raw, smaller = ({"name": "raw", "size": size, "fs_type": "ext4", "mount": "none"} for size in (30, 10))
    steps_with_table(layout(disk, FIRST, raw), disk)[0].run(LocalMachine())
    with open(disk, "r+b") as file:
        file.seek(51 * MIB - len(RAW))
        file.write(RAW)
    change_table(disk, lambda dump: re.sub(r"(p2 : start= *[0-9]+, size= *)[0-9]+", rf"\g<1>{10 * MIB // 512}", dump))
    before = digest(disk)
    wanted, permitted = layout(disk, FIRST, smaller, {"name": "new", "size": 20}), (disk,) if wipe else ()
    for report in (foresee(wanted, wipe=permitted), carry_out(wanted, wipe=permitted)):
        assert f"the kernel has {disk}p2 with 30 MiB" in str(report.problem)
        assert (report.done, report.pending, report.losses) == ((), (), ())
    assert digest(disk) == before


def resized_by_hand(disk: str, size: int) -> None:
    """Make the first partition another size, in MiB, and not what is on it."""
    subprocess.run(["sfdisk", "--quiet", "--no-reread", "-N", "1", disk], input=f",{size}M\n", text=True, check=True, capture_output=True)
    run("partx", "--delete", disk)
    run("partx", "--add", disk)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "f2fs"])
def test_a_partition_that_was_made_smaller_than_its_file_system_is_refused(loops: Loops, kind: str) -> None:
    """The end of the file system lies where the next partition would be made."""
    disk = new_disk(loops, 1200)
    large, small = ({"name": "first", "size": size, "fs_type": kind, "mount": "none"} for size in (600, 400))
    assert carry_out(layout(disk, large)).problem is None
    resized_by_hand(disk, 400)
    before = digest(disk)
    for wanted in (layout(disk, small), layout(disk, small, {"name": "second", "size": 100})):
        for report in (foresee(wanted), carry_out(wanted)):
            assert re.search(
                rf"{disk}p1 has 400 MiB, but the {kind} on it 6\d\d MiB|{disk}p1 has 400 MiB, but the {kind} on it 59\d",
                str(report.problem),
            )
            assert (report.pending, report.done, report.losses) == ((), (), ())
    assert digest(disk) == before
    resized_by_hand(disk, 600)
    assert foresee(layout(disk, large)).pending == ()
    resized_by_hand(disk, 400)
    wiping = foresee(layout(disk, small), wipe=(disk,))
    assert [content.kind for loss in wiping.losses for content in loss.contents] == [kind]
    assert carry_out(layout(disk, small), wipe=(disk,)).problem is None
    assert foresee(layout(disk, small)).pending == ()


@pytest.mark.parametrize("wipe", [False, True], ids=["unnamed", "named"])
def test_the_part_of_a_mib_that_somebody_added_to_a_partition_is_kept(loops: Loops, wipe: bool) -> None:
    disk = new_disk(loops, SIZE)
    assert carry_out(layout(disk, FIRST)).problem is None
    kib = ["sfdisk", "--quiet", "--no-reread", "-N", "1", disk]
    subprocess.run(kib, input=f",{2 * (20 * 1024 + 512)}\n", text=True, check=True, capture_output=True)
    run("partx", "--update", "--nr", "1:1", disk)
    run("resize2fs", f"{disk}p1")
    before, permitted = digest(disk), (disk,) if wipe else ()
    more = layout(disk, FIRST, {"name": "second", "size": 30})
    for report in (foresee(more, wipe=permitted), carry_out(more, wipe=permitted)):
        assert f"partition 1 ends at byte {21 * MIB + 512 * 1024}, behind byte {21 * MIB}" in str(report.problem)
        assert (report.pending, report.done, report.losses) == ((), (), ())
    assert digest(disk) == before


CUT_OFF = {kind: kind for kind in ("ext4", "xfs", "btrfs", "f2fs", "vfat")} | {"pv": "physical volume"}
"""What is on a partition that somebody makes smaller, and how it is called."""


@pytest.mark.parametrize("kind", CUT_OFF)
def test_the_end_of_what_is_larger_than_its_unlisted_partition_is_kept(loops: Loops, kind: str) -> None:
    """The room behind the partition looks free, and has the last part of what somebody has there."""
    disk = new_disk(loops, 500)
    whole = {"name": "theirs", "size": 400, "mount": "none", "fs_type": kind if kind in FILESYSTEMS else "ext4"}
    assert carry_out(layout(disk, whole)).problem is None
    if kind == "pv":
        run("wipefs", "--all", "--quiet", f"{disk}p1")
        run("pvcreate", "--yes", "--config", "devices/use_devicesfile=0", f"{disk}p1")
    run("sgdisk", "--partition-guid=1:R", disk)
    resized_by_hand(disk, 300)
    plain = schema(disk, {"name": "theirs", "size": 319}, {"name": "new", "size": 60, "fs_type": "ext4", "mount": "none"})
    del plain["parteds"][0]["partitions"][0]
    wanted, end = parse_static_schema(plain), f"the end of the {CUT_OFF[kind]} of {disk}p1"
    before = digest(disk)
    for report in (foresee(wanted), carry_out(wanted)):
        assert end in str(report.problem)
        assert (report.pending, report.done, report.losses) == ((), (), ())
    assert digest(disk) == before
    wiping = foresee(wanted, wipe=(disk,))
    assert end in [content.kind for loss in wiping.losses for content in loss.contents]


@pytest.mark.parametrize("keeping", [False, True])
@pytest.mark.parametrize("sizes", [(30, 30), (30, 40)])
def test_partitions_whose_numbers_somebody_swapped_are_refused(loops: Loops, sizes: tuple[int, int], keeping: bool) -> None:
    disk = new_disk(loops, SIZE)
    keep = {"keep_data": True} if keeping else {}
    spaces = [{"name": name, "size": size, "fs_type": "ext4", "mount": "none", **keep} for name, size in zip("ab", sizes)]
    wanted = layout(disk, *spaces)
    assert carry_out(wanted).problem is None
    run("sgdisk", "--transpose=1:2", disk)
    run("partx", "--delete", disk)
    run("partx", "--add", disk)
    before = digest(disk)
    permissions: list[dict[str, t.Any]] = [{}, {"wipe": (disk,)}] if keeping else [{}]
    for report in (way(wanted, **given) for given in permissions for way in (foresee, carry_out)):
        assert "is partition 2, and numbers are not changed to 1" in str(report.problem)
        assert "is partition 1, and numbers are not changed to 2" in str(report.problem)
        assert (report.pending, report.done) == ((), ())
    assert digest(disk) == before
    if not keeping:
        assert len(foresee(wanted, wipe=(disk,)).losses[0].contents) == 2
