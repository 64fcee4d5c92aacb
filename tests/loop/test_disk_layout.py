# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""disk_layout on real (loop) disks: made, kept, wiped and grown; looked at with other tools than ours."""

from __future__ import annotations

import os
import pathlib
import stat
import struct
import subprocess

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner
from ansible_collections.bareon.allocator.tests.loop.layout_runs import (
    EXT4,
    MIB,
    SWAP,
    XFS,
    Mounted,
    apply,
    attempt,
    digest,
    merged,
    new_disk,
    probe,
    refuse,
    room,
    run,
    says,
    schema,
    server,
    table_of,
)


@pytest.mark.parametrize("sector", [512, 4096])
def test_a_layout_is_made_once(loops, sector):
    disk = new_disk(loops, sector=sector)
    options = {"schema": server(disk)}

    seen = apply(options, check=True)
    assert probe(disk) == {}
    made = apply(options)
    again = apply(options)

    assert made["changed"]
    assert seen["changed"]
    assert [seen["diff"], says(seen), seen["schema"]] == [made["diff"], says(made), options["schema"]]
    assert {step["done"] for step in seen["steps"]} == {False}
    assert {step["done"] for step in made["steps"]} == {True}
    assert (again["changed"], again["steps"]) == (False, [])
    # What check mode foresaw is what the next look sees.
    assert again["diff"] == [{**made["diff"][0], "before": made["diff"][0]["after"]}]

    table = table_of(disk)
    assert table["label"] == "gpt"
    assert [(part["name"], part["start"] * sector // MIB, part["size"] * sector // MIB) for part in table["partitions"]] == [
        ("grub", 1, 1),
        ("esp", 2, 260),
        ("boot", 262, 100),
        ("data", 362, 400),
        ("log", 762, 150),
        ("swap", 912, 50),
    ]
    assert table["partitions"][0]["type"] == "21686148-6449-6E6F-744E-656564454649"
    found = [probe(f"{disk}p{number}") for number in range(1, 7)]
    assert [one.get("TYPE") for one in found] == [None, "vfat", "ext4", "xfs", "btrfs", "swap"]
    assert [one.get("LABEL") for one in found] == [None, "EFI", "boot", None, None, None]
    assert [one["uuid"] for one in made["filesystems"]] == [one["UUID"] for one in found[1:]]
    assert run("fsck.fat", "-n", f"{disk}p2")
    assert run("e2fsck", "-f", "-n", f"{disk}p3")


def test_a_plan_is_made_with_its_fingerprint(loops):
    hardware = loops.hardware([1200 * MIB, 1000 * MIB])
    spaces = [{"id": "boot", "type": "partition", "size": 300, "mount": "/boot", "boot": True}]
    spaces += [{"id": "scratch", "type": "partitions", "min_size": 330, "per_disk": True, "mount": "/scratch", "fs_type": "ext4"}]
    plan = Planner(spaces, Objective.FAIR, 0).plan(hardware)
    options = {"schema": plan["schema"], "fingerprint": plan["fingerprint"]}
    assert apply(options)["changed"]
    assert not apply(options)["changed"]
    assert len(plan["schema"]["fss"]) == 4
    for filesystem in plan["schema"]["fss"]:
        assert probe(filesystem["device"])["TYPE"] == filesystem["fs_type"]

    said = refuse({**options, "fingerprint": "0" * 32})
    assert "the plan was made for other disks" in said


def test_partitions_have_the_types_and_names_that_are_wanted(loops):
    hardware = loops.hardware([600 * MIB, 600 * MIB])
    spaces = [
        {"id": "homes", "type": "partition", "size": 300, "partition_type": "home", "partition_label": "People's homes"},
        {
            "id": "store",
            "type": "partition",
            "count": 2,
            "size": 200,
            "partition_type": "srv",
            "partition_label": "bulk",
            "fs_type": "ext4",
        },
    ]
    plan = Planner(spaces, Objective.FAIR, 0).plan(hardware)
    options = {"schema": plan["schema"], "fingerprint": plan["fingerprint"]}
    assert apply(options, check=True)["changed"]
    assert apply(options)["changed"]
    made = [part for disk in hardware["disks"] for part in table_of(disk["dev"])["partitions"]]
    assert sorted((part["name"], part["type"].lower()) for part in made) == [
        ("People's homes", "933ac7e1-2eb4-4f13-b844-0e14e2aef915"),
        ("bulk1", "3b8f8425-20e0-4f3b-907f-1a25a76f98e8"),
        ("bulk2", "3b8f8425-20e0-4f3b-907f-1a25a76f98e8"),
    ]
    assert not apply(options)["changed"]


def test_a_hand_written_list_is_made(loops):
    disk = new_disk(loops)
    volumes = [
        {"type": "partition", "size": "100 MiB", "mount": "/boot", "file_system": "ext4"},
        {"type": "partition", "size": "remaining", "mount": "/srv", "file_system": "xfs"},
    ]
    options = {
        "schema": [{"type": "disk", "id": {"type": "name", "value": disk.removeprefix("/dev/")}, "size": "1199 MiB", "volumes": volumes}]
    }
    made = apply(options)
    assert [probe(one["node"])["TYPE"] for one in made["filesystems"]] == ["ext4", "xfs"]
    assert made["schema"]["parteds"][0]["partitions"]
    assert not apply(options)["changed"]


def write(disk, offset, content):
    with open(disk, "r+b") as file:
        file.seek(offset)
        file.write(content)


def md_superblock(offset, size):
    """An md superblock of version 1.x at an offset, in bytes, as libblkid and mdadm accept it."""
    head = struct.pack("<IIII", 0xA92B4EFC, 1, 0, 0) + bytes(range(16)) + b"any:old".ljust(32, b"\0")
    head += struct.pack("<QIIQII", 0, 1, 0, size // 512, 0, 2).ljust(64, b"\0")
    middle = struct.pack("<QQQQ", 0, size // 512, offset // 512, 0)
    block = bytearray((head + middle).ljust(256 + 4, b"\0"))
    struct.pack_into("<I", block, 220, 2)
    whole = sum(struct.unpack(f"<{len(block) // 4}I", block))
    struct.pack_into("<I", block, 216, (whole & 0xFFFFFFFF) + (whole >> 32))
    return bytes(block)


def leave_md_at_the_end(disk, size):
    offset = (size - 8192) // 4096 * 4096
    write(disk, offset, md_superblock(offset, size))


def leave_backup_gpt(disk, _size):
    subprocess.run(["sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", disk], input="label: gpt\n2048,,\n", text=True, check=True)
    write(disk, 0, bytes(MIB))


LEFT = {
    "ext4": lambda disk, _size: run("mkfs.ext4", "-q", "-F", disk),
    "xfs": lambda disk, _size: run("mkfs.xfs", "-q", disk),
    "btrfs": lambda disk, _size: run("mkfs.btrfs", "-q", disk),
    "f2fs": lambda disk, _size: run("mkfs.f2fs", "-q", disk),
    "vfat": lambda disk, _size: run("mkfs.vfat", "-I", disk),
    "swap": lambda disk, _size: run("mkswap", disk),
    "LVM2_member": lambda disk, _size: run("pvcreate", "--yes", disk),
    "linux_raid_member": leave_md_at_the_end,
    "gpt": leave_backup_gpt,
}


@pytest.mark.parametrize("left", LEFT)
def test_what_is_on_a_disk_is_kept_unless_it_may_be_wiped(loops, left):
    disk = new_disk(loops, size=500)
    LEFT[left](disk, 500 * MIB)
    assert left in run("wipefs", disk)
    before = digest(disk)
    options = {"schema": schema(disk, {"name": "boot", "size": 100, **EXT4}, {"name": "rest", "size": 350})}

    said = refuse(options)
    assert disk in said
    assert left in said
    assert "wipe" in said
    assert digest(disk) == before

    wiping = {**options, "wipe": [disk]}
    seen, made = apply(wiping, check=True), apply(wiping)
    assert [seen["diff"], says(seen)] == [made["diff"], says(made)]
    assert run("wipefs", "--noheadings", "--output", "TYPE", disk).split() == ["gpt", "gpt", "PMBR"]
    assert run("wipefs", "--noheadings", f"{disk}p2") == ""
    assert not apply(options)["changed"]


def test_what_was_on_partitions_before_does_not_come_back(loops):
    """The same places again, other content: on all of them there were signatures, in the middle of what is one partition now as well."""
    disk = new_disk(loops)
    first = schema(disk, {"name": "a", "size": 300, **XFS}, {"name": "b", "size": 300, **EXT4}, {"name": "c", "size": 300, **SWAP})
    apply({"schema": first})
    run("mkfs.btrfs", "-q", "-f", f"{disk}p3")
    leave_md_at_the_end(f"{disk}p2", 300 * MIB)
    second = schema(disk, {"name": "one", "size": 300}, {"name": "two", "size": 300}, {"name": "three", "size": 300})
    said = refuse({"schema": second})
    assert "xfs" in said

    apply({"schema": second, "wipe": [disk]})

    assert [run("wipefs", "--noheadings", f"{disk}p{number}") for number in (1, 2, 3)] == ["", "", ""]
    assert not apply({"schema": second})["changed"]


def lose_the_table(disk, size):
    subprocess.run(["sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", disk], input="label: gpt\n2048,,\n", text=True, check=True)
    run("mkfs.ext4", "-q", "-F", "-E", f"offset={MIB}", disk, f"{size // MIB - 2}m")
    for offset in (0, size - MIB):
        write(disk, offset, bytes(MIB))


def spoil_both_headers(disk, size):
    """Neither checksum is right, and there is no protective MBR: no tool sees a table."""
    subprocess.run(["sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", disk], input="label: gpt\n2048,,\n", text=True, check=True)
    write(disk, 0, bytes(512))
    for header in (512, size - 512):
        write(disk, header + 16, b"\1\2\3\4")


UNSEEN = {
    "20 MiB of raw data": lambda disk, _size: write(disk, 0, os.urandom(20 * MIB)),
    "raw data in the middle": lambda disk, size: write(disk, size // 3, os.urandom(20 * MIB)),
    "one byte in the last sector": lambda disk, size: write(disk, size - 1, b"x"),
    "an ext4 whose table is lost": lose_the_table,
    "a table with bad checksums": spoil_both_headers,
}


@pytest.mark.parametrize("unseen", UNSEEN)
def test_what_no_tool_sees_is_data_all_the_same(loops, unseen):
    disk = new_disk(loops, size=500)
    UNSEEN[unseen](disk, 500 * MIB)
    before = digest(disk)
    options = {"schema": schema(disk, {"name": "boot", "size": 100, **EXT4})}

    said = refuse(options)
    assert f"{disk} is not empty; wiping it would destroy unknown data at " in said
    assert f"name {disk} in wipe" in said
    assert said.splitlines()[1:] == refuse(options, check=True).splitlines()[1:]
    assert digest(disk) == before

    assert apply({**options, "wipe": [disk]})["changed"]
    assert not apply(options)["changed"]


def test_a_disk_of_one_pattern_is_empty(loops):
    disk = new_disk(loops, size=200)
    write(disk, 0, b"\xff" * (200 * MIB))
    assert apply({"schema": schema(disk, {"name": "boot", "size": 100, **EXT4})})["changed"]


@pytest.mark.parametrize("wiping", [False, True])
def test_a_disk_that_a_process_has_open_is_in_use(loops, wiping):
    disk = new_disk(loops, size=500)
    options = {"schema": schema(disk, {"name": "boot", "size": 100, **EXT4}), **({"wipe": [disk]} if wiping else {})}
    with open(disk, "r+b") as file:
        file.write(b"rows" * 1000)
        file.flush()
        before = digest(disk)
        assert f"({os.getpid()})" in refuse(options)
        assert digest(disk) == before


def test_a_disk_that_a_process_has_open_by_another_name_is_in_use(loops):
    """As a container has it, whose disks are called as it likes."""
    disk, other = new_disk(loops, size=500), pathlib.Path("/dev") / f"test-{os.getpid()}"
    run("mkfs.ext4", "-q", disk)
    os.mknod(other, stat.S_IFBLK | 0o600, os.stat(disk).st_rdev)
    try:
        with other.open("rb"):
            said = refuse({"schema": schema(disk, {"name": "boot", "size": 100, **EXT4}), "wipe": [disk]})
            assert f"{disk} would be destroyed, but is open in " in said
            assert f"({os.getpid()})" in said
    finally:
        other.unlink()
    assert probe(disk)["TYPE"] == "ext4"


@pytest.mark.parametrize("wiping", [False, True])
def test_a_disk_behind_a_loop_device_is_in_use(loops, tmp_path, wiping):
    """A file system somewhere in the middle, mounted: nothing on the disk itself tells of it."""
    disk = new_disk(loops, size=500)
    inner = run("losetup", "--find", "--show", "--offset", str(100 * MIB + 4096), disk).strip()
    try:
        run("mkfs.ext4", "-q", "-F", inner)
        with Mounted(inner, tmp_path / "inner") as folder:
            (folder / "precious").write_text("data")
            said = refuse({"schema": schema(disk, {"name": "boot", "size": 100, **EXT4}), **({"wipe": [disk]} if wiping else {})})
            assert str(folder) in said
            assert run("wipefs", disk) == ""
            assert (folder / "precious").read_text() == "data"
    finally:
        run("losetup", "--detach", inner)


@pytest.mark.parametrize("wiping", [False, True])
def test_what_is_mounted_is_never_touched(loops, tmp_path, wiping):
    disk = new_disk(loops)
    apply({"schema": schema(disk, {"name": "old", "size": 300, **XFS})})
    with Mounted(f"{disk}p1", tmp_path / "old") as folder:
        (folder / "precious").write_text("data")
        run("sync")
        table = table_of(disk)
        options = {"schema": schema(disk, {"name": "new", "size": 200, **EXT4}), **({"wipe": [disk]} if wiping else {})}
        said = refuse(options)
        assert str(folder) in said
        assert (folder / "precious").read_text() == "data"
    assert table_of(disk) == table
    with Mounted(f"{disk}p1", tmp_path / "old") as folder:
        assert (folder / "precious").read_text() == "data"


def test_other_disks_are_not_touched(loops):
    disk, other = new_disk(loops), new_disk(loops, size=300)
    run("mkfs.ext4", "-q", "-F", other)
    before = digest(other)
    apply({"schema": server(disk)})
    apply({"schema": schema(disk, {"name": "all", "size": 1000, **XFS}), "wipe": [disk], "keep_unlisted": False})
    assert digest(other) == before


@pytest.mark.parametrize("sector", [512, 4096])
@pytest.mark.parametrize(("fs_type", "mounted"), [("ext4", False), ("xfs", False), ("xfs", True), ("btrfs", False), ("btrfs", True)])
def test_a_space_grows_with_its_data(loops, tmp_path, fs_type, mounted, sector):
    """An ext4 that is mounted grows in tests/vm: the kernel asks for CAP_SYS_RESOURCE, which containers do not have."""
    disk = new_disk(loops, size=1500, sector=sector)
    space = {"name": "data", "fs_type": fs_type, "mount": "/srv"}
    boot = {"name": "boot", "size": 100, **EXT4}
    apply({"schema": schema(disk, boot, {**space, "size": 400})})
    larger = {"schema": schema(disk, boot, {**space, "size": 1300})}
    uuid = probe(f"{disk}p2")["UUID"]
    with Mounted(f"{disk}p2", tmp_path / "data") as folder:
        (folder / "precious").write_bytes(b"data" * 1000)
        before = room(folder)
        if mounted:
            grown = apply(larger)
            assert room(folder) > 2.5 * before
    if not mounted:
        grown = apply(larger)
    assert {step["kind"] for step in grown["steps"]} == {"write_partition_table", "grow_filesystem"}
    assert not apply(larger)["changed"]
    with Mounted(f"{disk}p2", tmp_path / "data") as folder:
        assert (folder / "precious").read_bytes() == b"data" * 1000
        assert room(folder) > 2.5 * before
    assert probe(f"{disk}p2")["UUID"] == uuid


def test_an_ext4_whose_superblock_was_torn_as_it_grew_is_restored_and_another_is_not_touched(loops, tmp_path):
    """A cut while the kernel writes it leaves a half of before."""
    disk = new_disk(loops)
    space = {"name": "data", "size": 300, **EXT4}
    apply({"schema": schema(disk, space)})
    part, second_half = f"{disk}p1", 1536
    with Mounted(part, tmp_path / "data") as folder:
        (folder / "precious").write_bytes(b"data" * 1000)
    before = os.open(part, os.O_RDWR)
    half = os.pread(before, 512, second_half)
    os.close(before)
    larger = {"schema": schema(disk, {**space, "size": 500})}
    apply(larger)

    def tear() -> None:
        with open(part, "r+b", buffering=0) as device:
            os.pwrite(device.fileno(), half, second_half)
            os.fsync(device.fileno())

    tear()
    seen, restored = apply(larger, check=True), apply(larger)
    assert restored["steps"][0]["kind"] == seen["steps"][0]["kind"] == "restore_superblock"
    assert seen["diff"][0]["before"].endswith("1: data, 500 MiB, ext4 boot with a torn superblock\n")
    assert (seen["destroys"], restored["destroys"]) == ([], [])
    assert not apply(larger)["changed"]
    run("e2fsck", "-f", "-n", part)
    with Mounted(part, tmp_path / "data") as folder:
        assert (folder / "precious").read_bytes() == b"data" * 1000
        assert room(folder) > 400 * MIB

    run("e2fsck", "-f", "-p", part)
    run("tune2fs", "-U", "random", part)
    tear()
    there = digest(disk)
    assert "which is not what this layout has there" in refuse(larger)
    assert digest(disk) == there


def test_a_file_system_that_no_kernel_here_mounts_is_made_and_grows_with_its_data(loops, tmp_path):
    """F2FS grows unmounted only, so that its own tools put something in and look for it."""
    disk = new_disk(loops, size=1500)
    space = {"name": "data", "fs_type": "f2fs", "mount": "/srv", "fs_label": "flash"}
    options = {"schema": schema(disk, {**space, "size": 400})}
    made = apply(options)
    assert not apply(options)["changed"]
    found = probe(f"{disk}p1")
    assert (found["TYPE"], found["LABEL"], found["UUID"]) == ("f2fs", "flash", made["filesystems"][0]["uuid"])
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "precious").write_bytes(b"data" * 1000)
    run("sload.f2fs", "-f", str(tmp_path / "data"), f"{disk}p1")

    larger = {"schema": schema(disk, {**space, "size": 1300})}
    seen, grown = apply(larger, check=True), apply(larger)
    assert [seen["diff"], says(seen)] == [grown["diff"], says(grown)]
    assert [step["kind"] for step in grown["steps"]] == ["write_partition_table", "grow_filesystem"]
    assert not apply(larger)["changed"]
    assert f": {1300 * MIB // 4096}]" in run("dump.f2fs", "-d", "1", f"{disk}p1")
    assert "precious" in run("fsck.f2fs", "-t", f"{disk}p1")
    assert probe(f"{disk}p1")["UUID"] == found["UUID"]


def test_a_space_is_added_where_there_is_room(loops, tmp_path):
    disk = new_disk(loops)
    first = [{"name": "boot", "size": 100, **EXT4}, {"name": "data", "size": 400, **XFS}]
    apply({"schema": schema(disk, *first)})
    with Mounted(f"{disk}p2", tmp_path / "data") as folder:
        (folder / "precious").write_text("data")
        added = apply({"schema": schema(disk, *first, {"name": "swap", "size": 50, **SWAP})})
        assert (folder / "precious").read_text() == "data"
    assert not any("xfs" in line or "ext4" in line for line in says(added))
    assert [probe(f"{disk}p{number}")["TYPE"] for number in (1, 2, 3)] == ["ext4", "xfs", "swap"]


def test_nothing_is_made_smaller(loops):
    disk = new_disk(loops)
    apply({"schema": schema(disk, {"name": "data", "size": 500, **XFS})})
    before = digest(disk)
    assert "shrink" in refuse({"schema": schema(disk, {"name": "data", "size": 400, **XFS})})
    assert digest(disk) == before


def test_what_is_not_in_the_schema_stays_until_it_is_told_otherwise(loops):
    disk = new_disk(loops)
    spaces = [{"name": "data", "size": 400, **XFS}, {"name": "old", "size": 100, **EXT4}]
    apply({"schema": schema(disk, *spaces)})
    fewer = schema(disk, spaces[0])
    assert not apply({"schema": fewer, "wipe": [disk]})["changed"]
    assert probe(f"{disk}p2")["TYPE"] == "ext4"
    apply({"schema": fewer, "wipe": [disk], "keep_unlisted": False})
    assert not os.path.exists(f"{disk}p2")
    assert [part["name"] for part in table_of(disk)["partitions"]] == ["data"]


def test_mistakes_are_told_at_once(loops):
    disk = new_disk(loops)
    wrong = schema(disk, {"name": "a", "size": 100, "fs_type": "ext5", "mount": "/a"}, {"name": "b", "size": -3})
    wrong["fss"].append({"device": "/dev/sdz9", "mount": "/b", "fs_type": "xfs"})
    result = attempt({"schema": wrong, "luks_key_file": "/nowhere"})
    assert result["failed"]
    assert len(result["mistakes"]) >= 3
    assert all(part in result["msg"] for part in ("fss[0].fs_type", "parteds[0].partitions[1]", "/nowhere"))
    assert probe(disk) == {}


def test_a_plan_for_another_disk_is_refused(loops):
    disk = new_disk(loops)
    wanted = schema(disk, {"name": "data", "size": 400, **XFS})
    wanted["parteds"][0]["disk_size"] = 1300
    assert "1300" in refuse({"schema": wanted})
    assert "room" in refuse({"schema": schema(disk, {"name": "data", "size": 1200, **XFS})})
    assert probe(disk) == {}


def test_several_disks_are_one_layout(loops):
    one, two = new_disk(loops), new_disk(loops, sector=4096)
    options = {"schema": merged(schema(one, {"name": "a", "size": 400, **XFS}), schema(two, {"name": "b", "size": 400, **SWAP}))}
    apply(options)
    assert [probe(f"{disk}p1")["TYPE"] for disk in (one, two)] == ["xfs", "swap"]
    assert not apply(options)["changed"]


def test_what_was_made_by_hand_is_taken_over_and_grows(loops, tmp_path):
    """Partitions lie where other tools put them; the schema of them changes nothing until it is changed."""
    disk = new_disk(loops)
    table = (
        "label: gpt\nfirst-lba: 34\nstart=34, size=2014, type=21686148-6449-6e6f-744e-656564454649\nstart=4096, size=400001, name=hand\n"
    )
    subprocess.run(["sfdisk", "--quiet", disk], input=table, text=True, check=True)
    run("partx", "--update", disk)
    run("mkfs.ext4", "-q", "-L", "byhand", f"{disk}p2")
    with Mounted(f"{disk}p2", tmp_path / "mnt") as folder:
        (folder / "file").write_text("kept")
    before = digest(disk)
    adopted = apply({"adopt": True, "disks": [disk]})
    assert (adopted["changed"], adopted["steps"]) == (False, [])
    assert digest(disk) == before
    made = adopted["schema"]
    assert [(part["count"], part["begin"], part["end"]) for part in made["parteds"][0]["partitions"]] == [(1, 0, 1), (2, 2, 197)]
    again = apply({"schema": made, "wipe": [disk]})
    assert (again["changed"], digest(disk)) == (False, before)
    made["parteds"][0]["partitions"][1]["end"] = 400
    assert [step["kind"] for step in apply({"schema": made})["steps"]] == ["write_partition_table", "grow_filesystem"]
    with Mounted(f"{disk}p2", tmp_path / "mnt") as folder:
        assert (folder / "file").read_text() == "kept"
        assert room(folder) > 350 * MIB
    assert not apply({"schema": made})["changed"]
    assert "disks[0]: there is no disk /dev/nothing" in refuse({"adopt": True, "disks": ["/dev/nothing"]})
