# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether somebody has used a device since a run made it: a file system that was mounted, data where the run left zeros.

Each file system keeps its own trace of the first mount, after its kernel's headers: ext2, ext3 and ext4 the time of the last mount, XFS
records in its log behind the one of mkfs, Btrfs the generation of its tree of UUIDs, F2FS a second checkpoint, FAT files.
"""

from __future__ import annotations

import struct
import typing as t
from collections.abc import Callable, Mapping

from .._storage.units import MIB, in_mib
from .host import Host

_BLOCK = 4096
_MOST_BLOCKS = MIB // _BLOCK * 3 // 4
"""Blocks of a MiB that mkfs, cryptsetup, mdadm or pvcreate, cut off before their signature, write at most, on devices below 1 TiB."""
_LARGE = 1024**4

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


def trace_of_use(host: Host, device: str, size: int, kind: t.Optional[str], must_be_blank: bool) -> t.Optional[str]:
    """Return in words what shows that a device of `size` bytes was used since it was made; None where nothing does.

    `kind` is the file system on it; with None nothing has a signature there, and what a cut-off mkfs may leave is no trace.
    With `must_be_blank` nothing is ever made on it: all in its first and last MiB is a trace.
    """

    def read(start: int, length: int) -> bytes:
        return host.read_bytes(device, start, length)

    try:
        if kind is None:
            return _raw_data(read, size, 0 if must_be_blank else _MOST_BLOCKS)
        tells = _TELLERS.get(kind)
        return tells(read) if tells is not None else None
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    except struct.error:
        return None


def _raw_data(read: _Read, size: int, most: int) -> t.Optional[str]:
    """Return where data without a signature lie at either end of a device: more blocks than `most` that are not zeros."""
    if most and size >= _LARGE:
        return None
    for start in dict.fromkeys((0, max(0, size - MIB))):
        content = read(start, min(MIB, size))
        if content.count(0) != len(content):
            blocks = [at for at in range(0, len(content), _BLOCK) if any(content[at : at + _BLOCK])]
            if len(blocks) > most:
                return f"there are data without a signature at {in_mib(start + blocks[0])}"
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


_TELLERS: Mapping[str, Callable[[_Read], t.Optional[str]]] = {
    "ext2": _ext,
    "ext3": _ext,
    "ext4": _ext,
    "xfs": _xfs,
    "btrfs": _btrfs,
    "f2fs": _f2fs,
    "vfat": _vfat,
}
