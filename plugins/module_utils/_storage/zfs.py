# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ZFS: what pools and datasets may be called, what a pool keeps for itself, what its tools are asked and say. Sizes are bytes or MiB.

Room is that of OpenZFS 2 as `zfs list` shows it for an empty pool (used and available); zfs-fuse, of pool version 23, has slightly more.
"""

from __future__ import annotations

import enum
import re
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from .options.datasets import OF_POOLS, PROPERTIES
from .options.values import not_among, shown
from .units import KIB, MIB

MEMBER = "zfs_member"
"""What libblkid calls a device of a pool; its UUID is the guid of the pool, its label the name."""
LABEL, LABEL_BYTES = 16 * KIB, 8 * KIB
"""Where the first label of a device has its names and values, and how many bytes are read there."""
_GUID = re.compile(rb"\0\0\0\x04guid\0\0\0\x08\0\0\0\x01(.{8})", re.DOTALL)
"""The pair of that name in XDR: length and text of the name, type uint64, one value. That of the device comes before those of its vdev."""
PARTITION_TYPE = "6a898cc3-1dd2-11b2-99a6-080020736631"
"""The type of partitions that `zpool create` makes on a whole disk."""
ASHIFT = 12
"""Sectors of 4096 bytes, whatever a disk says of itself: it cannot be changed later, and disks that replace others have them."""
LEAST_ASHIFT, LARGEST_ASHIFT = 9, 16
WHOLE = ("ONLINE",)
"""What a pool is said to be that lacks nothing."""
LEAST_LEG = 64
"""MiB below which ZFS takes no device."""


def member_guid(label: bytes) -> t.Optional[str]:
    """Return the guid of a device of a pool, from the beginning of the names and values in its label; None where there is none."""
    found = _GUID.search(label)
    return str(int.from_bytes(found[1], "big")) if found is not None else None


class Vdev(str, enum.Enum):
    """How devices are put together; the words are those of `zpool create`, but for stripe, which it has no word for."""

    STRIPE = "stripe"
    MIRROR = "mirror"
    RAIDZ1 = "raidz1"
    RAIDZ2 = "raidz2"
    RAIDZ3 = "raidz3"

    def __str__(self) -> str:
        return self.value


class Part(str, enum.Enum):
    """Roles of a pool's devices that hold no data; the words are those of `zpool add`."""

    LOG = "log"
    CACHE = "cache"
    SPARE = "spare"

    def __str__(self) -> str:
        return self.value


LOG_KINDS = (Vdev.STRIPE, Vdev.MIRROR)
"""How the devices of a log can be put together."""


def vdev_kind(name: str) -> t.Optional[Vdev]:
    """Return how the devices of a vdev that ZFS calls so are put together; None for what is not made here."""
    if name.startswith("/"):
        return Vdev.STRIPE
    return next((kind for kind in Vdev if kind is not Vdev.STRIPE and re.fullmatch(f"{kind}-[0-9]+", name)), None)


PARITY: Mapping[Vdev, int] = {Vdev.RAIDZ1: 1, Vdev.RAIDZ2: 2, Vdev.RAIDZ3: 3}
LEAST_WIDTH: Mapping[Vdev, int] = {Vdev.STRIPE: 1, Vdev.MIRROR: 2, Vdev.RAIDZ1: 3, Vdev.RAIDZ2: 4, Vdev.RAIDZ3: 5}
"""Of how many devices one vdev is made at least; fewer in a raidz would hold no more than a mirror."""

POOL_WANTED = "a letter, then letters, digits and _ - . : (and neither mirror..., raidz..., draid..., spare, log nor c with a digit)"
POOL_PATTERN = r"(?!mirror|raidz|draid|spare|log$|c[0-9])[A-Za-z][A-Za-z0-9_.:-]*"
DATASET_WANTED = "a path of letters, digits and _ - . : below the pool, such as home or home/alice"
DATASET_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.:-]*(/[A-Za-z0-9][A-Za-z0-9_.:-]*)*"
_LONGEST_NAME = 200
USER_PROPERTY_PATTERN = r"[a-z0-9_.:-]*:[a-z0-9_.:-]+"
_LONGEST_VALUE = 1024
_FEATURE = "feature@"

OWN_KEYS: Mapping[str, str] = {"mountpoint": "mount", "quota": "quota", "reservation": "reservation"}
"""Properties that have keys of their own."""
NOT_HERE = frozenset({"encryption", "keyformat", "keylocation", "pbkdf2iters", "volsize", "volblocksize"})
"""Properties that are not set here: keys of ZFS's own encryption would have to be asked for at every start, and volumes are not made."""
AT_CREATION = frozenset({"casesensitivity", "normalization", "utf8only"})
"""Properties that are what they were made as."""
NOT_MOUNTED = "none"

# vdev_label.c, vdev_impl.h: two labels and the boot block in front, two labels behind.
_LABEL = 256 * KIB
_FRONT, _BACK = 4 * MIB, 2 * _LABEL
# vdev.c: zfs_vdev_default_ms_shift and the like.
_METASLAB_SHIFT, _MOST_METASLAB_SHIFT, _LEAST_METASLAB_SHIFT = 29, 34, 24
_LEAST_METASLABS, _USUAL_METASLABS, _MOST_METASLABS = 16, 200, 1 << 17
_OLD_LEAST_METASLAB_SHIFT = 17
# What room is counted in: blocks of 128 KiB.
_BLOCK = 128 * KIB
_UNIT = 512
# spa_misc.c: spa_slop_shift, spa_min_slop, spa_max_slop.
_SLOP_SHIFT, _LEAST_SLOP, _MOST_SLOP = 5, 128 * MIB, 128 * 1024 * MIB


class Shape(t.NamedTuple):
    """How a pool lies on its devices: the number of vdevs, and of devices in each; all devices have one size."""

    kind: Vdev
    vdevs: int
    width: int

    @property
    def legs(self) -> int:
        """On how many devices it lies."""
        return self.vdevs * self.width

    @property
    def data_legs(self) -> int:
        """Return how many devices' size there would be for data if nothing but copies and parity were kept."""
        return self.vdevs if self.kind is Vdev.MIRROR else self.vdevs * (self.width - PARITY.get(self.kind, 0))


def shape_of(kind: Vdev, legs: int, vdevs: t.Optional[int] = None) -> Shape:
    """Return how a pool lies on at most `legs` devices, all vdevs alike; by default mirrors have two, and there is one raidz."""
    least = LEAST_WIDTH[kind]
    if kind is Vdev.STRIPE:
        return Shape(kind, legs, 1)
    count = vdevs or (legs // least if kind is Vdev.MIRROR else 1)
    return Shape(kind, max(1, count), legs // max(1, count))


def room(shape: Shape, leg: int, ashift: int = ASHIFT) -> int:
    """Return how many MiB of data a pool has on devices of `leg` MiB."""
    size = leg * MIB // _LABEL * _LABEL - _FRONT - _BACK
    if size < (LEAST_LEG * MIB - _FRONT - _BACK):
        return 0
    parity = PARITY.get(shape.kind, 0)
    allocatable = _in_metaslabs(size * shape.width if parity else size)
    data = shape.vdevs * (allocatable // _UNIT * _ratio(shape, parity, ashift))
    slop = min(max(data >> _SLOP_SHIFT, min(data >> 1, _LEAST_SLOP)), _MOST_SLOP)
    return max(0, data - slop) // MIB


def leg_for(shape: Shape, size: int, ashift: int = ASHIFT) -> int:
    """Return the least size of devices, in MiB, on which a pool has room for `size` MiB of data."""
    low, high = LEAST_LEG, 2 * LEAST_LEG
    while room(shape, high, ashift) < size:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if room(shape, middle, ashift) >= size else (middle + 1, high)
    return low


def largest_leg(shape: Shape, size: int, ashift: int = ASHIFT) -> int:
    """Return the largest size of devices, in MiB, on which a pool has no more room than `size` MiB; that for `size` if there is none."""
    least, above = leg_for(shape, size, ashift), leg_for(shape, size + 1, ashift)
    return max(least, above - 1)


def _in_metaslabs(size: int) -> int:
    """Return what of a vdev is divided into metaslabs, be it by OpenZFS or, where that is less, by zfs-fuse."""
    count = size >> _METASLAB_SHIFT
    shift = _METASLAB_SHIFT
    if count < _LEAST_METASLABS:
        shift = (size // _LEAST_METASLABS).bit_length()
    elif count > _USUAL_METASLABS:
        shift = (size // _USUAL_METASLABS).bit_length()
    shift = max(shift, _LEAST_METASLAB_SHIFT)
    if shift > _MOST_METASLAB_SHIFT:
        shift = _MOST_METASLAB_SHIFT if size >> _MOST_METASLAB_SHIFT <= _MOST_METASLABS else (size // _MOST_METASLABS).bit_length()
    old = max((size // _USUAL_METASLABS).bit_length(), _OLD_LEAST_METASLAB_SHIFT)
    return min(size >> shift << shift, size >> old << old)


def _ratio(shape: Shape, parity: int, ashift: int) -> int:
    """Return how many bytes of data are counted for 512 bytes of a vdev: see vdev_raidz_asize and vdev_set_deflate_ratio."""
    if not parity:
        return _UNIT
    sectors = _BLOCK >> ashift
    sectors += parity * -(-sectors // (shape.width - parity))
    sectors = -(-sectors // (parity + 1)) * (parity + 1)
    return _BLOCK // ((sectors << ashift) // _UNIT)


def is_pool_name(text: str) -> bool:
    """Return whether a pool may be called so."""
    return len(text) <= _LONGEST_NAME and re.fullmatch(POOL_PATTERN, text) is not None


def is_dataset_name(text: str) -> bool:
    """Return whether a dataset may be called so below its pool."""
    return len(text) <= _LONGEST_NAME and re.fullmatch(DATASET_PATTERN, text) is not None


def why_no_property(name: str, value: str) -> t.Optional[str]:
    """Return what is wrong with a property of a dataset or of a whole pool, and what would be right; None for nothing."""
    if name in OWN_KEYS:
        return f"{name} has a key of its own; write it as {OWN_KEYS[name]}, outside properties"
    if name in NOT_HERE:
        return f"{name} is not set here: neither volumes nor ZFS's own encryption are made"
    if name in OF_POOLS or name.startswith(_FEATURE):
        return f"{name} is a property of pools, which are made with ZFS's defaults; zpool set changes it afterwards"
    if name in PROPERTIES:
        says = PROPERTIES[name].why_not(value)
        return None if says is None else f"{name} {says}"
    if re.fullmatch(USER_PROPERTY_PATTERN, name) is None or len(name) > _LONGEST_NAME:
        return f"{shown(name)} is no property of datasets, {not_among(name, PROPERTIES)}; your own have a colon"
    if not value or len(value) > _LONGEST_VALUE or not value.isprintable():
        return f"the value of {name} has to be text that can be printed, of at most {_LONGEST_VALUE} characters"
    return None


def outer_first(names: Iterable[str]) -> list[str]:
    """Return datasets in an order in which they can be made."""
    return sorted(names, key=lambda name: (name.count("/"), name))


_SIZE = re.compile(r"([0-9]+)([KMGTPE])(?:I?B)?", re.IGNORECASE)


def plain_value(value: str) -> str:
    """Return a property's value such that two ways of writing one compare as equal: sizes in bytes, nothing as 0."""
    found = _SIZE.fullmatch(value)
    if found is not None:
        return str(int(found.group(1)) * KIB ** ("KMGTPE".index(found.group(2).upper()) + 1))
    return "0" if value == "none" else value


# ---- its tools, with options that those of zfs-fuse have as well

LIST_POOLS = ("zpool", "list", "-H", "-o", "name,guid,health")


STATUS_COMMANDS = (("zpool", "status", "-P"), ("zpool", "status"))
"""The commands that list a pool's devices; its name follows: OpenZFS prints whole paths with -P, which zfs-fuse does not know."""
_ROLES = {"logs": Part.LOG, "log": Part.LOG, "cache": Part.CACHE, "spares": Part.SPARE}


class Vdevs(t.NamedTuple):
    """A vdev of a pool at the top: `part` None holds data; `name` is what it is called by ZFS's tools, `devices` are paths."""

    part: t.Optional[Part]
    name: str
    devices: tuple[str, ...]


def read_status(text: str, pool: str) -> tuple[Vdevs, ...]:
    """Return the vdevs of a pool from the output of `zpool status`, where indents show depth.

    Vdevs of other sections (special, dedup) hold data; their names begin with that of the section and a blank.
    """
    found: list[Vdevs] = []
    part: t.Optional[Part] = None
    lines = [line for line in text.partition("config:")[2].partition("errors:")[0].splitlines() if line.startswith("\t")]
    rows = [(len(line) - len(line.lstrip()), line.split()[0]) for line in lines if line.strip()]
    margin, section = rows[0][0] if rows else 0, ""
    for at, (indent, name) in enumerate(rows[1:], start=1):
        inside = at + 1 < len(rows) and rows[at + 1][0] > indent
        if indent == margin:
            part, section = _ROLES.get(name) if name != pool else None, "" if name == pool or name in _ROLES else f"{name} "
        elif indent == margin + 2:
            found.append(Vdevs(part, section + (name if inside else _path(name)), () if inside else (_path(name),)))
        elif not inside and found:
            found[-1] = found[-1]._replace(devices=(*found[-1].devices, _path(name)))
    return tuple(found)


def _path(name: str) -> str:
    return name if name.startswith("/") else f"/dev/{name}"


def list_datasets(pool: str) -> tuple[str, ...]:
    """Return the command that says which datasets there are in an imported pool."""
    return ("zfs", "list", "-r", "-H", "-t", "filesystem,volume", "-o", "name,mounted,mountpoint", pool)


def get_own_properties(pool: str) -> tuple[str, ...]:
    """Return the command that says what was set on the datasets of a pool themselves, sizes in bytes."""
    return ("zfs", "get", "-r", "-H", "-p", "-s", "local", "-o", "name,property,value", "all", pool)


def get_properties(names: Sequence[str]) -> tuple[str, ...]:
    """Return the command that says all properties of datasets, sizes in bytes."""
    return ("zfs", "get", "-H", "-p", "-o", "name,property,value", "all", *names)


def read_rows(text: str, columns: int) -> list[tuple[str, ...]]:
    """Return the rows of what a command with -H says; those of another number of columns are none of its."""
    rows = [tuple(line.split("\t")) for line in text.splitlines()]
    return [row for row in rows if len(row) == columns]


def read_properties(text: str) -> dict[str, dict[str, str]]:
    """Return the properties of each dataset from what `get_properties` says."""
    found: dict[str, dict[str, str]] = {}
    for name, key, value in read_rows(text, 3):
        found.setdefault(name, {})[key] = value
    return found
