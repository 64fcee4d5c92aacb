# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""File systems and swap, a row for each: how it is made, labelled, measured and grown, and which package has its tools.

A file system that this collection is to know takes a row here; both the planner and the host read it.
"""

from __future__ import annotations

import re
import struct
import typing as t
from collections.abc import Mapping
from dataclasses import dataclass, field

from .options import btrfs, ext, f2fs, swap, vfat, xfs
from .options.programs import Program
from .units import MIB

Words = tuple[str, ...]
"""A command; `{device}`, `{mountpoint}`, `{uuid}` and `{serial}` (a UUID without its dashes) in it are put in."""

SWAP = "swap"
EXT4 = "ext4"
NOT_MOUNTED = "none"
SECTOR = 512
DEFAULT = "xfs"
"""What is made where a mount point is all that is asked for."""


@dataclass(frozen=True)
class Superblock:
    """The beginning of a device: a magic, and two integers whose product are bytes."""

    fields: struct.Struct
    magic: bytes

    def read(self, content: bytes) -> t.Optional[int]:
        """Return the bytes; None where it is another superblock."""
        if len(content) != self.fields.size:
            return None
        magic, one, other = self.fields.unpack(content)
        return one * other if magic == self.magic else None


@dataclass(frozen=True)
class Measure:
    """How large a file system is: a command that reads it, and a pattern. Its one match's groups multiplied by `unit` are bytes.

    `last_mount` is a pattern of the last mount point, if the command prints it; `used` one of the blocks, the free ones
    and the bytes of one. `of_device` is one of the space taken on the device named `{device}`, for file systems on several.
    """

    command: Words
    pattern: str
    unit: int = 1
    last_mount: str = ""
    of_device: str = ""
    used: str = ""
    superblock: t.Optional[Superblock] = None
    """Where an unmounted device has the same facts: reading them saves a process for each device."""

    def read_used(self, text: str) -> t.Optional[int]:
        """Return the bytes that are in use, from what the command says."""
        found = re.search(self.used, text, re.MULTILINE | re.DOTALL) if self.used else None
        return (int(found[1]) - int(found[2])) * int(found[3]) if found is not None else None

    def read_last_mount(self, text: str) -> t.Optional[str]:
        """Return where it was mounted last, from what the command says."""
        found = re.search(self.last_mount, text, re.MULTILINE) if self.last_mount else None
        return found[1] if found is not None else None

    def read(self, text: str, device: str = "") -> t.Optional[int]:
        """Return the bytes from what the command says; None when it does not say it once."""
        found = re.findall(self.pattern, text, re.MULTILINE | re.DOTALL)
        if len(found) > 1 and self.of_device:
            found = re.findall(self.of_device.replace("{device}", re.escape(device)), text, re.MULTILINE)
        if len(found) != 1:
            return None
        numbers = (found[0],) if isinstance(found[0], str) else found[0]
        size = self.unit
        for number in numbers:
            size *= int(number)
        return size


@dataclass(frozen=True)
class Growth:
    """How a file system takes the whole of a device that has grown.

    `mounted` and `unmounted` are the commands, empty where it does not work that way; one that grows mounted is mounted for it, one that
    grows only unmounted is not grown while it is in use. `check` comes before where it is not mounted; its codes of success are `checked`.
    `slack` are bytes at the end of a device that are not worth growing: some make no group that is too small. `least` are the bytes
    that each of its devices has to have for it: kernels refuse to grow to less, though what is made may be smaller.
    """

    measure: Measure
    slack: int
    mounted: Words = ()
    unmounted: Words = ()
    check: Words = ()
    checked: tuple[int, ...] = (0,)
    least: int = 0


@dataclass(frozen=True)
class Filesystem:
    """A kind of file system, or swap.

    `make` writes it with its identity, `label_option` comes before a label of at most `label_length` bytes. `options` are what users may
    give its program as well. `packages` are Debian's and Red Hat's.
    `checked_at_start`: fsck is for it (its pass in fstab); all others check themselves as they are mounted.
    """

    name: str
    label_length: int
    make: Words
    label_option: str
    packages: tuple[str, str]
    options: Program
    growth: t.Optional[Growth] = None
    checked_at_start: bool = False
    shrink: Words = ()
    """What makes it smaller while it is not mounted, after the check of its growth; `{kib}` are the KiB that it gets. Empty: it cannot."""
    least: int = 1
    """MiB without which its program does not make it, or not as it is to be: ext3 and ext4 with a journal, vfat with FAT32."""
    least_of_4k: int = 0
    """The same on sectors of 4096 bytes, where that is more."""
    least_with: Mapping[Words, tuple[int, int]] = field(default_factory=dict)
    """The same with options of its program that make do with less, on sectors of 512 and of 4096 bytes."""

    def make_command(self, device: str, uuid: str, label: str, options: tuple[str, ...]) -> list[str]:
        """Return the command that makes it; the user's options come last, so that they win."""
        identity = fill(self.make, uuid=uuid, serial=uuid.replace("-", ""))
        return [*identity, *([self.label_option, label] if label else []), *options, device]


def fill(words: Words, **values: str) -> list[str]:
    """Return a command with its values put in."""
    return [word.format_map(values) for word in words]


def _ext(name: str, least: int, of_4k: int = 0) -> Filesystem:
    return Filesystem(
        name=name,
        label_length=16,
        make=(f"mkfs.{name}", "-q", "-U", "{uuid}"),
        label_option="-L",
        packages=("e2fsprogs", "e2fsprogs"),
        options=ext.program(name),
        growth=Growth(
            Measure(
                ("dumpe2fs", "-h", "{device}"),
                r"^Block count:\s*([0-9]+)$.*^Block size:\s*([0-9]+)$",
                last_mount=r"^Last mounted on:\s*(/.*)$",
                used=r"^Block count:\s*([0-9]+)$.*^Free blocks:\s*([0-9]+)$.*^Block size:\s*([0-9]+)$",
            ),
            slack=8 * MIB,
            mounted=("resize2fs", "{device}"),
            unmounted=("resize2fs", "{device}"),
            # resize2fs asks for it. Code 1: errors, all of them corrected.
            check=("e2fsck", "-f", "-p", "{device}"),
            checked=(0, 1),
        ),
        checked_at_start=True,
        shrink=("resize2fs", "{device}", "{kib}K"),
        least=least,
        least_of_4k=of_4k,
        least_with={("-b",): (1, 1), ("-J",): (1, 1), ("-O",): (1, 1)},
    )


_ROWS = (
    _ext("ext2", 1),
    _ext("ext3", 2, of_4k=8),
    _ext(EXT4, 2, of_4k=8),
    Filesystem(
        name="xfs",
        label_length=12,
        make=("mkfs.xfs", "-q", "-m", "uuid={uuid}"),
        label_option="-L",
        packages=("xfsprogs", "xfsprogs"),
        options=xfs.PROGRAM,
        growth=Growth(
            Measure(
                ("xfs_info", "{mountpoint}"),
                r"^data\s+=.*?\bbsize=([0-9]+)\s+blocks=([0-9]+)",
                superblock=Superblock(struct.Struct(">4sIQ"), b"XFSB"),
            ),
            slack=17 * MIB,
            mounted=("xfs_growfs", "-d", "{mountpoint}"),
        ),
        least=300,
    ),
    Filesystem(
        name="btrfs",
        label_length=255,
        make=("mkfs.btrfs", "-q", "-U", "{uuid}"),
        label_option="-L",
        packages=("btrfs-progs", "btrfs-progs"),
        options=btrfs.PROGRAM,
        growth=Growth(
            Measure(
                ("btrfs", "filesystem", "show", "--raw", "{device}"),
                r"^\s*devid\s+[0-9]+\s+size\s+([0-9]+)\s",
                of_device=r"^\s*devid\s+[0-9]+\s+size\s+([0-9]+)\s.*\spath\s+{device}$",
            ),
            slack=MIB,
            mounted=("btrfs", "filesystem", "resize", "max", "{mountpoint}"),
            least=256 * MIB,
        ),
        least=109,
        least_with={("-M",): (16, 16)},
    ),
    Filesystem(
        name="f2fs",
        label_length=512,
        make=("mkfs.f2fs", "-q", "-U", "{uuid}"),
        label_option="-l",
        packages=("f2fs-tools", "f2fs-tools"),
        options=f2fs.PROGRAM,
        growth=Growth(
            # Its blocks are of 4 KiB; it has segments of 2 MiB.
            Measure(("dump.f2fs", "-d", "1", "{device}"), r"^block_count\s[^:]*:\s*([0-9]+)\]", unit=4096),
            slack=2 * MIB,
            unmounted=("resize.f2fs", "{device}"),
            # It has no way to repair only what is safe to repair, so that nothing is: with errors it does not grow.
            check=("fsck.f2fs", "-f", "--dry-run", "{device}"),
        ),
        checked_at_start=True,
        least=52,
    ),
    Filesystem(
        name="vfat",
        label_length=11,
        make=("mkfs.vfat", "-F", "32", "-i", "{serial}"),
        label_option="-n",
        packages=("dosfstools", "dosfstools"),
        options=vfat.PROGRAM,
        checked_at_start=True,
        least=33,
        least_of_4k=257,
        least_with={("-F", "12"): (1, 1), ("-F", "16"): (9, 64)},
    ),
    Filesystem(
        name=SWAP,
        label_length=16,
        make=("mkswap", "-U", "{uuid}"),
        label_option="-L",
        packages=("util-linux", "util-linux"),
        options=swap.PROGRAM,
    ),
)

FILESYSTEMS: Mapping[str, Filesystem] = {row.name: row for row in _ROWS}

SPELLINGS: Mapping[str, str] = {"fat": "vfat", "fat32": "vfat", "linux-swap": SWAP}
"""Words of Bareon's and parted's."""


def made_on(fs_type: t.Optional[str], mount: t.Optional[str]) -> t.Optional[str]:
    """Return the file system that is made where a user names this one, or none, and this mount point, or none."""
    return fs_type or (DEFAULT if mount else None)


def least_size(fs_type: str, options: Words = (), sector: int = SECTOR) -> int:
    """Return the MiB without which the program of a file system does not make it as it is to be, with these options and sectors."""
    row = FILESYSTEMS[fs_type]
    for words, least in row.least_with.items():
        if any(options[at : at + len(words)] == words for at in range(len(options))):
            return least[sector > SECTOR]
    return max(row.least, row.least_of_4k if sector > SECTOR else 0)


def read_make_options(fs_type: str, text: str, *, several: bool = False) -> tuple[Words, tuple[str, ...]]:
    """Return the words for the program that makes a file system, on several devices or one, and a sentence for each that is refused."""
    program = btrfs.ON_SEVERAL if several and fs_type == "btrfs" else FILESYSTEMS[fs_type].options
    return program.read(text)


def packages_of_tools() -> dict[str, tuple[str, str]]:
    """Return the packages, Debian's and Red Hat's, of every tool that makes or grows a file system."""
    found = {}
    for row in _ROWS:
        growth = row.growth
        commands = (row.make, *((growth.mounted, growth.unmounted, growth.check, growth.measure.command) if growth else ()))
        found.update({command[0]: row.packages for command in commands if command})
    return found
