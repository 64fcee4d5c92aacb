# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that make what is on one device, a partition or a volume: a LUKS container, a filesystem, subvolumes; and what grows. Pure."""

from __future__ import annotations

import functools
import typing as t
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .._facts.present import Present
from .._facts.tree import Device
from .._schema.model import DesiredArray, DesiredContainer, DesiredFilesystem, Layout
from .._steps.signatures import ClearSignatures
from .._steps.step import Step
from .._storage import derived
from .._storage.btrfs import outer_first
from .._storage.filesystems import FILESYSTEMS, SWAP
from .contents import look, must_grow, top_of
from .partitions import Status
from .stack import Action, Stack

if t.TYPE_CHECKING:
    from .volume_groups import GroupPlan


@dataclass(frozen=True)
class Site:
    """What the steps are planned for, and the nodes that desired devices have, or will have."""

    layout: Layout
    present: Present
    stacks: tuple[Stack, ...]
    groups: tuple[GroupPlan, ...]

    def node(self, device: str) -> str:
        """Return the node of a desired device."""
        return self._nodes.get(device, device)

    @functools.cached_property
    def _nodes(self) -> Mapping[str, str]:
        nodes = {match.desired.device: match.node for stack in self.stacks for match in stack.matches}
        for stack in self.stacks:
            if stack.action is not Action.BUILD:
                found = look(self.layout, self.present, stack).device
                nodes[top_of(self.layout, stack.device)] = str(found.dev) if found is not None else top_of(self.layout, stack.device)
        return nodes

    def lies_on_array(self, device: str) -> bool:
        """Return whether a desired device is an array, or a LUKS container on one."""
        thing = self.layout.thing(device)
        return isinstance(thing, DesiredArray) or (isinstance(thing, DesiredContainer) and self.lies_on_array(thing.below))

    def is_unfinished(self, device: str) -> bool:
        """Return whether a desired device is on partitions, or on what is built of them, that are not marked as finished."""
        stacks = (stack for stack in self.stacks if top_of(self.layout, stack.device) == device)
        return any(match.status is not Status.KEPT for stack in stacks for match in stack.matches)

    def is_in_zpool(self, stack: Stack) -> bool:
        """Return whether a stack belongs to a ZFS pool."""
        return self.layout.zpool_on(stack.device) is not None

    def carries_group(self, stack: Stack) -> bool:
        """Return whether a stack is for a physical volume."""
        return self.layout.group_of(top_of(self.layout, stack.device)) is not None


def cleared_devices(heads: Mapping[str, int]) -> Iterator[Step]:
    """Give a step for all nodes of which as much is cleared at the begin."""
    for head in dict.fromkeys(heads.values()):
        yield ClearSignatures(tuple(node for node, own in heads.items() if own == head), head)


def new_container(site: Site, device: str) -> Iterator[Step]:
    """Give the steps that make and open the LUKS container desired on a device."""
    container = site.layout.container_on(device)
    if container is not None:
        from .._steps.luks import FormatLuks, OpenLuks

        uuid = derived.container_uuid(site.layout.identity(device))
        yield FormatLuks(site.node(device), uuid, site.lies_on_array(device), container.name)
        yield OpenLuks(site.node(device), container.name)


def mapping_name(device: Device) -> str:
    """Return the name under which device-mapper has a device."""
    return str(device.dev).rsplit("/", 1)[-1]


def new_filesystem(site: Site, device: str) -> Iterator[Step]:
    """Give the step that makes the filesystem desired on a device, or in the LUKS container on it."""
    top = top_of(site.layout, device)
    desired = site.layout.filesystem_on(top)
    if desired is None:
        return
    from .._steps.filesystem import MakeFilesystem, MakeSwap

    uuid = site.layout.filesystem_uuid(device, desired)
    if desired.type == SWAP:
        yield MakeSwap(site.node(top), uuid, desired.label, desired.options)
    else:
        more = tuple(site.node(device) for device in desired.more)
        yield MakeFilesystem(site.node(top), desired.type, uuid, desired.label, desired.options, more, desired.level if more else "")


def new_subvolumes(site: Site, device: str) -> Iterator[Step]:
    """Give the steps that make the subvolumes of a filesystem that is made: it is mounted for them, so it is finished before."""
    top = top_of(site.layout, device)
    desired = site.layout.filesystem_on(top)
    if desired is not None:
        yield from _subvolumes(desired, site.node(top), {})


def kept_filesystem(site: Site, device: str, there: t.Optional[Device], grows: bool) -> Iterator[Step]:
    """Give the steps that grow a kept filesystem where it has to, and make the subvolumes that it lacks."""
    desired = site.layout.filesystem_on(top_of(site.layout, device))
    if desired is None or there is None:
        return
    if FILESYSTEMS[desired.type].growth is not None and must_grow(site.present, desired, there, grows):
        from .._steps.filesystem import GrowFilesystem

        yield GrowFilesystem(str(there.dev), desired.type, there.mountpoints[0] if there.mountpoints else None, bool(desired.more))
    uuid = str(there.filesystem.uuid) if there.filesystem is not None else ""
    yield from _subvolumes(desired, str(there.dev), site.present.subvolumes.get(uuid, {}))


def _subvolumes(desired: DesiredFilesystem, node: str, present: Mapping[str, t.Optional[int]]) -> Iterator[Step]:
    """Give the steps that make the subvolumes that are not there, and limit those with another limit."""
    if not desired.subvolumes:
        return
    from .._steps.btrfs import CreateSubvolumes, LimitSubvolumes

    limits = {subvolume.name: subvolume.limit for subvolume in desired.subvolumes}
    lacking = outer_first(name for name in limits if name not in present)
    changed = {name: limit for name, limit in limits.items() if limit is not None and present.get(name) != limit}
    if lacking:
        yield CreateSubvolumes(node, tuple(lacking))
    if changed:
        yield LimitSubvolumes(node, tuple(changed), tuple(changed.values()))


def kept_device(site: Site, stack: Stack) -> t.Optional[Device]:
    """Return what a kept stack offers to what is on it; None where it is made."""
    return look(site.layout, site.present, stack).device if stack.action is Action.KEEP else None
