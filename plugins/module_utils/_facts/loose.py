# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds what has a signature in room of a disk that no partition has: the contents of one whose entry somebody has deleted, an image.

Where it begins nobody says. So these places are read: both ends of the room, its first 64 whole MiB, and 64 more spread over the rest. All
that libblkid knows counts there, and copies of superblocks, which say that their file system begins before.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator
from dataclasses import replace

from .._storage.units import KIB, MIB
from .host import Host
from .signatures import Signature, parse_probe, probe_command

_IN_TURN = 64
_SAMPLES = 64
_WINDOW = 132 * KIB
"""So far behind its begin everything that begins somewhere has a signature; ZFS has the last one of all."""
_TAIL = 512 * KIB
"""So far before its end everything has one that has none at its begin: the labels of ZFS are the largest."""
_SEVERAL = 8
"""What blkid ends with where it finds more than one thing."""
_EXT_MAGIC, _EXT_GROUP, _EXT_BEFORE = slice(0x38, 0x3A), slice(0x5A, 0x5C), 1024
"""Of a superblock of ext its magic, and the number of the group of which it is the copy; how far before the first one its device begins."""
_BTRFS_COPY = slice(64, 72)
_LUKS_IN_REENCRYPTION = b"LUKS\xde\xad"
"""What LUKS 1 has for its magic as long as its data are being re-encrypted; libblkid does not know it."""


def find_loose(host: Host, device: str, start: int, end: int) -> Iterator[Signature]:
    """Give what has a signature between two bytes of a device, once each, with the offset at which it was found; it may begin before."""
    seen: set[tuple[str, str]] = set()
    for place in _places(start, end):
        try:
            window = host.read_bytes(device, place, min(_WINDOW, end - place))
            tail = host.read_bytes(device, max(start, end - _TAIL), min(_TAIL, end - start)) if place == start else b""
        except OSError as error:
            yield Signature(f"something unreadable ({error.strerror or 'error'})", offsets=(place,))
            continue
        if _has_data(window) or _has_data(tail):
            found = _copy_in(host, device, window, place, end) or _probed(host, device, place, end)
            if found is None or (found.type, found.uuid) in seen:
                continue
            seen |= {(found.type, found.uuid)} if found.uuid is not None else set()
            yield found


def _places(start: int, end: int) -> Iterator[int]:
    """Give the places in a room that are searched for a signature, at most 1 + _IN_TURN + _SAMPLES."""
    first = -(-start // MIB)
    count = max(0, -(-end // MIB) - first)
    if first * MIB != start:
        yield start
    yield from ((first + number) * MIB for number in range(min(count, _IN_TURN)))
    rest = max(0, count - _IN_TURN)
    sampled = min(rest, _SAMPLES)
    yield from ((first + _IN_TURN + number * rest // sampled) * MIB for number in range(sampled))


def _has_data(content: bytes) -> bool:
    return content.count(0) != len(content)


def _copy_in(host: Host, device: str, window: bytes, place: int, end: int) -> t.Optional[Signature]:
    """Return the file system of which a copy of its superblock lies here: ext has them where groups begin, Btrfs at 64 MiB.

    Also LUKS 1 that is being re-encrypted.
    """
    if window.startswith(_LUKS_IN_REENCRYPTION):
        return Signature("crypto_LUKS", offsets=(place,))
    if window[_BTRFS_COPY] == b"_BHRfS_M":
        return Signature("btrfs", offsets=(place,))
    if window[_EXT_MAGIC] != b"\x53\xef" or not any(window[_EXT_GROUP]):
        return None
    found = _probed(host, device, place - _EXT_BEFORE, end)
    return replace(found, offsets=(place,)) if found is not None else None


def _probed(host: Host, device: str, place: int, end: int) -> t.Optional[Signature]:
    outcome = host.run(probe_command(device, place, end - place))
    if outcome is None:
        return Signature("unknown data, for blkid of util-linux is missing", offsets=(place,))
    said = parse_probe(outcome.stdout)
    if "TYPE" in said:
        return Signature(said["TYPE"], said.get("UUID"), said.get("LABEL"), (place,))
    if "PTTYPE" in said:
        return Signature(f"{said['PTTYPE']} table", said.get("PTUUID"), None, (place,))
    return Signature("several signatures at once", offsets=(place,)) if outcome.code == _SEVERAL else None
