# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state as it is when contents have been moved to other disks, so that the steps behind the moves are known before them. Pure.

What is built on a device is built on that which takes its contents; a new disk has its table.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from .._facts.present import LogicalVolume, PhysicalVolume, Present, Zpool
from .._facts.signatures import Signature, Table, TablePartition
from .._facts.tree import Device, Tree
from .._steps.luks import CloseMapping
from .._steps.partitions import TableEntry, WritePartitionTable
from .disks import FoundDisk
from .moves import Moves

_Values = t.TypeVar("_Values")


def after_moves(present: Present, disks: Sequence[FoundDisk], moves: Moves) -> Present:
    """Return the state after all steps of moves."""
    tree = _with_tables(present.tree, disks, moves)
    tree, closed = _without_new_containers(_without_empty_containers(tree, moves), moves)
    names = {old: _name(match.node) for old, match in moves.moved}
    moved = {old: tree.devices[new] for old, new in names.items() if new in tree.devices and old in tree.devices}
    growth = {old: new.size - tree.devices[old].size for old, new in moved.items()}
    tree = _with_moved(tree, moved)
    renamed = {old: new.name for old, new in moved.items()}
    tops = {**growth, **{child.name: growth[old] for old in moved for child in present.tree.children(old) if child.kind == "crypt"}}
    return replace(
        present,
        tree=tree,
        physical=tuple(
            _physical(volume, renamed, tops)
            for volume in present.physical
            if volume.device not in closed and not _is_doubled(present, volume, renamed)
        ),
        logical=tuple(_logical(volume, renamed) for volume in present.logical),
        filesystem_sizes=_by_new_name(present.filesystem_sizes, renamed),
        last_mounts=_by_new_name(present.last_mounts, renamed),
        zpools=tuple(_zpool(pool, renamed) for pool in present.zpools),
    )


def _name(node: str) -> str:
    return node.rsplit("/", 1)[-1]


def _by_new_name(values: Mapping[str, _Values], names: Mapping[str, str]) -> dict[str, _Values]:
    return {names.get(name, name): value for name, value in values.items()}


def _with_tables(tree: Tree, disks: Sequence[FoundDisk], moves: Moves) -> Tree:
    """Return the tree with the tables that are written, and their partitions: those that are there stay as they are."""
    by_node = {disk.node: disk for disk in disks}
    for step in moves.steps:
        if not isinstance(step, WritePartitionTable):
            continue
        disk = by_node[step.disk].device
        parts = {entry.number: _entry(entry) for entry in step.entries}
        unknown = {child.name for child in tree.children(disk.name) if child.partition is not None and not child.running}
        gone = {device.name for device in (disk, *tree.descendants(disk.name))} if step.fresh else unknown
        left = Tree({name: device for name, device in tree.devices.items() if name not in gone})
        sector = disk.logical_block
        table = Signature("gpt", step.uuid, None, (sector, disk.size - sector))
        changed = replace(
            disk, table=Table("gpt", step.uuid, tuple(parts.values())), signatures=(table,), remains=None, begun=None, filesystem=None
        )
        tree = left.with_devices([changed, *_partitions(left, step, parts)])
    return tree


def _entry(entry: TableEntry) -> TablePartition:
    return TablePartition(entry.number, entry.start, entry.size, entry.type, entry.name or None, entry.uuid, entry.attrs)


def _partitions(tree: Tree, step: WritePartitionTable, parts: Mapping[int, TablePartition]) -> Iterator[Device]:
    disk = _name(step.disk)
    for number, part in parts.items():
        node = step.node(number)
        there = tree.by_node(node)
        if there is not None:
            yield replace(there, partition=part)
        else:
            yield Device(_name(node), node, "part", part.size, (disk,), partition=part, read=True, row={})


def _without_empty_containers(tree: Tree, moves: Moves) -> Tree:
    """Return the tree without containers from which all was moved before, and which are only closed."""
    nodes = {step.node for step in moves.steps if isinstance(step, CloseMapping)}
    moved = {old for old, _match in moves.moved}
    return Tree({name: device for name, device in tree.devices.items() if device.dev not in nodes or moved.intersection(device.parents)})


def _without_new_containers(tree: Tree, moves: Moves) -> tuple[Tree, frozenset[str]]:
    """Return the tree without open containers on new devices, what is on them on those of the old ones, and the names of the former."""
    names = {
        child.name: own.name
        for old, match in moves.moved
        for own in tree.children(old)
        if own.kind == "crypt" and own.running
        for child in tree.children(_name(match.node))
        if child.kind == "crypt"
    }
    left = {
        name: replace(device, parents=tuple(dict.fromkeys(names.get(parent, parent) for parent in device.parents)))
        for name, device in tree.devices.items()
        if name not in names
    }
    return Tree(left), frozenset(names)


def _with_moved(tree: Tree, moved: Mapping[str, Device]) -> Tree:
    """Return the tree with the contents of devices on others."""
    names = {old: new.name for old, new in moved.items()}
    changed: dict[str, Device] = {}
    for old, new in moved.items():
        source = tree.devices[old]
        changed[new.name] = replace(
            new, filesystem=source.filesystem, signatures=source.signatures, luks=source.luks, read=True, mountpoints=source.mountpoints
        )
        table = source.signatures if source.table is not None else ()
        changed[old] = replace(source, filesystem=None, signatures=table, luks=None, mountpoints=(), openers=(), claimed=None)
    for device in tree.devices.values():
        if names.keys() & set(device.parents) and device.partition is None:
            parents = tuple(dict.fromkeys(names.get(parent, parent) for parent in device.parents))
            more = sum(new.size - tree.devices[old].size for old, new in moved.items() if old in device.parents)
            changed[device.name] = replace(device, parents=parents, size=device.size + (more if device.kind == "crypt" else 0))
    return tree.with_devices(changed.values())


def _is_doubled(present: Present, volume: PhysicalVolume, names: Mapping[str, str]) -> bool:
    """Return whether a group is on the new device already, or that is a physical volume that has yet to join it."""
    there = present.physical_on(names.get(str(volume.device), ""))
    taken = volume.group is None and volume.device in names.values()
    return taken or (there is not None and there.group is not None)


def _physical(volume: PhysicalVolume, names: Mapping[str, str], growth: Mapping[str, int]) -> PhysicalVolume:
    if volume.device not in growth:
        return volume
    device, extent = str(volume.device), volume.extent_size or 1
    more = growth.get(device, 0)
    size = (volume.device_size + more - volume.data_start) // extent * extent
    return replace(
        volume,
        device=names.get(device, device),
        device_size=volume.device_size + more,
        size=size,
        free=max(0, volume.free + size - volume.size),
        tail=0,
    )


def _logical(volume: LogicalVolume, names: Mapping[str, str]) -> LogicalVolume:
    return replace(volume, extents=_by_new_name(volume.extents, names))


def _zpool(pool: Zpool, names: Mapping[str, str]) -> Zpool:
    vdevs = (replace(vdev, devices=tuple(names.get(name, name) for name in vdev.devices)) for vdev in pool.vdevs)
    return replace(pool, vdevs=tuple(vdevs))
