# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether somebody has used a device since a run made it: a file system that was mounted, data where the run left zeros.

Where no tool was at work both ends are zeros, and so are samples between them, for a run clears these first. A tool that was cut off has
written no more blocks there than it writes in all, and no tool writes the first sector without a signature. What is in a closed container
shows only as ciphertext: there are zeros where nothing was ever written.

Each file system keeps its own trace of the first mount, after its kernel's headers: ext2, ext3 and ext4 the time of the last mount, XFS
records in its log behind the one of mkfs, Btrfs the generation of its tree of UUIDs, F2FS a second checkpoint, FAT files. Tools also put
files into one that nobody mounts, and may clear its log: so files count as well, in ext, XFS and Btrfs. Of a ZFS pool that is not imported
the times count at which it was written to, of which its labels have the last ones.
"""

from __future__ import annotations

import struct
import typing as t
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .._storage.btrfs import BTRFS
from .._storage.samples import SAMPLE, between_ends
from .._storage.units import MIB, in_mib
from .host import Host
from .signatures import SECTOR

_BLOCK = 4096

_DATA = "there are data without a signature at {}"
_FILES = "there are files in it"

_EXT_SUPERBLOCK = 1024
_EXT_TIMES = struct.Struct("<I4xH")
"""At 44 of the superblock: when it was mounted last, and how often since the last check."""
_EXT_INODES, _EXT_FREE, _EXT_FIRST = 0, 16, 84
_EXT_OWN = (0x240, 0x244, 0x26C, 0x280)
"""Places of numbers in the superblock: of inodes, of free ones, of the first that files may have; of inodes for quotas and orphans."""
_XFS_LOG = struct.Struct(">4sI40xQ28xI8xI24xB")
"""Magic, bytes of a block, where the log begins, blocks of a group and of the log, the bits of a block's number in a group."""
_XFS_RECORD = struct.Struct(">I8xI")
_XFS_RECORD_MAGIC = 0xFEEDBABE
_LOG_BLOCK = 512
_XFS_INODES = struct.Struct(">QQ72xI")
"""At 128 of the superblock: of inodes, those that there are and those that are free; features that a kernel has to know."""
_XFS_OWN, _XFS_OWN_OF_TREE, _XFS_TREE = 3, 16, 1 << 8
"""Inodes of mkfs: the root's and two of the realtime section; more where a tree of its own has them, which is a feature."""
_BTRFS_UUID_TREE = struct.Struct("<Q")
_BTRFS_SIZES = struct.Struct("<Q20xI")
"""At 120 of the superblock: bytes in use, bytes of a node."""
_BTRFS_OWN = 64
"""Nodes of mkfs, of which it makes nine or ten."""
_BTRFS_INODE = " INODE_ITEM "
_F2FS_PLACES = struct.Struct("<II52xI")
"""At 16 of the superblock: the logarithms of the bytes of a block and of the blocks of a segment; where checkpoints begin."""
_FAT_PLACES = struct.Struct("<HBHBH3xH12xI4xI")
"""At 11: bytes of a sector, sectors of a cluster, reserved sectors, copies of the FAT, entries of the root; sectors of one, of FAT12 and
FAT16 and of FAT32; the first cluster of the root. FAT32 has no other entries of the root, FAT12 and FAT16 have them behind the FATs."""
_FAT_FIRST = 2
"""The number of the first cluster."""
_FAT_ENTRY = 32
_FAT_LABEL = 0x08

_ZFS_RING = (128 * 1024, 128 * 1024, 1024)
"""Where the uberblocks of the first label begin, their bytes, and those of the smallest."""
_ZFS_UBERBLOCK, _ZFS_MAGIC = "QQQQQ", 0x00BAB10C
"""Magic, version, group of transactions, a sum, and the time."""
_ZFS_SECONDS, _ZFS_GROUPS = 60, 256
"""A run makes a pool with its datasets in less; where it is in use, a group is written each five seconds."""

_Read = Callable[[int, int], bytes]


@dataclass(frozen=True)
class Left:
    """What a run leaves on a device on which nothing has a signature: zeros in the first sector, and few blocks elsewhere.

    `first` and `last` are how many blocks of 4 KiB may be no zeros in the first and in the last MiB, `between` how many of the samples
    between these; None: as many as there are.
    """

    first: t.Optional[int]
    last: t.Optional[int]
    between: t.Optional[int] = None


ZEROS = Left(0, 0, 0)
"""No tool was ever at work there."""
BEFORE = Left(None, None)
"""What lay there before, behind the first sector."""
_SOME = Left(192, 192)
_OF_TOOLS: Mapping[str, Left] = {
    # The descriptors of groups, and room for more of them that has numbers of blocks in it, fill a MiB.
    **dict.fromkeys(("ext2", "ext3", "ext4"), Left(None, 192, 16)),
    # cryptsetup writes random data where keys are to be, and the header then.
    "crypto_LUKS": Left(None, 0),
    "xfs": Left(64, 4, 16),
    "btrfs": Left(32, 4, 16),
    "f2fs": Left(32, 4, 16),
    "vfat": Left(192, 4, 16),
    "swap": Left(4, 0, 0),
    "LVM2_member": Left(4, 4),
}
"""What the tools that make these leave when they are cut off before their signature: no more than they write in all, and some to spare."""


def left_by_tool(kind: str, options: Sequence[str] = ()) -> Left:
    """Return what the tool leaves that was cut off while it made this, a file system, an array ...; options of its own may change that."""
    usual = _OF_TOOLS.get(kind, _SOME)
    if not options:
        return usual
    return Left(*(None if own is None else max(own, 192) for own in (usual.first, usual.last)))


def trace_of_use(host: Host, device: str, size: int, kind: t.Optional[str], left: Left) -> t.Optional[str]:
    """Return in words what shows that a device of `size` bytes was used since it was made; None where nothing does.

    `kind` is the file system on it; with None nothing has a signature there.
    """
    try:
        if kind is None:
            return _raw_data(_reader(host, device), size, left, between_ends(size))
        describe = _DESCRIBERS.get(kind)
        trace = describe(_reader(host, device)) if describe is not None else None
        return _files_in_btrfs(host, device) if trace is None and kind == BTRFS else trace
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    except struct.error:
        return None


def trace_in_opened(host: Host, device: str, size: int, below: str, begin: int, left: Left) -> t.Optional[str]:
    """Return the same of an open LUKS container without a signature in it, whose data begin at `begin` of the device `below`.

    What was never written is zeros below it, and no zeros in it.
    """
    plain, cipher = _reader(host, device), _reader(host, below)

    def read(start: int, length: int) -> bytes:
        pairs = zip(_sectors(plain(start, length)), _sectors(cipher(begin + start, length)))
        return b"".join(inside if any(outside) else bytes(len(inside)) for inside, outside in pairs)

    try:
        return _raw_data(read, size, left, [place - begin for place in between_ends(begin + size) if place >= begin])
    except OSError as error:
        return f"it cannot be read ({error.strerror})"


def trace_in_closed(host: Host, device: str, size: int, begin: int) -> t.Optional[str]:
    """Return what shows that something was written into a closed LUKS container whose data begin at `begin`; None for nothing."""
    try:
        samples = [(place, SAMPLE) for place in between_ends(size) if place >= begin]
        for start, length in ((begin, MIB), (max(begin, size - MIB), MIB), *samples):
            if any(host.read_bytes(device, start, min(length, max(0, size - start)))):
                return f"something was written into it at {in_mib(start)}"
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    return None


def _reader(host: Host, device: str) -> _Read:
    return lambda start, length: host.read_bytes(device, start, length)


def _sectors(content: bytes) -> Iterator[bytes]:
    return (content[at : at + SECTOR] for at in range(0, len(content), SECTOR))


def _raw_data(read: _Read, size: int, left: Left, samples: Sequence[int]) -> t.Optional[str]:
    """Return where data without a signature lie that are none of what is left: in the first sector, or more elsewhere."""
    if any(read(0, SECTOR)):
        return _DATA.format(in_mib(0))
    for start, most in {max(0, size - MIB): left.last, 0: left.first}.items():
        content = read(start, min(MIB, size)) if most is not None else b""
        if most is not None and content.count(0) != len(content):
            blocks = [at for at in range(0, len(content), _BLOCK) if any(content[at : at + _BLOCK])]
            if len(blocks) > most:
                return _DATA.format(in_mib(start + blocks[0]))
    if left.between is not None:
        written = [place for place in samples if any(read(place, SAMPLE))]
        if len(written) > left.between:
            return _DATA.format(in_mib(written[0]))
    return None


def _ext(read: _Read) -> t.Optional[str]:
    superblock = read(_EXT_SUPERBLOCK, 1024)
    if any(_EXT_TIMES.unpack_from(superblock, 44)):
        return "it was mounted"
    inodes, free, first, *own = (
        struct.unpack_from("<I", superblock, place)[0] for place in (_EXT_INODES, _EXT_FREE, _EXT_FIRST, *_EXT_OWN)
    )
    # mke2fs takes those below the first one, the first one for lost+found, and some of the others for itself.
    return _FILES if inodes - free > first + sum(number > first for number in own) else None


def _xfs(read: _Read) -> t.Optional[str]:
    magic, block, log, group, length, bits = _XFS_LOG.unpack(read(0, _XFS_LOG.size))
    if magic != b"XFSB" or not log or not length:
        return None
    begin = ((log >> bits) * group + (log & ((1 << bits) - 1))) * block
    record, taken = _XFS_RECORD.unpack(read(begin, _XFS_RECORD.size))
    behind = _LOG_BLOCK + -(-taken // _LOG_BLOCK) * _LOG_BLOCK
    if record == _XFS_RECORD_MAGIC and any(read(begin + behind, _BLOCK)):
        return "it was mounted"
    inodes, free, features = _XFS_INODES.unpack(read(128, _XFS_INODES.size))
    return _FILES if inodes - free > (_XFS_OWN_OF_TREE if features & _XFS_TREE else _XFS_OWN) else None


def _btrfs(read: _Read) -> t.Optional[str]:
    (generation,) = _BTRFS_UUID_TREE.unpack(read(65536 + 0x233, _BTRFS_UUID_TREE.size))
    if generation:
        return "it was mounted"
    used, node = _BTRFS_SIZES.unpack(read(65536 + 120, _BTRFS_SIZES.size))
    return _FILES if used > _BTRFS_OWN * node else None


def _files_in_btrfs(host: Host, device: str) -> t.Optional[str]:
    """Return whether few files are in one that nobody mounted: they need not take more room than none."""
    outcome = host.run(["btrfs", "inspect-internal", "dump-tree", "-t", "5", device])
    return _FILES if outcome is not None and outcome.stdout.count(_BTRFS_INODE) > 1 else None


def _f2fs(read: _Read) -> t.Optional[str]:
    bits, of_segment, checkpoint = _F2FS_PLACES.unpack(read(1024 + 16, _F2FS_PLACES.size))
    if bits != 12 or of_segment > 16:
        return None
    (version,) = struct.unpack("<Q", read((checkpoint + (1 << of_segment)) << bits, 8))
    return "it was mounted" if version else None


def _vfat(read: _Read) -> t.Optional[str]:
    sector, cluster, reserved, copies, of_root, small, large, root = _FAT_PLACES.unpack(read(11, _FAT_PLACES.size))
    if not sector or not (small or root >= _FAT_FIRST):
        return None
    behind = reserved + copies * (small or large)
    place, size = (behind, of_root * _FAT_ENTRY) if small else (behind + (root - _FAT_FIRST) * cluster, cluster * sector)
    content = read(place * sector, min(size, _BLOCK))
    entries = (content[at : at + _FAT_ENTRY] for at in range(0, len(content), _FAT_ENTRY))
    return _FILES if any(entry[0] and not entry[11] & _FAT_LABEL for entry in entries) else None


def _zfs(read: _Read) -> t.Optional[str]:
    start, size, step = _ZFS_RING
    ring = read(start, size)
    # Each is written in the order of bytes of its host.
    found = (struct.unpack_from(order + _ZFS_UBERBLOCK, ring, at) for at in range(0, len(ring) - step + 1, step) for order in "<>")
    written = {group: time for magic, _version, group, _sum, time in found if magic == _ZFS_MAGIC and group}
    if not written:
        return None
    used = max(written) > _ZFS_GROUPS or max(written.values()) - min(written.values()) > _ZFS_SECONDS
    return "it was imported, and written to" if used else None


_DESCRIBERS: Mapping[str, Callable[[_Read], t.Optional[str]]] = {
    "ext2": _ext,
    "ext3": _ext,
    "ext4": _ext,
    "xfs": _xfs,
    "btrfs": _btrfs,
    "f2fs": _f2fs,
    "vfat": _vfat,
    "zfs_member": _zfs,
}
