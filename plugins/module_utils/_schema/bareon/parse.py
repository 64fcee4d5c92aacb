# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bareon's hand-written schema, entry by entry: plain data -> checked entries, and everything that is wrong with it.

Bareon's user guide calls the format `partitions`. Every entry is checked against the keys of its own type, so that a
message names the key that is wrong, and no mistake hides another.
"""

from __future__ import annotations

import difflib
import math
import re
import typing as t
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from ..._storage.filesystems import DEFAULT, FILESYSTEMS, NOT_MOUNTED, SPELLINGS, SWAP
from ..._storage.gpt import LINUX, LONGEST_NAME
from ..._storage.names import LONGEST_ARRAY, guid_of, why_no_array, why_no_label, why_no_lvm_name, why_no_mount
from ..._storage.options.mounts import mistakes_in
from ..._storage.raid import RaidLevel, parse_level
from ..._storage.units import MIB

SECTOR = 512

_PREFIXES = "KMGTPEZY"
_UNITS = {
    "b": 1,
    "s": SECTOR,
    **{f"{prefix.lower()}b": 1000**power for power, prefix in enumerate(_PREFIXES, start=1)},
    **{f"{prefix.lower()}ib": 1024**power for power, prefix in enumerate(_PREFIXES, start=1)},
}
_SIZE = re.compile(r"\s*(?P<number>[0-9]{1,20}(?:\.[0-9]{1,20})?)\s*(?P<unit>[A-Za-z]*|%)\s*")
_NAME = rf"[A-Za-z0-9+_.][A-Za-z0-9+_.-]{{0,{LONGEST_NAME - 1}}}"
_IN_DEV = r"^/dev/([a-z]+/)?"
_REMAINING = "remaining"


@dataclass(frozen=True)
class Size:
    """An `amount` in MiB or a `share` in percent; neither for what remains."""

    amount: t.Optional[Fraction] = None
    share: t.Optional[Fraction] = None

    @property
    def remaining(self) -> bool:
        """Whether it is all that the others leave."""
        return self.amount is None and self.share is None

    def within(self, room: int, step: int = 1) -> int:
        """Return the MiB, a multiple of `step`, where `room` MiB are shared: amounts rounded up, shares down, 0 for what remains."""
        if self.amount is not None:
            return math.ceil(self.amount / step) * step
        return math.floor((self.share or Fraction(0)) * room / 100 / step) * step


REMAINING = Size()


def parse_size(value: t.Any) -> Size:
    """Return a size; without a unit it is MiB, `s` are sectors of 512 bytes. Raises ValueError with a sentence when it is none."""
    if isinstance(value, str) and value.strip().lower() == _REMAINING:
        return REMAINING
    text = str(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else ""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{value!r} is not a size; write '50 GiB', '2 TB', '40%', 'remaining', or a number of MiB")
    number, unit = Fraction(match["number"]), match["unit"].lower()
    if number == 0:
        raise ValueError(f"{value!r} is not a usable size; leave the entry out")
    if unit == "%":
        if number > 100:
            raise ValueError(f"{value!r} is more than 100%")
        return Size(share=number)
    if unit and unit not in _UNITS:
        raise ValueError(f"{value!r} has the unknown unit {match['unit']!r}; known are %, s, B, KB to YB and KiB to YiB")
    return Size(amount=number * _UNITS[unit or "mib"] / MIB)


_FILE_KEYS = ("mount", "file_system", "disk_label", "fstab_options", "fstab_enabled", "keep_data", "images")
_KEYS = {
    "disk": ("type", "id", "size", "volumes", "name", "extra", "free_space"),
    "vg": ("type", "id", "volumes", "label", "min_size", "_allocate_size", "keep_data"),
    "pv": ("type", "size", "vg", "keep_data", "lvm_meta_size"),
    "partition": ("type", "size", "name", "partition_guid", *_FILE_KEYS),
    "raid": ("type", "size", "name", "level", *_FILE_KEYS),
    "boot": ("type", "size", "name", *_FILE_KEYS),
    "lvm_meta_pool": ("type", "size"),
    "lv": ("type", "size", "name", *_FILE_KEYS),
}
_NEEDED = {
    "disk": ("id", "size", "volumes"),
    "vg": ("id", "volumes"),
    "pv": ("size", "vg"),
    "partition": ("size",),
    "raid": ("size",),
    "boot": ("size",),
    "lv": ("size", "name"),
}
_ON_DISK = ("partition", "pv", "raid", "boot", "lvm_meta_pool")
_ID_TYPES = ("name", "path", "scsi")
_DEFAULT_OPTIONS = "defaults"
_DEFAULT_META = Fraction(64)
_LEAST_META = 10

Mistakes = list[str]
Plain = Mapping[str, t.Any]


@dataclass(frozen=True)
class Files:
    """What becomes of a device: `type` None for no file system at all, `mount` a path, `swap` or `none`."""

    type: t.Optional[str] = None
    mount: str = NOT_MOUNTED
    label: str = ""
    options: str = _DEFAULT_OPTIONS
    in_fstab: bool = True


@dataclass(frozen=True)
class Volume:
    """A piece of a disk (`kind` partition, pv, raid or boot) or of a volume group (lv)."""

    place: str
    kind: str
    size: Size
    name: t.Optional[str] = None
    files: Files = Files()
    keep_data: bool = False
    guid: t.Optional[str] = None
    group: t.Optional[str] = None
    level: RaidLevel = RaidLevel.RAID1
    metadata: int = 0


@dataclass(frozen=True)
class DiskEntry:
    """A disk, not yet found on the host: its name, the size that may be used, and its volumes."""

    place: str
    id_type: str
    id_value: str
    size: Size
    volumes: tuple[Volume, ...]


@dataclass(frozen=True)
class GroupEntry:
    """A volume group with its volumes."""

    place: str
    name: str
    volumes: tuple[Volume, ...]


Entry = t.Union[DiskEntry, GroupEntry]


def parse_entries(entries: t.Any, place: str, mistakes: Mistakes) -> tuple[Entry, ...]:
    """Return the entries that can be made out; what is wrong with the others is added to `mistakes`."""
    if not isinstance(entries, (list, tuple)):
        mistakes.append(f"{place}: is not a list of disks and volume groups")
        return ()
    found = [_parse_entry(entry, f"{place}[{number}]", mistakes) for number, entry in enumerate(entries)]
    if not any(isinstance(entry, Mapping) and entry.get("type") == "disk" for entry in entries):
        mistakes.append(f"{place}: names no disk; at least one entry has to have the type disk")
    return tuple(entry for entry in found if entry is not None)


def closest(word: t.Any, known: Iterable[str]) -> str:
    """Return ` (did you mean X?)` where a known word is close, else nothing."""
    near = difflib.get_close_matches(str(word), list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _parse_entry(entry: t.Any, place: str, mistakes: Mistakes) -> t.Optional[Entry]:
    kind = _checked_kind(entry, ("disk", "vg"), place, mistakes)
    if kind is None:
        return None
    if kind == "disk":
        id_type, id_value = _parse_id(entry.get("id"), f"{place}.id", mistakes)
        size = _parse_disk_size(entry.get("size"), f"{place}.size", mistakes)
        return DiskEntry(place, id_type, id_value, size, _parse_volumes(entry, _ON_DISK, place, mistakes))
    name = _parse_name(entry.get("id"), kind, f"{place}.id", mistakes) or ""
    return GroupEntry(place, name, _parse_volumes(entry, ("lv",), place, mistakes))


def _checked_kind(entry: t.Any, kinds: tuple[str, ...], place: str, mistakes: Mistakes) -> t.Optional[str]:
    """Return the type of an entry, its keys checked; None when it has none of those that may be here."""
    if not isinstance(entry, Mapping):
        mistakes.append(f"{place}: is {entry!r}; an entry is a dictionary with a type, one of {', '.join(kinds)}")
        return None
    kind = entry.get("type")
    if kind not in kinds:
        says = "has no type" if kind is None else f"has the unknown type {kind!r}{closest(kind, kinds)}"
        mistakes.append(f"{place}.type: {says}; here it is one of {', '.join(kinds)}")
        return None
    kind = str(kind)
    known = _KEYS[kind]
    mistakes.extend(
        f"{place}.{key}: is not a key of the type {kind}{closest(key, known)}; known are {', '.join(known)}"
        for key in entry
        if key not in known
    )
    mistakes.extend(f"{place}.{key}: is missing; the type {kind} needs it" for key in _NEEDED.get(kind, ()) if entry.get(key) is None)
    return kind


def _parse_id(value: t.Any, place: str, mistakes: Mistakes) -> tuple[str, str]:
    if isinstance(value, str) and value:
        return "path", value
    if not isinstance(value, Mapping):
        if value is not None:
            mistakes.append(f"{place}: is {value!r}; write the disk's path, or {{type: name, value: sda}}")
        return "path", ""
    kind, name = value.get("type"), value.get("value")
    if kind not in _ID_TYPES:
        mistakes.append(f"{place}.type: is {kind!r}{closest(kind, _ID_TYPES)}; known are {', '.join(_ID_TYPES)}")
    if not isinstance(name, str) or not name:
        mistakes.append(f"{place}.value: is {name!r}; write the {kind if kind in _ID_TYPES else 'name'} of the disk as text")
        return "path", ""
    return str(kind), name


def _parse_disk_size(value: t.Any, place: str, mistakes: Mistakes) -> Size:
    size = _parse_size(value, place, mistakes)
    if size.share is not None:
        mistakes.append(f"{place}: a disk's own size is an amount, or 'remaining' for the whole disk; shares are for its volumes")
        return REMAINING
    return size


def _parse_size(value: t.Any, place: str, mistakes: Mistakes) -> Size:
    if value is None:
        return REMAINING
    try:
        return parse_size(value)
    except ValueError as error:
        mistakes.append(f"{place}: {error}")
        return Size(amount=Fraction(0))


def _parse_volumes(entry: Plain, kinds: tuple[str, ...], place: str, mistakes: Mistakes) -> tuple[Volume, ...]:
    volumes = entry.get("volumes")
    if volumes is None:
        return ()
    if not isinstance(volumes, (list, tuple)):
        mistakes.append(f"{place}.volumes: is not a list")
        return ()
    found = [_parse_volume(volume, kinds, f"{place}.volumes[{number}]", mistakes) for number, volume in enumerate(volumes)]
    made = tuple(volume for volume in found if volume is not None)
    remaining = [volume for volume in made if volume.size.remaining]
    if len(remaining) > 1:
        mistakes.append(
            f"{place}.volumes: {', '.join(volume.place[len(place) + 1 :] for volume in remaining)} ask for the rest; only one can have it"
        )
    return made


def _parse_volume(entry: t.Any, kinds: tuple[str, ...], place: str, mistakes: Mistakes) -> t.Optional[Volume]:
    kind = _checked_kind(entry, kinds, place, mistakes)
    if kind is None or kind == "lvm_meta_pool":
        # Bareon accepts the pool and ignores it, too: each pv has its own room for metadata.
        return None
    size = _parse_size(entry.get("size"), f"{place}.size", mistakes)
    name = _parse_name(entry.get("name"), kind, f"{place}.name", mistakes)
    keep_data = _parse_flag(entry, "keep_data", False, place, mistakes)
    if kind == "pv":
        group = _parse_name(entry.get("vg"), "vg", f"{place}.vg", mistakes)
        return Volume(place, kind, size, group=group, keep_data=keep_data, metadata=_parse_metadata(entry, place, mistakes))
    return Volume(
        place,
        kind,
        size,
        name=name,
        files=_parse_files(entry, place, mistakes),
        keep_data=keep_data,
        guid=_parse_guid(entry.get("partition_guid"), f"{place}.partition_guid", mistakes),
        level=_parse_level(entry.get("level"), f"{place}.level", mistakes),
    )


def _parse_name(value: t.Any, kind: str, place: str, mistakes: Mistakes) -> t.Optional[str]:
    """Return a name without the path that it may be written with; `kind` says of what."""
    if value is None:
        return None
    name = re.sub(_IN_DEV, "", value) if isinstance(value, str) else ""
    fits = re.fullmatch(_NAME, name) and why_no_lvm_name(name) is None
    if not fits or (kind == "raid" and why_no_array(f"/dev/md/{name}") is not None):
        longest = LONGEST_ARRAY if kind == "raid" else LONGEST_NAME
        says = f"up to {longest} letters, digits and any of + _ . - make one, and it does not begin with a dash"
        mistakes.append(f"{place}: {value!r} is no name; {says}")
        return None
    return name


def _parse_flag(entry: Plain, key: str, default: bool, place: str, mistakes: Mistakes) -> bool:
    value = entry.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        mistakes.append(f"{place}.{key}: is {value!r}; write true or false")
        return default
    return value


def _parse_metadata(entry: Plain, place: str, mistakes: Mistakes) -> int:
    """Return the MiB of each of the two copies of LVM's metadata: half of what the entry gives to both, less 8 MiB."""
    size = Size(amount=_DEFAULT_META)
    if entry.get("lvm_meta_size") is not None:
        size = _parse_size(entry["lvm_meta_size"], f"{place}.lvm_meta_size", mistakes)
    if size.amount is None or size.amount < _LEAST_META:
        mistakes.append(f"{place}.lvm_meta_size: is {entry.get('lvm_meta_size')!r}; it is an amount of {_LEAST_META} MiB or more")
        return 0
    return int((size.amount - 8) / 2)


def _parse_guid(value: t.Any, place: str, mistakes: Mistakes) -> t.Optional[str]:
    if value is None:
        return None
    found = guid_of(value) if isinstance(value, str) else None
    if found is None:
        mistakes.append(f"{place}: {value!r} is not a partition type GUID, such as {LINUX}")
    return found


def _parse_level(value: t.Any, place: str, mistakes: Mistakes) -> RaidLevel:
    level = RaidLevel.RAID1 if value is None else parse_level(value)
    if level is None:
        mistakes.append(f"{place}: is {value!r}; known are {', '.join(RaidLevel)}")
    return level or RaidLevel.RAID1


def _parse_files(entry: Plain, place: str, mistakes: Mistakes) -> Files:
    mount = _parse_mount(entry.get("mount"), f"{place}.mount", mistakes)
    given = entry.get("file_system")
    if given is not None and not isinstance(given, str):
        mistakes.append(f"{place}.file_system: is {given!r}; write the kind of file system as text, such as ext4")
        given = None
    fs_type = SPELLINGS.get(given.lower(), given.lower()) if given else None
    if fs_type is not None and fs_type not in FILESYSTEMS:
        mistakes.append(f"{place}.file_system: is {given!r}{closest(fs_type, FILESYSTEMS)}; known are {', '.join(FILESYSTEMS)}")
        fs_type = None
    if fs_type == SWAP or mount == SWAP:
        if fs_type not in (SWAP, None) or mount not in (SWAP, NOT_MOUNTED):
            mistakes.append(
                f"{place}.mount: {mount!r} and the file system {fs_type!r} do not go together; either both are swap, or neither is"
            )
        fs_type, mount = SWAP, SWAP
    if fs_type is None and mount != NOT_MOUNTED:
        fs_type = DEFAULT
    return Files(
        type=fs_type,
        mount=mount,
        label=_parse_label(entry.get("disk_label"), fs_type, f"{place}.disk_label", mistakes),
        options=_parse_options(entry.get("fstab_options"), fs_type, f"{place}.fstab_options", mistakes),
        in_fstab=_parse_flag(entry, "fstab_enabled", True, place, mistakes),
    )


def _parse_mount(value: t.Any, place: str, mistakes: Mistakes) -> str:
    if value is None or (isinstance(value, str) and value.lower() == NOT_MOUNTED):
        return NOT_MOUNTED
    if value == SWAP:
        return SWAP
    if not isinstance(value, str) or any(char.isspace() for char in value) or why_no_mount(value) is not None:
        mistakes.append(f"{place}: is {value!r}; write an absolute path without blanks, 'swap' or 'none'")
        return NOT_MOUNTED
    return "/" + "/".join(part for part in value.split("/") if part)


def _parse_label(value: t.Any, fs_type: t.Optional[str], place: str, mistakes: Mistakes) -> str:
    if value is None or value == "":
        return ""
    if fs_type is None:
        mistakes.append(f"{place}: {value!r} is the label of a file system, but there is none; give a file_system or a mount")
    elif not isinstance(value, str):
        longest = FILESYSTEMS[fs_type].label_length
        mistakes.append(f"{place}: {value!r} is not a label for {fs_type}; it is text of {longest} bytes at most")
    else:
        says = why_no_label(fs_type, value, FILESYSTEMS[fs_type].label_length)
        mistakes.extend([f"{place}: {says}"] if says is not None else [])
    return str(value)


def _parse_options(value: t.Any, fs_type: t.Optional[str], place: str, mistakes: Mistakes) -> str:
    if value is None or value == "":
        return _DEFAULT_OPTIONS
    if not isinstance(value, str) or any(char.isspace() for char in value):
        mistakes.append(f"{place}: is {value!r}; write mount options as text without blanks, such as noatime,nodev")
        return _DEFAULT_OPTIONS
    mistakes.extend(f"{place}: {says}" for says in mistakes_in(fs_type or DEFAULT, value))
    return value
