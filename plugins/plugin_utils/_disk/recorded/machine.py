# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is recorded of a machine -> hardware as disk_facts returns it: names of disks, sizes in MiB, and warnings about unknown facts."""

from __future__ import annotations

import json
import re
import typing as t
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ....module_utils._data.containers import read_all
from ....module_utils._data.errors import InputError, Mistake, Mistakes
from ....module_utils._data.kinds import Whole, Word, is_whole
from ....module_utils._data.words import listed
from ....module_utils._storage.drives import drives_of
from ....module_utils._storage.identity import (
    BY_ID,
    BY_PATH,
    best_id,
    is_left_out,
    is_made_of_wwn,
    is_own_serial,
    is_own_wwn,
    media,
    natural_key,
)
from ....module_utils._storage.units import MIB, known_block
from ..model import Firmware

Facts = dict[str, t.Any]

_DURABLE = (BY_ID, BY_PATH, "/dev/mapper/")


@dataclass(frozen=True)
class RecordedDisk:
    """A disk as a source describes it; `size` in bytes. Facts that it lacks are None. `more` goes into the facts as it is."""

    dev: str
    size: int
    wwn: str | None = None
    links: tuple[str, ...] = ()
    serial: str | None = None
    model: str | None = None
    vendor: str | None = None
    transport: str | None = None
    rotational: bool | None = None
    logical_block: int | None = None
    physical_block: int | None = None
    removable: bool | None = None
    drives: tuple[str, ...] = ()
    """What it fails with, where the source has that: the drives behind a volume, the members of an array."""
    stacked: bool = False
    """Whether it is a disk though it is built on others: a multipath map, or an array of a controller's kind."""
    more: Facts = field(default_factory=dict)


@dataclass(frozen=True)
class Recorded:
    """A machine as a source describes it; `ram` in MiB. `unknown` lists what the source never says, in words that follow `does not say`."""

    source: str
    disks: tuple[RecordedDisk, ...]
    unknown: tuple[str, ...]
    ram: int | None = None
    firmware: str | None = None
    warnings: tuple[str, ...] = ()


IN_USE = "whether disks are in use"
CONTENTS = "what is on the disks"


def whole(value: t.Any) -> int | None:
    """Return a whole number, which many write as text; None for anything else."""
    if isinstance(value, str):
        return int(value) if re.fullmatch("[0-9]{1,20}", value) else None
    return value if is_whole(value) and value >= 0 else None


def hardware_from(
    read: Callable[[t.Any], Recorded], data: t.Any, ram: t.Any = None, firmware: t.Any = None
) -> tuple[Facts, tuple[str, ...]]:
    """Return hardware and warnings of data as `read`, a source's reader, understands them, text being read as JSON.

    `ram` (MiB) and `firmware` are the user's own. Raises InputError with what is wrong.
    """
    memory = None if ram is None else read_all(Whole(1, digits=True), ram, "ram")
    boots = None if firmware is None else str(read_all(Word(Firmware), firmware, "firmware"))
    return to_hardware(read(_parsed(data) if isinstance(data, str) else data), memory, boots)


def _parsed(text: str) -> t.Any:
    """Return the data that a text holds as JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        says = "is empty; must be the recorded data, as JSON" if not text.strip() else f"is not complete JSON: {error}"
        raise InputError([Mistake("", says)]) from None


def to_hardware(recorded: Recorded, ram: int | None = None, firmware: str | None = None) -> tuple[Facts, tuple[str, ...]]:
    """Return hardware and warnings; the caller's `ram` (MiB) and `firmware` replace recorded ones. Raises InputError without a disk."""
    named = [disk for disk in recorded.disks if disk.stacked or not is_left_out(disk.dev)]
    disks = [disk for disk in named if disk.size >= MIB]
    if not disks:
        raise InputError([Mistake("", f"{recorded.source} lists no disk")])
    found, paths = _once(sorted(disks, key=lambda disk: natural_key(disk.dev)))
    facts: Facts = {"disks": _with_drives(found)}
    memory, boots = ram or recorded.ram, firmware or recorded.firmware
    facts |= {"ram": memory} if memory else {}
    facts |= {"firmware": boots} if boots else {}
    unknown = [*recorded.unknown]
    unknown += [] if memory else ["how much memory there is"]
    unknown += [] if boots else ["how the machine boots"]
    warnings = [f"{recorded.source} does not say {listed(unknown)}"] if unknown else []
    for disk in facts["disks"]:
        if not disk["id"].startswith(_DURABLE):
            warnings.append(f"{recorded.source} gives {disk['id']} no durable name; a plan is only valid while the disk keeps this one")
    guessed = [disk.dev for disk in disks if disk.rotational is None and media(_transport(disk), None) == "hdd"]
    if guessed:
        verb = "rotates" if len(guessed) == 1 else "rotate"
        warnings.append(f"{recorded.source} does not say whether {listed(guessed)} {verb}; treated as hdd")
    warnings += [f"{recorded.source} gives no size for {disk.dev}, which is left out" for disk in named if disk.size < MIB]
    return facts, (*warnings, *paths, *recorded.warnings)


def _once(disks: Sequence[RecordedDisk]) -> tuple[list[Facts], list[str]]:
    """Return the facts of every disk once, and warnings about others of the same name.

    These are further paths to it where WWN, serial number and size are the same, as far as they are known. What differs in one of them
    is another disk with the same WWN, and named by its serial number.
    """
    known: dict[str, list[RecordedDisk]] = {}
    warnings = []
    for disk in disks:
        group = known.setdefault(_name(disk), [])
        other = next((other for other in group if _may_be_paths(other, disk)), None)
        if other is None:
            group.append(disk)
        else:
            warnings.append(f"{disk.dev} and {other.dev} are both {_name(disk)}, treated as two paths to one disk; the latter is planned")
    apart = {id(disk) for group in known.values() if len(group) > 1 for disk in group}
    found = []
    for disk in (disk for group in known.values() for disk in group):
        bogus = bool(disk.wwn) and not is_own_wwn(disk.wwn or "")
        facts = _facts(disk, by_wwn=not bogus and id(disk) not in apart)
        if id(disk) in apart or bogus:
            why = "is that of other disks, too" if id(disk) in apart else "cannot be that of one disk alone"
            warnings.append(f"{disk.wwn or _name(disk)}, by which {disk.dev} is known, {why}; the disk is named {facts['id']}")
        found.append(facts)
    return _with_ids_of_their_own(found, warnings), warnings


def _name(disk: RecordedDisk) -> str:
    """Return what paths to one disk have in common; the node of a disk that has no durable name."""
    durable = _facts(disk, by_wwn=not disk.wwn or is_own_wwn(disk.wwn))["id"]
    return durable if durable.startswith(_DURABLE) else disk.dev


def _may_be_paths(one: RecordedDisk, other: RecordedDisk) -> bool:
    return one.size == other.size and (one.serial or other.serial) == (other.serial or one.serial)


def _with_ids_of_their_own(disks: Sequence[Facts], warnings: list[str]) -> list[Facts]:
    """Return the disks, those whose names are still the same by their nodes, such as namespaces of one WWN.

    Raises InputError where the nodes are the same, too.
    """
    count = Counter(disk["id"] for disk in disks)
    nodes = Counter(disk["dev"] for disk in disks)
    mistakes = Mistakes()
    for node in [node for node, times in nodes.items() if times > 1]:
        mistakes.add("", f"two disks are both {node}, with other sizes or serial numbers")
    mistakes.check()
    same = [disk for disk in disks if count[disk["id"]] > 1]
    warnings += [f"{disk['dev']} has no name of its own but its node; a plan is only valid while the disk keeps it" for disk in same]
    return [disk if count[disk["id"]] == 1 else {**disk, "id": disk["dev"]} for disk in disks]


def _with_drives(disks: Sequence[Facts]) -> list[Facts]:
    """Return the disks with what each fails with: what the source says, else the drive by its serial number, else the disk itself."""
    drives = drives_of(disks)
    return [disk if "drive" in disk else {**disk, "drive": own[0] if own else disk["id"]} for disk, own in zip(disks, drives)]


def _facts(disk: RecordedDisk, *, by_wwn: bool = True) -> Facts:
    """Return the facts of a disk, named by its WWN unless this is not its own."""
    given = (*disk.links, *(_links_of_wwn(disk.wwn) if by_wwn else _links_of_serial(disk)))
    links = tuple(dict.fromkeys(given))
    naming = links if by_wwn else tuple(link for link in links if not is_made_of_wwn(link))
    optional = {
        "serial": disk.serial,
        "model": disk.model,
        "vendor": disk.vendor,
        "wwn": disk.wwn,
        "transport": _transport(disk),
        "rotational": disk.rotational,
        "logical_block": known_block(disk.logical_block),
        "physical_block": known_block(disk.physical_block),
        "removable": disk.removable,
        "drive": disk.drives[0] if len(disk.drives) == 1 else list(disk.drives) or None,
    }
    return {
        "id": best_id(naming, disk.dev),
        "dev": disk.dev,
        "links": sorted(links),
        "type": media(_transport(disk), disk.rotational),
        "size": disk.size // MIB,
        "size_bytes": disk.size,
        **{key: value for key, value in optional.items() if value is not None and value != ""},
        **disk.more,
    }


def _transport(disk: RecordedDisk) -> str | None:
    if disk.dev.startswith("/dev/nvme"):
        return "nvme"
    if disk.dev.startswith("/dev/vd"):
        return "virtio"
    return disk.transport.lower() if disk.transport else None


def _links_of_wwn(wwn: str | None) -> tuple[str, ...]:
    """Return the link that udev makes of a world wide name, which sources write in several ways."""
    name = (wwn or "").strip().lower()
    naa = re.fullmatch(r"(?:0x|naa\.)?([0-9a-f]{16}|[0-9a-f]{32})", name)
    if naa and naa[1].strip("0"):
        return (f"{BY_ID}wwn-0x{naa[1]}",)
    nvme = re.fullmatch(r"((?:eui|uuid|nvme)\.[0-9a-f-]+)", name)
    return (f"{BY_ID}nvme-{nvme[1]}",) if nvme else ()


def _links_of_serial(disk: RecordedDisk) -> tuple[str, ...]:
    """Return the link that udev makes of model and serial number of an NVMe or a SATA disk."""
    kind = {"nvme": "nvme", "sata": "ata", "ata": "ata"}.get(_transport(disk) or "")
    serial, model = (disk.serial or "").strip(), (disk.model or "").strip()
    if kind is None or not model or not is_own_serial(serial):
        return ()
    return (f"{BY_ID}{kind}-{re.sub(r'[^0-9A-Za-z#+.:=@_-]+', '_', f'{model}_{serial}')}",)
