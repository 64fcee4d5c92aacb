# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has a signature in room of no partition, in files that real tools have made and real blkid reads."""

from __future__ import annotations

import os
import shutil
import subprocess
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.host import LocalHost
from ansible_collections.bareon.allocator.plugins.module_utils._facts.loose import find_loose

MIB = 1024**2
SIZE = 700
TOOLS: dict[str, tuple[int, list[str]]] = {
    "ext4": (16, ["mkfs.ext4", "-q", "-F"]),
    "ext2": (16, ["mke2fs", "-q", "-F", "-t", "ext2"]),
    "xfs": (300, ["mkfs.xfs", "-q"]),
    "btrfs": (128, ["mkfs.btrfs", "-q"]),
    "swap": (16, ["mkswap", "--quiet"]),
    "vfat": (40, ["mkfs.vfat"]),
    "f2fs": (64, ["mkfs.f2fs", "-q"]),
    "crypto_LUKS": (32, ["cryptsetup", "luksFormat", "-q", "--pbkdf=pbkdf2", "--pbkdf-force-iterations=1000"]),
    "dos table": (16, ["sfdisk", "--quiet"]),
    "gpt table": (16, ["sfdisk", "--quiet"]),
}
"""What is made, in how many MiB, and by what."""
INPUT = {"dos table": b"label: dos\n,8M\n", "gpt table": b"label: gpt\n,8M\n", "crypto_LUKS": b"a passphrase of some length"}


def made(folder: Path, kind: str) -> bytes:
    size, command = TOOLS[kind]
    path = folder / "content"
    path.write_bytes(b"")
    os.truncate(path, size * MIB)
    if kind == "crypto_LUKS":
        key = folder / "key"
        key.write_bytes(INPUT[kind])
        command = [*command, str(path), str(key)]
    else:
        command = [*command, str(path)]
    program = shutil.which(command[0], path="/usr/sbin:/sbin:/usr/bin:/bin")
    assert program is not None, command[0]
    subprocess.run([program, *command[1:]], input=INPUT.get(kind), check=True, capture_output=True)
    return path.read_bytes()


def disk_with(folder: Path, pieces: dict[int, bytes]) -> str:
    path = folder / "disk"
    path.write_bytes(b"")
    os.truncate(path, SIZE * MIB)
    with path.open("r+b") as file:
        for place, content in pieces.items():
            file.seek(place)
            file.write(content)
    return str(path)


def found(device: str, start: int, end: int) -> list[tuple[str, t.Any]]:
    return [(one.type, one.offsets[0]) for one in find_loose(LocalHost(), device, start, end)]


@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.parametrize("place", [100, 117, 163])
def test_what_begins_within_the_first_mib_is_found_where_it_begins(tmp_path: Path, kind: str, place: int) -> None:
    device = disk_with(tmp_path, {place * MIB: made(tmp_path, kind)})
    assert (kind, place * MIB) in found(device, 100 * MIB, SIZE * MIB)


@pytest.mark.parametrize("kind", ["ext4", "ext2"])
def test_a_copy_of_a_superblock_of_ext_is_found(tmp_path: Path, kind: str) -> None:
    """The first copy lies 128 MiB behind the begin, which is no whole MiB of the room, and gone."""
    device = disk_with(tmp_path, {})
    mke2fs = shutil.which("mke2fs", path="/usr/sbin:/sbin")
    assert mke2fs is not None
    offset = f"offset={40 * MIB}"
    subprocess.run([mke2fs, "-q", "-F", "-t", kind, "-b", "4096", "-E", offset, device, "300M"], check=True, capture_output=True)
    with open(device, "r+b") as file:
        file.seek(40 * MIB)
        file.write(bytes(64 * 1024))
    assert (kind, 168 * MIB) in found(device, 150 * MIB, 200 * MIB)


def test_the_copy_of_a_btrfs_at_64_mib_is_found(tmp_path: Path) -> None:
    content = made(tmp_path, "btrfs")
    device = disk_with(tmp_path, {100 * MIB: content})
    assert ("btrfs", 164 * MIB) in found(device, 150 * MIB, 200 * MIB)


def test_luks_that_is_being_reencrypted_is_found(tmp_path: Path) -> None:
    path = disk_with(tmp_path, {100 * MIB: b"LUKS\xde\xad\0\1" + b"a" * 4096})
    assert found(path, 90 * MIB, SIZE * MIB) == [("crypto_LUKS", 100 * MIB)]


def test_zeros_take_no_tool_and_no_more_places_than_counted(tmp_path: Path) -> None:
    class Counting(LocalHost):
        places: t.ClassVar[list[int]] = []

        def run(self, command: t.Sequence[str]) -> t.NoReturn:
            pytest.fail(f"nothing is to be run: {command}")

        def read_bytes(self, path: str, start: int, size: int) -> bytes:
            self.places.append(start)
            return bytes(size)

    assert list(find_loose(Counting(), "/dev/none", MIB + 512, 10 * 1024**4)) == []
    assert len(set(Counting.places)) <= 1 + 64 + 64 + 1
    assert max(Counting.places) < 10 * 1024**4


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    class Broken(LocalHost):
        def read_bytes(self, path: str, start: int, size: int) -> bytes:
            raise OSError(5, "Input/output error")

    (one,) = find_loose(Broken(), "/dev/none", MIB, 2 * MIB)
    assert (one.type, one.offsets) == ("something unreadable (Input/output error)", (MIB,))


def test_data_without_a_signature_are_none(tmp_path: Path) -> None:
    device = disk_with(tmp_path, {100 * MIB: b"\xa5" * 8 * MIB})
    assert found(device, 100 * MIB, 110 * MIB) == []
