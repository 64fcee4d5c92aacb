# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether somebody has used a device since a run made it: a file system that was mounted, data where the run left zeros.

No tool of a run writes the first sector without a signature there, so that data in it are somebody's; data farther inside may be what a
tool left that was cut off before its signature. What is in a closed container shows only as ciphertext: there are zeros where nothing was
ever written.

Each file system keeps its own trace of the first mount, after its kernel's headers: ext2, ext3 and ext4 the time of the last mount, XFS
records in its log behind the one of mkfs, Btrfs the generation of its tree of UUIDs, F2FS a second checkpoint, FAT files.
"""

from __future__ import annotations

import enum
import struct
import typing as t
from collections.abc import Callable, Iterator, Mapping

from .._storage.units import MIB, in_mib
from .host import Host
from .signatures import SECTOR

_BLOCK = 4096
_MOST_BLOCKS = MIB // _BLOCK * 3 // 4
"""Blocks of a MiB that mkfs, cryptsetup, mdadm or pvcreate, cut off before their signature, write at most, on devices below 1 TiB."""
_LARGE = 1024**4

_DATA = "there are data without a signature at {}"

_EXT_TIMES = struct.Struct("<I4xH")
"""At 44 of the superblock: when it was mounted last, and how often since the last check."""
_XFS_LOG = struct.Struct(">4sI40xQ28xI8xI24xB")
"""Magic, bytes of a block, where the log begins, blocks of a group and of the log, the bits of a block's number in a group."""
_XFS_RECORD = struct.Struct(">I8xI")
_XFS_RECORD_MAGIC = 0xFEEDBABE
_LOG_BLOCK = 512
_BTRFS_UUID_TREE = struct.Struct("<Q")
_F2FS_PLACES = struct.Struct("<II52xI")
"""At 16 of the superblock: the logarithms of the bytes of a block and of the blocks of a segment; where checkpoints begin."""
_FAT_PLACES = struct.Struct("<HBHB14xI4xI")
"""At 11: bytes of a sector, sectors of a cluster, reserved sectors, copies of the FAT; sectors of one; the first cluster of the root."""
_FAT_ENTRY = 32
_FAT_LABEL = 0x08

_Read = Callable[[int, int], bytes]


class Left(enum.Enum):
    """What a run leaves at the ends of a device on which nothing has a signature."""

    NOTHING = "zeros: nothing is ever made on it"
    TOOLS = "zeros, but for what a tool that was cut off wrote before its signature"
    BEFORE = "what lay there before, but for zeros in its first sectors"


def trace_of_use(host: Host, device: str, size: int, kind: t.Optional[str], left: Left) -> t.Optional[str]:
    """Return in words what shows that a device of `size` bytes was used since it was made; None where nothing does.

    `kind` is the file system on it; with None nothing has a signature there.
    """
    try:
        if kind is None:
            return _raw_data(_reader(host, device), size, left)
        describe = _DESCRIBERS.get(kind)
        return describe(_reader(host, device)) if describe is not None else None
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    except struct.error:
        return None


def trace_in_opened(host: Host, device: str, size: int, below: str, begin: int) -> t.Optional[str]:
    """Return the same of an open LUKS container without a signature in it, whose data begin at `begin` of the device `below`.

    What was never written is zeros below it, and no zeros in it.
    """
    plain, cipher = _reader(host, device), _reader(host, below)

    def read(start: int, length: int) -> bytes:
        pairs = zip(_sectors(plain(start, length)), _sectors(cipher(begin + start, length)))
        return b"".join(inside if any(outside) else bytes(len(inside)) for inside, outside in pairs)

    try:
        return _raw_data(read, size, Left.TOOLS)
    except OSError as error:
        return f"it cannot be read ({error.strerror})"


def trace_in_closed(host: Host, device: str, size: int, begin: int) -> t.Optional[str]:
    """Return what shows that something was written into a closed LUKS container whose data begin at `begin`; None for nothing."""
    try:
        for start in (begin, max(begin, size - MIB)):
            if any(host.read_bytes(device, start, min(MIB, max(0, size - start)))):
                return f"something was written into it at {in_mib(start)}"
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    return None


def _reader(host: Host, device: str) -> _Read:
    return lambda start, length: host.read_bytes(device, start, length)


def _sectors(content: bytes) -> Iterator[bytes]:
    return (content[at : at + SECTOR] for at in range(0, len(content), SECTOR))


def _raw_data(read: _Read, size: int, left: Left) -> t.Optional[str]:
    """Return where data without a signature lie that are none of what is left: in the first sector, or more of them at either end."""
    if any(read(0, SECTOR)):
        return _DATA.format(in_mib(0))
    if left is Left.BEFORE or (left is Left.TOOLS and size >= _LARGE):
        return None
    for start in dict.fromkeys((0, max(0, size - MIB))):
        content = read(start, min(MIB, size))
        if content.count(0) != len(content):
            blocks = [at for at in range(0, len(content), _BLOCK) if any(content[at : at + _BLOCK])]
            if len(blocks) > (_MOST_BLOCKS if left is Left.TOOLS else 0):
                return _DATA.format(in_mib(start + blocks[0]))
    return None


def _ext(read: _Read) -> t.Optional[str]:
    mounted, count = _EXT_TIMES.unpack(read(1024 + 44, _EXT_TIMES.size))
    return "it was mounted" if mounted or count else None


def _xfs(read: _Read) -> t.Optional[str]:
    magic, block, log, group, length, bits = _XFS_LOG.unpack(read(0, _XFS_LOG.size))
    if magic != b"XFSB" or not log or not length:
        return None
    begin = ((log >> bits) * group + (log & ((1 << bits) - 1))) * block
    record, taken = _XFS_RECORD.unpack(read(begin, _XFS_RECORD.size))
    if record != _XFS_RECORD_MAGIC:
        return None
    behind = _LOG_BLOCK + -(-taken // _LOG_BLOCK) * _LOG_BLOCK
    return "it was mounted" if any(read(begin + behind, _BLOCK)) else None


def _btrfs(read: _Read) -> t.Optional[str]:
    (generation,) = _BTRFS_UUID_TREE.unpack(read(65536 + 0x233, _BTRFS_UUID_TREE.size))
    return "it was mounted" if generation else None


def _f2fs(read: _Read) -> t.Optional[str]:
    bits, of_segment, checkpoint = _F2FS_PLACES.unpack(read(1024 + 16, _F2FS_PLACES.size))
    if bits != 12 or of_segment > 16:
        return None
    (version,) = struct.unpack("<Q", read((checkpoint + (1 << of_segment)) << bits, 8))
    return "it was mounted" if version else None


def _vfat(read: _Read) -> t.Optional[str]:
    sector, cluster, reserved, copies, table, root = _FAT_PLACES.unpack(read(11, _FAT_PLACES.size))
    if not sector or root < 2:
        return None
    content = read((reserved + copies * table + (root - 2) * cluster) * sector, min(cluster * sector, _BLOCK))
    entries = (content[at : at + _FAT_ENTRY] for at in range(0, len(content), _FAT_ENTRY))
    return "there are files in it" if any(entry[0] and not entry[11] & _FAT_LABEL for entry in entries) else None


_DESCRIBERS: Mapping[str, Callable[[_Read], t.Optional[str]]] = {
    "ext2": _ext,
    "ext3": _ext,
    "ext4": _ext,
    "xfs": _xfs,
    "btrfs": _btrfs,
    "f2fs": _f2fs,
    "vfat": _vfat,
}
