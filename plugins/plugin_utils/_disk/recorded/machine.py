# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is recorded of a machine -> hardware as disk_facts returns it: names of disks, sizes in MiB, and what nobody has told."""

from __future__ import annotations

import json
import re
import typing as t
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ....module_utils._data.containers import read_all
from ....module_utils._data.errors import InputError, Mistake, Mistakes
from ....module_utils._data.kinds import Whole, Word, is_whole
from ....module_utils._data.words import listed
from ....module_utils._storage.identity import BY_ID, BY_PATH, best_id, media, natural_key
from ....module_utils._storage.units import MIB
from ..model import Firmware

Facts = dict[str, t.Any]

_NOT_DISKS = re.compile(r"^/dev/(loop|ram|zram|sr|scd|fd|dm-|md|drbd|nbd|rbd|zd|mmcblk[0-9]+(boot|rpmb))")
_UNITS = {"size_bytes": "bytes", "serial": "as serial numbers"}
_DURABLE = (BY_ID, BY_PATH, "/dev/mapper/")


@dataclass(frozen=True)
class RecordedDisk:
    """A disk as a source tells of it; `size` in bytes. What it does not tell is None. `more` goes into the facts as it is."""

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
    more: Facts = field(default_factory=dict)


@dataclass(frozen=True)
class Recorded:
    """A machine as a source tells of it; `ram` in MiB. `unknown` says what the source never tells, in words that follow `does not tell`."""

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
    """Return hardware and warnings; `ram` (MiB) and `firmware` are the caller's, who knows better. Raises InputError without a disk."""
    named = [disk for disk in recorded.disks if not _NOT_DISKS.match(disk.dev)]
    disks = [disk for disk in named if disk.size >= MIB]
    if not disks:
        raise InputError([Mistake("", f"{recorded.source} lists no disk")])
    found, paths = _once([_facts(disk) for disk in sorted(disks, key=lambda disk: natural_key(disk.dev))])
    facts: Facts = {"disks": found}
    memory, boots = ram or recorded.ram, firmware or recorded.firmware
    facts |= {"ram": memory} if memory else {}
    facts |= {"firmware": boots} if boots else {}
    unknown = [*recorded.unknown]
    unknown += [] if memory else ["how much memory there is"]
    unknown += [] if boots else ["how the machine boots"]
    warnings = [f"{recorded.source} does not tell {listed(unknown)}"] if unknown else []
    for disk in facts["disks"]:
        if not disk["id"].startswith(_DURABLE):
            warnings.append(f"{recorded.source} gives {disk['id']} no durable name; a plan is only valid while the disk keeps this one")
    guessed = [disk.dev for disk in disks if disk.rotational is None and media(_transport(disk), None) == "hdd"]
    if guessed:
        verb = "rotates" if len(guessed) == 1 else "rotate"
        warnings.append(f"{recorded.source} does not tell whether {listed(guessed)} {verb}; treated as hdd")
    warnings += [f"{recorded.source} gives no size for {disk.dev}, which is left out" for disk in named if disk.size < MIB]
    return facts, (*warnings, *paths, *recorded.warnings)


def _once(disks: Sequence[Facts]) -> tuple[list[Facts], list[str]]:
    """Return every disk once, and warnings about others of the same name: these are further paths to it.

    Raises InputError where they cannot be, as they have other sizes or serial numbers.
    """
    first: dict[str, Facts] = {}
    warnings = []
    mistakes = Mistakes()
    for disk in disks:
        known = first.setdefault(disk["id"] if disk["id"].startswith(_DURABLE) else disk["dev"], disk)
        differs = next((key for key in ("size_bytes", "serial") if known.get(key, disk.get(key)) != disk.get(key, known.get(key))), None)
        if differs is not None:
            words = f"{known[differs]} and {disk[differs]} {_UNITS[differs]}"
            mistakes.add("", f"two disks are both {disk['id']}, one {known['dev']}, one {disk['dev']}, with {words}")
        elif known is not disk:
            warnings.append(
                f"{disk['dev']} and {known['dev']} are both {disk['id']}, treated as two paths to one disk; the latter is planned"
            )
    mistakes.check()
    return list(first.values()), warnings


def _facts(disk: RecordedDisk) -> Facts:
    links = tuple(dict.fromkeys((*disk.links, *_links_of_wwn(disk.wwn))))
    optional = {
        "serial": disk.serial,
        "model": disk.model,
        "vendor": disk.vendor,
        "wwn": disk.wwn,
        "transport": _transport(disk),
        "rotational": disk.rotational,
        "logical_block": disk.logical_block,
        "physical_block": disk.physical_block,
        "removable": disk.removable,
    }
    return {
        "id": best_id(links, disk.dev),
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
