# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts of a machine -> Hardware. Takes what `disk_facts` returns and, as well, the seed's few keys (`ram`, `disks` of `id` and `size`)."""

from __future__ import annotations

import math
import typing as t
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....module_utils._data.containers import ListOf, Row, Table, Values, refuse_doubles
from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import LARGEST_SIZE, Anything, Json, Kind, Size, Text, Whole, Word, is_whole, shown
from ....module_utils._data.units import MIB
from ....module_utils._storage.drives import SHARED_DRIVE, domains, drives_of
from ....module_utils._storage.identity import media
from ....module_utils._storage.units import LEAST_BLOCK, known_block
from ..model import Disk, ExistingSpace, Firmware, Hardware

_LARGEST_NUMBER = 2**32
_VOLUME = "lvm"


class _Block(Kind):
    """The size of a disk's blocks in bytes."""

    blank = LEAST_BLOCK

    def read(self, value: t.Any) -> int:
        if not is_whole(value) or known_block(value) is None:
            raise ValueError(f"{shown(value)} is not a block size; it is a power of two in bytes, 512 or more")
        return int(value)

    def json_schema(self) -> Json:
        return {"enum": [2**power for power in range(9, 21)]}


def _exactly(amount: t.Any) -> t.Any:
    return amount


_BYTES, _CAPACITY, _EXACT = Whole(0, 2**73), Size(math.floor), Size(_exactly)
_PARTITION = Table(
    "a partition",
    [
        Row("start", _EXACT),
        Row("size", _EXACT),
        Row("start_bytes", _BYTES),
        Row("size_bytes", _BYTES),
        Row("number", Whole(0, _LARGEST_NUMBER, digits=True)),
        *(Row(name, Anything()) for name in ("name", "label", "volume_group", "dev", "uuid", "fs_uuid")),
    ],
    others=True,
)
_DISK = Table(
    "a disk",
    [
        Row("id", Text(filled=True), "Names the disk in plans.", required=True),
        Row("size", _CAPACITY, "Its size in MiB.", required=True),
        Row("size_bytes", _BYTES, "Its size in bytes."),
        *(Row(name, Text(), default="") for name in ("path", "dev", "type", "transport")),
        Row("drive", ListOf(Text(filled=True), "drives", single=True), "What fails together with it: equal text means one drive."),
        Row("logical_block", _Block(), default=LEAST_BLOCK),
        Row("physical_block", _Block(), default=LEAST_BLOCK),
        Row("partitions", ListOf(_PARTITION, "partitions"), default=()),
        Row("holders", Anything()),
    ],
    others=True,
)
_PREP, _ZIPL = "machines that start by PReP (POWER) are not supported", "machines that start by zipl (IBM Z) are not supported"
_UNSUPPORTED = {
    **dict.fromkeys(("prep", "ofw", "openfirmware", "opal", "powernv"), _PREP),
    **dict.fromkeys(("zipl", "s390", "s390x"), _ZIPL),
}
_HARDWARE = Table(
    "a machine",
    [
        Row("disks", ListOf(Anything(), "disks"), required=True),
        Row("ram", _CAPACITY, "Its memory in MiB."),
        Row("firmware", Word(Firmware, refused=_UNSUPPORTED), "How it boots."),
    ],
    others=True,
)


def parse_hardware(facts: t.Any, place: str = "hardware") -> Hardware:
    """Return the machine of `facts`, its disks in the order given. Sizes are MiB or text with a unit, rounded down.

    Expressions see the facts with sizes as numbers. Raises InputError with every mistake and its place (`hardware.disks[2].size`).
    """
    mistakes = Mistakes()
    values = _HARDWARE.read_nested(facts, place, mistakes)
    if not values["disks"] and not mistakes.has(f"{place}.disks"):
        mistakes.add(f"{place}.disks", "is empty; a machine without disks cannot be planned")
    places = [f"{place}.disks[{position}]" for position in range(len(values["disks"]))]
    disks = [_disk(entry, where, mistakes) for entry, where in zip(values["disks"], places)]
    refuse_doubles(((where, disk.id) for where, disk in zip(places, disks)), "id", mistakes)
    mistakes.check()
    disks = _with_drives(_with_volumes(disks))
    return Hardware(disks=tuple(disks), ram=values["ram"], firmware=values["firmware"], facts=_with_numbers(facts, disks, values["ram"]))


def check_kinds(facts: t.Any, place: str = "hardware") -> None:
    """Raise InputError for values of other kinds than facts of a machine have; does not check whether it can be planned."""
    mistakes = Mistakes()
    if facts is None:
        mistakes.add(place, "is missing; must be a mapping with disks")
    for position, entry in enumerate(_HARDWARE.read_nested(facts, place, mistakes)["disks"]):
        _DISK.read_nested(entry, f"{place}.disks[{position}]", mistakes)
    mistakes.check()


def reordered(hardware: Hardware, order: Sequence[int]) -> Hardware:
    """Return the same machine with its disks in another order; `order` holds their present positions."""
    disks = tuple(hardware.disks[position] for position in order)
    return replace(hardware, disks=disks, facts={**hardware.facts, "disks": [disk.facts for disk in disks]})


def _disk(entry: t.Any, place: str, mistakes: Mistakes) -> Disk:
    values = _DISK.read_nested(entry, place, mistakes)
    if not values["size"] and not mistakes.has(f"{place}.size"):
        mistakes.add(f"{place}.size", "is 0 MiB; leave a disk without room (an empty card reader?) out of the facts")
    holders = [holder for holder in _listed(values["holders"]) if isinstance(holder, Mapping)] if values["holders"] else []
    arrays = {
        str(dev): str(holder.get("name"))
        for holder in holders
        if str(holder.get("type")).startswith("raid")
        for dev in _listed(holder.get("members"))
    }
    partitions = [_partition(one, arrays, f"{place}.partitions[{number}]", mistakes) for number, one in enumerate(values["partitions"])]
    return Disk(
        id=values["id"],
        size=values["size"],
        path=values["path"],
        dev=values["dev"],
        type=values["type"],
        logical_block=values["logical_block"],
        physical_block=values["physical_block"],
        existing=tuple(sorted(partitions, key=lambda space: space.start)),
        facts=_with_type(_with_text_as_numbers(entry, values), values["transport"]) if isinstance(entry, Mapping) else {},
    )


def _partition(values: Values, arrays: Mapping[str, str], place: str, mistakes: Mistakes) -> ExistingSpace:
    start, size = (_extent(values, key, place, mistakes) for key in ("start", "size"))
    first, last = math.floor(start), math.ceil(start + size)
    label = values["label"] or values["volume_group"] or arrays.get(str(values["dev"]))
    return ExistingSpace(
        name=str(values["name"] or ""),
        start=first,
        size=last - first,
        label=str(label or ""),
        number=values["number"],
        uuids=tuple(str(values[key]).lower() for key in ("uuid", "fs_uuid") if values[key]),
    )


def _extent(values: Values, key: str, place: str, mistakes: Mistakes) -> t.Any:
    """Return a start or size in MiB, exact where the facts give bytes."""
    if values[f"{key}_bytes"] is not None:
        return values[f"{key}_bytes"] / MIB
    if values[key] is None and not mistakes.has(f"{place}.{key}"):
        mistakes.add(f"{place}.{key}", f"is missing; must be {_EXACT.wanted}")
    return values[key] or 0


def _with_drives(disks: Sequence[Disk]) -> list[Disk]:
    """Return the disks with the drives that they are on, as far as others are on them, too; expressions see which share one."""
    if _are_all_apart(disks):
        return list(disks)
    drives = drives_of([disk.facts for disk in disks])
    first = domains(drives)
    shared = [drive for drive, count in Counter(first).items() if count > 1]
    if not shared:
        return list(disks)
    number = {drive: at for at, drive in enumerate(shared)}
    return [
        replace(disk, drives=own, facts={**disk.facts, SHARED_DRIVE: number[drive]}) if drive in number else disk
        for disk, own, drive in zip(disks, drives, first)
    ]


def _are_all_apart(disks: Sequence[Disk]) -> bool:
    """Return whether it is plain that every disk is a drive of its own, as on nearly all machines: a fleet pays for more on each."""
    given = [disk.facts.get("drive") for disk in disks]
    if all(isinstance(drive, str) and drive for drive in given):
        names = [str(drive).strip() for drive in given]
    elif any(given):
        return False
    else:
        names = [text for disk in disks if (text := str(disk.facts.get("serial") or "").strip())]
    return len(set(names)) == len(names)


def _with_volumes(disks: Sequence[Disk]) -> list[Disk]:
    """Return the disks with the volumes that lie on them; one that lies on several is listed with the first."""
    seen: set[tuple[str, str]] = set()
    result = []
    for disk in disks:
        volumes = []
        for holder in _listed(disk.facts.get("holders")):
            if not isinstance(holder, Mapping) or holder.get("type") != _VOLUME:
                continue
            group, name, size = holder.get("volume_group"), holder.get("name"), holder.get("size")
            if group and name and is_whole(size) and 0 <= size <= LARGEST_SIZE and (str(group), str(name)) not in seen:
                seen.add((str(group), str(name)))
                volumes.append(ExistingSpace(name=str(name), start=0, size=size, volume_group=str(group)))
        result.append(replace(disk, existing=(*disk.existing, *volumes)) if volumes else disk)
    return result


def _with_numbers(facts: Mapping[str, t.Any], disks: Sequence[Disk], ram: int | None) -> Mapping[str, t.Any]:
    """Return the facts, with sizes that were written as text in MiB."""
    changed = any(disk.facts is not entry for disk, entry in zip(disks, facts["disks"]))
    if not changed and not isinstance(facts.get("ram"), str):
        return facts
    return {**facts, "disks": [disk.facts for disk in disks]} | ({} if ram is None else {"ram": ram})


def _with_text_as_numbers(entry: Mapping[str, t.Any], values: Values) -> Mapping[str, t.Any]:
    partitions = _listed(entry.get("partitions"))
    if not isinstance(entry.get("size"), str) and not any(_has_text_size(one) for one in partitions):
        return entry
    plain = [{**one, **_numbers(read)} for one, read in zip(partitions, values["partitions"]) if isinstance(one, Mapping)]
    return {**entry, "size": values["size"]} | ({"partitions": plain} if plain else {})


def _with_type(facts: Mapping[str, t.Any], transport: str) -> Mapping[str, t.Any]:
    """Return the facts of a disk with its type: without a fact on rotation it is a hard disk to expressions."""
    if facts.get("type"):
        return facts
    return {**facts, "type": media(transport, facts.get("rotational")), "guessed_type": facts.get("rotational") is None}


def _has_text_size(partition: t.Any) -> bool:
    return isinstance(partition, Mapping) and any(isinstance(partition.get(key), str) for key in ("start", "size"))


def _numbers(values: Values) -> dict[str, float]:
    given = {key: values[key] for key in ("start", "size") if values[key] is not None}
    return {key: int(value) if value == int(value) else float(value) for key, value in given.items()}


def _listed(value: t.Any) -> Sequence[t.Any]:
    return value if isinstance(value, (list, tuple)) else ()
