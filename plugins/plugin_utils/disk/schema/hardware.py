# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts of a machine -> Hardware. Takes what `disk_facts` returns and, as well, the seed's few keys (`ram`, `disks` of `id` and `size`)."""

from __future__ import annotations

import math
import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from ...common.errors import Mistakes, suggest
from ...common.units import MIB, parse_mib
from ..model import Disk, ExistingSpace, Firmware, Hardware

_DEFAULT_BLOCK = 512
_VOLUME = "lvm"


def parse_hardware(facts: t.Any, place: str = "hardware") -> Hardware:
    """Return the machine of `facts`, its disks in the order given. Sizes are MiB or text with a unit, rounded down.

    Raises InputError with every mistake and its place (`hardware.disks[2].size`).
    """
    mistakes = Mistakes()
    if not isinstance(facts, Mapping):
        mistakes.add(place, f"is {kind_of(facts)}, but must be a mapping with 'disks', such as bareon_hardware of the disk_facts module")
        mistakes.check()
    hardware = Hardware(
        disks=_disks(facts, place, mistakes),
        ram=_whole(facts.get("ram"), f"{place}.ram", mistakes),
        firmware=_firmware(facts.get("firmware"), f"{place}.firmware", mistakes),
        facts=facts,
    )
    mistakes.check()
    return hardware


def reordered(hardware: Hardware, order: Sequence[int]) -> Hardware:
    """Return the same machine with its disks in another order; `order` holds their present positions."""
    disks = tuple(hardware.disks[position] for position in order)
    return replace(hardware, disks=disks, facts={**hardware.facts, "disks": [disk.facts for disk in disks]})


def _disks(facts: Mapping[str, t.Any], place: str, mistakes: Mistakes) -> tuple[Disk, ...]:
    place = f"{place}.disks"
    if "disks" not in facts:
        mistakes.add(place, f"is missing{suggest('disks', map(str, facts))}; a machine without disks cannot be planned")
        return ()
    entries = facts["disks"]
    if not isinstance(entries, (list, tuple)):
        mistakes.add(place, f"is {kind_of(entries)}, but must be a list of disks, each with 'id' and 'size'")
        return ()
    if not entries:
        mistakes.add(place, "is empty; a machine without disks cannot be planned")
    disks: list[Disk] = []
    seen: dict[str, int] = {}
    for position, entry in enumerate(entries):
        disk = _disk(entry, f"{place}[{position}]", mistakes)
        if disk is None:
            continue
        if disk.id in seen:
            mistakes.add(f"{place}[{position}].id", f"{disk.id!r} is the id of {place}[{seen[disk.id]}] already; ids must differ")
        seen.setdefault(disk.id, position)
        disks.append(disk)
    return _with_volumes(disks)


def _disk(entry: t.Any, place: str, mistakes: Mistakes) -> Disk | None:
    if not isinstance(entry, Mapping):
        mistakes.add(place, f"is {kind_of(entry)}, but must be a mapping with 'id' and 'size'")
        return None
    name = entry.get("id")
    if not isinstance(name, str) or not name.strip():
        mistakes.add(f"{place}.id", "is missing; every disk needs an id" if name in (None, "") else f"{name!r} must be text")
        name = ""
    size = _size(entry, place, mistakes)
    if not name or size is None:
        return None
    return Disk(
        id=str(name),
        size=size,
        path=_text(entry, "path", place, mistakes),
        dev=_text(entry, "dev", place, mistakes),
        type=_text(entry, "type", place, mistakes),
        logical_block=_block(entry, "logical_block", place, mistakes),
        physical_block=_block(entry, "physical_block", place, mistakes),
        existing=_partitions(entry, f"{place}.partitions", mistakes),
        facts=entry,
    )


def _size(entry: Mapping[str, t.Any], place: str, mistakes: Mistakes) -> int | None:
    place = f"{place}.size"
    if entry.get("size") is None:
        mistakes.add(place, f"is missing{suggest('size', map(str, entry))}; every disk needs its size in MiB")
        return None
    size = _whole(entry["size"], place, mistakes)
    if size == 0:
        mistakes.add(place, "is 0 MiB; leave a disk without room (an empty card reader?) out of the facts")
    return size or None


def _whole(value: t.Any, place: str, mistakes: Mistakes) -> int | None:
    """Return a size in MiB rounded down; None when there is none or it is wrong."""
    if value is None:
        return None
    try:
        amount = in_mib(value)
    except ValueError as error:
        mistakes.add(place, str(error))
        return None
    if amount < 0:
        mistakes.add(place, f"{value} is negative")
        return None
    return math.floor(amount)


def in_mib(value: t.Any) -> float | Fraction:
    """Return a size that is a number of MiB or text with a unit; ValueError with a sentence for anything else."""
    if isinstance(value, str):
        return parse_mib(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a size; write MiB as a number, or text with a unit such as '50 GiB'")
    return value


def _block(entry: Mapping[str, t.Any], key: str, place: str, mistakes: Mistakes) -> int:
    value = entry.get(key)
    if value is None:
        return _DEFAULT_BLOCK
    if isinstance(value, bool) or not isinstance(value, int) or value < _DEFAULT_BLOCK or value & (value - 1):
        mistakes.add(f"{place}.{key}", f"{value!r} is not a block size; it is a power of two in bytes, 512 or more")
        return _DEFAULT_BLOCK
    return int(value)


def _text(entry: Mapping[str, t.Any], key: str, place: str, mistakes: Mistakes) -> str:
    value = entry.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        mistakes.add(f"{place}.{key}", f"{value!r} must be text")
        return ""
    return str(value)


def _firmware(value: t.Any, place: str, mistakes: Mistakes) -> Firmware | None:
    if value is None:
        return None
    known = [firmware.value for firmware in Firmware]
    if value not in known:
        mistakes.add(place, f"{value!r} is unknown; it is {' or '.join(known)}{suggest(str(value), known)}")
        return None
    return Firmware(value)


def _partitions(disk: Mapping[str, t.Any], place: str, mistakes: Mistakes) -> tuple[ExistingSpace, ...]:
    entries = disk.get("partitions")
    if entries is None:
        return ()
    if not isinstance(entries, (list, tuple)):
        mistakes.add(place, f"is {kind_of(entries)}, but must be a list")
        return ()
    arrays = {dev: str(holder.get("name")) for holder in _holders(disk) if _is_array(holder) for dev in holder.get("members") or ()}
    found = [_partition(entry, arrays, f"{place}[{position}]", mistakes) for position, entry in enumerate(entries)]
    return tuple(sorted((space for space in found if space is not None), key=lambda space: space.start))


def _partition(entry: t.Any, arrays: Mapping[str, str], place: str, mistakes: Mistakes) -> ExistingSpace | None:
    if not isinstance(entry, Mapping):
        mistakes.add(place, f"is {kind_of(entry)}, but must be a mapping with 'start' and 'size'")
        return None
    start, size = _extent(entry, "start", place, mistakes), _extent(entry, "size", place, mistakes)
    if start is None or size is None:
        return None
    first, last = math.floor(start), math.ceil(start + size)
    label = entry.get("label") or entry.get("volume_group") or arrays.get(str(entry.get("dev")))
    return ExistingSpace(name=str(entry.get("name") or ""), start=first, size=last - first, label=str(label or ""))


def _with_volumes(disks: Sequence[Disk]) -> tuple[Disk, ...]:
    """Return the disks with the volumes that lie on them; one that lies on several is listed with the first."""
    seen: set[tuple[str, str]] = set()
    result = []
    for disk in disks:
        volumes = []
        for holder in _holders(disk.facts):
            group, name, size = holder.get("volume_group"), holder.get("name"), holder.get("size")
            if holder.get("type") == _VOLUME and group and name and isinstance(size, int) and (str(group), str(name)) not in seen:
                seen.add((str(group), str(name)))
                volumes.append(ExistingSpace(name=str(name), start=0, size=size, volume_group=str(group)))
        result.append(replace(disk, existing=(*disk.existing, *volumes)) if volumes else disk)
    return tuple(result)


def _holders(disk: Mapping[str, t.Any]) -> list[Mapping[str, t.Any]]:
    holders = disk.get("holders")
    return [holder for holder in holders if isinstance(holder, Mapping)] if isinstance(holders, (list, tuple)) else []


def _is_array(holder: Mapping[str, t.Any]) -> bool:
    return str(holder.get("type")).startswith("raid")


def _extent(entry: Mapping[str, t.Any], key: str, place: str, mistakes: Mistakes) -> float | Fraction | None:
    """Return a start or size in MiB, exact where the facts give bytes."""
    in_bytes = entry.get(f"{key}_bytes")
    if isinstance(in_bytes, int) and not isinstance(in_bytes, bool) and in_bytes >= 0:
        return in_bytes / MIB
    if entry.get(key) is None:
        mistakes.add(f"{place}.{key}", "is missing")
        return None
    try:
        return in_mib(entry[key])
    except ValueError as error:
        mistakes.add(f"{place}.{key}", str(error))
        return None


def kind_of(value: t.Any) -> str:
    """Return what a value is, in a reader's words."""
    names = {bool: "a boolean", str: "text", list: "a list", tuple: "a list", type(None): "nothing"}
    for kind, name in names.items():
        if isinstance(value, kind):
            return name
    return "a number" if isinstance(value, (int, float)) else "a mapping" if isinstance(value, Mapping) else type(value).__name__
