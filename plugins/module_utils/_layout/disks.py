# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The identity of a disk: the same fingerprint that disk_plan makes of the facts, and which of the host's disks a layout means. Pure."""

from __future__ import annotations

import hashlib
import json
import typing as t
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from .._facts.present import Present
from .._facts.select import ALL_DISKS, LEFT_OUT, Disk, Selection
from .._facts.tree import Device
from .._schema.model import DesiredDisk, Layout
from .._storage.identity import BY_PATH
from .._storage.units import MIB
from .protected import Protection, protections_of

_DIGEST_BYTES = 16


@dataclass(frozen=True)
class FoundDisk:
    """A disk of the layout and the host's disk that it is; `may_wipe`: what is in the way on it may be destroyed.

    `protections` say that nothing on it may be changed; `overruled`: although wipe names it.
    """

    desired: DesiredDisk
    disk: Disk
    device: Device
    may_wipe: bool
    protections: tuple[Protection, ...] = ()
    overruled: bool = False

    @property
    def node(self) -> str:
        """The node of this boot."""
        return str(self.device.dev)

    @property
    def words(self) -> str:
        """How it is called in messages."""
        return self.node if self.desired.id == self.node else f"{self.desired.id} ({self.node})"

    def permission(self, purpose: str = "if it may be destroyed") -> str:
        """Return what has to be done before something on it is destroyed, as the end of a message."""
        return f"it is {self.protected}" if self.protections else f"name {self.desired.id} in wipe {purpose}"

    @property
    def protected(self) -> str:
        """By what it is protected, in words."""
        return f"protected by {' and '.join(each.words for each in self.protections)}, whatever wipe says"


def fingerprint(disks: Iterable[Disk], present: Present, slots: t.Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the fingerprint of disks: 32 hexadecimal digits over identity, size and logical sector of each, in whatever order.

    `slots` are the links of by-path by which a plan knows disks (names of devices): it is for whatever disk of that size is there.
    """
    identities = sorted(json.dumps(_identity(disk, present, slots.get(disk.device.name))) for disk in disks)
    return hashlib.blake2b("\n".join(identities).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _identity(disk: Disk, present: Present, slot: t.Optional[str]) -> list[t.Union[str, int]]:
    row, device = disk.source.row, present.tree.devices[disk.device.name]
    slot = disk.id if slot is None and disk.id.startswith(BY_PATH) else slot
    if slot is not None:
        return [slot, "", "", device.size, device.logical_block]
    return [disk.id, str(row.get("wwn") or ""), str(row.get("serial") or ""), device.size, device.logical_block]


def check_fingerprint(
    expected: t.Optional[str],
    found: Sequence[FoundDisk],
    present: Present,
    leaving: Collection[str] = (),
    selection: Selection = ALL_DISKS,
) -> Iterator[str]:
    """Give a refusal when the fingerprint is that of other hardware.

    A plan is made for all disks that disk_facts reports, with or without the kinds it leaves out unasked, or for those it uses alone;
    with or without those that are `leaving` (kernel names), which are emptied onto others; or for the `selection` that the facts were
    asked for.
    """
    if expected is None:
        return
    listed = [disk.disk for disk in found]
    asked_for = {disk.transport for disk in listed}
    usual = [disk for disk in present.disks if disk.transport not in LEFT_OUT]
    more = [disk for disk in present.disks if disk.transport not in LEFT_OUT or disk.transport in asked_for]
    slots = {disk.device.name: disk.desired.id for disk in found if disk.desired.id.startswith(BY_PATH)}
    selected = selection.of(present.disks)
    sets = [[disk for disk in disks if disk.device.name not in leaving] for disks in (usual, more, selected)] if leaving else []
    if expected not in {fingerprint(disks, present, slots) for disks in (usual, more, listed, selected, *sets)}:
        usual = usual if selection == ALL_DISKS else list(selected)
        unused = [f"{disk.id} ({present.tree.devices[disk.device.name].size // MIB} MiB)" for disk in usual if disk not in listed]
        yield (
            f"the plan was made for other disks: its fingerprint is {expected}, that of this host {fingerprint(usual, present)}; "
            "a disk was replaced, added or removed, or has a different size. "
            f"Disks here that the plan puts nothing on: {', '.join(unused) or 'none'}. Gather the facts and plan again"
        )


def find_disks(
    layout: Layout, present: Present, wipe: Iterable[str], protections: Iterable[Protection] = ()
) -> tuple[tuple[FoundDisk, ...], tuple[str, ...]]:
    """Return the disks of a layout, and refusals: disks that are not there, or of another size."""
    wipe, protections = tuple(wipe), tuple(protections)
    found: list[FoundDisk] = []
    refusals: list[str] = []
    for desired in layout.disks:
        matching = [disk for disk in present.disks if desired.id in names_of(disk)]
        if len(matching) != 1:
            there = ", ".join(disk.id for disk in present.disks) or "none"
            refusals.append(f"{desired.place}: there is no disk {desired.id} here; there are {there}")
            continue
        disk = matching[0]
        by = protections_of(disk, present.tree, protections)
        named = _may_wipe(desired, disk, wipe)
        found.append(FoundDisk(desired, disk, present.tree.devices[disk.device.name], named and not by, by, named and bool(by)))
    refusals.extend(refusal for disk in found for refusal in _check_disk(disk, found))
    refusals.extend(_check_wipe(wipe, found))
    return tuple(found), tuple(refusals)


def names_of(disk: Disk) -> tuple[str, ...]:
    """Return all names of a disk; nodes are among them, for a schema written by hand may use them."""
    return tuple(name for name in (disk.id, disk.path, *disk.links, disk.device.dev) if name)


def _durable_names(disk: Disk) -> tuple[str, ...]:
    """Return the names that may stand in `wipe`: nodes move from disk to disk, so they count only where there is nothing better."""
    return tuple(name for name in (disk.id, disk.path, *disk.links) if name)


def _may_wipe(desired: DesiredDisk, disk: Disk, wipe: Iterable[str]) -> bool:
    return any(name == desired.id or name in _durable_names(disk) for name in wipe)


def _check_disk(disk: FoundDisk, found: Iterable[FoundDisk]) -> Iterator[str]:
    others = [other.desired for other in found if other.device.name == disk.device.name and other.desired.place != disk.desired.place]
    if others and disk.desired.place > min(other.place for other in others):
        yield f"{disk.desired.place}: {disk.words} is already the disk of {others[0].place}"
    if disk.desired.size is not None and disk.desired.size != disk.device.size // MIB:
        yield f"{disk.words} has {disk.device.size // MIB} MiB, but the plan is for {disk.desired.size} MiB: it was made for another disk"
    for part in disk.desired.partitions:
        if part.end > _table_end(disk.device):
            yield f"{part.place}: ends at {part.end // MIB} MiB, but {disk.words} has room to {_table_end(disk.device) / MIB:.2f} MiB only"


def _table_end(device: Device) -> int:
    """Return where the backup of a GPT begins: its header, and 128 entries of 128 bytes in whole sectors."""
    sector = device.logical_block
    return (device.size // sector - 1) * sector - max(sector, 128 * 128)


def _check_wipe(wipe: Iterable[str], found: Sequence[FoundDisk]) -> Iterator[str]:
    for name in wipe:
        known = [disk for disk in found if name == disk.desired.id or name in _durable_names(disk.disk)]
        nodes = [disk for disk in found if name == disk.node]
        if nodes and not known:
            yield f"wipe names {name}, which can be another disk after a reboot; name {nodes[0].desired.id}"
        elif not known:
            listed = ", ".join(disk.desired.id for disk in found) or "none"
            yield f"wipe names {name}, which is not a disk of the schema: {listed}"
