# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables of other tools are taken over whole, and what is added to them leaves each kept partition as it was, bit by bit."""

from __future__ import annotations

import struct
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._steps.machine import LocalMachine
from ansible_collections.bareon.allocator.plugins.module_utils._steps.partitions import FinishPartitions
from ansible_collections.bareon.allocator.tests.loop.layout_runs import MIB, apply, attempt, digest, new_disk, run
from ansible_collections.bareon.allocator.tests.loop.layout_runs import schema as layout_schema
from ansible_collections.bareon.allocator.tests.support.host.loop_devices import Loops

ATTRIBUTES = (0, 1, 2, 3, 10, 31, 47, 48, 60, 63)


def proxmox(loops: Loops, sector: int = 512, *, entries: int = 128, attributes: Sequence[int] = ATTRIBUTES) -> str:
    """A disk as the installer of Proxmox makes it: GRUB's partition below the first MiB, an ESP, the rest; with all kinds of bits."""
    disk = new_disk(loops, 900, sector)
    first = (34 if entries == 128 else 66) if sector == 512 else 6
    per_mib = MIB // sector
    run("sgdisk", "-a", "1", "-S", str(entries), "-n", f"1:{first}:{per_mib - 1}", "-t", "1:EF02", disk)
    run("sgdisk", "-a", "1", "-n", f"2:{per_mib}:{301 * per_mib - 1}", "-t", "2:EF00", disk)
    run("sgdisk", "-a", "1", "-n", f"3:{301 * per_mib}:{500 * per_mib + 6}", "-c", "3:rest\" of 'it'", disk)
    for number, bit in ((number, bit) for number in (2, 3) for bit in attributes):
        run("sgdisk", "-A", f"{number}:set:{bit}", disk)
    run("partx", "--update", disk)
    run("mkfs.vfat", f"{disk}p2")
    return disk


def raw(disk: str, sector: int) -> tuple[bytes, dict[int, bytes], dict[int, bytes]]:
    """The protective MBR, and the used entries of both copies by number."""
    with open(disk, "rb") as file:
        mbr = file.read(512)
        copies = []
        for place in (sector, file.seek(0, 2) - sector):
            file.seek(place)
            header = file.read(92)
            assert header.startswith(b"EFI PART"), f"no header at {place}"
            (at,), (count, size) = struct.unpack("<Q", header[72:80]), struct.unpack("<II", header[80:88])
            file.seek(at * sector)
            found = [file.read(size) for _number in range(count)]
            copies.append({number: entry for number, entry in enumerate(found, 1) if entry[:16] != bytes(16)})
    return mbr, copies[0], copies[1]


def bits(entry: bytes) -> set[int]:
    (word,) = struct.unpack("<Q", entry[48:56])
    return {bit for bit in range(64) if word >> bit & 1}


def added(schema: dict, disk: str, number: int) -> dict:
    """The schema with one more partition."""
    parts = schema["parteds"][0]["partitions"]
    new = {"name": f"{disk}p{number}", "count": number, "begin": 600, "end": 700, "space_id": "new", "flags": ["legacy_boot"]}
    fss = [*schema["fss"], {"device": f"{disk}p{number}", "mount": "none", "fs_type": "ext4"}]
    return {**schema, "fss": fss, "parteds": [{**schema["parteds"][0], "partitions": [*parts, new]}]}


@pytest.mark.parametrize("sector", [512, 4096])
@pytest.mark.parametrize("pmbr_boot", [False, True])
def test_a_disk_of_proxmox_is_taken_over_whole_and_keeps_every_bit(loops: Loops, sector: int, pmbr_boot: bool) -> None:
    disk = proxmox(loops, sector)
    if pmbr_boot:
        run("parted", "--script", disk, "disk_set", "pmbr_boot", "on")
        run("partx", "--update", disk)
    mbr, first, backup = raw(disk, sector)
    assert (mbr[446] == 0x80) == pmbr_boot
    assert first == backup
    assert bits(first[2]) == bits(first[3]) == set(ATTRIBUTES)

    adopted = apply({"adopt": True, "disks": [disk]})
    assert (adopted["steps"], adopted.get("warnings")) == ([], None)
    assert [part["count"] for part in adopted["schema"]["parteds"][0]["partitions"]] == [1, 2, 3]
    wanted = added(adopted["schema"], disk, 4)
    assert apply({"schema": wanted})["changed"]
    assert not apply({"schema": wanted})["changed"]

    now_mbr, now_first, now_backup = raw(disk, sector)
    assert now_mbr == mbr
    assert now_first == now_backup
    assert {number: entry for number, entry in now_first.items() if number != 4} == first
    assert bits(now_first[4]) == {2}
    assert "No problems found" in subprocess.run(["sgdisk", "-v", disk], capture_output=True, text=True, check=True).stdout
    assert run("blkid", "--probe", "--match-tag", "TYPE", "-o", "value", f"{disk}p4").strip() == "ext4"


def test_what_sfdisk_has_words_for_stays_as_well(loops: Loops) -> None:
    disk = proxmox(loops, attributes=(0, 1, 2, 48, 60, 63))
    _mbr, first, _backup = raw(disk, 512)
    adopted = apply({"adopt": True, "disks": [disk]})
    apply({"schema": added(adopted["schema"], disk, 4)})
    _mbr, now, backup = raw(disk, 512)
    assert now == backup
    assert {number: entry for number, entry in now.items() if number != 4} == first


def test_numbers_past_128_are_taken_over_and_stay(loops: Loops) -> None:
    disk = proxmox(loops, entries=256)
    run("sgdisk", "-a", "1", "-n", "200:1600000:1640000", disk)
    run("partx", "--update", "--nr", "1:200", disk)
    _mbr, first, _backup = raw(disk, 512)
    adopted = apply({"adopt": True, "disks": [disk]})
    assert [part["count"] for part in adopted["schema"]["parteds"][0]["partitions"]] == [1, 2, 3, 200]
    assert (adopted["steps"], adopted.get("warnings")) == ([], None)
    apply({"schema": added(adopted["schema"], disk, 4)})
    _mbr, now, _backup = raw(disk, 512)
    assert {number: entry for number, entry in now.items() if number != 4} == first


def test_a_disk_with_nothing_but_a_bios_boot_partition_is_taken_over(loops: Loops) -> None:
    disk = new_disk(loops, 100)
    run("sgdisk", "-a", "1", "-n", "1:34:2047", "-t", "1:EF02", disk)
    run("partx", "--update", disk)
    adopted = apply({"adopt": True, "disks": [disk]})
    (part,) = adopted["schema"]["parteds"][0]["partitions"]
    assert (part["begin"], part["end"], part["start_bytes"]) == (0, 1, 34 * 512)
    assert uuid.UUID(part["guid"]) == uuid.UUID("21686148-6449-6e6f-744e-656564454649")
    assert not apply({"schema": adopted["schema"], "wipe": [disk]})["changed"]


def test_a_table_on_a_disk_that_has_grown_keeps_its_bits_too(loops: Loops, tmp_path: Path) -> None:
    disk = proxmox(loops)
    run("parted", "--script", disk, "disk_set", "pmbr_boot", "on")
    run("partx", "--update", disk)
    _mbr, first, _backup = raw(disk, 512)
    file = run("losetup", "--noheadings", "--output", "BACK-FILE", disk).strip()
    with open(file, "r+b") as image:
        image.truncate(1000 * MIB)
    run("losetup", "--set-capacity", disk)
    adopted = apply({"adopt": True, "disks": [disk]})
    apply({"schema": added(adopted["schema"], disk, 4)})
    mbr, now, backup = raw(disk, 512)
    assert now == backup
    assert {number: entry for number, entry in now.items() if number != 4} == first
    assert mbr[446] == 0x80
    assert "No problems found" in subprocess.run(["sgdisk", "-v", disk], capture_output=True, text=True, check=True).stdout


def ends_of(disk: str) -> tuple[bytes, bytes]:
    with open(disk, "rb") as file:
        first = file.read(MIB)
        file.seek(899 * MIB)
        return first, file.read(MIB)


@pytest.mark.parametrize("sector", [512, 4096])
def test_a_mark_is_written_in_place_as_sfdisk_writes_it(loops: Loops, sector: int) -> None:
    disk, other = proxmox(loops, sector, attributes=(0, 2, 60)), new_disk(loops, 900, sector)
    run("sfdisk", "--quiet", "--disk-id", disk, str(uuid.UUID(int=1)))
    with open(disk, "rb") as source, open(other, "r+b") as target:
        for place in (0, 899 * MIB):
            source.seek(place)
            target.seek(place)
            target.write(source.read(MIB))
    FinishPartitions(disk, sector, (2, 3), (str(uuid.UUID(int=2)), str(uuid.UUID(int=3)))).run(LocalMachine())
    for number in (2, 3):
        run("sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", "--part-uuid", other, str(number), str(uuid.UUID(int=number)))
    assert ends_of(disk) == ends_of(other)
    assert "No problems found" in run("sgdisk", "--verify", disk)


def test_a_number_for_which_a_small_table_has_no_entry_is_refused(loops: Loops) -> None:
    """sfdisk takes no such number, and that was found out in the middle of a run."""
    disk = new_disk(loops, 120)
    run("sgdisk", "-S", "4", "-n", "1:2048:+20M", disk)
    run("partx", "--update", disk)
    schema = apply({"adopt": True, "disks": [disk]})["schema"]
    before = digest(disk)
    for number, refused in ((5, True), (4, False)):
        partition = {"name": f"{disk}p{number}", "count": number, "begin": 40, "end": 60, "space_id": "added"}
        wanted = {"parteds": [{**schema["parteds"][0], "partitions": [*schema["parteds"][0]["partitions"], partition]}]}
        for check in (True, False):
            result = attempt({"schema": wanted}, check=check)
            assert bool(result.get("failed")) is refused, result.get("msg")
            assert not refused or "room for 4 partitions, and none for number 5" in result["msg"]
        assert (digest(disk) == before) is refused


@pytest.mark.parametrize("keeper", ["partition", "file system"])
@pytest.mark.parametrize("other", [{"count": 9}, {"begin": 30, "end": 50, "space_id": "renamed"}], ids=["number", "place"])
def test_what_keeps_its_data_under_another_number_or_in_another_place_is_refused_even_with_wipe(
    loops: Loops, other: dict, keeper: str
) -> None:
    disk = new_disk(loops, 120)
    made = layout_schema(disk, {"name": "data", "size": 20, "fs_type": "ext4", "mount": "none"})
    apply({"schema": made})
    before = digest(disk)
    changed = {**made["parteds"][0]["partitions"][0], **other}
    changed["name"] = f"{disk}p{changed['count']}"
    kept = {"keep_data": True}
    filesystem = {**made["fss"][0], "device": changed["name"]}
    for is_kept in (True, False):
        words = kept if is_kept else {}
        wanted = {
            "parteds": [{**made["parteds"][0], "partitions": [{**changed, **(words if keeper == "partition" else {})}]}],
            "fss": [{**filesystem, **(words if keeper == "file system" else {})}],
        }
        for check in (True, False):
            result = attempt({"schema": wanted, "wipe": [disk]}, check=check)
            assert bool(result.get("failed")) is is_kept, result.get("msg")
            assert not is_kept or "parteds[0].partitions[0]: keeps its data, but is not on" in result["msg"]
        assert (digest(disk) == before) is is_kept
