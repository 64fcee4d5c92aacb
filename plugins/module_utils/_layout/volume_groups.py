# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is to be done with volume groups and their logical volumes. Pure."""

from __future__ import annotations

import enum
import re
import typing as t
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .._facts.present import LogicalVolume, Present, VolumeGroup
from .._facts.tree import Device
from .._schema.model import DesiredCache, DesiredGroup, DesiredPool, DesiredVolume, Layout
from .._steps.lvm import ActivateGroup, CreateLogicalVolume, CreateStripedVolume, ExtendLogicalVolume, ExtendStripedVolume
from .._steps.step import Step
from .._steps.thin import CreateThinVolume
from .._storage.filesystems import FILESYSTEMS, SWAP
from .._storage.lvm import CLEARED, UNFINISHED, stripe_segments
from .._storage.thin import metadata_of
from .._storage.units import KIB, MIB, in_mib
from .capacity import extents_for, extents_of, size_of
from .contents import cannot_grow, keeps_volume, look, look_at_volume, member_of, outsized, top_of, unused_below
from .stack import Action, Stack
from .unfinished import pool_stranger, sealed_on, volume_stranger

_LVM_OWN_NAME = re.compile(r"lvol[0-9]+")


class VolumeAction(enum.Enum):
    """What is to be done with a logical volume."""

    CREATE = "it is made"
    REFILL = "it is our own unfinished work of the right size: what is on it is made again"
    REPLACE = "it is removed and made again"
    KEEP = "it stays, or grows"


_MADE = (VolumeAction.CREATE, VolumeAction.REPLACE)


@dataclass(frozen=True)
class VolumePlan:
    """A desired logical volume, and the present one with its device. `problem` says why a kept one cannot stay as it is.

    `stranger` is what is on an unfinished one that no run left there.
    """

    desired: DesiredVolume
    action: VolumeAction
    present: t.Optional[LogicalVolume] = None
    device: t.Optional[Device] = None
    opening: t.Optional[Step] = None
    problem: t.Optional[str] = None
    stranger: t.Optional[str] = None

    @property
    def refills(self) -> bool:
        """Whether it stays while all on it is made again."""
        return self.action is VolumeAction.REFILL

    @property
    def stays(self) -> bool:
        """Whether it stays with all on it."""
        return self.action is VolumeAction.KEEP

    def shrinks(self, extent: int) -> bool:
        """Return whether a kept one is larger than desired, by at least an extent."""
        return self.action is VolumeAction.KEEP and self.present is not None and self.present.size >= self.desired.size + extent

    def making(self, extent: int, node: Callable[[str], str]) -> Step:
        """Return the step that makes it; `node` gives the node of a desired device."""
        desired, size = self.desired, size_of(self.desired, extent)
        if desired.is_striped:
            on = tuple(node(device) for device in desired.devices)
            return CreateStripedVolume(desired.group, desired.name, size, desired.device, desired.stripes, desired.stripe_size, on)
        if desired.pool:
            return CreateThinVolume(desired.group, desired.name, desired.pool, size, desired.device)
        return CreateLogicalVolume(desired.group, desired.name, size, desired.device)

    def growing(self, extent: int, before: int, node: Callable[[str], str]) -> Step:
        """Return the step that makes one of `before` bytes larger; `node` as in `making`."""
        desired, size = self.desired, size_of(self.desired, extent)
        if desired.is_striped:
            on = tuple(node(device) for device in desired.devices)
            stripe_size = desired.stripe_size or (self.present.stripe_size if self.present is not None else 0)
            return ExtendStripedVolume(desired.group, desired.name, size, before, desired.stripes, stripe_size, on)
        return ExtendLogicalVolume(desired.group, desired.name, size, before)


@dataclass(frozen=True)
class PoolPlan:
    """A desired thin pool, and the present one of its name. `problem` says why a kept one cannot stay as it is.

    `stranger` is what is in an unfinished one that no run left there.
    """

    desired: DesiredPool
    action: VolumeAction
    present: t.Optional[LogicalVolume] = None
    problem: t.Optional[str] = None
    stranger: t.Optional[str] = None


@dataclass(frozen=True)
class CachePlan:
    """A desired cache: whether its volume is to be made, whether it is to be attached then, or its mode changed."""

    desired: DesiredCache
    makes: bool = False
    attaches: bool = False
    changes: bool = False
    problem: t.Optional[str] = None


@dataclass(frozen=True)
class GroupPlan:
    """A desired group, the present one it is (None: it is made), devices that become its physical volumes, and its volumes.

    `given_up` are the devices of a present one that lacks others, and may be destroyed: it cannot be completed any more.
    """

    desired: DesiredGroup
    present: t.Optional[VolumeGroup]
    new: tuple[str, ...]
    volumes: tuple[VolumePlan, ...]
    removed: tuple[LogicalVolume, ...] = ()
    problems: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    pools: tuple[PoolPlan, ...] = ()
    caches: tuple[CachePlan, ...] = ()
    there: Mapping[str, str] = field(default_factory=dict)
    """The names of the devices of present physical volumes, by those of the layout."""
    leftovers: tuple[LogicalVolume, ...] = ()
    """What of a thin pool LVM had begun when a run was cut off; it is among those that are removed."""

    @property
    def begun_caches(self) -> tuple[LogicalVolume, ...]:
        """The unfinished volumes that become caches."""
        found = [self.present.volume(plan.desired.name) for plan in self.caches if plan.attaches and self.present is not None]
        return tuple(volume for volume in found if volume is not None and volume.unfinished)

    def in_turn(self, extent: int) -> tuple[t.Union[VolumePlan, PoolPlan], ...]:
        """Return pools, and volumes that stay or are made, in the order in which they give and take room."""
        kept = [volume for volume in self.volumes if volume.action is VolumeAction.KEEP]
        shrinking = [volume for volume in kept if volume.shrinks(extent)]
        growing = [volume for volume in kept if volume not in shrinking]
        made = [volume for volume in self.volumes if volume.action in _MADE]
        # What needs room on several physical volumes at once comes before what may lie anywhere.
        first = [volume for volume in (*growing, *made) if volume.desired.is_striped]
        return (*shrinking, *first, *self.pools, *(volume for volume in (*growing, *made) if volume not in first))

    @property
    def plans(self) -> tuple[t.Union[VolumePlan, PoolPlan], ...]:
        """What is to be done with volumes and pools."""
        return (*self.volumes, *self.pools)

    @property
    def replaced(self) -> tuple[LogicalVolume, ...]:
        """The volumes and pools that are removed and created again, without those that go with their pool or origin."""
        found = [plan.present for plan in self.plans if plan.action is VolumeAction.REPLACE and plan.present is not None]
        return _without_pooled(found, (*found, *self.removed))

    @property
    def freed(self) -> tuple[LogicalVolume, ...]:
        """The volumes that give their room back: those that are removed, and snapshots that go with them."""
        gone = (*self.removed, *self.replaced)
        names = {volume.name for volume in gone}
        return (*gone, *(volume for volume in (self.present.volumes if self.present is not None else ()) if volume.origin in names))


def judge_groups(layout: Layout, present: Present, stacks: Sequence[Stack], keep_unlisted: bool) -> tuple[GroupPlan, ...]:
    """Return what is to be done with every desired group."""
    by_top = {top_of(layout, stack.device): stack for stack in stacks}
    return tuple(_judge(layout, present, group, by_top, keep_unlisted) for group in layout.groups)


def _judge(layout: Layout, present: Present, group: DesiredGroup, stacks: Mapping[str, Stack], keep_unlisted: bool) -> GroupPlan:
    mine = {volume.device: stacks[volume.device] for volume in group.physical if volume.device in stacks}
    there = {known.uuid: known for stack in mine.values() for known in _groups_on(layout, present, group, stack)}
    new = tuple(device for device, stack in mine.items() if stack.action is Action.BUILD)
    if not there:
        made = tuple(VolumePlan(volume, VolumeAction.CREATE) for volume in layout.volumes_of(group.name))
        pools = tuple(PoolPlan(pool, VolumeAction.CREATE) for pool in layout.pools_of(group.name))
        new_caches = [CachePlan(cache, makes=True, attaches=True) for cache in layout.caches_of(group.name)]
        caches = _with_block_problems(new_caches, mine)
        problems = tuple(cache.problem for cache in caches if cache.problem)
        return GroupPlan(group, None, new, made, problems=problems, pools=pools, caches=caches)
    known = next(iter(there.values()))
    may_wipe = _may_wipe(present, known, mine.values()) and not group.keep_data
    keeping = {found.pool for found in _keeping(layout, known)}
    pools = tuple(_judge_pool(layout, present, known, pool, may_wipe and pool.name not in keeping) for pool in layout.pools_of(group.name))
    volumes = tuple(_judge_volume(layout, present, known, volume, may_wipe) for volume in layout.volumes_of(group.name))
    gone = {pool.desired.name for pool in pools if pool.action is VolumeAction.REPLACE}
    volumes = _with_pools(volumes, gone, known) if gone else volumes
    listed = {each.desired.name for each in GroupPlan(group, known, new, volumes, pools=pools).plans}
    unlisted = (
        tuple(volume for volume in known.volumes if volume.name not in listed and not volume.merging)
        if may_wipe and not keep_unlisted
        else ()
    )
    caches = _with_block_problems(
        [_judge_cache(known, cache, volumes, mine.get(cache.device)) for cache in layout.caches_of(group.name)], mine
    )
    listed |= {cache.desired.name for cache in caches}
    leftovers = tuple(volume for volume in known.volumes if volume.name not in listed and _is_leftover(present, volume, known, pools))
    unlisted = (*(volume for volume in unlisted if volume.name not in listed and volume not in leftovers), *leftovers)
    looks = {device: look(layout, present, stack).device for device, stack in mine.items() if stack.action is not Action.BUILD}
    names = {device: found.name for device, found in looks.items() if found is not None}
    plan = GroupPlan(group, known, new, volumes, pools=pools, caches=caches, leftovers=leftovers, there=names)
    plan = replace(plan, removed=_without_pooled(unlisted, (*unlisted, *plan.replaced)))
    problems = (*_problems(plan, mine, len(there)), *_kept_elsewhere(layout, plan), *_outsized_beside(present, plan))
    return replace(plan, problems=problems, given_up=_given_up(layout, present, plan, mine))


def _keeping(layout: Layout, group: VolumeGroup) -> Iterator[LogicalVolume]:
    """Give the present volumes of a group that are to keep their data: they would go with their pool."""
    for desired in layout.volumes_of(group.name):
        known = group.volume(desired.name)
        if known is not None and keeps_volume(layout, desired):
            yield known


def _without_pooled(volumes: Sequence[LogicalVolume], others: Sequence[LogicalVolume]) -> tuple[LogicalVolume, ...]:
    """Return volumes without those whose pool or origin is among others: they go with it."""
    pools = {volume.name for volume in others if volume.is_pool}
    origins = {volume.name for volume in others}
    return tuple(volume for volume in volumes if volume.pool not in pools and volume.origin not in origins)


def _judge_cache(group: VolumeGroup, desired: DesiredCache, volumes: Sequence[VolumePlan], stack: t.Optional[Stack]) -> CachePlan:
    origin = next(plan for plan in volumes if plan.desired.name == desired.origin)
    by = origin.present.cache if origin.present is not None and origin.action is not VolumeAction.REPLACE else ""
    named = f"{desired.group}/{desired.origin}"
    if by and by != desired.name:
        says = f"{named} is already cached by {by}, but should be by {desired.name}; lvconvert --uncache {named} takes a cache off"
        return CachePlan(desired, problem=says)
    if by:
        growing = stack is not None and any(match.grows for match in stack.matches)
        says = f"the cache {desired.group}/{by} would have to grow, which it cannot; lvconvert --uncache {named} takes it off"
        changed = origin.present is not None and origin.present.mode != desired.mode
        return CachePlan(desired, changes=changed, problem=says if growing else None)
    there = group.volume(desired.name)
    if there is not None and UNFINISHED not in there.tags:
        return CachePlan(
            desired, problem=f"{desired.group}/{desired.name} is a volume, but wanted as a cache; no volume is destroyed for one"
        )
    return CachePlan(desired, makes=there is None, attaches=True)


def _with_block_problems(caches: Sequence[CachePlan], stacks: Mapping[str, Stack]) -> tuple[CachePlan, ...]:
    """Return the caches, with a problem those on larger logical blocks than the group, which would be those of what is cached, too."""
    fast = {cache.desired.device for cache in caches}
    slow = max((_logical_block(stack) for device, stack in stacks.items() if device not in fast), default=0)
    result = []
    for cache in caches:
        desired, stack = cache.desired, stacks.get(cache.desired.device)
        if stack is not None and cache.attaches and slow and _logical_block(stack) > slow:
            says = (
                f"the cache {desired.group}/{desired.name} is on a disk with logical blocks of {_logical_block(stack)} bytes, and "
                f"{desired.group}/{desired.origin} of {slow}: no file system made for these could be mounted any more; use another disk"
            )
            cache = replace(cache, problem=cache.problem or says)
        result.append(cache)
    return tuple(result)


def _logical_block(stack: Stack) -> int:
    return max(match.disk.device.logical_block for match in stack.matches)


def _is_leftover(present: Present, volume: LogicalVolume, group: VolumeGroup, pools: Iterable[PoolPlan]) -> bool:
    """Return whether a volume is the metadata of a pool that LVM had begun to make: it has a name of LVM's own, and nothing is on it."""
    sizes = {extents_for(pool.desired.metadata, group.extent_size) * group.extent_size for pool in pools if pool.action in _MADE}
    device = present.device_of(volume)
    empty = device is None or not (device.signatures or device.mountpoints or device.openers or present.tree.children(device.name))
    plain = not (volume.is_pool or volume.pool or volume.tags or volume.origin or present.snapshots_of(volume))
    return _LVM_OWN_NAME.fullmatch(volume.name) is not None and plain and volume.size in sizes and empty


def _judge_pool(layout: Layout, present: Present, group: VolumeGroup, desired: DesiredPool, may_wipe: bool) -> PoolPlan:
    known = group.volume(desired.name)
    if known is None:
        return PoolPlan(desired, VolumeAction.CREATE)
    size, metadata = (extents_for(part, group.extent_size) * group.extent_size for part in (desired.size, desired.metadata))
    if UNFINISHED in known.tags:
        # What has another size, is no pool yet, or does not run, comes from a run that was cut off: its metadata may have been lost.
        runs = any(device.running for device in present.devices_of(known))
        whole = runs and known.is_pool and (known.size, known.chunk) == (size, desired.chunk) and known.metadata >= metadata
        stranger = pool_stranger(layout, present, known) if not whole else None
        if stranger is not None and not may_wipe:
            return PoolPlan(desired, VolumeAction.KEEP, known, _unless_wiped(stranger), stranger)
        return PoolPlan(desired, VolumeAction.REFILL if whole else VolumeAction.REPLACE, known, stranger=stranger)
    problem = _pool_problem(desired, known, size, group.extent_size)
    return PoolPlan(desired, VolumeAction.REPLACE if problem is not None and may_wipe else VolumeAction.KEEP, known, problem)


def _unless_wiped(stranger: str) -> str:
    return f"{stranger}; name all disks of the group in wipe if it may be destroyed"


def _pool_problem(desired: DesiredPool, known: LogicalVolume, size: int, extent: int) -> t.Optional[str]:
    name = f"{desired.group}/{desired.name}"
    if not known.is_pool:
        return f"{name} exists, but is no thin pool"
    if known.size >= desired.size + extent:
        return f"the thin pool {name} would have to shrink from {in_mib(known.size)} to {in_mib(desired.size)}; LVM cannot do that"
    needed = metadata_of(size // MIB, known.chunk // 1024) * MIB
    if known.size < size and max(known.metadata, desired.metadata) < needed:
        chunk = f"{known.chunk // 1024} KiB"
        return (
            f"the thin pool {name} has chunks of {chunk}, which stay: with {in_mib(size)} it needs {in_mib(needed)} of metadata, and would "
            f"have {in_mib(desired.metadata)}; plan it with chunk_size: {chunk}"
        )
    return None


def _with_pools(volumes: Sequence[VolumePlan], gone: t.AbstractSet[str], group: VolumeGroup) -> tuple[VolumePlan, ...]:
    """Return plans of volumes when these pools are removed: those in them are created again, and only others are activated."""
    lost = [volume.present is not None and volume.present.pool in gone for volume in volumes]
    others = tuple(volume.name for volume in group.volumes if volume.name not in gone and volume.pool not in gone and not volume.merging)
    return tuple(
        replace(volume, action=VolumeAction.REPLACE, opening=None, problem=None)
        if is_lost
        else replace(volume, opening=ActivateGroup(group.name, others))
        if isinstance(volume.opening, ActivateGroup)
        else volume
        for volume, is_lost in zip(volumes, lost)
    )


def _given_up(layout: Layout, present: Present, plan: GroupPlan, stacks: Mapping[str, Stack]) -> tuple[str, ...]:
    known = t.cast(VolumeGroup, plan.present)
    keeping = plan.desired.keep_data or any(keeps_volume(layout, volume.desired) for volume in plan.volumes)
    if keeping or not _is_broken(known, stacks):
        return ()
    there = tuple(volume for volume in known.physical if volume.device is not None)
    may_wipe = _may_wipe(present, replace(known, physical=there), stacks.values())
    return tuple(str(volume.device) for volume in there) if may_wipe else ()


def _is_broken(group: VolumeGroup, stacks: Mapping[str, Stack]) -> bool:
    """Return whether a group lacks a physical volume, and nothing is left to be opened that it may be on."""
    return group.incomplete and not any(stack.opening for stack in stacks.values())


def _groups_on(layout: Layout, present: Present, group: DesiredGroup, stack: Stack) -> Iterator[VolumeGroup]:
    if stack.action is Action.BUILD or stack.opening is not None:
        return
    device = look(layout, present, stack).device
    known = member_of(present, device, group) if device is not None else None
    if known is not None:
        yield known


def _may_wipe(present: Present, group: VolumeGroup, stacks: Iterable[Stack]) -> bool:
    """Return whether all disks that a present group is on may be wiped."""
    wiped = {match.disk.device.name for stack in stacks for match in stack.matches if match.disk.may_wipe}
    return all(volume.device is not None and wiped.issuperset(present.disks_below(volume.device)) for volume in group.physical)


def _runs(present: Present, device: t.Optional[Device]) -> bool:
    """Return whether a volume is active as a whole."""
    return device is not None and device.running and not present.tree.lacks_part(device)


def _judge_volume(layout: Layout, present: Present, group: VolumeGroup, desired: DesiredVolume, may_wipe: bool) -> VolumePlan:
    known = group.volume(desired.name)
    if known is None:
        return VolumePlan(desired, VolumeAction.CREATE)
    device = present.device_of(known)
    size = size_of(desired, group.extent_size)
    same_size = known.size == size and _misplaced(desired, known) is None and _striped_otherwise(desired, known) is None
    filesystem = layout.filesystem_on(top_of(layout, desired.device))
    if known.unfinished:
        opening: t.Optional[Step] = None if _runs(present, device) else ActivateGroup(group.name)
        # Snapshots of what is made again would keep what was there before, and need room for that.
        action = VolumeAction.REFILL if same_size and not present.snapshots_of(known) else VolumeAction.REPLACE
        stranger, sealed = volume_stranger(layout, present, desired.device, known), sealed_on(present, device)
        keeps = keeps_volume(layout, desired)
        if sealed is not None and stranger is None and device is not None and not may_wipe:
            opening = look_at_volume(layout, present, desired.device, device).opening
        stranger = stranger or (sealed if opening is None else None)
        if stranger is not None and (keeps or not may_wipe):
            return VolumePlan(desired, VolumeAction.KEEP, known, device, problem=_unless_wiped(stranger), stranger=stranger)
        # The contents of a cleared volume are examined before it goes.
        return VolumePlan(desired, action, known, device, opening if same_size or CLEARED in known.tags else None, stranger=stranger)
    misplaced = _misplaced(desired, known)
    if misplaced is not None:
        keeps = keeps_volume(layout, desired)
        action = VolumeAction.REPLACE if may_wipe and not keeps else VolumeAction.KEEP
        return VolumePlan(desired, action, known, device, problem=misplaced)
    striped = _striped_otherwise(desired, known) or _uneven(desired, group.extent_size)
    fixed = striped or _fixed_by_snapshots(present, desired, known, group.extent_size)
    if fixed is not None:
        return VolumePlan(desired, VolumeAction.KEEP, known, device, problem=fixed)
    if device is None or not _runs(present, device):
        return VolumePlan(desired, VolumeAction.KEEP, known, device, ActivateGroup(group.name))
    found = look_at_volume(layout, present, desired.device, device)
    is_swap = filesystem is not None and filesystem.type == SWAP
    problem = found.problem or _size_problem(layout, present, desired, known, group.extent_size)
    if problem is None and not is_swap:
        growing = f"{desired.group}/{desired.name}" if known.size < desired.size else None
        grown = _size_when_grown(present, known, size, found.device)
        problem = outsized(present, found.device, grown) or cannot_grow(present, filesystem, found.device, growing, grown)
    grown_swap = is_swap and known.size < desired.size and found.problem is None
    keeps = keeps_volume(layout, desired)
    if (grown_swap or (problem is not None and may_wipe)) and not keeps:
        return VolumePlan(desired, VolumeAction.REPLACE, known, device)
    return VolumePlan(desired, VolumeAction.KEEP, known, device, found.opening, problem)


def _size_when_grown(present: Present, known: LogicalVolume, size: int, top: t.Optional[Device]) -> int:
    """Return the bytes of the file system's device on a volume, in LUKS or not, once the volume has `size`."""
    return size if top is None else top.size + unused_below(present, top) + max(0, size - known.size)


def _misplaced(desired: DesiredVolume, known: LogicalVolume) -> t.Optional[str]:
    """Return why a present volume is not where the desired one is to be: in a thin pool, in another one, or in none."""
    if known.is_pool:
        return f"{desired.group}/{desired.name} is a thin pool, but wanted as a volume"
    if known.origin:
        return f"{desired.title} is a snapshot of {known.origin}, but wanted as a volume of its own"
    if known.pool == desired.pool:
        return None
    there, wanted = (f"in the thin pool {pool}" if pool else "in no thin pool" for pool in (known.pool, desired.pool))
    return f"{desired.group}/{desired.name} is {there}, but wanted {wanted}; volumes are not moved"


def _fixed_by_snapshots(present: Present, desired: DesiredVolume, known: LogicalVolume, extent: int) -> t.Optional[str]:
    """Return why a volume keeps its size: LVM resizes no active origin of snapshots."""
    snapshots = ", ".join(f"{known.group}/{snapshot.name}" for snapshot in present.snapshots_of(known))
    if not snapshots or desired.size <= known.size < desired.size + extent:
        return None
    sizes = f"from {in_mib(known.size)} to {in_mib(desired.size)}"
    advice = "merge or remove them (lvconvert --merge, lvremove)"
    return f"{desired.title} would have to be resized {sizes}, but has snapshots: {snapshots}; {advice}"


def _striped_otherwise(desired: DesiredVolume, known: LogicalVolume) -> t.Optional[str]:
    """Return what is other than desired in the stripes of a volume; it is never made again for that, as its data would be lost."""
    if not desired.stripes or not known.stripes:
        return None
    advice = f"change the schema, or remove the volume (lvremove {desired.title}) if it may be lost"
    if known.stripes != (desired.stripes,):
        there = f"{'' if len(known.stripes) == 1 else 'segments of '}{' and '.join(map(str, known.stripes))}"
        return f"{desired.title} has {there} stripes, but {desired.stripes} are wanted; {advice}"
    if desired.stripe_size and known.stripe_size and desired.stripe_size != known.stripe_size:
        sizes = f"{known.stripe_size // KIB} KiB, but {desired.stripe_size // KIB} KiB are wanted"
        return f"{desired.title} has stripes of {sizes}; {advice}"
    return None


def _uneven(desired: DesiredVolume, extent: int) -> t.Optional[str]:
    """Return why a volume cannot have its size in stripes where its group has been made with other extents than the schema has."""
    each = desired.stripes * extent
    if not desired.is_striped or size_of(desired, extent) % each == 0:
        return None
    return f"{desired.title} must be a multiple of {in_mib(each)}, an extent of {in_mib(extent)} for each of {desired.stripes} stripes"


def _size_problem(layout: Layout, present: Present, desired: DesiredVolume, known: LogicalVolume, extent: int) -> t.Optional[str]:
    if known.size < desired.size + extent:
        return None
    why = _why_not_smaller(layout, present, desired, known, size_of(desired, extent))
    sizes = f"from {in_mib(known.size)} to {in_mib(desired.size)}"
    return f"{desired.title} would have to shrink {sizes}; {why}" if why else None


def _why_not_smaller(layout: Layout, present: Present, desired: DesiredVolume, known: LogicalVolume, size: int) -> str:
    """Return why a volume is not made smaller, nothing if it may be; what is destroyed by a mistake here is not brought back."""
    filesystem, device = layout.filesystem_on(desired.device), present.device_of(known)
    if device is None or filesystem is None or not FILESYSTEMS[filesystem.type].shrink:
        kinds = ", ".join(row.name for row in FILESYSTEMS.values() if row.shrink)
        return f"only volumes with {kinds} can be made smaller, and only with nothing such as LUKS in between"
    if not desired.may_shrink:
        return f"name {desired.title} in allow_shrink if its {filesystem.type} may be made smaller; have a backup of what is in it"
    if device.mountpoints:
        return f"unmount it (from {device.mountpoints[0]}): {filesystem.type} is not made smaller while it is mounted"
    used = present.filesystem_uses.get(device.name, 0)
    return f"{in_mib(used)} are in use" if used > size else ""


def _problems(plan: GroupPlan, stacks: Mapping[str, Stack], groups: int) -> Iterator[str]:
    known = t.cast(VolumeGroup, plan.present)
    if groups > 1:
        yield f"there are {groups} volume groups named {known.name} on the disks of the schema"
    if _is_broken(known, stacks):
        yield f"the volume group {known.name} lacks a physical volume; nothing is changed in it until it is complete"
    # A volume that is replaced has no problem any more.
    yield from (each.problem for each in plan.plans if each.problem and each.action is not VolumeAction.REPLACE)
    yield from (cache.problem for cache in plan.caches if cache.problem)


def _kept_elsewhere(layout: Layout, plan: GroupPlan) -> Iterator[str]:
    """Give why no volume goes while one that keeps its data is not there: it may be the one, under another name."""
    gone = [f"{plan.desired.name}/{volume.name}" for volume in (*plan.removed, *plan.replaced) if volume not in plan.leftovers]
    for each in plan.volumes:
        if gone and each.present is None and keeps_volume(layout, each.desired):
            yield (
                f"{each.desired.place}: keeps its data, but the volume group {plan.desired.name} has no volume {each.desired.name}, and "
                f"{', '.join(gone)} would go; correct its name, or take keep_data away to have it made"
            )


def _outsized_beside(present: Present, plan: GroupPlan) -> Iterator[str]:
    """Give the volumes that only the group has, and somebody made smaller than their file systems, where free extents are taken."""
    known = t.cast(VolumeGroup, plan.present)
    extent, listed = known.extent_size, {each.desired.name for each in plan.plans}
    taken = sum(_extents_needed(volume, extent) for volume in plan.volumes if not volume.desired.pool)
    if taken + sum(_extents_of_pool(pool, extent) for pool in plan.pools) <= 0:
        return
    for volume in known.volumes:
        device = present.device_of(volume) if volume.name not in listed and volume not in plan.removed and not volume.pool else None
        for each in (device, *present.tree.descendants(device.name)) if device is not None else ():
            problem = outsized(present, each, each.size)
            if problem is not None:
                yield problem


def check_room(layout: Layout, plan: GroupPlan, grown: Mapping[str, int]) -> Iterator[str]:
    """Give a refusal when the volumes do not fit; `grown` are bytes by which devices of kept physical volumes grow."""
    known = plan.present
    extent = known.extent_size if known is not None else plan.desired.extent
    room = sum(extents_of(layout, volume, extent) for volume in plan.desired.physical if volume.device in plan.new)
    room += known.free // extent if known is not None else 0
    room += sum((grown.get(volume.device, 0)) // extent for volume in plan.desired.physical)
    freed = [volume.size + volume.metadata for volume in plan.freed if not volume.pool]
    room += sum(size // extent for size in freed)
    needed = sum(_extents_needed(volume, extent) for volume in plan.volumes if not volume.desired.pool)
    needed += sum(_extents_of_pool(pool, extent) for pool in plan.pools) + _extents_of_spare(plan, extent)
    made = {cache.desired.device for cache in plan.caches if cache.makes}
    needed += sum(extents_of(layout, volume, extent) for volume in plan.desired.physical if volume.device in made)
    yield from _check_parts(layout, plan, grown, made)
    if needed > room:
        room_words = f"room for {room} more extents of {in_mib(extent)}"
        short = in_mib((needed - room) * extent)
        yield f"the volume group {plan.desired.name} has {room_words}, but {needed} are needed: {short} too few"


def _check_parts(layout: Layout, plan: GroupPlan, grown: Mapping[str, int], taken: Collection[str]) -> Iterator[str]:
    """Give a refusal for striped volumes for which LVM finds no room: their stripes are equal, and on as many physical volumes."""
    known = plan.present
    extent = known.extent_size if known is not None else plan.desired.extent
    new = [volume for volume in plan.desired.physical if volume.device in plan.new and volume.device not in taken]
    room = {volume.device: extents_of(layout, volume, extent) for volume in new}
    names = {name: device for device, name in plan.there.items()}
    for volume in known.physical if known is not None else ():
        freed = sum(gone.extents.get(str(volume.device), 0) for gone in plan.freed)
        device = names.get(str(volume.device), str(volume.device))
        room[device] = (volume.free + grown.get(device, 0)) // extent + freed
    for each in plan.in_turn(extent):
        if not isinstance(each, VolumePlan) or not each.desired.is_striped:
            continue
        desired = each.desired
        parts = -(-_extents_needed(each, extent) // desired.stripes)
        segments = stripe_segments(room, desired.stripes, parts, desired.devices)
        if segments is None:
            says = f"has {desired.stripes} stripes and needs room for {parts} extents of {in_mib(extent)} on as many physical volumes"
            able = ", ".join(f"{device} for {extents}" for device, extents in room.items())
            yield f"{desired.title} {says}; those of {desired.group} have room for fewer ({able})"
        for devices, extents in segments or ():
            room.update({device: room[device] - extents for device in devices})


def _extents_needed(volume: VolumePlan, extent: int) -> int:
    if volume.action is VolumeAction.REFILL:
        return 0
    desired = extents_for(volume.desired.size, extent)
    if volume.present is not None and volume.shrinks(extent):
        return desired - volume.present.size // extent
    if volume.action is VolumeAction.KEEP and volume.present is not None:
        return max(0, desired - volume.present.size // extent)
    return desired


def _extents_of_pool(pool: PoolPlan, extent: int) -> int:
    """Return how many extents more a pool takes for data and metadata."""
    if pool.action is VolumeAction.REFILL:
        return 0
    there = (pool.present.size, pool.present.metadata) if pool.action is VolumeAction.KEEP and pool.present is not None else (0, 0)
    wanted = (pool.desired.size, pool.desired.metadata)
    return sum(max(0, extents_for(part, extent) - before // extent) for part, before in zip(wanted, there))


def _extents_of_spare(plan: GroupPlan, extent: int) -> int:
    """Return how many extents more LVM takes for the spare of metadata, which is as large as the largest of the group's pools."""
    changed = [pool for pool in plan.pools if _extents_of_pool(pool, extent)]
    there = plan.present.spare if plan.present is not None else 0
    largest = max((pool.desired.metadata for pool in changed), default=0)
    return max(0, extents_for(largest, extent) - there // extent)
