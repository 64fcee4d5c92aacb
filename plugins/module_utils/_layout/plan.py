# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""(present state, desired layout) -> ordered steps. Pure.

The way of a run: `parse_static_schema(raw) -> Layout` (raises `SchemaMistakes`, all at once),
`read_present(host, layout) -> Present`, then `plan_steps`. A second plan_steps after the steps gives none.

What may be destroyed: what is on a disk of `wipe` and in the way of the layout. Permission is not an order: contents as desired stay.
The first thing that is destroyed on a disk is its table, by the one write that marks the new partitions as ours and unfinished. A run that
is cut off before has lost nothing, one that is cut off later needs no permission any more: what is unfinished is made again, what is
finished stays. A filesystem on several devices that is made again is marked so on all its disks before. The steps close present contents,
write the tables, clear the new partitions and build on them; partitions are marked as finished when all on them up to the filesystem or
the volume group is complete, logical volumes when their filesystems are. What is alike is done together: udev is waited for once, and
marks of finished partitions take one write of a table.
"""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from .._facts.present import Present
from .._facts.select import ALL_DISKS, Selection
from .._facts.tree import Device
from .._schema.model import Layout
from .._steps.step import Step
from .._storage.units import MIB
from .arrays import array_growth, array_of, overwritten_in
from .build import building_steps, removals
from .build_contents import Site
from .clashes import identity_notes
from .contents import condemned_by, judge_stacks, keeps_data, look, top_of, unused_below
from .disks import FoundDisk, check_fingerprint, find_disks
from .losses import DiskLoss, find_losses
from .partitions import (
    Conditions,
    PartitionMatch,
    Status,
    TablePlan,
    gone_partitions,
    is_begun,
    is_emptied,
    is_first_copy_whole,
    is_given_up,
    lose,
    mark_for_loss,
    match_disk,
    partitions_of,
    plan_table,
)
from .protected import Protection, unmatched
from .salted import with_salts
from .stack import Action, Stack
from .teardown import Destroyed, staying_devices, teardown_refusals, teardown_steps
from .unfinished import with_strangers

if t.TYPE_CHECKING:
    from .volume_groups import GroupPlan


@dataclass(frozen=True)
class LayoutPlan:
    """What is to be done.

    With any of `refusals` (sentences, all at once) `steps` is empty and nothing may be done. `notes` are worth a warning.
    With `again` the steps only open what has to be looked into: a table that is half there, or that the kernel does not know, an array
    that is stopped or runs without a member, a container that is closed. After them the state is to be read and planned again. `losses` are
    what the steps destroy.
    """

    steps: tuple[Step, ...] = ()
    refusals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    again: bool = False
    losses: tuple[DiskLoss, ...] = ()
    later: tuple[Step, ...] = ()
    """What follows as far as it is known, where the state is to be planned again: for check mode, after what is moved off a disk."""


def plan_steps(
    layout: Layout,
    present: Present,
    wipe: Iterable[str] = (),
    keep_unlisted: bool = True,
    fingerprint: t.Optional[str] = None,
    protections: Sequence[Protection] = (),
    selection: Selection = ALL_DISKS,
) -> LayoutPlan:
    """Return the steps from the present state to the layout, or every reason why there are none.

    `wipe` are the ids of disks on which what is in the way may be destroyed. Without `keep_unlisted` partitions and logical volumes
    that the layout does not have are removed as well, on disks that are in `wipe` and carry the layout already; on all others they stay.
    `fingerprint` is that of the hardware the layout was planned for; None: it was not planned for any. `protections` win over `wipe`.
    `selection` names the disks in the facts of the plan.
    """
    disks, refusals = find_disks(layout, present, wipe, protections)
    layout, disks = with_salts(layout, present, disks)
    plan = plan_layout(layout, present, disks, (*refusals, *check_fingerprint(fingerprint, disks, present, (), selection)), keep_unlisted)
    return concluded(layout, present, disks, plan, protections)


def concluded(
    layout: Layout, present: Present, disks: Sequence[FoundDisk], plan: LayoutPlan, protections: Sequence[Protection]
) -> LayoutPlan:
    """Return a plan as it counts: refused where it writes to what nothing may be written to, and with all that is worth a warning."""
    notes = (*plan.notes, *unmatched(present.disks, present.tree, protections), *identity_notes(layout, present, disks))
    forbidden = _forbidden(layout, present, disks, plan.steps, protections) if plan.steps else ()
    if forbidden:
        return LayoutPlan(refusals=forbidden, notes=notes)
    overruled = tuple(f"{disk.words} is {disk.protected}" for disk in disks if disk.overruled) if plan.refusals else ()
    return replace(plan, refusals=(*plan.refusals, *overruled), notes=notes)


def _forbidden(
    layout: Layout, present: Present, disks: Sequence[FoundDisk], steps: Sequence[Step], protections: Sequence[Protection]
) -> tuple[str, ...]:
    """Return why steps may not be done, whatever they would destroy: on disks that nothing is written to, or on too little room."""
    # Hosts get sources, and compile in each run what they import: this only where it is used.
    from .._steps.filesystem import MakeFilesystem, MakeSwap
    from .least import too_small_here
    from .written import write_refusals

    made = {step.uuid for step in steps if isinstance(step, (MakeFilesystem, MakeSwap))}
    sectors = {disk.desired.id: disk.device.logical_block for disk in disks}
    return (*write_refusals(layout, present, disks, steps, protections), *too_small_here(layout, sectors, made))


def plan_layout(layout: Layout, present: Present, disks: Sequence[FoundDisk], refusals: Sequence[str], keep_unlisted: bool) -> LayoutPlan:
    """Return the steps to a layout with the identities of this host, on disks that were found; `refusals` are those known already."""
    draft = _draft_all(layout, present, disks, keep_unlisted)
    own = _own_work(draft)
    restoring = _restoring_first(draft) if not refusals else ()
    if not restoring:
        refusals = (*refusals, *_refusals(draft), *teardown_refusals(present, draft.destroyed, own, _own_groups(draft)))
        refusals = refusals or tuple(_name_clashes(draft))
    if refusals:
        return LayoutPlan(refusals=tuple(dict.fromkeys(refusals)), notes=present.notes)
    openings = restoring or tuple(dict.fromkeys(_openings(draft)))
    steps = openings or _all_steps(draft)
    if not steps:
        return LayoutPlan(notes=present.notes)
    return _judged(draft, disks, own, steps, again=bool(openings), restoring=bool(restoring))


def _judged(
    draft: _Draft, disks: Sequence[FoundDisk], own: frozenset[str], steps: tuple[Step, ...], *, again: bool, restoring: bool
) -> LayoutPlan:
    """Return the plan of these steps, with what they destroy, or why they may not reach what they reach."""
    from .gate import Given, check_steps, loose_in

    present = draft.present
    begun = {disk.device.name for disk in disks if is_begun(disk)}
    stopped = tuple(check_steps(present, disks, Given(_nobodys(draft) | own | begun, _kept(draft)), steps))
    if stopped:
        return LayoutPlan(refusals=tuple(dict.fromkeys(stopped)), notes=present.notes)
    overwritten = [device for stack in draft.stacks for device in overwritten_in(present, stack)]
    roots = (*draft.destroyed.roots, *draft.destroyed.emptied, *overwritten)
    cleared = {table.disk.device.name: table.cleared for table in draft.tables if not is_emptied(table.disk)}
    emptied = {table.disk.device.name for table in draft.tables if is_emptied(table.disk)}
    for match in (match for stack in draft.stacks for match in stack.matches if match.status is Status.NEW and match.stranger):
        place = match.disk.device.name, match.desired.start
        cleared[place[0]] = (*cleared.get(place[0], ()), (place[1], present.missing[place].type))
    for reach in (reach for step in steps for reach in step.reaches(present)):
        found = ((signature.offsets[0], signature.type) for signature in loose_in(present, reach))
        cleared[reach.device] = (*cleared.get(reach.device, ()), *(found if reach.device not in emptied else ()))
    losses = find_losses(present, disks, roots, own | begun | _forgotten(draft), cleared) if not restoring else ()
    return LayoutPlan(steps, notes=present.notes, again=again, losses=losses)


def _all_steps(draft: _Draft) -> tuple[Step, ...]:
    teardown = teardown_steps(draft.present, draft.destroyed)
    building = building_steps(Site(draft.layout, draft.present, draft.stacks, draft.groups))
    return (*_marks(draft), *teardown, *removals(draft.groups), *_steps_on_tables(draft), *building)


def _restoring_first(draft: _Draft) -> tuple[Step, ...]:
    """Return the writes of tables of which only the backup is whole, where nothing is refused that another look would not lift.

    What is refused of things that such a table is a part of may be whole when all their parts are known.
    """
    half = {table.disk.device.name for table in draft.tables if table.restoring is not None}
    if any(table.refusals for table in draft.tables) or any(_for_good(draft, half)):
        return ()
    return tuple(table.restoring for table in draft.tables if table.restoring is not None)


def _for_good(draft: _Draft, half: Collection[str]) -> Iterator[str]:
    """Give the refusals of what is on none of these disks, and those of what somebody uses."""
    for stack in draft.stacks:
        pool = draft.layout.zpool_on(stack.device)
        parts = [other for other in draft.stacks if other is stack or (pool is not None and draft.layout.zpool_on(other.device) is pool)]
        if stack.problem and not any(match.disk.device.name in half for part in parts for match in part.matches):
            yield stack.problem
        yield from (match.refused for match in stack.matches if match.refused and stack.problem == match.refused)


def _kept(draft: _Draft) -> frozenset[str]:
    """Return the names of the layout's devices, with all that is on them: what stays may be opened, and changed in place."""
    return _with_all_on(draft, [match.device for stack in draft.stacks for match in stack.matches if match.device is not None])


def _nobodys(draft: _Draft) -> frozenset[str]:
    """Return the names of what a table that a permitted run wrote does not have any more, with all on it, and of disks that are empty."""
    gone = [part for table in draft.tables for part in gone_partitions(table.disk, draft.present.tree)]
    return _with_all_on(draft, (*gone, *(table.disk.device for table in draft.tables if is_emptied(table.disk))))


def _forgotten(draft: _Draft) -> frozenset[str]:
    """Return the names of partitions that the kernel alone has, where nothing may be lost: the gate has seen that there is nothing."""
    tables = (table for table in draft.tables if not table.disk.may_wipe and not is_emptied(table.disk))
    return frozenset(part.name for table in tables for part in gone_partitions(table.disk, draft.present.tree))


def _with_all_on(draft: _Draft, devices: Iterable[Device]) -> frozenset[str]:
    tree = draft.present.tree
    return frozenset(name for device in devices for name in (device.name, *(child.name for child in tree.descendants(device.name))))


def _marks(draft: _Draft) -> Iterator[Step]:
    """Give the writes that mark what is removed, and what is made again of filesystems on several devices: before any is lost."""
    condemned = [match for stack in draft.stacks for match in condemned_by(stack)]
    here = {table.disk.device.name: [match for match in condemned if match.disk is table.disk] for table in draft.tables}
    for table in draft.tables:
        if here[table.disk.device.name]:
            yield mark_for_loss(table.disk, draft.present.tree, here[table.disk.device.name], ())
    # What is made again may have parts that are removed: of these a cut may leave none that looks like the rest of a failed disk.
    for table in draft.tables:
        if table.marked:
            yield mark_for_loss(table.disk, draft.present.tree, here[table.disk.device.name], table.marked)


def _steps_on_tables(draft: _Draft) -> Iterator[Step]:
    """Yield the steps on tables, first those on disks where only the table marks contents that are rebuilt with others."""
    remade = {match.disk.device.name for stack in draft.stacks for match in stack.matches if match.status is Status.REMAKE}
    for table in sorted(draft.tables, key=lambda table: table.disk.device.name in remade):
        yield from table.steps


def _own_work(draft: _Draft) -> frozenset[str]:
    """Return the names of what a run that was cut off has made and not finished, with all on it."""
    matches = [match for stack in draft.stacks for match in stack.matches if match.unfinished and not (match.stranger or match.sealed)]
    unfinished = [match.device for match in matches if match.device is not None]
    plans = [plan for group in draft.groups for plan in group.plans if plan.stranger is None]
    volumes = [plan.present for plan in plans if plan.present is not None and plan.present.unfinished]
    # A run that was permitted to remove them has marked them so.
    for disk in (table.disk for table in draft.tables):
        unfinished += [part for part in partitions_of(disk, draft.present.tree) if is_given_up(disk, part)]
    # What is in a pool that was looked into is ours as the pool is.
    volumes += [inside for volume in volumes for inside in draft.present.volumes_in(volume) if inside.unfinished]
    used = {plan.present.name for group in draft.groups for plan in group.plans if plan.stranger is not None and plan.present is not None}
    volumes = [volume for volume in volumes if volume.name not in used]
    volumes += [volume for group in draft.groups for volume in (*group.leftovers, *group.begun_caches)]
    unfinished += [device for volume in volumes for device in draft.present.devices_of(volume)]
    return _with_all_on(draft, unfinished)


def _own_groups(draft: _Draft) -> frozenset[str]:
    """Return the names of what may be destroyed although it lacks a part: physical volumes of the layout's own groups that are there.

    Where a run is to be completed it may be anything on its disks. On others it may be as long as nothing was built on the new partitions:
    all tables are written before, and what lacks may be on a disk that this run has emptied. What somebody has put on an unfinished
    partition came after that.
    """
    resumed = frozenset(table.disk.device.name for table in draft.tables if _is_resumed(table.disk, draft))
    if resumed:
        used = [match.device for stack in draft.stacks for match in stack.matches if match.stranger and match.device is not None]
        unused = frozenset(draft.present.tree.devices) - _with_all_on(draft, used)
        begun = _has_built(draft)
        return frozenset(name for name in unused if not begun or resumed.issuperset(draft.present.disks_below(name)))
    names, below = {group.name for group in draft.layout.groups}, _kept(draft)
    return frozenset(str(volume.device) for volume in draft.present.physical if volume.group in names and volume.device in below)


def _has_built(draft: _Draft) -> bool:
    """Return whether a run that is to be completed had begun to build: something lies where it has cleared an unfinished partition."""
    matches = (match for stack in draft.stacks for match in stack.matches if match.unfinished)
    devices = [match.device for match in matches if match.device is not None]
    places = ((offset, device.size) for device in devices for signature in device.signatures for offset in signature.offsets)
    return any(offset < MIB or offset >= size - MIB for offset, size in places)


def _is_resumed(disk: FoundDisk, draft: _Draft) -> bool:
    """Return whether an earlier run on a disk may have been cut off: something is marked as unfinished, to be made again or removed.

    A table is written with all marks at once, so a partition that is missing was never begun.
    """
    here = [match for stack in draft.stacks for match in stack.matches if match.disk is disk]
    marked = any(match.unfinished or match.condemned for match in here)
    marked = marked or any(is_given_up(disk, part) for part in partitions_of(disk, draft.present.tree))
    return marked or is_begun(disk) or is_emptied(disk)


@dataclass(frozen=True)
class _Draft:
    """What becomes of everything: of what is on partitions, of groups, of tables; and what is destroyed by it."""

    layout: Layout
    present: Present
    stacks: tuple[Stack, ...]
    groups: tuple[GroupPlan, ...]
    tables: tuple[TablePlan, ...]
    destroyed: Destroyed


def _draft_all(layout: Layout, present: Present, disks: Sequence[FoundDisk], keep_unlisted: bool) -> _Draft:
    """Return what becomes of everything. What cannot live without what is destroyed goes with it where it may be wiped."""
    lost: frozenset[str] = frozenset()
    while True:
        draft = _draft(layout, present, disks, keep_unlisted, lost)
        given_up = frozenset(name for group in draft.groups for name in group.given_up)
        more = _partitions_below(present, staying_devices(present, draft.destroyed) | given_up) - lost
        if not more:
            return draft
        lost |= more


def _partitions_below(present: Present, names: Iterable[str]) -> frozenset[str]:
    found: set[str] = set()
    for name in names:
        device = present.tree.devices[name]
        found |= {name} if device.partition is not None else _partitions_below(present, device.parents)
    return frozenset(found)


def _draft(layout: Layout, present: Present, disks: Sequence[FoundDisk], keep_unlisted: bool, lost: frozenset[str]) -> _Draft:
    found = (lose(match, lost) for disk in disks for match in match_disk(disk, present.tree))
    matched = {match.desired.device: with_strangers(layout, present, match) for match in found}
    stacks = judge_stacks(layout, present, matched)
    groups = _judged_groups(layout, present, stacks, keep_unlisted) if layout.groups and len(disks) == len(layout.disks) else ()
    built = {match.desired.device for stack in stacks if stack.action is Action.BUILD for match in stack.matches}
    again = [match for stack in stacks for match in (*condemned_by(stack), *(match for match in stack.matches if match.condemned))]
    condemned = {match.device.name for match in again if match.device is not None}
    keeping = {match.desired.device for stack in stacks for match in stack.matches if _keeps(layout, stacks, stack, match)}
    tables = _tables(disks, stacks, Conditions(present.tree, built, keep_unlisted, lost, condemned, keeping))
    return _Draft(layout, present, stacks, groups, tables, _destroyed(present, stacks, groups, tables))


def _keeps(layout: Layout, stacks: Sequence[Stack], stack: Stack, match: PartitionMatch) -> bool:
    """Return whether a desired partition, or anything on it, keeps its data; a new part of a stack or group that exists has none yet."""
    group = layout.group_of(top_of(layout, stack.device))
    together = [other for other in stacks if group is not None and layout.group_of(top_of(layout, other.device)) is group]
    is_new = all(each.status is Status.NEW for other in (stack, *together) for each in other.matches)
    return match.desired.keep_data or (is_new and keeps_data(layout, stack))


def _judged_groups(layout: Layout, present: Present, stacks: Sequence[Stack], keep_unlisted: bool) -> tuple[GroupPlan, ...]:
    from .volume_groups import judge_groups

    return judge_groups(layout, present, stacks, keep_unlisted)


def _tables(disks: Sequence[FoundDisk], stacks: Sequence[Stack], conditions: Conditions) -> tuple[TablePlan, ...]:
    matches = {match.desired.device: match for stack in stacks for match in stack.matches}
    on_disk = {disk.desired.id: [matches[part.device] for part in disk.desired.partitions if part.device in matches] for disk in disks}
    return tuple(plan_table(disk, on_disk[disk.desired.id], conditions) for disk in disks)


def _destroyed(present: Present, stacks: Sequence[Stack], groups: Sequence[GroupPlan], tables: Sequence[TablePlan]) -> Destroyed:
    """Return what is destroyed: by the tables, under rebuilt contents, and of logical volumes."""
    rebuilt = [match for stack in stacks if stack.action is Action.BUILD for match in stack.matches if match.status is not Status.NEW]
    refilled = [volume for group in groups for volume in group.volumes if volume.refills]
    roots = [device for table in tables for device in table.destroyed] + [match.device for match in rebuilt if match.device is not None]
    removed = [volume for group in groups for volume in (*group.replaced, *group.removed)]
    removed = [each for volume in removed for each in (*present.removed_with(volume), volume)]
    roots += [device for volume in removed for device in present.devices_of(volume)]
    unique = {device.name: device for device in roots}
    return Destroyed(tuple(unique.values()), tuple(volume.device for volume in refilled if volume.device is not None))


def _refusals(draft: _Draft) -> Iterator[str]:
    for table in draft.tables:
        yield from table.refusals
    yield from (stack.problem for stack in draft.stacks if stack.problem)
    yield from _half_tables_to_mark(draft)
    for group in draft.groups:
        yield from group.problems
        if not any(stack.opening for stack in draft.stacks):
            from .volume_groups import check_room

            yield from check_room(draft.layout, group, _grown(draft))


def _half_tables_to_mark(draft: _Draft) -> Iterator[str]:
    """Give the disks whose table is to be marked although only its backup is whole, and cannot be repaired first.

    A change begins with the backup: a cut could leave neither.
    """
    condemned = {match.disk.device.name for stack in draft.stacks for match in condemned_by(stack)}
    for disk in (table.disk for table in draft.tables if table.marked or table.disk.device.name in condemned):
        gone = gone_partitions(disk, draft.present.tree)
        if gone and not is_first_copy_whole(disk):
            nodes = ", ".join(str(part.dev) for part in gone)
            yield (
                f"{disk.words} has only the backup of its table, and the kernel still has {nodes} of before, which are not in it; have the "
                f"kernel forget them (partx --delete {disk.node}, or a restart), and run again"
            )


def _grown(draft: _Draft) -> dict[str, int]:
    """Return how many bytes physical volumes of kept stacks gain: by growing, and by taking what is below them whole."""
    grown = {}
    for stack in draft.stacks:
        device = look(draft.layout, draft.present, stack).device if stack.action is Action.KEEP else None
        volume = draft.present.physical_on(device.name) if device is not None else None
        if device is not None and volume is not None:
            growth = _growth_below(draft, stack)
            grown[top_of(draft.layout, stack.device)] = growth + unused_below(draft.present, device) + max(0, volume.unused)
    return grown


def _growth_below(draft: _Draft, stack: Stack) -> int:
    """Return how many bytes more a kept stack offers when its partitions have grown."""
    array = array_of(draft.present, stack)
    if array is None:
        return sum(match.desired.size - match.size for match in stack.matches if match.grows)
    return array_growth(stack, array)


def _openings(draft: _Draft) -> Iterator[Step]:
    """Give what has to be restored, taken back, or opened to see more.

    Unfinished devices come last: an interrupted run may have left them, so nothing may depend on them.
    """
    opened = {
        action: [stack.opening for stack in draft.stacks if stack.opening is not None and stack.action is action] for action in Action
    }
    yield from (table.restoring for table in draft.tables if table.restoring is not None)
    yield from (stack.taking_back for stack in draft.stacks if stack.taking_back is not None)
    yield from opened[Action.KEEP] or opened[Action.FINISH]
    for group in draft.groups:
        yield from (volume.opening for volume in group.volumes if volume.opening is not None)


def _names_of_openings(openings: Sequence[Step]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of the containers that are opened, and the devices of the arrays that are started."""
    if not openings:
        return frozenset(), frozenset()
    from .._steps.luks import OpenLuks
    from .._steps.md import StartArray

    opened = frozenset(opening.name for opening in openings if isinstance(opening, OpenLuks))
    return opened, frozenset(opening.device for opening in openings if isinstance(opening, StartArray))


def _name_clashes(draft: _Draft) -> Iterator[str]:
    """Give names that the layout is to use and that are others' on this host."""
    present, groups = draft.present, draft.groups
    names = draft.destroyed.names(present.tree)
    staying = [device for device in present.tree.devices.values() if device.name not in names]
    built = {stack.device for stack in draft.stacks if stack.action is Action.BUILD}
    built |= {volume.desired.device for group in groups for volume in group.volumes if not volume.stays}
    opened, started = _names_of_openings(tuple(_openings(draft)))
    nodes = {device.dev for device in staying}
    for container in draft.layout.containers:
        if (container.below in built or container.name in opened) and container.device in nodes:
            yield f"{container.place}.name: {container.device} already exists, but not on {container.below}"
    titles = {str(device.title).rsplit(":", 1)[-1] for device in staying if device.kind.startswith("raid") and device.running}
    for array in draft.layout.arrays:
        if array.device in built | started and array.title in titles:
            yield f"{array.place}.name: an array {array.title} already exists, on other devices"
    exported = [present.zpool_on(present.tree.devices[name]) for name in names]
    pools = {pool.name for pool in present.zpools if pool not in exported}
    for zpool in draft.layout.zpools:
        if zpool.devices[0] in built and zpool.name in pools:
            yield f"{zpool.place}.name: a ZFS pool {zpool.name} is already imported, from other devices, or from none that are left"
    here = {device.name for device in staying}
    for group in groups:
        mine = group.present.uuid if group.present is not None else None
        others = [known for known in present.groups() if known.name == group.desired.name and known.uuid != mine]
        if any(volume.device in here for known in others for volume in known.physical):
            yield f"{group.desired.place}.name: a volume group {group.desired.name} already exists, on other devices"
