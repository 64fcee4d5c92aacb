# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether unfinished partitions and volumes are as the run left them that made them, so that they may be made again. Pure.

What a run makes has an identity that follows from the schema, and nobody has mounted it; anything else is somebody's. Data farther
inside than both ends are older: a run clears the ends first, and the rest only as it goes on. Closed devices with contents are
opened first; where that fails, their owner is unknown.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .._facts.present import LogicalVolume, Present
from .._facts.signatures import Signature
from .._facts.tree import PARTITION_TABLES, Device
from .._schema.model import Layout
from .._storage import derived, zfs
from .._storage.filesystems import FILESYSTEMS
from .._storage.lvm import CLEARED
from .._storage.units import MIB, in_mib
from .arrays import runs_without
from .partitions import PartitionMatch, Status, is_emptied

_LUKS, _MEMBER, _PHYSICAL = "crypto_LUKS", "linux_raid_member", "LVM2_member"
_OPENED = ("raid", "linear", "md", "crypt", "lvm")


@dataclass(frozen=True)
class _Identities:
    """What a run leaves on a device and on all that it builds there: types with UUIDs, and the names of ZFS pools."""

    known: frozenset[tuple[str, str]]
    pools: frozenset[str] = frozenset()
    physical: bool = False

    def has(self, present: Present, device: Device, signature: Signature) -> bool:
        """Return whether a signature on a device is one of them."""
        if signature.type == _PHYSICAL:
            volume = present.physical_on(device.name)
            return self.physical and (volume is None or volume.group is None)
        if signature.type == zfs.MEMBER:
            return signature.label in self.pools or signature.label is None and bool(self.pools)
        return (signature.type, (signature.uuid or "").lower()) in self.known


def with_strangers(layout: Layout, present: Present, match: PartitionMatch) -> PartitionMatch:
    """Return the match of a partition with what is on an unfinished one that no run of this layout left there, in words.

    Of one that the table does not have it is what a run has made there, which was a part of the layout until its entry was deleted.
    """
    there = present.missing.get((match.disk.device.name, match.desired.start)) if match.status is Status.NEW else None
    if there is not None and _is_made(layout, match, there):
        place = f"where {match.desired.label or match.desired.device} is missing in the table of {match.disk.words}"
        return replace(match, stranger=f"{_described(there)} lies {place}; put its entry back to keep it")
    if not match.unfinished or match.device is None:
        return match
    stranger = next(_strangers(present, match.device, _identities(layout, match.desired.device)), None)
    return replace(match, stranger=stranger, sealed=sealed_on(present, match.device))


def _is_made(layout: Layout, match: PartitionMatch, there: Signature) -> bool:
    """Return whether a run has made this. What a table lacks because a run was permitted to empty it is anybody's."""
    own = _identities(layout, match.desired.device)
    if there.type == _PHYSICAL:
        return own.physical and not is_emptied(match.disk)
    return (there.type, (there.uuid or "").lower()) in own.known


def volume_stranger(layout: Layout, present: Present, device: str, known: LogicalVolume) -> t.Optional[str]:
    """Return the same of an unfinished volume; `device` is that of the desired one.

    As long as it is not marked as cleared it may have what lay in its room before.
    """
    for snapshot in (known, *present.snapshots_of(known)):
        if snapshot.origin:
            path = f"{known.group}/{snapshot.name}"
            return f"{known.group}/{known.name} is unfinished, but no run left {path}, a snapshot of {snapshot.origin}"
    there = present.device_of(known)
    if CLEARED not in known.tags or there is None:
        return None
    return next(_strangers(present, there, _identities(layout, device)), None)


def sealed_on(present: Present, device: t.Optional[Device]) -> t.Optional[str]:
    """Return what is closed on an unfinished partition or volume, or on what is built there, and has something in it; None for nothing."""
    for each in (device, *present.tree.descendants(device.name)) if device is not None else ():
        # What a member has that came late to a start is seen in the array that runs without it.
        if each.name in present.sealed and not runs_without(present, each):
            return f"{each.dev or each.name} is unfinished, but has {present.sealed[each.name]}, which may be somebody's"
    return None


def pool_stranger(layout: Layout, present: Present, pool: LogicalVolume) -> t.Optional[str]:
    """Return the same of an unfinished thin pool: a volume in it that is no unfinished one of the layout, or is used."""
    desired = {(volume.group, volume.name): volume.device for volume in layout.volumes}
    for volume in present.volumes_in(pool):
        device = desired.get((volume.group, volume.name))
        if not volume.unfinished or device is None:
            return f"the thin pool {pool.group}/{pool.name} is unfinished, but no run of this layout left the volume {volume.name} in it"
        stranger = volume_stranger(layout, present, device, volume) or sealed_on(present, present.device_of(volume))
        if stranger is not None:
            return stranger
    return None


def _identities(layout: Layout, device: str) -> _Identities:
    """Return what runs leave on a desired partition or volume, of this layout or, with the same partitions, of an earlier one."""
    array = layout.array_of(device)
    bases = (device, array.device) if array is not None else (device,)
    found = set() if array is None else {(_MEMBER, layout.identity(array.device))}
    opened = [layout.container_on(base) for base in bases]
    names = [*bases, *(container.device for container in opened if container is not None)]
    for base in bases:
        identity = layout.identity(base)
        found |= {(_LUKS, derived.container_uuid(identity))}
        found |= {(kind, derived.filesystem_uuid(kind, identity).lower()) for kind in FILESYSTEMS}
    for filesystem in (layout.filesystem_on(name) for name in names):
        if filesystem is not None:
            base = filesystem.device if filesystem.more else bases[-1]
            found.add((filesystem.type, layout.filesystem_uuid(base, filesystem).lower()))
    pools = [layout.zpool_on(name) for name in names]
    return _Identities(
        frozenset(found),
        frozenset(pool.name for pool in pools if pool is not None),
        any(layout.group_of(name) is not None for name in names),
    )


def _strangers(present: Present, device: Device, own: _Identities) -> Iterator[str]:
    """Give what is not as a run left it on a device and on what is built there, from the outside in."""
    for each in (device, *present.tree.descendants(device.name)):
        name = each.dev or each.title or each.name
        for signature in each.signatures:
            if not _is_of_before(each, signature) and not _belongs(present, each, signature, own):
                yield f"{name} is unfinished, but has {_described(signature)}, which no run of this layout left there"
        if each is not device and each.running and not each.kind.startswith(_OPENED):
            yield f"{name} ({each.kind}) is built on {device.dev or device.name}, which is unfinished, and no run of this layout left it"
        trace = present.traces.get(each.name)
        if trace is not None:
            yield f"{name} is unfinished, but somebody has used it: {trace}"


def _belongs(present: Present, device: Device, signature: Signature, own: _Identities) -> bool:
    if signature.type in PARTITION_TABLES:
        # The first sector of a FAT passes for a table.
        return any(other.type == "vfat" for other in device.signatures)
    return own.has(present, device, signature)


def _is_of_before(device: Device, signature: Signature) -> bool:
    """Return whether all of a signature lies farther inside than what is cleared before a partition is there."""
    return bool(signature.offsets) and all(MIB <= offset < device.size - MIB for offset in signature.offsets)


def _described(signature: Signature) -> str:
    label = f" {signature.label!r}" if signature.label else ""
    place = f" at {in_mib(signature.offsets[0])}" if signature.offsets else ""
    return f"{signature.type}{label}{place}"
