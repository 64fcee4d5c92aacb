# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What all moves off a disk share: the disks, what was found, and the partition that takes something. Pure."""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .._facts.present import Present
from .._facts.tree import PARTITION_TABLES, Device
from .._schema.model import DesiredContainer, DesiredPartition, Layout
from .._steps.luks import CloseMapping, FormatLuks, OpenLuks, RenameMapping
from .._steps.signatures import ClearSignatures
from .._steps.step import Step
from .._storage import derived
from .._storage.gpt import BIOS_BOOT, ESP
from .._storage.units import MIB, in_mib
from .capacity import container_head
from .partitions import PartitionMatch, Status
from .replacing import Pair

LUKS, MEMBER, PHYSICAL = "crypto_LUKS", "linux_raid_member", "LVM2_member"
ARRAYS = ("raid", "linear", "md")
MADE_ANEW = frozenset({ESP, BIOS_BOOT})
"""Types of partitions that a disk has for itself alone, to be started from."""
_MEANWHILE = "-new"
"""Behind the name of a container on a new disk as long as that of the old disk has its name."""


@dataclass(frozen=True)
class Ground:
    """The layout, the state, and the desired partitions with the present ones that they are, by device."""

    layout: Layout
    present: Present
    pairs: tuple[Pair, ...]
    matches: Mapping[str, PartitionMatch]

    def on_new(self, device: str) -> t.Optional[PartitionMatch]:
        """Return the partition on a new disk that a desired device lies on, alone; None for any other device."""
        below = self.layout.partitions_below(device)
        match = self.matches.get(below[0].device) if len(below) == 1 else None
        news = {pair.new.device.name for pair in self.pairs}
        return match if match is not None and match.disk.device.name in news else None

    def pair_of(self, device: str) -> t.Optional[Pair]:
        """Return the pair whose old disk a device is on, with all that it has."""
        below = self.present.disks_below(device)
        return next((pair for pair in self.pairs if below == (pair.old.device.name,)), None)


@dataclass
class Found:
    """What was found so far, in the order in which it is done."""

    tables: list[Step] = field(default_factory=list)
    openings: list[Step] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    last: list[Step] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    moved: dict[str, PartitionMatch] = field(default_factory=dict)
    """By the names of devices on old disks the partitions that take what is on them."""
    receiving: list[PartitionMatch] = field(default_factory=list)
    emptied: list[str] = field(default_factory=list)
    """The names of devices on old disks whose containers are empty."""
    vague: bool = False

    def move(self, device: str, match: PartitionMatch) -> None:
        """Note that a partition takes what is on a device of an old disk."""
        self.moved[device] = match
        self.receiving.append(match)


def no_way(pair: Pair, device: Device, says: str) -> str:
    return f"replace: {device.dev} of {pair.old.words} {says}, which cannot be moved"


def unplanned(found: Found, pair: Pair, device: Device, says: str) -> None:
    """Refuse what the plan has no place for; with a permission to erase the old disk it may stay there, and goes in the end."""
    if pair.erased:
        return
    found.refusals.append(
        f"replace: {device.dev} of {pair.old.words} {says}, for which the schema has no place on {pair.new.words}; give it one, move it or "
        f"clear it by hand (wipefs --all {device.dev}), or name {pair.old.desired.id} in wipe if it may be destroyed"
    )


def too_small(match: PartitionMatch, device: Device, wanted: int, has: int) -> str:
    return f"replace: {match.node} on {match.disk.words} would have {in_mib(has)}, but {device.dev} needs {in_mib(wanted)}; make it larger"


def strange_on(match: PartitionMatch, allowed: Callable[[str, t.Optional[str]], bool]) -> t.Optional[str]:
    """Return what is on a partition that takes something, and has not come there by that."""
    device = match.device
    if device is None:
        return None
    if device.mountpoints:
        return f"replace: {match.node} was to take something, but is mounted on {', '.join(device.mountpoints)}"
    for signature in device.signatures:
        if signature.type not in PARTITION_TABLES and not allowed(signature.type, signature.uuid):
            return f"replace: {match.node} was to take something, but has {signature.type} by now; look at it, and clear it by hand"
    return None


def counterpart(
    ground: Ground,
    found: Found,
    pair: Pair,
    device: Device,
    wanted: Callable[[DesiredPartition], bool],
    shared: Callable[[Device], bool] = lambda _device: False,
) -> t.Optional[PartitionMatch]:
    """Return the partition on the new disk for what is on one of the old disk: of its number, or its name, or the only one.

    `shared` says whether a present partition has some of the contents already, as after a run without `replace`.
    """
    taken = {match.desired.device for match in found.receiving}
    here = [match for match in ground.matches.values() if match.disk is pair.new and wanted(match.desired)]
    able = [
        match
        for match in here
        if match.desired.device not in taken
        and (match.receiving or match.status is Status.NEW or (match.device is not None and shared(match.device)))
    ]
    entry = device.partition
    same = [match for match in able if entry is not None and match.desired.number == entry.number]
    named = [match for match in able if entry is not None and entry.name and match.desired.label == entry.name]
    return next(iter([*same, *named, *(able if len(able) == 1 else [])]), None)


@dataclass(frozen=True)
class Place:
    """Where contents go: the node, what has to be done before, whether it has them already, and what has to be opened first."""

    node: str
    steps: tuple[Step, ...] = ()
    there: bool = False
    opening: t.Optional[Step] = None
    strange: t.Optional[str] = None
    renaming: tuple[Step, ...] = ()


def place_of(ground: Ground, match: PartitionMatch, has: Callable[[Device], bool], allowed: str) -> Place:
    """Return where the contents of a desired device go; `has` says whether a present device has them, `allowed` is their type."""
    layout, container = ground.layout, ground.layout.container_on(match.desired.device)
    below, head = match.device, container_head(ground.layout, match.desired.device)
    if container is None:
        if below is not None and has(below):
            return Place(match.node, there=True)
        strange = strange_on(match, lambda kind, _uuid: kind == allowed)
        return Place(match.node, (ClearSignatures((match.node,), MIB),), strange=strange)
    uuid = derived.container_uuid(layout.identity(match.desired.device))
    strange = strange_on(match, lambda kind, own: kind == LUKS and own == uuid)
    children = ground.present.tree.children(below.name) if below is not None else ()
    opened = next((child for child in children if child.kind == "crypt" and child.running), None)
    name = free_name(ground, container, _MEANWHILE)
    if opened is not None:
        called = str(opened.dev).rsplit("/", 1)[-1]
        renaming = (RenameMapping(called, container.name),) if called != container.name else ()
        if has(opened):
            return Place(str(opened.dev), there=True, renaming=renaming)
        return Place(str(opened.dev), (ClearSignatures((str(opened.dev),), MIB),), strange=strange, renaming=renaming)
    if (
        below is not None
        and below.filesystem is not None
        and below.filesystem.type == LUKS
        and strange is None
        and not _is_half(ground, below)
    ):
        return Place("", opening=OpenLuks(match.node, name, container.name))
    steps = (
        ClearSignatures((match.node,), head),
        FormatLuks(match.node, uuid, False, container.name),
        OpenLuks(match.node, name, container.name),
        ClearSignatures((f"/dev/mapper/{name}",), MIB),
    )
    renaming = (RenameMapping(name, container.name),) if name != container.name else ()
    return Place(f"/dev/mapper/{name}", steps, strange=strange, renaming=renaming)


def _is_half(ground: Ground, device: Device) -> bool:
    """Return whether a run was cut off while it wrote a header: it has no key yet, and nothing is behind it."""
    header = next((child.luks for child in ground.present.tree.children(device.name) if child.kind == "crypt"), None)
    return (header is None or not header.key_slots) and device.name not in ground.present.sealed


def free_name(ground: Ground, container: DesiredContainer, ending: str) -> str:
    there = {device.dev for device in ground.present.tree.devices.values()}
    return container.name if container.device not in there else f"{container.name}{ending}"


def close_container(ground: Ground, found: Found, device: Device) -> None:
    """Plan that a container that something was moved out of is closed and none any more: a run would look into it again and again."""
    if device.kind == "crypt":
        below = ground.present.tree.devices[device.parents[0]]
        found.last += [CloseMapping(str(device.dev).rsplit("/", 1)[-1]), ClearSignatures((str(below.dev),), MIB)]
        found.emptied.append(below.name)
