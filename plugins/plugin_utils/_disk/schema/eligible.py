# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which disks of a machine a plan may use: those that are the machine's own, free, and not asked for by name in vain.

A disk that is in use, can be pulled out, is shared with other machines or is written in zones is left out with the reason, unless
its kind is asked for (`eligible`). What can never be used (read-only, a second way to a disk that is there already) stays out.
"""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from ....module_utils._data.containers import ListOf, read_all
from ....module_utils._data.errors import InputError, Mistake
from ....module_utils._data.kinds import Word
from ....module_utils._data.words import listed
from ....module_utils._storage import gpt
from ....module_utils._storage.identity import is_own_wwn
from ..existing import is_used, made_by_a_plan
from ..model import Disk, Hardware, LeftOutDisk
from .keep import kept_by, without_room_for_more

Facts = Mapping[str, t.Any]


class EligibleKind(StrEnum):
    """Kinds of disks that a plan uses only where they are asked for."""

    IN_USE = "in_use"
    """Mounted, swap, or part of an active stack that no plan made."""
    REMOVABLE = "removable"
    USB = "usb"
    SD_CARD = "sd_card"
    ZONED = "zoned"
    ISCSI = "iscsi"
    FIBRE_CHANNEL = "fc"


ELIGIBLE = ListOf(Word(EligibleKind), "kinds of disks", single=True)
_MULTIPATH = "mpath"
_MOST_NAMES = 3
_MOST_WORDS = 4


def parse_eligible(value: t.Any, place: str = "eligible") -> frozenset[EligibleKind]:
    """Return the kinds of disks that may be used although a plan leaves them alone by default. Raises InputError."""
    return frozenset(EligibleKind(word) for word in read_all(ELIGIBLE, [] if value is None else value, place))


def kept_names(schema: t.Any) -> frozenset[str]:
    """Return the names of what spaces of a dynamic schema keep: the disks that it is on are asked for."""
    entries = schema if isinstance(schema, (list, tuple)) else ()
    return kept_by(schema) | {str(entry.get("id")) for entry in entries if isinstance(entry, Mapping) and entry.get("keep_data")}


def qualify(
    hardware: Hardware,
    eligible: Collection[EligibleKind],
    kept: Collection[str] = (),
    place: str = "hardware",
    *,
    keep_existing: bool = False,
) -> Hardware:
    """Return the machine with the disks that a plan may use; the others stand in `left_out`. Expressions see only the former.

    `kept` are the names of partitions and volumes that are to keep their data; with `keep_existing` all of them are. Raises InputError
    when no disk is left.
    """
    left_out = tuple(_left_out(hardware.disks, frozenset(eligible), frozenset(kept)))
    if keep_existing:
        known = {one.disk.id for one in left_out}
        left_out += tuple(one for one in without_room_for_more(hardware) if one.disk.id not in known)
    if not left_out:
        return hardware
    gone = {one.disk.id for one in left_out}
    disks = tuple(disk for disk in hardware.disks if disk.id not in gone)
    if not disks:
        says = "; ".join(f"{one.disk.id} {one.reason}" for one in left_out[:_MOST_NAMES])
        more = f"; and {len(left_out) - _MOST_NAMES} more" if len(left_out) > _MOST_NAMES else ""
        raise InputError([Mistake(f"{place}.disks", f"no disk of this machine may be used: {says}{more}{_asking(left_out)}")])
    return replace(hardware, disks=disks, facts={**hardware.facts, "disks": [disk.facts for disk in disks]}, left_out=left_out)


def not_empty(disk: Disk) -> str:
    """Return what is on a disk that the facts know not to be empty, in words; nothing where a plan made it, or nothing is known."""
    facts = disk.facts
    if not is_used(disk):
        return ""
    found = [_content(entry) for entry in _entries(facts, "content")]
    partitions = len(_entries(facts, "partitions"))
    if not found and (partitions or facts.get("table")):
        found = [f"a partition table with {partitions} partitions"]
    return listed(list(dict.fromkeys(found)), _MOST_WORDS)


def _left_out(disks: Sequence[Disk], eligible: frozenset[EligibleKind], kept: frozenset[str]) -> Iterator[LeftOutDisk]:
    first: dict[tuple[str, int], list[Disk]] = {}
    for disk in sorted(disks, key=lambda disk: not disk.facts.get("multipath")):
        other = _other_path(disk, first)
        never = _never(disk, other)
        doubts = [] if never else [doubt for doubt in _doubts(disk) if doubt[0] not in eligible]
        if never:
            yield LeftOutDisk(disk, never)
        elif doubts and not _holds_one_of(disk, kept):
            yield LeftOutDisk(disk, " and ".join(says for _kind, says in doubts), tuple(kind.value for kind, _says in doubts))


def _other_path(disk: Disk, first: dict[tuple[str, int], list[Disk]]) -> Disk:
    """Return the first disk that has the identity of this, a WWN and a serial number, or this where none has; `first` is added to.

    A WWN alone does not make two disks one: some makers give all disks the same.
    """
    wwn = str(disk.facts.get("wwn") or "").lower()
    if not wwn:
        return disk
    known = first.setdefault((wwn, disk.size), [])
    for other in known:
        serials = [str(one.facts.get("serial") or "").strip() for one in (disk, other)]
        if serials[0] == serials[1] if all(serials) else is_own_wwn(wwn):
            return other
    known.append(disk)
    return disk


def same_wwn(hardware: Hardware) -> list[str]:
    """Return warnings about disks of other serial numbers that have one WWN: what names them by it may mean either."""
    found: dict[str, list[Disk]] = {}
    for disk in hardware.disks:
        wwn = str(disk.facts.get("wwn") or "").lower()
        if wwn and disk.facts.get("serial"):
            found.setdefault(wwn, []).append(disk)
    return [
        f"{listed([disk.id for disk in disks], _MOST_WORDS)} have the WWN {wwn} and other serial numbers, so they are planned as"
        f" {len(disks)} disks; name them by their serial numbers, for a link made of the WWN may lead to either"
        for wwn, disks in found.items()
        if len({str(disk.facts["serial"]).strip() for disk in disks}) == len(disks) > 1
    ]


def _never(disk: Disk, other: Disk) -> str:
    if other is not disk:
        return f"is a second path to {other.id}, or a disk with the same identity (both have the wwn {disk.facts['wwn']})"
    if _is_dasd(disk):
        return "is a DASD of IBM Z, whose tables and boot loader (zipl) are not supported"
    if any(str(part.get("type")).lower() in gpt.TYPES_OF_PREP for part in _entries(disk.facts, "partitions")):
        return "has a PReP partition, and machines that start by PReP (POWER) are not supported; erase it if it comes from one"
    if disk.facts.get("read_only"):
        return "is read-only"
    multipath = [entry for entry in _entries(disk.facts, "holders") if entry.get("type") == _MULTIPATH]
    if multipath and not disk.facts.get("multipath"):
        return f"is a path of the multipath device {multipath[0].get('dev') or multipath[0].get('name')}"
    return ""


def _is_dasd(disk: Disk) -> bool:
    return disk.facts.get("transport") == "dasd" or disk.facts.get("table") == "dasd" or disk.dev.startswith("/dev/dasd")


def _doubts(disk: Disk) -> Iterator[tuple[EligibleKind, str]]:
    facts, transport = disk.facts, disk.facts.get("transport")
    if facts.get("in_use") and not made_by_a_plan(disk):
        yield EligibleKind.IN_USE, f"is in use{_use(facts)}"
    if transport == "mmc" and facts.get("removable"):
        yield EligibleKind.SD_CARD, "is an SD card"
    elif transport == "usb":
        yield EligibleKind.USB, "is on USB"
    elif facts.get("removable"):
        yield EligibleKind.REMOVABLE, "is removable"
    if facts.get("zoned"):
        yield EligibleKind.ZONED, "is written in zones"
    if transport == "iscsi":
        yield EligibleKind.ISCSI, "is behind iSCSI"
    if transport == "fc":
        yield EligibleKind.FIBRE_CHANNEL, "is behind Fibre Channel"


def _use(facts: Facts) -> str:
    """Return where what is on a disk is mounted, or what is active on it, as an addition in brackets."""
    parts = [facts, *_entries(facts, "partitions"), *_entries(facts, "holders")]
    mounts = [str(mount) for part in parts for mount in _listed(part, "mountpoints") if mount]
    if mounts:
        return f" (mounted at {listed(list(dict.fromkeys(mounts)), _MOST_WORDS)})"
    active = [str(entry.get("name") or entry.get("dev")) for entry in _entries(facts, "holders") if entry.get("active")]
    return f" ({listed(list(dict.fromkeys(active)), _MOST_WORDS)} is active)" if active else ""


def _holds_one_of(disk: Disk, kept: frozenset[str]) -> bool:
    return bool(kept) and any(kept & {space.name, space.label, space.volume_group or "", *space.uuids} for space in disk.existing)


def _content(entry: Facts) -> str:
    label = f" {entry['label']!r}" if entry.get("label") else ""
    return f"{entry.get('type') or 'something unknown'}{label}"


def _asking(left_out: Sequence[LeftOutDisk]) -> str:
    kinds = sorted({kind for one in left_out for kind in one.kinds})
    return f". To plan with such disks, name their kind, as in eligible: [{', '.join(kinds)}]" if kinds else ""


def _entries(facts: Facts, key: str) -> list[Facts]:
    return [entry for entry in _listed(facts, key) if isinstance(entry, Mapping)]


def _listed(facts: Facts, key: str) -> t.Sequence[t.Any]:
    found = facts.get(key)
    return found if isinstance(found, (list, tuple)) else ()
