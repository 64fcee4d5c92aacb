# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is moved off disks that are emptied, by which steps, what cannot be moved, and what stays there. Pure.

The new disk gets its table first. A partition that takes something has a PARTUUID that says so, from that first write until all is there:
its content may be the only copy, so nothing is ever made over it, whatever `wipe` says. Each step begins wherever an earlier run was cut
off, and ends with the old member being none any more; so what is left to be moved is seen on the disks alone. ESPs, boot partitions
and swap are made on the new disk as any other, and those of the old one stay.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .._facts.present import Present
from .._facts.tree import Device
from .._schema.model import Layout
from .._steps.filesystem import CopyContents
from .._steps.partitions import WritePartitionTable
from .._steps.signatures import ClearSignatures
from .._steps.step import Step
from .._storage import zfs
from .._storage.btrfs import BTRFS
from .._storage.filesystems import SWAP
from .disks import FoundDisk
from .moved_arrays import forget_member, move_member
from .moved_contents import copy_contents, look_into, move_btrfs, move_zfs, of_one_btrfs
from .moved_groups import move_groups
from .moving import ARRAYS, LUKS, MADE_ANEW, MEMBER, PHYSICAL, Found, Ground, no_way
from .partitions import (
    Conditions,
    PartitionMatch,
    Status,
    describe,
    entry_of,
    is_begun,
    is_emptied,
    is_empty,
    is_ours,
    match_disk,
    new_table,
    occupied,
    partitions_of,
    plan_table,
)
from .replacing import Pair


@dataclass(frozen=True)
class Moves:
    """What is to be done before the layout is planned as ever: nothing where there are no steps and no refusals.

    `own` are the names of devices that may be overwritten, `kept` of those whose contents move, or are opened; `roots` are the disks whose
    former contents go. `openings`: the steps only open what has to be looked into.
    """

    steps: tuple[Step, ...] = ()
    refusals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    own: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    roots: tuple[Device, ...] = ()
    moved: tuple[tuple[str, PartitionMatch], ...] = ()
    openings: bool = False
    vague: bool = False
    """Whether the form in which contents come to the new disk is unknown before."""


def plan_moves(layout: Layout, present: Present, disks: Sequence[FoundDisk], pairs: Sequence[Pair]) -> Moves:
    """Return what is to be moved now; `disks` are the layout's."""
    begun = {pair.new.device.name for pair in pairs if _has_begun(present, pair)}
    fresh = {pair.new.device.name for pair in pairs} - begun
    matches = {
        match.desired.device: match
        for disk in disks
        for match in (
            (PartitionMatch(part, disk, Status.NEW) for part in disk.desired.partitions)
            if disk.device.name in fresh
            else match_disk(disk, present.tree)
        )
    }
    ground, found = Ground(layout, present, tuple(pairs), matches), Found()
    for pair in pairs:
        for device in _carriers(present, pair.old):
            _look_at(ground, found, pair, device)
    move_groups(ground, found)
    roots = [pair.new.device for pair in pairs if _plan_table(ground, found, pair, pair.new.device.name in fresh)]
    if not found.receiving and not found.steps and not found.last and not found.openings and not found.refusals:
        return Moves(notes=tuple(found.notes))
    if found.refusals:
        return Moves(refusals=tuple(dict.fromkeys(found.refusals)), notes=tuple(found.notes))
    steps = tuple(found.openings) or (*found.tables, *found.steps, *found.last)
    return Moves(
        steps=tuple(dict.fromkeys(steps)),
        notes=tuple(found.notes),
        own=_with_all_on(present, _overwritten(ground, found, fresh)),
        kept=_with_all_on(present, [*found.moved, *(name for pair in pairs for name in _names_on(present, pair))]),
        roots=tuple(roots),
        moved=tuple(found.moved.items()),
        openings=bool(found.openings),
        vague=found.vague,
    )


def _names_on(present: Present, pair: Pair) -> Iterator[str]:
    """Give the names of the partitions of both disks, and of the old one itself where it has none."""
    yield from (device.name for device in _carriers(present, pair.old))
    yield from (part.name for part in partitions_of(pair.new, present.tree))


def _with_all_on(present: Present, names: Iterable[str]) -> frozenset[str]:
    tree = present.tree
    return frozenset(each for name in names for each in (name, *(device.name for device in tree.descendants(name))))


def _overwritten(ground: Ground, found: Found, fresh: t.AbstractSet[str]) -> Iterator[str]:
    """Give the names of what may be overwritten: disks of which only a part of our table is there, and partitions that have yet to take."""
    for pair in ground.pairs:
        if pair.new.device.name in fresh and (is_begun(pair.new) or is_emptied(pair.new)):
            yield pair.new.device.name
    yield from found.emptied
    tree = ground.present.tree
    cleared = {node for step in found.steps if isinstance(step, (ClearSignatures, CopyContents)) for node in _cleared_by(step)}
    for match in ground.matches.values():
        if match.receiving and match.device is not None:
            on_it = (match.device, *tree.children(match.device.name))
            yield from (device.name for device in on_it if device.dev in cleared)


def _cleared_by(step: t.Union[ClearSignatures, CopyContents]) -> tuple[str, ...]:
    return step.devices if isinstance(step, ClearSignatures) else (step.new,)


def _has_begun(present: Present, pair: Pair) -> bool:
    """Return whether contents of the old disk are on the new one already, or its table is there for them."""
    matches = match_disk(pair.new, present.tree)
    if not is_ours(pair.new, matches, present.tree):
        return False
    there = [match.device for match in matches if match.device is not None]
    return any(match.receiving for match in matches) or any(_is_shared(present, device, pair) for device in there)


def _is_shared(present: Present, device: Device, pair: Pair) -> bool:
    """Return whether a partition of the new disk carries something together with the old one."""
    old, tree = pair.old.device.name, present.tree
    for each in (device, *tree.descendants(device.name)):
        if each.kind.startswith(ARRAYS) and any(old in present.disks_below(parent) for parent in each.parents):
            return True
        volume = present.physical_on(each.name)
        group = None if volume is None else volume.group_uuid
        others = [other.device for other in present.physical if group is not None and other.group_uuid == group]
        if any(other is not None and old in present.disks_below(other) for other in others):
            return True
        if (
            each.filesystem is not None
            and each.filesystem.type == BTRFS
            and any(old in present.disks_below(other.name) for other in of_one_btrfs(present, each))
        ):
            return True
    return False


def _plan_table(ground: Ground, found: Found, pair: Pair, fresh: bool) -> bool:
    """Plan the table of the new disk, and return whether something of before is destroyed by that."""
    tree, disk = ground.present.tree, pair.new
    here = [match for match in ground.matches.values() if match.disk is disk]
    receiving = {match.desired.unfinished: match.desired.receiving for match in found.receiving if match.disk is disk}
    if not fresh:
        table = plan_table(disk, here, Conditions(tree, (), True, ()))
        found.refusals += table.refusals
        found.openings += [table.restoring] if table.restoring is not None else []
        found.tables += [_receiving(step, receiving) for step in table.steps]
        return False
    if not receiving:
        return False
    found.refusals += _finished_before(ground, found, pair)
    deleted = any(name == disk.device.name for name, _start in ground.present.missing)
    free = not deleted and (is_empty(disk, tree) or is_begun(disk) or is_emptied(disk))
    found.refusals += [] if free else occupied(disk, tree)
    kept = [match.desired for match in here if match.desired.keep_data and match.desired.unfinished not in receiving]
    found.refusals += [f"{part.place}: keeps its data, but is made on {disk.words}; take keep_data away" for part in kept]
    found.tables.append(_receiving(new_table(disk, here), receiving))
    return not free


def _finished_before(ground: Ground, found: Found, pair: Pair) -> Iterator[str]:
    """Give why a disk takes nothing that has finished partitions: wipe was for what lay there before contents were moved to them."""
    there = [match for match in match_disk(pair.new, ground.present.tree) if match.status is Status.KEPT and match.device is not None]
    finished = [match.node for match in there if match.device is not None and entry_of(match.device).uuid == match.desired.uuid]
    nodes = [str(ground.present.tree.devices[name].dev) for name in found.moved if ground.pair_of(name) is pair]
    if finished:
        yield (
            f"replace: {pair.new.words} has finished partitions of this layout ({', '.join(finished)}), perhaps what was moved before; "
            f"nothing is made over them, even with wipe. Clear what is on {', '.join(nodes)} of {pair.old.words} by hand (wipefs --all), "
            f"leave {pair.old.desired.id} out of replace, or clear {pair.new.words} by hand if nothing there is needed"
        )


def _receiving(step: Step, receiving: Mapping[str, str]) -> Step:
    """Return the write of a table with the marks of partitions that take something, in the place of those of unfinished ones."""
    if not isinstance(step, WritePartitionTable):
        return step
    return replace(step, entries=tuple(replace(entry, uuid=receiving.get(entry.uuid, entry.uuid)) for entry in step.entries))


def _carriers(present: Present, old: FoundDisk) -> tuple[Device, ...]:
    """Return the partitions of a disk, or the disk itself where something is on it as a whole."""
    if old.device.table is not None:
        return tuple(part for part in partitions_of(old, present.tree) if part.running)
    return (old.device,) if old.device.signatures or present.tree.children(old.device.name) else ()


def _look_at(ground: Ground, found: Found, pair: Pair, device: Device) -> None:
    """Plan what becomes of what is on a partition of an old disk; volume groups are planned as a whole."""
    tree = ground.present.tree
    array = next((child for child in tree.children(device.name) if child.kind.startswith(ARRAYS) and child.running), None)
    if array is not None and not (array.inactive and array.parents == (device.name,)):
        move_member(ground, found, pair, device, array)
        return
    kind = device.filesystem.type if device.filesystem is not None else None
    if kind == MEMBER:
        forget_member(ground, found, pair, device, array)
    elif kind == LUKS:
        look_into(ground, found, pair, device)
    elif kind == BTRFS:
        move_btrfs(ground, found, pair, device, device)
    elif kind == zfs.MEMBER:
        move_zfs(ground, found, pair, device)
    elif kind == PHYSICAL or _is_made_anew(device):
        return
    elif kind is not None:
        copy_contents(ground, found, pair, device, kind)
    elif device.uses or device.claimed or any(child.running for child in tree.children(device.name)):
        found.refusals.append(no_way(pair, device, f"has {describe(tree, device)}"))


def _is_made_anew(device: Device) -> bool:
    """Return whether a partition is one that the new disk gets for itself: to start from, or swap."""
    entry = device.partition
    return (entry is not None and entry.type in MADE_ANEW) or (device.filesystem is not None and device.filesystem.type == SWAP)


def remains(present: Present, pair: Pair) -> str:
    """Return what is on an old disk from which everything was moved, in words."""
    there = describe(present.tree, pair.old.device) if pair.old.device.table or pair.old.device.signatures else "nothing"
    return f"replace: {pair.old.words} carries nothing of this layout any more; it still has {there}"
