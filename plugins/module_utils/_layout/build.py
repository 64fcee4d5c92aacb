# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that build: from cleared partitions over arrays, LUKS and LVM to filesystems, and what grows. Pure.

Hosts get sources, and compile in each run what they import: each kind of step only where it is needed.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Sequence

from .._schema.model import Layout
from .._steps.partitions import FinishPartitions
from .._steps.signatures import ClearSignatures
from .._steps.step import Step
from .arrays import array_growth, array_of, changed_options, joining_of
from .build_contents import (
    Site,
    cleared_devices,
    kept_device,
    kept_filesystem,
    mapping_name,
    new_container,
    new_filesystem,
    new_subvolumes,
)
from .capacity import EXTENT, array_head, container_head
from .contents import has_small_member, top_of, unused_below
from .partitions import PartitionMatch, Status
from .stack import Action, Stack

if t.TYPE_CHECKING:
    from .volume_groups import GroupPlan


def building_steps(site: Site) -> Iterator[Step]:
    """Give all steps after those on the tables. What is alike comes together, so that udev is waited for once."""
    built = [stack for stack in site.stacks if stack.action is Action.BUILD]
    yield from _cleared(site.layout, built)
    for stack in built:
        yield from _array(site, stack)
    for stack in built:
        yield from new_container(site, stack.device)
    for stack in site.stacks:
        yield from _joined(site, stack)
    for stack in site.stacks:
        yield from _grown_stack(site, stack)
    for stack in site.stacks:
        yield from changed_options(site.present, stack)
    yield from _groups(site)
    # A complete stack is marked as finished at once: after a later failure it does not count as unfinished, and may be used.
    filled = [stack for stack in built if _is_filled(site, stack)]
    yield from _finish([stack for stack in site.stacks if stack not in filled and not site.is_in_zpool(stack)])
    for stack in filled:
        yield from new_filesystem(site, stack.device)
        yield from _finish([stack])
    yield from _new_zpools(site)
    yield from _finish([stack for stack in site.stacks if site.is_in_zpool(stack)])
    for stack in filled:
        yield from new_subvolumes(site, stack.device)
    yield from _volumes(site)
    for stack in site.stacks:
        yield from kept_filesystem(site, stack.device, kept_device(site, stack), _has_to_grow(site, stack))
    yield from _kept_zpools(site)


def removals(groups: Sequence[GroupPlan]) -> Iterator[Step]:
    """Give the steps that remove logical volumes."""
    if groups:
        from .build_groups import removals_from

        for group in groups:
            yield from removals_from(group)


def _groups(site: Site) -> Iterator[Step]:
    if site.groups:
        from .build_groups import group_steps

        for group in site.groups:
            yield from group_steps(site, group)


def _volumes(site: Site) -> Iterator[Step]:
    if site.groups:
        from .build_groups import volume_steps

        for group in site.groups:
            yield from volume_steps(site, group)


def _new_zpools(site: Site) -> Iterator[Step]:
    if site.layout.zpools:
        from .build_zpools import new_zpool

        for stack in site.stacks:
            yield from new_zpool(site, stack)


def _kept_zpools(site: Site) -> Iterator[Step]:
    if site.layout.zpools:
        from .build_zpools import kept_zpool

        for stack in site.stacks:
            yield from kept_zpool(site, stack)


def _is_filled(site: Site, stack: Stack) -> bool:
    """Return whether a filesystem is made on a stack."""
    return site.layout.filesystem_on(top_of(site.layout, stack.device)) is not None


def _has_to_grow(site: Site, stack: Stack) -> bool:
    desired = site.layout.filesystem_on(stack.device)
    small = desired is not None and has_small_member(site.present, desired, stack)
    if stack.array is not None:
        return array_growth(stack, array_of(site.present, stack)) > 0
    return small or any(match.grows for match in stack.matches)


def _cleared(layout: Layout, stacks: Sequence[Stack]) -> Iterator[Step]:
    matches = [(match, stack) for stack in stacks for match in stack.matches]
    yield from cleared_devices({match.node: _head(layout, stack, match) for match, stack in matches})


def _head(layout: Layout, stack: Stack, match: PartitionMatch) -> int:
    """Return how much is cleared at the begin: where the data begin of what is made there, nothing of before may pass for data in it."""
    if stack.array is None:
        return container_head(layout, match.desired.device)
    return array_head(match.desired.size, stack.array.metadata)


def _array(site: Site, stack: Stack) -> Iterator[Step]:
    array = stack.array
    if array is None:
        return
    from .._steps.md import CreateArray

    members, spares = (tuple(site.node(device) for device in devices) for devices in (array.members, array.spares))
    identity = site.layout.identity(array.device)
    slow = tuple(site.node(device) for device in array.write_mostly or ())
    yield CreateArray(array.device, array.title, array.level, members, spares, array.metadata, identity, array.options, slow)
    # What was on an array of before can lie in the room of this one, farther inside than clearing its members reaches.
    yield ClearSignatures((array.device,), container_head(site.layout, array.device))


def _joined(site: Site, stack: Stack) -> Iterator[Step]:
    """Give the steps that add new partitions to an array that stays."""
    if stack.array is None or stack.action is not Action.KEEP or stack.opening is not None or stack.problem is not None:
        return
    array, joining = joining_of(site.present, stack)
    nodes = tuple(match.node for match in joining)
    if not nodes:
        return
    from .._steps.md import AddMembers, WidenArray

    yield ClearSignatures(nodes, max(_head(site.layout, stack, match) for match in joining))
    if array.slots == len(stack.array.members):
        yield AddMembers(str(array.dev), nodes)
    else:
        yield WidenArray(str(array.dev), nodes, len(stack.array.members))


def _grown_stack(site: Site, stack: Stack) -> Iterator[Step]:
    """Let the array of a kept stack, LUKS and the physical volume on it follow what is below."""
    device = kept_device(site, stack)
    if device is None:
        return
    grown = stack.array is None and any(match.grows for match in stack.matches)
    array = array_of(site.present, stack)
    if array is not None and array_growth(stack, array):
        from .._steps.md import GrowArray

        yield GrowArray(str(array.dev))
        grown = True
    if grown or unused_below(site.present, device) >= EXTENT:
        container = site.layout.container_on(stack.device)
        if container is not None:
            from .._steps.luks import ResizeLuks

            yield ResizeLuks(mapping_name(device))
            grown = True
    volume = site.present.physical_on(device.name)
    if site.carries_group(stack) and volume is not None and (grown or volume.unused >= volume.extent_size > 0):
        from .._steps.lvm import ResizePhysicalVolume

        yield ResizePhysicalVolume(str(device.dev))


def _finish(stacks: Sequence[Stack]) -> Iterator[Step]:
    """Give one step for each disk that has partitions which are not marked as finished."""
    matches: dict[str, list[PartitionMatch]] = {}
    for match in (match for stack in stacks for match in stack.matches if match.status is not Status.KEPT or match.receiving):
        matches.setdefault(match.disk.node, []).append(match)
    for disk, found in matches.items():
        desired = sorted((match.desired for match in found), key=lambda partition: partition.number)
        numbers, uuids = tuple(partition.number for partition in desired), tuple(partition.uuid for partition in desired)
        yield FinishPartitions(disk, found[0].disk.device.logical_block, numbers, uuids)
