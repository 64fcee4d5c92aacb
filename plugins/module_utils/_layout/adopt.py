# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A layout that was made by hand -> its static schema, which disk_layout takes over without a change.

Everything in the schema keeps its data. What a static schema has no words for, or what cannot be opened, is left out and
stays as it is; `notes` say what that is and why. Sizes are whole MiB: a partition that ends between two of them ends before in the schema,
which disk_layout takes for the same. Where one begins within a MiB is said in bytes.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .._facts.host import Host
from .._facts.present import LogicalVolume, Present, VolumeGroup, Zpool
from .._facts.reader import read_devices
from .._facts.select import LEFT_OUT, Disk, find_disks
from .._facts.signatures import TablePartition
from .._facts.tree import Device
from .._schema.model import DesiredDisk, Layout
from .._storage import gpt, zfs
from .._storage.btrfs import BTRFS
from .._storage.cache import MODES, is_fast_part, is_part
from .._storage.filesystems import FILESYSTEMS, NOT_MOUNTED, SWAP
from .._storage.lvm import is_extent, mapper_node
from .._storage.names import why_no_array, why_no_label, why_no_mount
from .._storage.raid import WRITE_MOSTLY, RaidLevel, array_options, write_mostly_mistake
from .._storage.units import MIB
from .boot_lines import BootLines, not_carried, read_boot_lines, with_boot_lines
from .disks import find_disks as find_layout_disks
from .partitions import describe, entry_of
from .read_present import read_present

Plain = dict[str, t.Any]

_METADATA = ("1.0", "1.1", "1.2")
_SWAP_PLACE = "[SWAP]"
_KEPT: Plain = {"keep_data": True}


# These lists are in every schema, empty or not.
_ALWAYS = ("parteds", "mds", "luks", "pvs", "vgs", "lvs", "fss")


@dataclass(frozen=True)
class Adopted:
    """What is there in the words of a schema: entries with the list that each belongs to, and notes on what was left out.

    `names` are what devices (by kernel names) are called in the schema.
    """

    entries: tuple[tuple[str, Plain], ...] = ()
    notes: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> dict[str, list[Plain]]:
        """The explicit static schema."""
        kinds = dict.fromkeys((*_ALWAYS, *(kind for kind, _entry in self.entries)))
        return {kind: [entry for other, entry in self.entries if other == kind] for kind in kinds}

    def having(self, kind: str, entry: Plain, names: t.Optional[Mapping[str, str]] = None) -> Adopted:
        """Return the same with one more entry, and with the names of devices that come with it."""
        return replace(self, entries=(*self.entries, (kind, entry)), names={**self.names, **(names or {})})

    def leaving_out(self, device: str, why: str) -> Adopted:
        """Return the same with a note on what is not in the schema."""
        return replace(self, notes=(*self.notes, f"{device} is left out of the schema, and stays as it is: {why}"))


Properties = Mapping[str, Mapping[str, Mapping[str, str]]]
"""What was set on the datasets of each ZFS pool (by paths below it) themselves."""


def adopt(
    present: Present, disks: Sequence[Disk], properties: t.Optional[Properties] = None, lines: t.Optional[BootLines] = None
) -> Adopted:
    """Return the static schema of these disks, with options from the `lines` of the host's tables."""
    found = Adopted()
    for disk in disks:
        found = _with_disk(found, present, disk)
    # An array can lie on nothing but partitions, a container on both, and a group on all of them; volumes can carry containers.
    for device in _running(present, "raid"):
        found = _with_array(found, present, device)
    found = _with_containers(found, present)
    for group in present.groups():
        found = _with_group(found, present, group)
    for pool in present.zpools:
        found = _with_zpool(found, present, pool, (properties or {}).get(pool.name, {}))
    found = _with_containers(found, present)
    for name in tuple(found.names):
        device = present.tree.devices[name]
        found = _with_filesystem(found, present, device)
        if device.uses and device.filesystem is None:
            found = found.leaving_out(f"what is on {_node(device)}", f"it is {' and '.join(device.uses)}")
    return found if lines is None else _with_lines(found, present, lines)


def _with_lines(found: Adopted, present: Present, lines: BootLines) -> Adopted:
    schema = with_boot_lines(found.schema, present.tree, found.names, lines)
    made = replace(found, entries=tuple((kind, entry) for kind, entries in schema.items() for entry in entries))
    for what, why in not_carried(schema, present.tree, found.names, lines):
        made = made.leaving_out(what, why)
    return made


def read_disks(host: Host, names: Sequence[str]) -> Layout:
    """Return a layout of nothing but the disks of these names, or of all that the host has to install on."""
    disks = find_disks(read_devices(host, []), [])
    own = names or [disk.id for disk in disks if disk.transport not in LEFT_OUT]
    return Layout(tuple(DesiredDisk(f"disks[{at}]", name, name, None, ()) for at, name in enumerate(own)))


def take_over(host: Host, names: Sequence[str]) -> tuple[Adopted, tuple[str, ...]]:
    """Return the static schema of what is on the disks of these names, all where there are none; and what is wrong with the names."""
    wanted = read_disks(host, names)
    present = read_present(host, wanted)
    disks, refusals = find_layout_disks(wanted, present, ())
    properties = {pool.name: _read_properties(host, pool) for pool in present.zpools}
    return adopt(present, [disk.disk for disk in disks], properties, read_boot_lines(host)), refusals


def _read_properties(host: Host, pool: Zpool) -> dict[str, dict[str, str]]:
    outcome = host.run(zfs.get_own_properties(pool.name))
    said = zfs.read_properties(outcome.stdout if outcome is not None and outcome.code == 0 else "")
    return {name[len(pool.name) + 1 :]: found for name, found in said.items() if "@" not in name}


def _running(present: Present, kind: str) -> Iterator[Device]:
    return (device for device in present.tree.devices.values() if device.kind.startswith(kind) and device.running and not device.inactive)


def _node(device: Device) -> str:
    return device.dev or device.name


# ---- partitions


def _with_disk(found: Adopted, present: Present, disk: Disk) -> Adopted:
    device = present.tree.devices[disk.device.name]
    if device.table is None or device.table.type != "gpt":
        if device.uses:
            return found.leaving_out(disk.id, f"it is {' and '.join(device.uses)}")
        if device.table is not None or device.signatures or present.tree.children(device.name):
            return found.leaving_out(disk.id, f"it has no GPT, but {describe(present.tree, device)}")
        return found
    names: dict[str, str] = {}
    partitions: list[Plain] = []
    parts = [part for part in present.tree.children(device.name) if part.partition is not None]
    before: t.Optional[Device] = None
    for part in sorted(parts, key=lambda part: entry_of(part).start):
        entry = entry_of(part)
        if not part.running:
            why = "the kernel does not know it, or has it in another place; have it read the table (partx --update), or restart the host"
            found = found.leaving_out(f"partition {entry.number} of {disk.id}", why)
        elif before is not None and entry.start < entry_of(before).start + entry_of(before).size:
            found = found.leaving_out(_node(part), f"it shares sectors with {_node(before)}")
        else:
            before, names[part.name] = part, gpt.partition_node(disk.id, entry.number)
            partitions.append(_partition(names[part.name], entry))
    if not partitions:
        return found
    # Other tools use the last MiB up to the backup of the table, which no schema may; without a size it does not say where that is.
    size = device.size // MIB
    sized = {"disk_size": size} if all(part["end"] <= size - gpt.TAIL for part in partitions) else {}
    table = {"name": disk.id, "disk_id": disk.id, **sized, "label": "gpt", "partitions": partitions}
    return found.having("parteds", table, names)


def _partition(name: str, entry: TablePartition) -> Plain:
    """Return a partition: whole MiB, and in bytes where it begins within one, and where it ends if that is the same one."""
    begin, stop = entry.start // MIB, entry.start + entry.size
    exact = {"start_bytes": entry.start} if entry.start % MIB else {}
    exact |= {"end_bytes": stop} if stop // MIB <= begin else {}
    place = {"count": entry.number, "begin": begin, "end": max(stop // MIB, begin + 1), **exact}
    label = {"partition_label": entry.name} if entry.name and gpt.why_no_name(entry.name) is None else {}
    return {"name": name, **place, "guid": entry.type, "uuid": entry.uuid, **label, **_KEPT}


# ---- arrays and containers


def _with_array(found: Adopted, present: Present, device: Device) -> Adopted:
    members = [found.names[name] for name in device.parents if name in found.names]
    title = str(device.title or "").rpartition(":")[2]
    name = next((name for name in (f"/dev/md/{title}", _node(device)) if name and why_no_array(name) is None), None)
    if not members:
        return found
    if len(members) < len(device.parents):
        return found.leaving_out(_node(device), "not all of its members are partitions of the schema")
    if device.kind not in list(RaidLevel) or device.metadata not in _METADATA or name is None:
        return found.leaving_out(_node(device), f"it is {device.kind} with metadata {device.metadata}")
    if device.slots is None or len(members) < device.slots:
        return found.leaving_out(_node(device), "it lacks a member")
    spares = {"spares": members[device.slots :]} if members[device.slots :] else {}
    options = array_options(device.details).unusual(RaidLevel(device.kind))
    there = device.details.get(WRITE_MOSTLY, ())
    slow = [found.names[name] for name in device.parents if name in found.names and present.tree.devices[name].dev in there]
    if slow and write_mostly_mistake(RaidLevel(device.kind), device.slots, len(slow), len(members) - device.slots) is None:
        options[WRITE_MOSTLY] = slow
    shape = {"level": device.kind, "devices": members[: device.slots], "metadata": device.metadata, **spares, **options}
    entry = {"name": name, **shape, **_KEPT}
    return found.having("mds", entry, {device.name: name})


def _with_containers(found: Adopted, present: Present) -> Adopted:
    for name, below in tuple(found.names.items()):
        device = present.tree.devices[name]
        if device.filesystem is None or device.filesystem.type != "crypto_LUKS":
            continue
        opened = _opened(present, device)
        if opened is not None and opened.name not in found.names:
            mapping = _node(opened).rpartition("/")[2]
            entry = {"name": mapping, "device": below, **_KEPT}
            found = found.having("luks", entry, {opened.name: f"/dev/mapper/{mapping}"})
    return found


def _opened(present: Present, device: Device) -> t.Optional[Device]:
    return next((child for child in present.tree.children(device.name) if child.kind == "crypt" and child.running), None)


# ---- LVM


def _with_group(found: Adopted, present: Present, group: VolumeGroup) -> Adopted:
    on = [volume.device for volume in group.physical]
    here = [found.names[device] for device in on if device is not None and device in found.names]
    if not here:
        return found
    if len(here) < len(on):
        return found.leaving_out(f"the volume group {group.name}", "not all of its physical volumes are in the schema")
    if not is_extent(group.extent_size // MIB):
        return found.leaving_out(f"the volume group {group.name}", f"its extents are of {group.extent_size} bytes")
    for name in here:
        found = found.having("pvs", {"name": name, **_KEPT})
    found = found.having("vgs", {"name": group.name, "pvnames": here, "extent_size": group.extent_size // MIB, **_KEPT})
    for volume in group.volumes:
        found = _with_volume(found, present, group, volume)
    return found


def _with_volume(found: Adopted, present: Present, group: VolumeGroup, volume: LogicalVolume) -> Adopted:
    device, physical = present.device_of(volume), {known.device for known in group.physical}
    entry = {**volume.entry, **_KEPT}
    if volume.is_pool:
        return found.having("thin_pools", entry)
    if device is None or not device.running:
        return found.leaving_out(_title(group, volume), "it is not active")
    name = {device.name: mapper_node(group.name, volume.name)}
    if volume.pool:
        return found.having("lvs", entry, name)
    if volume.cache:
        cache = _cache(found, present, group, volume, device)
        if cache is None:
            return found.leaving_out(_title(group, volume), "it is cached in another way than by all of one physical volume")
        return found.having("lvs", entry, name).having("caches", cache)
    if not set(device.parents) <= physical or any(child.kind == "lvm" for child in present.tree.children(device.name)):
        return found.leaving_out(_title(group, volume), "it is not a linear volume")
    return found.having("lvs", entry, name)


def _title(group: VolumeGroup, volume: LogicalVolume) -> str:
    return f"the logical volume {group.name}/{volume.name}"


def _cache(found: Adopted, present: Present, group: VolumeGroup, volume: LogicalVolume, device: Device) -> t.Optional[Plain]:
    """Return the cache of a volume, if it is all of one physical volume, and the volume linear on others."""
    slow, fast = _below_cached(present, device)
    physical = {str(known.device): known.free for known in group.physical}
    alone = len(fast) == 1 and physical.get(next(iter(fast))) == 0
    if not alone or not slow or not slow <= set(physical) - fast or volume.mode not in MODES:
        return None
    (on,) = fast
    entry = {"name": volume.cache, "vgname": group.name, "origin": volume.name, "device": found.names[on], "mode": volume.mode}
    return {**entry, **_KEPT}


def _below_cached(present: Present, device: Device) -> tuple[set[str], set[str]]:
    """Return what a cached volume lies on, and what its cache does."""
    slow: set[str] = set()
    fast: set[str] = set()
    todo = [(present.tree.devices[name], slow) for name in device.parents]
    while todo:
        part, below = todo.pop()
        if not (part.is_part and is_part(_node(part))):
            below.add(part.name)
            continue
        below = fast if is_fast_part(_node(part)) else below
        todo += [(present.tree.devices[name], below) for name in part.parents]
    return slow, fast


# ---- ZFS


def _with_zpool(found: Adopted, present: Present, pool: Zpool, own: Mapping[str, Mapping[str, str]]) -> Adopted:
    """Return the same with a pool, if a schema has words for the whole pool; its datasets with what was set on them."""
    members = [device for device in present.tree.devices.values() if device.table is None and present.zpool_on(device) is pool]
    if not any(device.name in found.names for device in members):
        return found
    title = f"the ZFS pool {pool.name}"
    if not all(device.name in found.names for device in members):
        return found.leaving_out(title, "not all of its devices are partitions of the schema")
    kinds = [zfs.vdev_kind(vdev.name) for vdev in pool.vdevs]
    if pool.health not in zfs.WHOLE or None in kinds or not any(vdev.part is None for vdev in pool.vdevs):
        return found.leaving_out(title, f"it is {pool.health}, or has vdevs of other kinds than are made here")
    mount = own.get("", {}).get("mountpoint", f"/{pool.name}")
    if mount != zfs.NOT_MOUNTED and not mount.startswith("/"):
        return found.leaving_out(title, f"its mount point is {mount}, which is for others than ZFS to mount")
    known = [(vdev, {"type": str(kind), "devices": [found.names[name] for name in vdev.devices]}) for vdev, kind in zip(pool.vdevs, kinds)]
    parts: dict[str, list[t.Any]] = {"vdevs": [made for vdev, made in known if vdev.part is None]}
    parts["logs"] = [made for vdev, made in known if vdev.part is zfs.Part.LOG]
    for key, part in (("caches", zfs.Part.CACHE), ("spares", zfs.Part.SPARE)):
        parts[key] = [device for vdev, made in known if vdev.part is part for device in made["devices"]]
    datasets = [{"name": name, **_dataset(own.get(name, {}))} for name in sorted(pool.datasets) if name and _may_be_listed(name, own)]
    root = {**_dataset(own.get("", {})), "mount": mount}
    entry = {"name": pool.name, **{key: made for key, made in parts.items() if made}, **root, "datasets": datasets}
    return found.having("zpools", entry)


def _may_be_listed(name: str, own: Mapping[str, Mapping[str, str]]) -> bool:
    """Return whether a dataset can be in a schema; volumes, and what others mount, stay out of the schema."""
    mount = own.get(name, {}).get("mountpoint", zfs.NOT_MOUNTED)
    return zfs.is_dataset_name(name) and "volsize" not in own.get(name, {}) and (mount == zfs.NOT_MOUNTED or mount.startswith("/"))


def _dataset(own: Mapping[str, str]) -> Plain:
    """Return what was set on a dataset; sizes that are not whole MiB, and what a schema has no words for, stay as they are."""
    sizes = {key: int(own[key]) for key in ("quota", "reservation") if own.get(key, "").isdigit()}
    mount = {"mount": own["mountpoint"]} if "mountpoint" in own else {}
    properties = {name: value for name, value in own.items() if zfs.why_no_property(name, value) is None}
    made = {**mount, **{key: size // MIB for key, size in sizes.items() if size and size % MIB == 0}}
    return {**made, "properties": properties} if properties else made


# ---- file systems


def _with_filesystem(found: Adopted, present: Present, device: Device) -> Adopted:
    there = device.filesystem
    if there is None or there.type.endswith("_member"):
        return found
    if there.type == "crypto_LUKS":
        if _opened(present, device) is None:
            return found.leaving_out(f"the LUKS container on {_node(device)}", "it is closed; open it to have its contents included")
        return found
    if there.type not in FILESYSTEMS:
        return found.leaving_out(f"the {there.type} on {_node(device)}", "it is none of the file systems that are made here")
    if there.type == BTRFS and _count(present, there.uuid) > 1:
        return found.leaving_out(f"the {there.type} on {_node(device)}", "it is on several devices")
    said = why_no_label(there.type, there.label or "", FILESYSTEMS[there.type].label_length)
    label = {"fs_label": there.label} if there.label and said is None else {}
    entry = {"device": found.names[device.name], "fs_type": there.type, "mount": _mount(device), "uuid": there.uuid}
    return found.having("fss", {**entry, **label, **_KEPT})


def _count(present: Present, uuid: t.Optional[str]) -> int:
    return sum(device.filesystem is not None and device.filesystem.uuid == uuid for device in present.tree.devices.values())


def _mount(device: Device) -> str:
    """Return where it is mounted; of a Btrfs subvolumes are, of which nothing is known here."""
    filesystem: Mapping[str, t.Any] = {} if device.filesystem is None else vars(device.filesystem)
    if filesystem.get("type") == SWAP:
        return SWAP if _SWAP_PLACE in device.mountpoints else NOT_MOUNTED
    places = [place for place in device.mountpoints if why_no_mount(place) is None and filesystem.get("type") != BTRFS]
    return min(places, key=len, default=NOT_MOUNTED)
