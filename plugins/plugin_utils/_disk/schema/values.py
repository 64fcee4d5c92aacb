# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The keys of a space: what each may be, for which types it makes sense, and what sizes come to."""

from __future__ import annotations

import math
import re
import typing as t
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from ....module_utils._data.containers import ListOf, Row, Table, Values
from ....module_utils._data.errors import Mistakes, Place, suggest
from ....module_utils._data.kinds import LARGEST_SIZE, Anything, Json, Kind, Text, Truth, Whole, Word, is_number, is_whole, shown
from ....module_utils._schema.kinds import Properties
from ....module_utils._schema.unlock import Unlock
from ....module_utils._storage import gpt, zfs
from ....module_utils._storage.filesystems import FILESYSTEMS, SPELLINGS
from ....module_utils._storage.raid import OPTION_KEYS, WRITE_MOSTLY, RaidLevel
from ..model import SpaceType
from .arrays import ARRAY_ROWS
from .datasets import Datasets
from .keep import KEEP
from .lvm import CACHE_KEYS, GROUP_ROWS, KEYS, POOL_ROWS
from .mounts import Mount
from .sizes import Amount, SpaceSize
from .subvolumes import Subvolumes

ALL_DISKS = "all"
MOST_COPIES = 1000
MOST_PER_DISK = 100
_ID = re.compile(r"[A-Za-z0-9_.+][A-Za-z0-9_.+-]{0,62}")
_RESERVED_IDS = ("unallocated", ".", "..")
_LEAST_WEIGHT, _GREATEST_WEIGHT = 1e-6, 1e6
_EXPRESSION = {"type": "string", "pattern": "^yaql=", "description": "A YAQL expression over the machine's facts."}

_TYPES_OF_SPACES = {gpt.ESP: "esp", gpt.BIOS_BOOT: "bios_grub", gpt.RAID: "raid", gpt.LVM: "vg"}
_PREP = "machines that start by PReP (POWER) are not supported"
_UNSUPPORTED = dict.fromkeys(("prep", "prepboot", "prep_boot", "prep-boot", gpt.PREP), _PREP)
_EVERY = frozenset(SpaceType) - {SpaceType.DISK}
"""Types of spaces that have a size and contents; a whole disk is left as it is."""
_MOUNTED = _EVERY - {SpaceType.VOLUME_GROUP, SpaceType.THIN_POOL, SpaceType.BIOS_GRUB}
_CARRYING_FILES = _MOUNTED - {SpaceType.ZPOOL}
_THIN = {SpaceType.THIN_POOL, SpaceType.THIN_VOLUME}
KEYS_OF_SOME: Mapping[str, frozenset[SpaceType]] = {
    "mount": _MOUNTED,
    **dict.fromkeys(("mount_options", "fs_type", "fs_options", "fs_label"), _CARRYING_FILES),
    "size": _EVERY,
    **dict.fromkeys(("min_size", "max_size", "weight", "best_with_disks"), _EVERY - {SpaceType.THIN_VOLUME}),
    **dict.fromkeys(("disks", "avoid_disks"), frozenset(SpaceType) - {SpaceType.THIN_VOLUME}),
    "none_order": _EVERY - _THIN,
    "keep_data": _EVERY - _THIN - {SpaceType.ZPOOL},
    "keep": _EVERY - _THIN - {SpaceType.ZPOOL, SpaceType.LOGICAL_VOLUME},
    "boot": _EVERY - {SpaceType.ZPOOL},
    "contains": frozenset({SpaceType.VOLUME_GROUP, SpaceType.THIN_POOL}),
    **KEYS,
    "level": frozenset({SpaceType.RAID, SpaceType.BTRFS}),
    **dict.fromkeys(("legs", "alike"), frozenset({SpaceType.RAID, SpaceType.BTRFS, SpaceType.ZPOOL})),
    **dict.fromkeys(("vdev", "vdevs", "ashift", "datasets", "properties"), frozenset({SpaceType.ZPOOL})),
    "spares": frozenset({SpaceType.RAID, SpaceType.ZPOOL}),
    **dict.fromkeys((*OPTION_KEYS, WRITE_MOSTLY), frozenset({SpaceType.RAID})),
    "log_of": frozenset({SpaceType.PARTITION}),
    **CACHE_KEYS,
    "subvolumes": _CARRYING_FILES - {SpaceType.ESP},
    "count": frozenset({SpaceType.PARTITION, SpaceType.RAID}),
    "mirror": frozenset({SpaceType.PARTITION, SpaceType.VOLUME_GROUP, SpaceType.BTRFS}),
    **dict.fromkeys(("per_disk", "partition_type", "partition_label"), frozenset({SpaceType.PARTITION, SpaceType.PARTITIONS})),
    **dict.fromkeys(("apart_from", "together_with"), _EVERY - {SpaceType.ESP, SpaceType.BIOS_GRUB}),
    **dict.fromkeys(("encrypt", "unlock"), _EVERY - {SpaceType.ESP, SpaceType.BIOS_GRUB, SpaceType.BTRFS, SpaceType.ZPOOL}),
}
"""The types that keys make sense for which do not for all."""


class Mirror(StrEnum):
    """How much a mirror is wanted."""

    WHEN_POSSIBLE = "when_possible"
    """On one disk, with a warning, where no two disks are alike or there is no room."""
    REQUIRED = "required"


@dataclass(frozen=True)
class Bounds:
    """What `size`, `min_size` and `max_size` come to, in whole MiB; None for no maximum.

    `contradictory` when the minimum is over the maximum.
    """

    least: int = 0
    most: int | None = None

    @property
    def contradictory(self) -> bool:
        """Return whether no size is within the bounds."""
        return self.most is not None and self.least > self.most


class _Id(Kind):
    """A name that LVM takes."""

    wanted, blank = "text", ""

    def read(self, value: t.Any) -> str:
        if not isinstance(value, str) or not value.strip():
            self.refuse(value)
        name = str(value).strip()
        if name in _RESERVED_IDS:
            raise ValueError(f"{name!r} is reserved; choose another")
        if not _ID.fullmatch(name):
            says = f"{shown(name)} cannot name a volume; use at most 63 letters, digits and _ . + - (not - in front)"
            raise ValueError(f"{says}; a partition of that name is kept by keep: {{partlabel: ...}}" if " " in name else says)
        return name

    def json_schema(self) -> Json:
        return {
            "type": "string",
            "pattern": rf"^\s*(?!({'|'.join(map(re.escape, _RESERVED_IDS))})\s*$)[A-Za-z0-9_.+][A-Za-z0-9_.+-]{{0,62}}\s*$",
        }


class _Weight(Kind):
    """How much a space grows in proportion to others."""

    wanted, blank = "a number, 0 or more", 1.0

    def read(self, value: t.Any) -> float:
        if not is_number(value):
            self.refuse(value)
        if value < 0:
            raise ValueError(f"is {shown(value)}; must be 0 or more: 0 is a space that never grows")
        if value and not _LEAST_WEIGHT <= value <= _GREATEST_WEIGHT:
            raise ValueError(f"{value} is out of range; it is 0, or from {_LEAST_WEIGHT} to {_GREATEST_WEIGHT:.0f}")
        return float(value)

    def json_schema(self) -> Json:
        return {"anyOf": [{"const": 0}, {"type": "number", "minimum": _LEAST_WEIGHT, "maximum": _GREATEST_WEIGHT}]}


class _FsType(Kind):
    """A file system that disk_layout makes."""

    wanted = f"one of {', '.join(FILESYSTEMS)}"

    def read(self, value: t.Any) -> str:
        word = Text(filled=True).read(value).lower()
        if word not in FILESYSTEMS:
            meant = SPELLINGS.get(word, word)
            raise ValueError(f"{shown(value)} cannot be made; there are {', '.join(FILESYSTEMS)}{suggest(meant, FILESYSTEMS)}")
        return word

    def json_schema(self) -> Json:
        return {"type": "string", "pattern": f"^\\s*({'|'.join(_folded(name) for name in FILESYSTEMS)})\\s*$"}


class _PartitionType(Kind):
    """The type of a partition, by its name in the Discoverable Partitions Specification or by its GUID."""

    wanted = "the name of a type, such as home or root-x86-64, or a GUID"

    def read(self, value: t.Any) -> str:
        word = Text(filled=True).read(value).lower()
        if word in gpt.DISCOVERABLE:
            return gpt.DISCOVERABLE[word]
        if word in ("root", "usr"):
            machines = ", ".join(name for name in gpt.DISCOVERABLE if name.startswith(f"{word}-"))
            raise ValueError(f"{word!r} differs on every kind of machine; there are {machines}")
        try:
            guid = word if word in _UNSUPPORTED else str(uuid.UUID(word))
        except ValueError:
            says = (
                f"there is no type {shown(value)}{suggest(word, gpt.DISCOVERABLE)}; there are {', '.join(gpt.DISCOVERABLE)}, and any GUID"
            )
            raise ValueError(says) from None
        if guid in _UNSUPPORTED:
            raise ValueError(f"is {shown(value)}; {_UNSUPPORTED[guid]}")
        if guid in _TYPES_OF_SPACES:
            raise ValueError(f"{shown(value)} is what a space of type: {_TYPES_OF_SPACES[guid]} has; change its type")
        return guid

    def json_schema(self) -> Json:
        names = "|".join(_folded(name) for name in gpt.DISCOVERABLE)
        return {"type": "string", "pattern": f"^\\s*({names}|[{{]?(-*[0-9A-Fa-f]){{32}}-*[}}]?)\\s*$"}


class _PartitionLabel(Kind):
    """A name that has room in the table."""

    wanted = f"text of at most {gpt.LONGEST_NAME} characters"

    def read(self, value: t.Any) -> str:
        text = Text(filled=True).read(value)
        says = gpt.why_no_name(text)
        if says is not None:
            raise ValueError(says)
        return text

    def json_schema(self) -> Json:
        return {"type": "string", "pattern": gpt.NAME_PATTERN}


class _Legs(Kind):
    """How many disks an array lies on; `all` is as many as there are."""

    wanted = "a whole number, 1 or more, or all"

    def read(self, value: t.Any) -> int | str:
        if isinstance(value, str) and value == ALL_DISKS:
            return ALL_DISKS
        return int(value) if is_whole(value) and 1 <= value <= LARGEST_SIZE else self.refuse(value)

    def json_schema(self) -> Json:
        return {"anyOf": [{"type": "integer", "minimum": 1, "maximum": LARGEST_SIZE}, {"const": ALL_DISKS}]}


class _PerDisk(Kind):
    """How many partitions there are on every disk."""

    wanted, blank = f"true, false, or a whole number from 1 to {MOST_PER_DISK}", 0

    def read(self, value: t.Any) -> int:
        if isinstance(value, bool):
            return int(value)
        return int(value) if is_whole(value) and 1 <= value <= MOST_PER_DISK else self.refuse(value)

    def json_schema(self) -> Json:
        return {"anyOf": [{"type": "boolean"}, {"type": "integer", "minimum": 1, "maximum": MOST_PER_DISK}]}


class _Priority(Kind):
    """The order in which optional spaces are left out, as systemd-repart has it."""

    wanted, blank = "a whole number from -2147483648 to 2147483647", 0

    def read(self, value: t.Any) -> int:
        return int(value) if is_whole(value) and abs(value + 0.5) < 2**31 else self.refuse(value)

    def json_schema(self) -> Json:
        return {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}


class _Ids(Kind):
    """The ids of other spaces; those that are not there are for the reader of the whole schema to name."""

    wanted, blank = "the id of another space, or a list of such ids", ()

    def read(self, value: t.Any) -> tuple[str, ...]:
        ids = value if isinstance(value, (list, tuple)) else [value]
        if not all(isinstance(name, str) and name.strip() for name in ids):
            self.refuse(value)
        return tuple(dict.fromkeys(name.strip() for name in ids))

    def json_schema(self) -> Json:
        name: Json = {"type": "string", "pattern": r"\S"}
        return {"anyOf": [name, {"type": "array", "items": name}]}


class _Contains(Kind):
    """The ids of what a vg contains, by themselves or as mappings; wrong ones are for the reader of the whole schema to name."""

    blank: t.Any = ()
    nested = True

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> tuple[t.Any, ...]:
        members = value if isinstance(value, (list, tuple)) else [value]
        return tuple(member.get("id") if isinstance(member, Mapping) else member for member in members)

    def json_schema(self) -> Json:
        member: Json = {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}]}
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": member}]}


def _folded(word: str) -> str:
    return "".join(f"[{letter.upper()}{letter}]" if letter.isalpha() else letter for letter in word)


def _given(*keys: str) -> Json:
    """Return that keys are there; null is as good as nothing."""
    return {"required": list(keys), "properties": {key: {"not": {"type": "null"}} for key in keys}}


def _schema_of_types() -> Json:
    """Return what JSON Schema has to say of keys that go together."""
    rules: list[Json] = [{"not": _given("size", bound)} for bound in ("min_size", "max_size")]
    for key, types in KEYS_OF_SOME.items():
        others = [str(space_type) for space_type in SpaceType if space_type not in types]
        rules.append({"if": _given(key), "then": {"not": {"properties": {"type": {"enum": others}}}}})
    rules.append({"if": {"properties": {"type": {"const": str(SpaceType.RAID)}}}, "then": {"required": ["level"]}})
    return {"allOf": rules}


_DISKS: Json = {
    "anyOf": [
        {"type": "string"},
        {"type": "object", "required": ["id"]},
        {"type": "array", "items": {"type": ["string", "object", "array"]}},
    ]
}
_TEXT, _FLAG = Text(filled=True), Truth()

SPACE = Table(
    "a space",
    [
        Row("id", _Id(), "Names the space; volumes, arrays and partitions are called so.", required=True),
        Row("type", Word(SpaceType, refused=_UNSUPPORTED), "What it is to become.", required=True),
        Row("size", SpaceSize(), "Its exact size; drop min_size and max_size then."),
        Row("min_size", SpaceSize(zero=True), "Its least size."),
        Row("max_size", SpaceSize(), "Its largest size."),
        Row("weight", _Weight(), "The share of what is left after all minimums; 0 is a space that never grows.", default=1.0),
        Row("best_with_disks", Anything(_DISKS), "The disks it should be on if there is room; a list of queries are tiers, best first."),
        Row("disks", Anything(_DISKS), "The only disks it may be on."),
        Row("avoid_disks", Anything(_DISKS), "Disks it may not be on."),
        Row(
            "optional",
            _FLAG,
            "Whether it may be left out, where an expression gives nothing, no disk is left for it, or there is no room for all.",
            default=False,
        ),
        Row(
            "priority",
            _Priority(),
            "Which optional space is left out first: that with the highest number.",
            default=0,
        ),
        Row("none_order", _FLAG, "Whether it takes no part in the order of objective: ordered.", default=False),
        Row("keep_data", _FLAG, "Whether the partitions or the volume of this name stay where they are, with their data.", default=False),
        Row("keep", KEEP, "What partitions it keeps where they are, with their data, by something else than its id."),
        Row("boot", _FLAG, "Whether the machine boots from it.", default=False),
        Row("mount", Mount(), "Where it is mounted."),
        Row("mount_options", _TEXT, "Options of the mount, with commas between them; a dash before one takes it away from fstab."),
        Row("fs_type", _FsType(), "The file system that is made on it."),
        Row("fs_options", _TEXT, "Options of the program that makes the file system."),
        Row("fs_label", _TEXT, "The label of the file system."),
        Row("subvolumes", Subvolumes(), "The subvolumes of a Btrfs, each mounted by itself.", default=()),
        Row("vdev", Word(zfs.Vdev), "How the disks of a zpool are put together.", default=zfs.Vdev.MIRROR),
        Row("vdevs", Whole(1), "How many vdevs of one size the disks of a zpool make; by default mirrors of two, or one raidz."),
        Row("ashift", Whole(zfs.LEAST_ASHIFT, zfs.LARGEST_ASHIFT), "The sectors of a zpool, as a power of two.", default=zfs.ASHIFT),
        Row("datasets", Datasets(), "The datasets of a zpool.", default=()),
        Row("properties", Properties(), "Properties of a zpool's own dataset, which those in it inherit.", default=()),
        Row("partition_type", _PartitionType(), "The type that its partitions have in the table; by default what lies there."),
        Row("partition_label", _PartitionLabel(), "The name that its partitions have in the table; by default its id."),
        Row("contains", _Contains(), "The ids of what is in a vg or a thin_pool, and of arrays that a vg lies on.", default=()),
        *POOL_ROWS,
        Row("log_of", Text(filled=True), "The id of the zpool that a partition is a log of."),
        *GROUP_ROWS,
        Row("level", Word(RaidLevel), "The RAID level of an array, or how a Btrfs lies on several disks."),
        Row("legs", _Legs(), "How many disks an array, a Btrfs or a zpool lies on; `all` is as many as there are."),
        Row("spares", Whole(0), "How many spare disks an array or a zpool has, for when one of its disks fails.", default=0),
        *ARRAY_ROWS,
        Row(WRITE_MOSTLY, Anything(_DISKS), "The disks that a raid1 is read from only where it must."),
        Row("alike", _FLAG, "Whether it lies on disks of one transport, kind, block size and, within 2 %, size.", default=False),
        Row("mirror", Word(Mirror), "Whether it lies on a mirror of two disks alike: when_possible, or required."),
        Row("apart_from", _Ids(), "The spaces with which it shares no disk.", default=()),
        Row("together_with", _Ids(), "The spaces that lie on every disk that it lies on.", default=()),
        Row("count", Whole(1, MOST_COPIES), "How many copies are made, of one size and on disks of their own."),
        Row("per_disk", _PerDisk(), "How many partitions there are on every disk, true for one; bounds hold for each of them.", default=0),
        Row("encrypt", _FLAG, "Whether it lies on LUKS.", default=False),
        Row("unlock", Unlock(), "What opens the LUKS container that it lies on, each by itself.", default=()),
    ],
    schema=_schema_of_types(),
    alternative=_EXPRESSION,
)
SPACES = ListOf(SPACE, "schema", least=1)


def bounds_of(values: Values, relative: Callable[[Amount], int], place: str, mistakes: Mistakes) -> Bounds:
    """Return the bounds of a space; `relative` gives the MiB of a percentage.

    A minimum is rounded up, a maximum down, an exact size to the nearest MiB; percentages are whole already.
    """
    exact, least, most = (values[key] for key in ("size", "min_size", "max_size"))

    def mib(amount: Amount) -> Fraction:
        return Fraction(relative(amount)) if amount.relative else amount.number

    if exact is not None:
        doubled = [key for key in ("min_size", "max_size") if values[key] is not None]
        if doubled:
            mistakes.add(f"{place}.size", f"fixes both bounds; drop it or {' and '.join(doubled)}")
        rounded = max(1, math.floor(mib(exact) + Fraction(1, 2)))
        return Bounds(rounded, rounded)
    lower = 0 if least is None else math.ceil(mib(least))
    if most is None:
        return Bounds(lower)
    upper = math.floor(mib(most))
    between_two_mib = least is not None and mib(least) <= mib(most) and lower > upper
    return Bounds(lower, lower if between_two_mib else upper)
