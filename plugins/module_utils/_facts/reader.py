# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the block devices of a host into one tree: first what there is, then what is written on the devices that matter.

If a tool is missing or fails, its facts are missing; the notes say which, and become warnings.
"""

from __future__ import annotations

import posixpath
import typing as t
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from .._storage import btrfs, zfs
from . import lsblk, signatures, sysfs, udev
from .blank import begun_table, find_remains
from .host import Host, Outcome
from .mounts import read_mounts
from .signatures import Signature, Table, TablePartition
from .stacks import MEMBER, SUPERBLOCK_BYTES, member_uuid
from .tree import PARTITION_TABLES, Device, Filesystem, Tree, build_tree, merge_rows, share_btrfs_mounts

Notes = list[str]

_PARTS_OF_GPT = frozenset({"gpt", "PMBR"})
_PROTECTIVE = "0xee"
_MEMBERS: Mapping[str, tuple[t.Optional[int], int, t.Callable[[bytes], t.Optional[str]]]] = {
    MEMBER: (None, SUPERBLOCK_BYTES, member_uuid),
    btrfs.BTRFS: (btrfs.SUPERBLOCK, btrfs.SUPERBLOCK_BYTES, btrfs.member_uuid),
    zfs.MEMBER: (zfs.LABEL, zfs.LABEL_BYTES, zfs.member_guid),
}
"""By type of signature where it says which of its members a device is: offset (None: that of the signature), length, reader."""


def read_devices(host: Host, notes: Notes) -> Tree:
    """Return all block devices with their identity and mounts, without looking at what is written on them."""
    from_sysfs = sysfs.read_rows(host)
    rows = merge_rows(_read_lsblk(host, notes), _read_udev(host, from_sysfs, notes), from_sysfs)
    if not from_sysfs:
        notes.append("/sys/class/block cannot be read, or is empty: where disks are attached is known only by their links")
    return build_tree(rows, udev.read_links(host), read_mounts(host))


def read_contents(host: Host, tree: Tree, disks: Iterable[str], notes: Notes) -> Tree:
    """Return the tree with the partition tables and signatures of the disks of these names and of all that is built on them."""
    disks = tuple(disks)
    known = _read_signatures_at_once(host, [device for name in disks for device in (tree.devices[name], *tree.descendants(name))])
    for name in disks:
        tree = _read_table(host, tree, tree.devices[name], notes)
        for device in tree.descendants(name):
            if device.kind.startswith("raid") and not device.inactive:
                tree = _read_table(host, tree, device, notes)
        tree = _read_all_signatures(host, tree, name, known)
    return share_btrfs_mounts(_read_members(host, tree))


def _read_members(host: Host, tree: Tree) -> Tree:
    """Return the tree with what md, Btrfs and ZFS call their members; superblocks of md of the version 0.90 have no name for one."""
    found = []
    for device in tree.devices.values():
        signature = next((signature for signature in device.signatures if signature.type in _MEMBERS), None)
        if device.dev is None or signature is None or device.row.get("suspended"):
            continue
        place, size, read = _MEMBERS[signature.type]
        offset = next(iter(signature.offsets), None) if place is None else place
        try:
            uuid = read(host.read_bytes(device.dev, offset, size)) if offset is not None else None
        except OSError:
            continue
        found += [replace(device, member=uuid)] if uuid is not None else []
    return tree.with_devices(found)


def read_claims(host: Host, tree: Tree, disks: Iterable[str]) -> Tree:
    """Return the tree with `claimed` known for all that nothing visible uses of the disks of these names, their partitions and volumes.

    In a container, and under ZFS, nothing else would show that a disk is in use.
    """
    changed: dict[str, Device] = {}
    for name in disks:
        disk, below = tree.devices[name], tree.descendants(name)
        idle = [device for device in below if device.dev is not None and not device.is_part and _is_idle(tree, device)]
        asked = [replace(device, claimed=host.claimed(str(device.dev))) for device in idle if device.name not in changed]
        changed.update({device.name: device for device in asked})
        mapped = any(device.kind == "part" and device.row.get("dm-uuid") for device in below)
        # The kernel claims the whole disk for the user of any of its partitions.
        if not mapped and disk.dev is not None and not is_visibly_used(disk, below) and not any(device.claimed for device in asked):
            changed[name] = replace(disk, claimed=host.claimed(disk.dev))
    return tree.with_devices(changed.values())


def _is_idle(tree: Tree, device: Device) -> bool:
    """Return whether nothing visible uses a device itself: it is not mounted, and nothing that runs is built on it."""
    return not device.mountpoints and not any(child.running for child in tree.children(device.name))


def read_remains(host: Host, tree: Tree, places: Mapping[str, Sequence[int]]) -> Tree:
    """Return the tree with `openers` of the disks of these names and all on them, and `remains` of those that seem empty.

    `places` are by name where a run is to clear a MiB of a disk, in bytes.
    """
    disks = places.keys()
    devices = [device for name in disks for device in (tree.devices[name], *tree.descendants(name)) if device.dev is not None]
    nodes = {device.name: frozenset({str(device.dev), host.resolve(str(device.dev)) or ""}) - {""} for device in devices}
    openers = host.openers(frozenset(node for those in nodes.values() for node in those))
    changed = []
    for device in devices:
        found = tuple(sorted(process for node in nodes[device.name] for process in openers.get(node, ())))
        remains = (
            find_remains(host, str(device.dev), device.size, places=places.get(device.name, ())) if _seems_empty(tree, device) else None
        )
        # Whether nothing is known about a whole disk but parts of a GPT; one protective entry counts as a table of
        # its own kind.
        types = {signature.type for signature in device.signatures}
        protective = device.table is None or (
            device.table.type == "dos" and {part.type for part in device.table.partitions} == {_PROTECTIVE}
        )
        running = any(child.running for child in tree.children(device.name))
        half = bool(types) and types <= _PARTS_OF_GPT and protective and not running and device.partition is None and not device.mountpoints
        there = places.get(device.name, ())
        begun = begun_table(host, str(device.dev), device.size, device.logical_block, there) if half else None
        changed.append(replace(device, openers=found, remains=remains, begun=begun))
    return tree.with_devices(changed)


def _seems_empty(tree: Tree, device: Device) -> bool:
    """Return whether nothing is known about what is on a whole disk; reading a suspended one would hang."""
    if not device.read or device.table is not None or device.signatures or device.mountpoints or device.row.get("suspended"):
        return False
    return device.partition is None and not tree.children(device.name) and (not device.parents or device.kind == "mpath")


def is_visibly_used(disk: Device, below: Iterable[Device]) -> bool:
    """Return whether a disk is mounted, swap, or under something that runs."""
    below = tuple(below)
    mounted = any(device.mountpoints for device in (disk, *below))
    return mounted or any(device.running and device.kind != "part" for device in below)


def _read_lsblk(host: Host, notes: Notes) -> lsblk.Rows:
    help_text = _output(host.run(["lsblk", "--help"])) or ""
    listed = _output(host.run(lsblk.COLUMNS_COMMAND)) or "" if lsblk.lists_columns_apart(help_text) else help_text
    columns = lsblk.known_columns(help_text, listed)
    if not columns:
        notes.append("lsblk is missing, failed or is older than 2.27: devices are read from sysfs and udev only")
        return {}
    try:
        return lsblk.parse_rows(_output(host.run(lsblk.list_command(columns))) or "")
    except ValueError as error:
        notes.append(f"the output of lsblk cannot be used ({error}): devices are read from sysfs and udev only")
        return {}


def _read_udev(host: Host, names: Collection[str], notes: Notes) -> lsblk.Rows:
    """Return what udev knows of the devices of these names; of all that there are where it cannot be asked for some only."""
    rows = udev.parse_rows(_output(host.run(udev.some_command(names))) or "") if names else {}
    if names and rows.keys() >= set(names):
        return rows
    text = _output(host.run(udev.COMMAND))
    if text is None:
        notes.append("udevadm is missing or failed: vendor, model, serial and wwn come from lsblk and sysfs only")
    return udev.parse_rows(text or "")


def _output(outcome: t.Optional[Outcome]) -> t.Optional[str]:
    return outcome.stdout if outcome is not None and outcome.code == 0 else None


def _read_table(host: Host, tree: Tree, disk: Device, notes: Notes) -> Tree:
    """Return the tree with a disk's partition table: as sfdisk reads it, else as blkid and the kernel have it."""
    if disk.dev is None or disk.kind == "rom":
        return tree
    outcome = host.run(signatures.table_command(disk.dev))
    if outcome is not None and outcome.code == 0:
        try:
            return _with_table(tree, disk, signatures.parse_table(outcome.stdout, disk.logical_block), notes)
        except (ValueError, KeyError, TypeError) as error:
            notes.append(f"{disk.dev}: the output of sfdisk cannot be used ({error!r})")
    elif outcome is not None and signatures.has_no_table(outcome.stderr):
        return tree.with_devices([replace(disk, table=None, row={**disk.row, "pttype": None})])
    # The tree with the table that blkid finds on a disk, or udev knows; its partitions are the kernel's.
    said = signatures.parse_probe(_output(host.run(signatures.probe_command(disk.dev))) or "")
    kind, uuid = said.get("PTTYPE") or disk.row.get("pttype"), said.get("PTUUID") or disk.row.get("ptuuid")
    partitions = [_probed_partition(host, child) for child in tree.children(disk.name) if child.partition is not None]
    if kind is None and not partitions:
        return tree
    table = Table(kind, uuid, tuple(child.partition for child in partitions if child.partition is not None)) if kind else None
    return tree.with_devices([replace(disk, table=table), *partitions])


def _probed_partition(host: Host, device: Device) -> Device:
    if device.partition is None or device.partition.uuid is not None or device.dev is None:
        return device
    said = signatures.parse_probe(_output(host.run(signatures.probe_command(device.dev))) or "")
    if "PART_ENTRY_UUID" not in said:
        return device
    kind = said.get("PART_ENTRY_TYPE")
    return replace(
        device,
        partition=replace(device.partition, type=kind, name=said.get("PART_ENTRY_NAME"), uuid=said["PART_ENTRY_UUID"]),
    )


def _with_table(tree: Tree, disk: Device, table: Table, notes: Notes) -> Tree:
    """Return the tree with the table's partitions: the kernel's nodes where it has them, devices without a node where it has not."""
    known = {child.partition.number: child for child in tree.children(disk.name) if child.partition is not None}
    changed = [replace(disk, table=table)]
    for partition in table.partitions:
        device = known.pop(partition.number, None)
        if device is None:
            changed.append(
                Device(f"{disk.name}#{partition.number}", None, "part", partition.size, (disk.name,), disk.row, partition=partition)
            )
        else:
            kernel = t.cast(TablePartition, device.partition)
            changed.append(
                replace(device, partition=replace(partition, name=partition.name or kernel.name, uuid=partition.uuid or kernel.uuid))
            )
            if not _agree(kernel, partition, device):
                notes.append(
                    f"{device.dev}: start or size in the kernel differ from the partition table on {disk.dev}; the table's are used"
                )
    notes.extend(f"{device.dev}: the kernel still has it, but it is not in the partition table on {disk.dev}" for device in known.values())
    return tree.with_devices(changed)


def _agree(kernel: TablePartition, written: TablePartition, device: Device) -> bool:
    """Return whether kernel and table mean the same room.

    The kernel shows only the first sectors of an extended partition, and no start of a mapped one.
    """
    extended = written.type in {"0x5", "0xf", "0x85"}
    same_start = device.row.get("start") is None or kernel.start == written.start
    return same_start and (extended or kernel.size == written.size)


def _read_signatures_at_once(host: Host, devices: Iterable[Device]) -> Mapping[str, tuple[Signature, ...]]:
    """Return the signatures on devices, by their nodes, from one run of wipefs; nothing where that fails: each is read alone then.

    It names devices by the last part of their path, and ends with the first that it cannot read: then it is asked for the others.
    """
    nodes = [str(device.dev) for device in devices if device.dev is not None and device.size and not device.row.get("suspended")]
    text = _output(host.run(signatures.several_command(nodes))) if nodes else None
    if nodes and text is None:
        readable = [node for node in nodes if _can_be_read(host, node)]
        fewer = 0 < len(readable) < len(nodes)
        nodes, text = readable, _output(host.run(signatures.several_command(readable))) if fewer else None
    named = {posixpath.basename(node): node for node in nodes}
    found = signatures.parse_several(text or "")
    return {node: found.get(name, ()) for name, node in named.items()} if text is not None and found.keys() <= named.keys() else {}


def _can_be_read(host: Host, node: str) -> bool:
    try:
        return bool(host.read_bytes(node, 0, signatures.SECTOR))
    except OSError:
        return False


def _read_all_signatures(host: Host, tree: Tree, name: str, known: Mapping[str, tuple[Signature, ...]]) -> Tree:
    """Return the tree with all that is written on a disk; the disk comes first, for partitions without a node are read through it."""
    tree = tree.with_devices([_read_signatures(host, tree, tree.devices[name], known)])
    return tree.with_devices([_read_signatures(host, tree, device, known) for device in tree.descendants(name)])


def _read_signatures(host: Host, tree: Tree, device: Device, known: Mapping[str, tuple[Signature, ...]]) -> Device:
    """Return the device with what is written on it: by its node, a partition without one through its disk, else what udev knows."""
    if device.inactive:
        return replace(device, read=True)
    if device.is_part:
        # What is on a volume in a pool shows on the pool's data as well, where the volume's first chunk happens to lie.
        return replace(device, read=True, signatures=(), filesystem=None)
    if device.dev is not None and device.dev in known:
        return _with_signatures(device, known[device.dev])
    if not device.row.get("suspended") and device.dev is not None:
        text = _output(host.run(signatures.signatures_command(device.dev)))
        if text is not None:
            return _with_signatures(device, signatures.parse_signatures(text))
    disk = tree.devices[device.parents[0]] if device.kind == "part" and device.partition is not None else None
    if disk is not None and disk.dev is not None and device.partition is not None:
        outcome = host.run(signatures.probe_command(disk.dev, device.partition.start, device.partition.size))
        # blkid's code is 2 when there is nothing, and as well when it cannot look
        if outcome is not None and (outcome.code == 0 or (outcome.code == 2 and tree.devices[disk.name].read)):
            said = signatures.parse_probe(outcome.stdout)
            return _with_signatures(device, ((Signature(said["TYPE"], said.get("UUID"), said.get("LABEL")),) if "TYPE" in said else ()))
    there = device.filesystem
    return replace(device, signatures=(Signature(there.type, there.uuid, there.label),) if there is not None else ())


def _with_signatures(device: Device, found: tuple[Signature, ...]) -> Device:
    """Return the device as it was read; of several signatures the one counts that udev or the mount names, else the first."""
    contents = [signature for signature in found if signature.type not in PARTITION_TABLES]
    named = device.filesystem.type if device.filesystem is not None else None
    chosen = next((signature for signature in contents if signature.type == named), contents[0] if contents else None)
    filesystem = Filesystem(chosen.type, chosen.uuid, chosen.label) if chosen is not None else None
    return replace(device, signatures=found, filesystem=filesystem, read=True)
