# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the present state of a host as layouts are compared with it: the tree of disk_facts, LVM's own numbers, filesystems' sizes.

Nothing is changed. What cannot be read is noted; a disk that cannot be read is never taken for empty.
"""

from __future__ import annotations

import contextlib
import typing as t
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from .._facts.assembled import read_stacks
from .._facts.host import Host
from .._facts.lvm import has_lvm, read_lvm
from .._facts.present import Present, Zpool, ZpoolPart
from .._facts.reader import Notes, read_claims, read_contents, read_devices, read_remains
from .._facts.select import LEFT_OUT, Disk, find_disks
from .._facts.stacks import Superblock, parse_superblock, superblock_command
from .._facts.torn import Torn, find_torn
from .._facts.tree import Device, Tree
from .._facts.twins import twin_notes
from .._facts.uses import read_uses
from .._schema.model import DesiredZpool, Layout
from .._storage import zfs
from .._storage.btrfs import BTRFS, SUPERBLOCK, SUPERBLOCK_BYTES, TOP_LEVEL, count_devices, is_seed, list_commands, read_subvolumes
from .._storage.derived import host_salt
from .._storage.filesystems import EXT4, FILESYSTEMS, Measure, fill
from .._storage.fstab import plain_source, read_entries
from .._storage.units import MIB
from .disks import names_of
from .read_missing import read_loose, read_missing
from .read_traces import read_traces

_FSTAB = "/etc/fstab"
_BCACHE = "bcache"
"""libblkid's word for backing devices and caches."""
_FIRMWARE, _MACHINE, _BOOT = "/sys/class/dmi/id/product_uuid", "/etc/machine-id", "/proc/sys/kernel/random/boot_id"


def read_present(host: Host, layout: Layout, more: Iterable[str] = ()) -> Present:
    """Return the state of a host: of the disks of the layout and those called so, and of all others that disk_facts would report."""
    notes: Notes = []
    tree = read_devices(host, notes)
    disks = find_disks(tree, notes)
    desired = {*(disk.id for disk in layout.disks), *more}
    listed = [disk for disk in disks if desired.intersection(names_of(disk))]
    names = [disk.device.name for disk in disks if disk.transport not in LEFT_OUT or disk in listed]
    tree = read_contents(host, tree, names, notes)
    tree = read_stacks(host, tree, names, notes)
    tree = read_uses(host, tree, disks)
    tree = read_claims(host, tree, [disk.device.name for disk in listed])
    tree = read_remains(host, tree, {disk.device.name: _cleared(layout, disk) for disk in listed})
    notes.extend(twin_notes(tree, [disk for disk in disks if disk.device.name in names], {disk.device.name for disk in listed}))
    physical, logical, spares = read_lvm(host, tree) if has_lvm(tree) else ((), (), {})
    sizes, last_mounts, uses = _read_filesystems(host, tree, listed)
    wanted = any(filesystem.subvolumes for filesystem in layout.filesystems)
    subvolumes = _read_subvolumes(host, tree, listed) if wanted else {}
    zpools = _read_zpools(host, tree, layout)
    torn = _read_torn(host, tree, listed, sizes) if any(filesystem.type == EXT4 for filesystem in layout.filesystems) else {}
    superblocks = _read_superblocks(host, tree)
    salt = host_salt(host.read(_FIRMWARE), host.read(_MACHINE), host.read(_BOOT))
    present = Present(
        tree,
        disks,
        physical,
        logical,
        sizes,
        last_mounts,
        tuple(dict.fromkeys(notes)),
        subvolumes,
        uses,
        spares,
        zpools,
        torn,
        salt,
        read_unflushed(host, tree),
        superblocks,
    )
    traces, sealed = read_traces(host, present, layout)
    missing, loose = read_missing(host, present, layout, listed), read_loose(host, present, layout, listed)
    return replace(present, traces=traces, sealed=sealed, missing=missing, loose=loose, seeds=read_seeds(host, tree))


def _cleared(layout: Layout, disk: Disk) -> tuple[int, ...]:
    """Return where a run clears a MiB at the begin and the end of each partition of the layout on a disk, in bytes."""
    parts = [part for desired in layout.disks if desired.id in names_of(disk) for part in desired.partitions]
    return tuple(place for part in parts for place in (part.start, max(part.start, part.end - MIB)))


def _read_filesystems(host: Host, tree: Tree, disks: Sequence[Disk]) -> tuple[dict[str, int], dict[str, str], dict[str, int]]:
    """Return how many bytes filesystems that can grow have, where they were mounted last, and how many bytes of them are in use.

    Each as far as they say so; for the mounts this host's fstab is asked as well.
    """
    sizes: dict[str, int] = {}
    uses: dict[str, int] = {}
    names = [disk.device.name for disk in disks]
    devices = {device.name: device for name in names for device in (tree.devices[name], *tree.descendants(name))}
    last_mounts = _places_in_fstab(host, devices.values())
    for name, device in devices.items():
        row = FILESYSTEMS.get(device.filesystem.type) if device.filesystem is not None else None
        if row is None or row.growth is None or device.dev is None:
            continue
        measure = row.growth.measure
        said = _size_in_superblock(host, device, measure)
        if said is not None:
            sizes[name] = said
            continue
        place = device.mountpoints[0] if device.mountpoints else device.dev
        outcome = host.run(fill(measure.command, device=device.dev, mountpoint=place))
        text = outcome.stdout if outcome is not None and outcome.code == 0 else ""
        size, last, used = measure.read(text, device.dev), measure.read_last_mount(text), measure.read_used(text)
        sizes.update({} if size is None else {name: size})
        last_mounts.update({} if last is None else {name: last})
        uses.update({} if used is None else {name: used})
    return sizes, last_mounts, uses


def _size_in_superblock(host: Host, device: Device, measure: Measure) -> t.Optional[int]:
    if measure.superblock is None or device.mountpoints or device.dev is None:
        return None
    try:
        return measure.superblock.read(host.read_bytes(device.dev, 0, measure.superblock.fields.size))
    except OSError:
        return None


def _read_torn(host: Host, tree: Tree, disks: Sequence[Disk], sizes: Mapping[str, int]) -> dict[str, Torn]:
    """Return each ext4 whose superblock is torn: newer versions of libblkid do not know it for what it is, dumpe2fs does not read it."""
    names = [disk.device.name for disk in disks]
    found = {}
    for device in (device for name in names for device in (tree.devices[name], *tree.descendants(name))):
        kind = device.filesystem.type if device.filesystem is not None else EXT4
        # Reading a suspended one would hang.
        if device.dev is None or device.mountpoints or kind != EXT4 or device.name in sizes or device.row.get("suspended"):
            continue
        torn = find_torn(host, device.dev, device.size)
        found.update({} if torn is None else {device.name: torn})
    return found


def _read_superblocks(host: Host, tree: Tree) -> dict[str, Superblock]:
    """Return what the members say of each array that runs without some of them: a start may not have waited for these."""
    arrays = [device for device in tree.devices.values() if device.uuid is not None and device.kind.startswith(("raid", "md"))]
    running = {device.uuid: device for device in arrays if device.running and not device.inactive}
    found = {}
    for left_out in (device for device in arrays if not device.running and device.uuid in running):
        for name in (*running[left_out.uuid].parents, *left_out.parents):
            node = tree.devices[name].dev
            outcome = host.run(superblock_command(node)) if node is not None else None
            superblock = parse_superblock(outcome.stdout) if outcome is not None and outcome.code == 0 else None
            found.update({} if superblock is None else {name: superblock})
    return found


_LOOK = f"mount -o ro,nosuid,nodev,noexec,{TOP_LEVEL}"
_IN_A_MOUNT_OF_ITS_OWN = (
    f'{{{{ {_LOOK},rescue=nologreplay -- "$1" /mnt || {_LOOK},norecovery -- "$1" /mnt; }}}} && {{{{ {{}}; umount /mnt; }}}}'
)
"""A shell's words, for a mount namespace: what is not mounted is looked into without a write, not even of what its log holds.

Kernels before 5.9 call that norecovery, some after 6.7 have no such word any more.
"""


def _read_subvolumes(host: Host, tree: Tree, disks: Sequence[Disk]) -> dict[str, dict[str, t.Optional[int]]]:
    """Return the subvolumes of each Btrfs that can be looked into, with their limits."""
    found: dict[str, dict[str, t.Optional[int]]] = {}
    names = [disk.device.name for disk in disks]
    for device in (device for name in names for device in (tree.devices[name], *tree.descendants(name))):
        if device.filesystem is not None and device.filesystem.type == BTRFS and device.dev is not None:
            uuid = str(device.filesystem.uuid)
            texts = _said_of_subvolumes(host, device) if uuid not in found else None
            found.update({} if texts is None else {uuid: read_subvolumes(texts)})
    return found


def _said_of_subvolumes(host: Host, device: Device) -> t.Optional[str]:
    """Return what the tools say; None where they cannot: of one that is not mounted by mounting it where nobody else sees it."""
    if device.mountpoints:
        outcomes = [host.run(command) for command in list_commands(device.mountpoints[0])]
        if outcomes[0] is None or outcomes[0].code != 0:
            return None
        return "\n".join(outcome.stdout for outcome in outcomes if outcome is not None)
    said = "; ".join(" ".join(command) for command in list_commands("/mnt"))
    script = _IN_A_MOUNT_OF_ITS_OWN.format(said)
    outcome = host.run(["unshare", "--mount", "--", "sh", "-c", script, "sh", str(device.dev)])
    return outcome.stdout if outcome is not None and outcome.code == 0 else None


def read_unflushed(host: Host, tree: Tree) -> dict[str, tuple[str, ...]]:
    """Return by cache of bcache the devices that it has data of which are nowhere else. One that cannot be read may have them of all."""
    devices = [device for device in tree.devices.values() if any(signature.type == _BCACHE for signature in device.signatures)]
    if not devices:
        return {}
    # Hosts get sources, and compile in each run what they import: this only where it is used.
    from .._storage import bcache

    found: dict[str, t.Optional[bcache.Superblock]] = {}
    for device in devices:
        if device.dev is not None:
            try:
                found[device.name] = bcache.parse_superblock(host.read_bytes(device.dev, bcache.OFFSET, bcache.SIZE))
            except OSError:
                found[device.name] = None
    dirty = {name: superblock.set_uuid for name, superblock in found.items() if superblock is not None and superblock.dirty}
    caches = {name: superblock for name, superblock in found.items() if superblock is None or not superblock.backing}
    on = {name: tuple(each for each, uuid in dirty.items() if cache is None or cache.set_uuid == uuid) for name, cache in caches.items()}
    return {name: devices for name, devices in on.items() if devices}


def read_seeds(host: Host, tree: Tree) -> dict[str, tuple[str, ...]]:
    """Return by seed device of Btrfs the devices of file systems that have more devices than carry their UUID: a seed keeps its own."""
    there = [device for device in tree.devices.values() if device.filesystem is not None and device.filesystem.type == BTRFS]
    uuids = [device.filesystem.uuid for device in there if device.filesystem is not None]
    superblocks: dict[str, bytes] = {}
    for device in there if len(set(uuids)) > 1 else ():
        with contextlib.suppress(OSError):
            if device.dev is not None and not device.row.get("suspended"):
                superblocks[device.name] = host.read_bytes(device.dev, SUPERBLOCK, SUPERBLOCK_BYTES)
    named = {device.name: uuids.count(uuid) for device, uuid in zip(there, uuids)}
    lacking = [name for name, superblock in superblocks.items() if count_devices(superblock) > named[name]]
    seeds = (name for name, superblock in superblocks.items() if is_seed(superblock))
    return {seed: tuple(name for name in lacking if name != seed) for seed in seeds}


def _read_zpools(host: Host, tree: Tree, layout: Layout) -> tuple[Zpool, ...]:
    """Return the ZFS pools that are imported, where there may be any; of those that the layout has, with their properties."""
    members = (device for device in tree.devices.values() if device.filesystem is not None and device.filesystem.type == zfs.MEMBER)
    # ZFS also remembers pools that have no device any more, under names that the layout may have.
    if not layout.zpools and not any(members):
        return ()
    rows = zfs.read_rows(_said(host, zfs.LIST_POOLS), 3)
    wanted = {pool.name: pool for pool in layout.zpools}
    return tuple(_read_zpool(host, tree, row, wanted.get(row[0])) for row in rows)


def _read_zpool(host: Host, tree: Tree, row: Sequence[str], desired: t.Optional[DesiredZpool]) -> Zpool:
    name, guid, health = row
    there = zfs.read_rows(_said(host, zfs.list_datasets(name)), 3)
    datasets: dict[str, dict[str, str]] = {dataset: {} for dataset, _mounted, _place in there}
    names = [f"{name}/{dataset.name}" if dataset.name else name for dataset in (desired.root, *desired.datasets)] if desired else []
    known = [dataset for dataset in names if dataset in datasets]
    if known:
        datasets.update(zfs.read_properties(_said(host, zfs.get_properties(known))))
    mounted = tuple(place for _dataset, is_mounted, place in there if is_mounted == "yes")
    properties = {dataset[len(name) + 1 :]: found for dataset, found in datasets.items()}
    return Zpool(name, guid, health, properties, mounted, _read_vdevs(host, tree, name))


def _read_vdevs(host: Host, tree: Tree, pool: str) -> tuple[ZpoolPart, ...]:
    """Return the vdevs of a pool, without devices that are gone."""
    text = next(filter(None, (_said(host, (*command, pool)) for command in zfs.STATUS_COMMANDS)), "")
    found = []
    for vdev in zfs.read_status(text, pool):
        devices = (tree.by_node(host.resolve(path) or path) for path in vdev.devices)
        found.append(ZpoolPart(vdev.part, vdev.name, tuple(device.name for device in devices if device is not None)))
    return tuple(found)


def _said(host: Host, command: Sequence[str]) -> str:
    outcome = host.run(command)
    return outcome.stdout if outcome is not None and outcome.code == 0 else ""


def _places_in_fstab(host: Host, devices: Iterable[Device]) -> dict[str, str]:
    """Return where this host's fstab has devices mounted: only ext2, ext3 and ext4 remember that themselves."""
    places = {plain_source(entry.src): entry.path for entry in read_entries(host.read(_FSTAB) or "") if entry.path.startswith("/")}
    found = {device.name: next((places[name] for name in map(plain_source, _names(device)) if name in places), None) for device in devices}
    return {name: place for name, place in found.items() if place is not None}


def _names(device: Device) -> Iterator[str]:
    """Give the names of a device in fstab; a name of the kernel is another device's after a restart."""
    yield from device.links
    if device.filesystem is not None:
        yield from (f"{tag}={value}" for tag, value in (("UUID", device.filesystem.uuid), ("LABEL", device.filesystem.label)) if value)
    if device.partition is not None and device.partition.uuid:
        yield f"PARTUUID={device.partition.uuid}"
    if device.kind in ("lvm", "crypt") and device.dev is not None:
        yield device.dev
