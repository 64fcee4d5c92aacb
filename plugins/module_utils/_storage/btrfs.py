# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Btrfs: on how many devices it lies, what subvolumes may be called, how they are mounted, what its tools say. Sizes are bytes."""

from __future__ import annotations

import re
import struct
import typing as t
import uuid
from collections.abc import Iterable, Mapping

from .options.words import TAKE_AWAY
from .raid import RaidLevel
from .units import KIB

BTRFS = "btrfs"
TOP_LEVEL = "subvolid=5"
"""The option that mounts what all subvolumes lie in."""
LEVELS: Mapping[RaidLevel, int] = {RaidLevel.RAID0: 2, RaidLevel.RAID1: 2, RaidLevel.RAID10: 4}
"""How Btrfs keeps data on several devices, and the fewest devices of each; its raid5 and raid6 lose data when the power goes."""
_COPIES = 2

SUPERBLOCK, SUPERBLOCK_BYTES = 64 * KIB, 512
"""Where the first superblock of a device is, and how many bytes are read there."""
_MEMBER_UUID = struct.Struct("<64x8s195x16s")
"""The magic number, and the UUID in `dev_item` (struct btrfs_super_block, include/uapi/linux/btrfs_tree.h of the kernel)."""
_MAGIC = b"_BHRfS_M"
_DEVICES, _SEEDING = struct.Struct("<56xQ8s64xQ"), 1 << 32
"""The flags, the magic number, and on how many devices it is; and the flag of a seed, of which others have begun as changes."""

NAME_WANTED = "a path of letters, digits and @ _ + . - below the top of the file system, such as @home or @/.snapshots"
_PART = r"(?!\.{1,2}(/|\s*$))[A-Za-z0-9@_+.][A-Za-z0-9@_+.-]{0,254}"
NAME_PATTERN = rf"/?{_PART}(/{_PART})*"

OF_THE_WHOLE = frozenset(
    {
        *("autodefrag", "barrier", "check_int", "commit", "compress", "compress-force", "datacow", "datasum", "degraded", "device"),
        *("discard", "enospc_debug", "fatal_errors", "flushoncommit", "max_inline", "metadata_ratio", "noautodefrag", "nobarrier"),
        *("nodatacow", "nodatasum", "nodiscard", "noflushoncommit", "nospace_cache", "nossd", "nossd_spread", "notreelog"),
        *("nouser_subvol_rm_allowed", "rescan_uuid_tree", "rescue", "skip_balance", "space_cache", "ssd", "ssd_spread", "thread_pool"),
        *("treelog", "user_subvol_rm_allowed"),
    }
)
"""Options of mounts that hold for the whole file system: of all its mounts those of the first one count (btrfs(5), "Mount options")."""
SELECTING = frozenset({"subvol", "subvolid"})

_SUBVOLUME = re.compile(r"^ID ([0-9]+) gen [0-9]+ top level [0-9]+ path (.+)$", re.MULTILINE)
_QUOTA_GROUP = re.compile(r"^0/([0-9]+)\s+[0-9]+\s+[0-9]+\s+([0-9]{1,20}|none)\b", re.MULTILINE)
"""A subvolume's own group: what it refers to, what it refers to alone, and the most that it may refer to."""


def member_uuid(superblock: bytes) -> t.Optional[str]:
    """Return the UUID of a device of a Btrfs, from the beginning of its superblock; None where that is none."""
    if len(superblock) < _MEMBER_UUID.size:
        return None
    magic, name = _MEMBER_UUID.unpack_from(superblock)
    return str(uuid.UUID(bytes=name)) if magic == _MAGIC else None


def data_legs(level: RaidLevel, legs: int) -> int:
    """Return of how many devices' size the room is made: whichever two of them have a block of a mirror, it is there twice."""
    return legs if level is RaidLevel.RAID0 else legs // _COPIES


def most_legs(level: RaidLevel, devices: int) -> int:
    """Return how many of `devices` equal devices a level can use, so that none has room that the others cannot mirror."""
    return devices if level is RaidLevel.RAID0 else devices // _COPIES * _COPIES


def make_options(level: str) -> tuple[str, ...]:
    """Return the words that mkfs takes for a level; metadata are never there only once."""
    return ("-d", level, "-m", str(RaidLevel.RAID1) if level == RaidLevel.RAID0 else level)


def subvolume_name(text: str) -> t.Optional[str]:
    """Return the path of a subvolume below the top, without a slash in front; None for one that is none."""
    return text.removeprefix("/") if re.fullmatch(NAME_PATTERN, text) else None


def misplaced_option(options: str) -> t.Optional[str]:
    """Return the first of a subvolume's mount options that has no place there."""
    names = (option.removeprefix(TAKE_AWAY).split("=")[0] for option in options.split(","))
    return next((name for name in names if name in OF_THE_WHOLE | SELECTING), None)


def why_misplaced(option: str) -> str:
    """Return what is wrong with an option that has no place among a subvolume's."""
    if option in SELECTING:
        return f"{option} follows from the name of the subvolume; leave it out"
    return f"{option} holds for the whole file system, not for one of its subvolumes; put it among the options of that"


def mount_options(of_filesystem: str, of_subvolume: str, name: str) -> str:
    """Return the options that mount a subvolume: those of its file system, its own, and which it is."""
    words = [word for word in f"{of_filesystem},{of_subvolume}".split(",") if word and word != "defaults"]
    return ",".join([*dict.fromkeys(words), f"subvol={name}"])


def outer_first(names: Iterable[str]) -> list[str]:
    """Return subvolumes in an order in which they can be made."""
    return sorted(names, key=lambda name: (name.count("/"), name))


def is_seed(superblock: bytes) -> bool:
    """Return whether a device is a seed: file systems on other devices may have most of their data on it, under another UUID."""
    flags, magic, _devices = _DEVICES.unpack_from(superblock.ljust(_DEVICES.size, b"\0"))
    return magic == _MAGIC and bool(flags & _SEEDING)


def count_devices(superblock: bytes) -> int:
    """Return on how many devices the file system is, seeds among them."""
    return int(_DEVICES.unpack_from(superblock.ljust(_DEVICES.size, b"\0"))[2])


def list_commands(mountpoint: str) -> tuple[tuple[str, ...], ...]:
    """Return the commands that say which subvolumes there are, and how they are limited; the second fails where no quotas are kept."""
    return (
        ("btrfs", "subvolume", "list", mountpoint),
        ("btrfs", "qgroup", "show", "-r", "--raw", mountpoint),
    )


def read_subvolumes(text: str) -> dict[str, t.Optional[int]]:
    """Return the limits of all subvolumes (None: there is none) by their paths, from what `list_commands` say."""
    limits = {number: None if limit == "none" else int(limit) for number, limit in _QUOTA_GROUP.findall(text)}
    return {path: limits.get(number) for number, path in _SUBVOLUME.findall(text)}
