# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The header of LUKS 2, read without cryptsetup, which writes where it only reads: it mends one copy of the header by the other one.

After the LUKS2 On-Disk Format Specification: a binary header of 4 KiB, then the metadata as JSON; both are stored twice.
"""

from __future__ import annotations

import hashlib
import json
import struct
import typing as t
from collections.abc import Callable

from .lsblk import to_integer
from .stacks import Luks

_BINARY = 4096
_HEADER = struct.Struct(">6sHQQ48s32s64s40s48sQ184s64s")
_MAGICS = (b"LUKS\xba\xbe", b"SKUL\xba\xbe")
_VERSION = 2
_SIZES = tuple(0x4000 << shift for shift in range(9))
"""Bytes that a copy may have, which is where the second one begins."""
_SUM, _SUM_BYTES = 448, 64
_SUMS = ("sha1", "sha224", "sha256", "sha384", "sha512")

_Read = Callable[[int, int], bytes]


def read_luks2(read: _Read) -> t.Optional[Luks]:
    """Return the header of which one copy at least is whole, the newer one of two; None for none. `read` takes an offset and bytes."""
    first = _copy(read, 0)
    places = _SIZES if first is None else (first[1],)
    copies = [found for found in (first, *(_copy(read, place) for place in places)) if found is not None]
    return _described(max(copies, key=lambda found: found[0])[2]) if copies else None


def _copy(read: _Read, place: int) -> t.Optional[tuple[int, int, bytes]]:
    """Return the number of the last change, the size and the metadata of the copy in a place; None where none is whole."""
    binary = read(place, _BINARY)
    if len(binary) < _BINARY or not binary.startswith(_MAGICS[place > 0]):
        return None
    _magic, version, size, change, _label, algorithm, _salt, _uuid, _subsystem, offset, _padding, total = _HEADER.unpack_from(binary)
    if version != _VERSION or size not in _SIZES or offset != place:
        return None
    metadata = read(place + _BINARY, size - _BINARY)
    name = algorithm.rstrip(b"\0").decode("ascii", "replace")
    if name not in _SUMS:
        return None
    summed = hashlib.new(name, binary[:_SUM] + bytes(_SUM_BYTES) + binary[_SUM + _SUM_BYTES :] + metadata).digest()
    return (change, size, metadata) if total.startswith(summed) else None


def _described(metadata: bytes) -> t.Optional[Luks]:
    try:
        data = json.loads(metadata.rstrip(b"\0"))
        segment = data["segments"][min(data["segments"], key=int)] if data["segments"] else {}
        slots = sum(slot["type"] == "luks2" for slot in data["keyslots"].values())
        cipher = segment.get("encryption")
        return Luks(_VERSION, None if cipher is None else str(cipher), slots, to_integer(segment.get("offset")))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
