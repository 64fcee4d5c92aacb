# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Closes what is built on devices that are to be destroyed, outermost first and without writing, or says why that may not be. Pure."""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from .._facts.present import Present, Zpool, ZpoolPart
from .._facts.tree import Device, Filesystem, Tree
from .._steps.step import Step
from .._storage import zfs
from .partitions import describe_one

IN_WIPE = "its disk must be in the schema and in wipe too, with nothing on it that keeps its data"

_ARRAYS = ("raid", "linear", "md")
_WITHOUT_WHOLE_COPIES = ("raid0", "linear", "raid4", "raid5", "raid6", "raid10")
"""Levels of arrays of which no single member has all data: what one has is nothing without others. The half of a mirror is whole."""
_SEVERAL_DEVICES = frozenset({"btrfs", "zfs_member", "bcachefs"})
"""Filesystems that can be on several devices at once, all of one UUID."""


@dataclass(frozen=True)
class Destroyed:
    """What is to be destroyed: `roots` are disks, partitions and volumes; `emptied` are volumes that stay while all on them goes."""

    roots: tuple[Device, ...]
    emptied: tuple[Device, ...] = ()

    def names(self, tree: Tree) -> frozenset[str]:
        """Return the names of all that is destroyed."""
        built = (device for root in (*self.roots, *self.emptied) for device in tree.descendants(root.name))
        return frozenset({root.name for root in self.roots} | {device.name for device in built})


def teardown_steps(present: Present, destroyed: Destroyed) -> tuple[Step, ...]:
    """Return the steps that close everything that runs on what is destroyed."""
    names, tree = destroyed.names(present.tree), present.tree
    kept_open = {root.name for root in (*destroyed.roots, *destroyed.emptied) if root.kind == "lvm"}
    steps: dict[Step, None] = {}
    for device in _outermost_first(tree, [name for name in sorted(names) if name not in kept_open]):
        step = _teardown_step(present, device, names)
        if step is not None:
            steps.setdefault(step)
    return tuple(steps)


def _outermost_first(tree: Tree, names: Iterable[str]) -> tuple[Device, ...]:
    """Return devices such that everything built on one, or on another volume of its group, comes before it."""
    done: dict[str, Device] = {}

    def visit(device: Device) -> None:
        if device.name not in done:
            together = _closed_together(tree, device)
            closed = {sibling.name for sibling in together}
            for sibling in together:
                # A thin volume is built on its pool, and closed with it.
                for child in tree.children(sibling.name):
                    if child.name not in closed:
                        visit(child)
            done[device.name] = device

    for name in names:
        visit(tree.devices[name])
    desired = set(names)
    return tuple(device for device in done.values() if device.name in desired)


def _closed_together(tree: Tree, device: Device) -> tuple[Device, ...]:
    if device.kind != "lvm":
        return (device,)
    return tuple(other for other in tree.devices.values() if other.kind == "lvm" and other.group == device.group)


def _teardown_step(present: Present, device: Device, names: Collection[str]) -> t.Optional[Step]:
    # Hosts get sources, and compile in each run what they import: each kind of step only where it is needed.
    pool = present.zpool_on(device)
    if pool is not None:
        from .._steps.zfs import ExportZpool, ShrinkZpool

        leaving = _leaving(pool, device, names)
        return ExportZpool(pool.name) if leaving is None else ShrinkZpool(pool.name, str(leaving.part), leaving.name)
    if not device.running or device.partition is not None:
        return None
    if device.kind == "crypt":
        from .._steps.luks import CloseMapping

        return CloseMapping(str(device.dev).rsplit("/", 1)[-1])
    if device.kind == "lvm":
        from .._steps.lvm import DeactivateGroup

        return DeactivateGroup(str(device.group), _group_uuid(present, device))
    if not device.kind.startswith(_ARRAYS):
        return None
    from .._steps.md import StopArray

    return StopArray(str(device.dev))


def _leaving(pool: Zpool, device: Device, names: Collection[str]) -> t.Optional[ZpoolPart]:
    """Return the log, cache or spare of a device that leaves a pool which stays; it leaves as a whole, and the pool keeps its data."""
    vdev = pool.vdev_of(device)
    if vdev is None or vdev.part is None or not set(vdev.devices) <= set(names) or _is_destroyed(pool, names):
        return None
    return vdev


def _is_destroyed(pool: Zpool, names: Collection[str]) -> bool:
    """Return whether data of a pool go, or may go, as ZFS does not say where they are."""
    data = {name for vdev in pool.vdevs if vdev.part is None for name in vdev.devices}
    return not data or bool(data & set(names))


def _group_uuid(present: Present, device: Device) -> t.Optional[str]:
    return next((volume.group_uuid for volume in present.logical if volume.uuid == device.uuid), None)


def teardown_refusals(
    present: Present, destroyed: Destroyed, own: Collection[str] = (), own_groups: Collection[str] = (), remedy: str = IN_WIPE
) -> Iterator[str]:
    """Give every reason why something that is to be destroyed may not be.

    `own` are the names of our own unfinished work, `own_groups` those of physical volumes of groups of the layout. `remedy` is what has to
    be true of the disk of something that would stay without its other parts.
    """
    names = destroyed.names(present.tree)
    for name in sorted(names | {device.name for device in destroyed.emptied}):
        device = present.tree.devices[name]
        pool = next(_zpools_on(present, device), None)
        if pool is None:
            yield from _busy(present.tree, device)
        elif pool.mounted and name not in own and _is_destroyed(pool, names):
            yield (
                f"{device.dev or name} belongs to the ZFS pool {pool.name}, which would be destroyed, but is mounted on "
                f"{', '.join(pool.mounted)}; data in use stays, whatever names the disk"
            )
    for name in sorted(names):
        yield from _unknown_group(present, present.tree.devices[name])
        if name not in own and name not in own_groups:
            yield from _incomplete_group(present, present.tree.devices[name])
            yield from _incomplete_array(present.tree.devices[name])
    for what, staying in _spanning(present, destroyed):
        yield _spans_words(present, what, staying, remedy)


def _zpools_on(present: Present, device: Device) -> Iterator[Zpool]:
    """Yield the imported ZFS pools of a device or its partitions: ZFS holds them until it lets go."""
    for each in (device, *(child for child in present.tree.children(device.name) if child.partition is not None)):
        pool = present.zpool_on(each)
        if pool is not None:
            yield pool


def _unknown_group(present: Present, device: Device) -> Iterator[str]:
    """Yield a refusal for a physical volume that LVM does not list: its group may be on other disks as well."""
    types = {signature.type for signature in device.signatures}
    is_physical = device.running and device.table is None and "LVM2_member" in types and "linux_raid_member" not in types
    if is_physical and present.physical_on(device.name) is None and _original(present, device) is None:
        yield (
            f"{device.dev} is a physical volume of LVM that would be destroyed, but LVM does not say which group it belongs to: "
            "lvm2 is missing or fails, or its filter leaves the device out. The group may be on other disks as well"
        )


def _original(present: Present, device: Device) -> t.Optional[Device]:
    """Return the device that LVM uses in the place of its copy; None where something runs on the copy."""
    uuids = {signature.uuid for signature in device.signatures if signature.type == "LVM2_member" and signature.uuid}
    if any(child.running for child in present.tree.children(device.name)):
        return None
    others = (other for other in present.tree.devices.values() if other.name != device.name and present.physical_on(other.name) is not None)
    return next(
        (other for other in others if uuids & {signature.uuid for signature in other.signatures if signature.type == "LVM2_member"}), None
    )


def _incomplete_group(present: Present, device: Device) -> Iterator[str]:
    """Give a refusal for a physical volume of a group that lacks others: these need it, wherever they are now."""
    volume = present.physical_on(device.name)
    lacking = [other for other in present.physical if volume is not None and other.group_uuid == volume.group_uuid and other.device is None]
    if volume is not None and volume.group_uuid is not None and lacking:
        others = "one other is" if len(lacking) == 1 else f"{len(lacking)} others are"
        yield (
            f"{device.dev} would be destroyed, but belongs to the volume group {volume.group}, of which {others} not attached; "
            "their data would be lost as well. Attach them, or if they are gone for good, say so to LVM "
            f"(vgreduce --removemissing {volume.group})"
        )


def _incomplete_array(device: Device) -> Iterator[str]:
    """Give a refusal for an array that lacks a member: that member's data are nothing without the others."""
    lacking = (device.slots or 0) - len(device.parents)
    if device.kind in _WITHOUT_WHOLE_COPIES and lacking > 0:
        yield (
            f"{_title(device)} would be destroyed, and {lacking} of its {device.slots} members {'is' if lacking == 1 else 'are'} not "
            "attached: what is on these would be lost as well. Attach them, or if they are gone for good, clear what is here by hand "
            "(mdadm --stop, mdadm --zero-superblock)"
        )


def staying_devices(present: Present, destroyed: Destroyed) -> frozenset[str]:
    """Return the names of devices that would stay, although what they are a part of cannot live without what is destroyed."""
    return frozenset(name for _what, staying in _spanning(present, destroyed) for name in staying)


def _spanning(present: Present, destroyed: Destroyed) -> Iterator[tuple[str, list[str]]]:
    """Yield what is only partly on destroyed devices, with its devices that would stay."""
    names = destroyed.names(present.tree)
    given = names | {device.name for device in destroyed.emptied}
    roots = {root.name for root in destroyed.roots}
    for name in sorted(names):
        device = present.tree.devices[name]
        pool = present.zpool_on(device)
        is_leaving = pool is not None and _leaving(pool, device, names) is not None
        found = [_members_of_group(present, device), *([] if is_leaving else [_members_of_filesystem(present, device)])]
        found.append((f"data of the bcache on {', '.join(_nodes(present, name))}", list(present.unflushed.get(name, ()))))
        found.append((f"data of the btrfs that has {device.dev or name} as its seed", list(present.seeds.get(name, ()))))
        if name not in roots and device.partition is None:
            found.append((_title(device), list(device.parents)))
        for what, members in found:
            staying = [member for member in members if member not in given and member in present.tree.devices]
            if staying:
                yield what, staying


def _nodes(present: Present, cache: str) -> Iterator[str]:
    return (str(present.tree.devices[name].dev) for name in present.unflushed.get(cache, ()))


def _busy(tree: Tree, device: Device) -> Iterator[str]:
    what = describe_one(tree, device) if device.dev is None else device.dev
    if device.mountpoints:
        places = ", ".join("used as swap" if place == "[SWAP]" else f"mounted on {place}" for place in device.mountpoints)
        yield f"{what} would be destroyed, but is {places}; data in use stays, whatever names the disk"
    elif device.uses:
        yield f"{what} would be destroyed, but is {' and '.join(device.uses)}; data in use stays, whatever names the disk"
    elif device.openers:
        yield f"{what} would be destroyed, but is open in {', '.join(device.openers)}; data in use stays, whatever names the disk"
    elif device.claimed:
        yield f"{what} would be destroyed, but is held by the kernel (in another mount namespace, by ZFS, or the like)"
    elif device.running and not _can_be_closed(device):
        yield f"{what} ({device.kind}) is built on what would be destroyed, and only arrays, LUKS and volume groups are closed here"


def _can_be_closed(device: Device) -> bool:
    """Return whether a device is closed here, or nothing to be closed: a disk (a multipath device is one, too) or a partition."""
    return device.partition is not None or not device.parents or device.kind in ("crypt", "lvm", "mpath") or device.kind.startswith(_ARRAYS)


def _members_of_group(present: Present, device: Device) -> tuple[str, list[str]]:
    volume = present.physical_on(device.name)
    if volume is None or volume.group_uuid is None:
        return "", []
    members = [other.device for other in present.physical if other.group_uuid == volume.group_uuid]
    return f"the volume group {volume.group}", [member for member in members if member is not None]


def _members_of_filesystem(present: Present, device: Device) -> tuple[str, list[str]]:
    found = device.filesystem
    if found is None or found.type not in _SEVERAL_DEVICES or found.uuid is None:
        return "", []
    members = [
        other.name
        for other in present.tree.devices.values()
        if other.filesystem is not None and (other.filesystem.type, other.filesystem.uuid) == (found.type, found.uuid)
    ]
    return _called(present, device, found), members


def _called(present: Present, device: Device, found: Filesystem) -> str:
    name = found.label or found.uuid
    if found.type != zfs.MEMBER:
        return f"the {found.type} {name}"
    return f"the ZFS pool {name}" + ("" if present.zpool_on(device) else f", which is not imported (zpool import {name} imports it),")


def _spans_words(present: Present, what: str, staying: Iterable[str], remedy: str) -> str:
    places = []
    for name in staying:
        disk = present.whole_disk(name)
        node = present.tree.devices[name].dev or name
        places.append(f"{node} on {disk.id}" if disk is not None and disk.id != node else node)
    where = ", ".join(places)
    return f"{what} is also on {where}, which would stay; {remedy}, or {what} must be moved off it"


def _title(device: Device) -> str:
    if device.kind == "lvm":
        return f"the volume {device.group}/{device.title}"
    return f"{device.kind} {device.dev or device.title or device.name}"
