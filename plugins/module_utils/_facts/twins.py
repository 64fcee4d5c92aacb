# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Identities that two disks of a host share: copies of a disk, or disks of two hosts that were made with the same identities. Pure.

Whatever is found by such an identity (`UUID=` in fstab, LVM, the boot loader) may be found on either disk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from .select import Disk
from .tree import PARTITION_TABLES, Device, Tree

_SHARED = frozenset({"btrfs", "zfs_member", "bcachefs", "linux_raid_member", "drbd"})
"""Signatures whose UUID is that of a whole of several devices."""

_MOST_NAMED = 5


@dataclass(frozen=True)
class Twin:
    """An identity on the device `name` that the device `other`, on another disk, has too.

    `kind` is disk (its WWN or serial number), table, partition, member (of an array, a Btrfs or a ZFS pool), or the type of what is on the
    device; `identity` is the UUID or the like.
    """

    kind: str
    identity: str
    name: str
    other: str


def find_twins(tree: Tree, disks: Iterable[Disk]) -> Mapping[str, tuple[Twin, ...]]:
    """Return by the names of their devices the disks that share identities with others; read_contents has to have run before."""
    disks = tuple(disks)
    holders: dict[tuple[str, str], list[tuple[str, Device]]] = {}
    for disk in disks:
        for kind, identity, device in _identities(tree, tree.devices[disk.device.name]):
            holders.setdefault((kind, identity.lower()), []).append((disk.device.name, device))
    found: dict[str, list[Twin]] = {
        disk.device.name: [Twin("disk", _own(disk), disk.device.name, twin) for twin in disk.twins] for disk in disks
    }
    for (kind, identity), having in holders.items():
        for name, device in having:
            found[name] += [Twin(kind, identity, device.name, other.name) for disk, other in having if disk != name]
    return {name: tuple(twins) for name, twins in found.items() if twins}


def twin_notes(tree: Tree, disks: Iterable[Disk], names: Collection[str]) -> Iterator[str]:
    """Give a warning for each pair of disks with shared identities of which one is among `names`."""
    pairs_seen: set[frozenset[str]] = set()
    disks = tuple(disks)
    on = {part.name: disk.device.name for disk in disks for part in _partitions(tree, disk.device.name)}
    for name, twins in find_twins(tree, disks).items():
        for other in dict.fromkeys(on.get(twin.other, twin.other) for twin in twins):
            pair = frozenset({name, other})
            if pair in pairs_seen or not pair & set(names):
                continue
            pairs_seen.add(pair)
            shared = [f"{_kind(twin)} {twin.identity}" for twin in twins if on.get(twin.other, twin.other) == other]
            more = f" and {len(shared) - _MOST_NAMED} more" if len(shared) > _MOST_NAMED else ""
            listed = ", ".join(shared[:_MOST_NAMED])
            yield (
                f"{tree.devices[name].dev} and {tree.devices[other].dev} have the same identities ({listed}{more}): whatever is found by "
                "them may be found on either disk. Take one disk away, or give one of them other identities"
            )


def _kind(twin: Twin) -> str:
    return {"disk": "WWN or serial number", "table": "GUID of the table", "partition": "PARTUUID", "member": "UUID of a member"}.get(
        twin.kind, twin.kind
    )


def _own(disk: Disk) -> str:
    return str(disk.source.row.get("wwn") or disk.source.row.get("serial") or disk.id)


def _partitions(tree: Tree, name: str) -> Iterator[Device]:
    return (child for child in tree.children(name) if child.partition is not None)


def _identities(tree: Tree, disk: Device) -> Iterator[tuple[str, str, Device]]:
    """Give what a disk and its partitions have; the members of an array of a controller's kind show what is on the array."""
    yield from (("member", each.member, each) for each in (disk, *_partitions(tree, disk.name)) if each.member)
    if any(signature.type.endswith("raid_member") for signature in disk.signatures):
        return
    if disk.table is not None and disk.table.uuid:
        yield "table", disk.table.uuid, disk
    for device in (disk, *_partitions(tree, disk.name)):
        if device.partition is not None and device.partition.uuid:
            yield "partition", device.partition.uuid, device
        types = {signature.type for signature in device.signatures}
        if not any(kind.endswith("raid_member") for kind in types):
            yield from (
                (signature.type, signature.uuid, device)
                for signature in device.signatures
                if signature.uuid and signature.type not in _SHARED and signature.type not in PARTITION_TABLES
            )
