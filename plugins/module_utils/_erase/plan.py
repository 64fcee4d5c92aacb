# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""(present state, disks to erase) -> what is closed, what is erased and in which way, or every reason why nothing is. Pure.

What a layout may not destroy is not erased either: the same refusals, the same gate, the same protection.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .._facts.present import Present
from .._facts.select import Disk
from .._layout.disks import FoundDisk, names_of
from .._layout.gate import Given, check_steps
from .._layout.losses import DiskLoss, find_losses
from .._layout.protected import Protection, protections_of, unmatched
from .._layout.teardown import Destroyed, teardown_refusals, teardown_steps
from .._layout.written import write_refusals
from .._schema.model import DesiredDisk, Layout
from .._steps.reach import Reach, whole_devices
from .._steps.step import Described, Judged, Step, Writes
from .ways import METHODS, Way, choose

_NAMED = "the disk is named in disks"
_REMEDY = "disks must name its disk as well"


@dataclass(frozen=True)
class EraseDisk(Described):
    """Erase all of a disk: `disk` is its node, `id` what it is called, `way` in words."""

    disk: str
    id: str
    way: str

    words: t.ClassVar[str] = "erase all of {disk} ({id}): {way}"

    def reaches(self, present: Present) -> Iterable[Reach]:
        """See Judged."""
        return whole_devices(present, [self.disk])

    def writes(self) -> Writes:
        """See Judged."""
        return Writes((self.disk,))


@dataclass(frozen=True)
class Target:
    """A disk that is to be erased: what it is, and the way."""

    found: FoundDisk
    way: Way

    @property
    def disk(self) -> Disk:
        """The disk."""
        return self.found.disk

    @property
    def step(self) -> EraseDisk:
        """The erasure as data for people and for the gate."""
        return EraseDisk(self.found.node, self.disk.id, self.way.name)


@dataclass(frozen=True)
class ErasePlan:
    """Steps, and disks to erase. With any of `refusals` both are empty."""

    closing: tuple[Step, ...] = ()
    targets: tuple[Target, ...] = ()
    refusals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    losses: tuple[DiskLoss, ...] = ()


def named_disks(
    names: Sequence[str], present: Present, protections: Sequence[Protection] = ()
) -> tuple[tuple[FoundDisk, ...], tuple[str, ...]]:
    """Return the disks that are named, and a refusal for each name that is none, or may be another one after a reboot."""
    found: dict[str, FoundDisk] = {}
    refusals: list[str] = []
    for number, name in enumerate(names):
        place = f"disks[{number}]"
        matching = [disk for disk in present.disks if name in names_of(disk)]
        if len(matching) != 1:
            there = ", ".join(disk.id for disk in present.disks) or "none"
            refusals.append(f"{place}: there is no disk {name} here; there are {there}")
            continue
        disk = matching[0]
        device = present.tree.devices[disk.device.name]
        if name == device.dev and disk.id != name:
            refusals.append(f"{place}: {name} can be another disk after a reboot; name {disk.id}")
        elif disk.device.name in found:
            refusals.append(f"{place}: {name} is already the disk of {found[disk.device.name].desired.place}")
        else:
            by = protections_of(disk, present.tree, protections)
            found[disk.device.name] = FoundDisk(DesiredDisk(place, disk.id, disk.id, None, ()), disk, device, not by, by, bool(by))
    return tuple(found.values()), tuple(refusals)


def plan_erasure(
    names: Sequence[str],
    method: str,
    present: Present,
    protections: Sequence[Protection],
    ways: Mapping[str, Sequence[Way]],
    namespaces: Mapping[str, int],
) -> ErasePlan:
    """Return the plan of erasing these disks.

    `ways` are, by the name of a device, the ways to erase it; `namespaces` how many other namespaces its drive has.
    """
    found, refusals = named_disks(names, present, protections)
    notes = (*present.notes, *unmatched(present.disks, present.tree, protections))
    destroyed = Destroyed(tuple(disk.device for disk in found))
    refusals = (*refusals, *teardown_refusals(present, destroyed, remedy=_REMEDY))
    targets: list[Target] = []
    for disk in found:
        way = _way_of(disk, method, ways[disk.device.name], found, present, namespaces)
        if isinstance(way, Way):
            targets.append(Target(disk, way))
        else:
            refusals = (*refusals, way)
    closing = teardown_steps(present, destroyed)
    steps: tuple[Judged, ...] = (*closing, *(target.step for target in targets))
    refusals = (*refusals, *write_refusals(Layout(), present, found, steps, protections))
    refusals = refusals or tuple(check_steps(present, found, Given((), destroyed.names(present.tree)), steps))
    if refusals:
        return ErasePlan(refusals=tuple(dict.fromkeys(refusals)), notes=notes)
    losses = find_losses(present, found, destroyed.roots, (), {})
    return ErasePlan(closing, tuple(targets), notes=notes, losses=tuple(replace(loss, why=_NAMED) for loss in losses))


def _way_of(
    disk: FoundDisk, method: str, ways: Sequence[Way], found: Sequence[FoundDisk], present: Present, namespaces: Mapping[str, int]
) -> t.Union[Way, str]:
    """Return the way to erase a disk, or why there is none."""
    staying = tuple(_staying_namespaces(disk, found, present, namespaces))
    way = choose([way for way in ways if not (way.whole_drive and staying)], method)
    if way is not None:
        return way
    offered = ", ".join(name for name in METHODS[1:] if any(way.method == name for way in ways))
    if any(way.method == method for way in ways):
        return f"{disk.words} cannot be erased by {method}, which erases its whole drive: {', '.join(staying)} would be lost; name them too"
    return (
        f"{disk.words} cannot be erased by {method}: the disk does not offer it, or the tool is missing that asks the disk (nvme-cli, "
        f"hdparm, sg3-utils). It can be erased by {offered}"
    )


def _staying_namespaces(disk: FoundDisk, found: Sequence[FoundDisk], present: Present, namespaces: Mapping[str, int]) -> Iterator[str]:
    """Give what else is on the drive of an NVMe namespace and is not to be erased."""
    serial = disk.disk.source.row.get("serial")
    same = [other for other in present.disks if serial and other.transport == "nvme" and other.source.row.get("serial") == serial]
    named = {other.device.name for other in found}
    others = [other for other in same if other.device.name != disk.device.name]
    yield from (other.id for other in others if other.device.name not in named)
    hidden = namespaces.get(disk.device.name, 0) - len(others)
    if hidden > 0:
        yield f"{hidden} namespaces that are not attached" if hidden > 1 else "a namespace that is not attached"
