# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Arrays of a simulated host."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.bareon.allocator.plugins.module_utils._steps.md import (
    AddMembers,
    CreateArray,
    ForgetMember,
    GrowArray,
    ReAddMembers,
    ReplaceMember,
    StartArray,
    StopArray,
    WidenArray,
)
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import Raid, SimulatedHost
from ansible_collections.bareon.allocator.tests.support.host.simulated.media import Block
from ansible_collections.bareon.allocator.tests.support.host.simulated.performers.basics import (
    Performers,
    Pieces,
    clean_block,
    need,
    unused_block,
)

MDADM_KIND = {"1.2": "md-1.2", "1.0": "md-1.0", "0.90": "md-0.90"}


def _create_array(host: SimulatedHost, step: CreateArray) -> Pieces:
    need(step.device not in host.arrays.values(), f"{step.device} is there")
    blocks = [clean_block(host, node) for node in (*step.members, *step.spares)]
    for role, block in enumerate(blocks):
        raid = Raid(step.uuid, step.title, step.level, len(step.members), step.metadata, role, block.size)
        host.media.sign(block, MDADM_KIND[step.metadata], raid)
        yield
    host.arrays[step.uuid] = step.device
    # udev looks at the array as soon as it is there, and starts a volume group of before that shows on it.
    host.assemble()


def _add_members(host: SimulatedHost, step: AddMembers) -> Pieces:
    """Add members as mdadm does, as spares where it lacks none; md has built them up as soon as they are there."""
    array = host.by_node(step.device)
    there = host.members(host.blocks(), array.uuid)
    known = there[0][1]
    blocks = [_spare(host, array, node) or clean_block(host, node) for node in step.members]
    roles = sorted(set(range(len(there) + len(blocks))) - {raid.role for _block, raid in there})
    for role, block in zip(roles, blocks, strict=False):
        need(block.size >= known.size, f"{block.name} is too small")
        if role < known.members:
            host.media.copy(there[0][0], block)
        host.media.sign(block, MDADM_KIND[known.metadata], replace(known, role=role, size=block.size))
        host.left_out = _without(host.left_out, array.uuid, block.name)
        yield


def _spare(host: SimulatedHost, array: Block, node: str) -> Block | None:
    """A spare that an array was started without: mdadm takes it as it is."""
    found = [block for block, raid in host.members(host.blocks()) if (raid.uuid, block.node) == (array.uuid, node)]
    return next((block for block in found if _superblock(host, block, array).role >= _superblock(host, block, array).members), None)


def _superblock(host: SimulatedHost, block: Block, array: Block) -> Raid:
    (found,) = [raid for known, raid in host.members(host.blocks()) if (known.name, raid.uuid) == (block.name, array.uuid)]
    return found


def _re_add_members(host: SimulatedHost, step: ReAddMembers) -> Pieces:
    """Take members back as mdadm does: it overwrites what they have, and looks at nothing but whose they were."""
    array = host.by_node(step.device)
    for block in [host.by_node(node) for node in step.members]:
        there, own = host.members(host.blocks(), array.uuid), _superblock(host, block, array)
        need(own.role < own.members and block.name in host.left_out[array.uuid], f"{block.name} was no member")
        yield
        events = max(raid.events for _block, raid in there) + 2
        host.media.zero(block, 0, block.size)
        host.media.copy(there[0][0], block)
        host.left_out = _without(host.left_out, array.uuid, block.name)
        for member, raid in [*there, (block, own)]:
            host.media.sign(member, MDADM_KIND[raid.metadata], replace(raid, events=events, without=frozenset()))
        yield


def _without(left_out: dict[str, frozenset[str]], uuid: str, name: str) -> dict[str, frozenset[str]]:
    less = {**left_out, uuid: left_out.get(uuid, frozenset()) - {name}}
    return {known: names for known, names in less.items() if names}


def _widen_array(host: SimulatedHost, step: WidenArray) -> Pieces:
    array = host.by_node(step.device)
    there = host.members(host.blocks(), array.uuid)
    need(len(there) == there[0][1].members and there[0][1].level == "raid1", f"{step.device} is no whole mirror")
    for block, raid in there:
        host.media.sign(block, MDADM_KIND[raid.metadata], replace(raid, members=step.count))
    yield
    yield from _add_members(host, AddMembers(step.device, step.members))


def _grow_array(host: SimulatedHost, step: GrowArray) -> Pieces:
    array = host.by_node(step.device)
    for block, raid in host.members(host.blocks(), array.uuid):
        host.media.sign(block, MDADM_KIND[raid.metadata], replace(raid, size=block.size))
        yield


def _start_array(host: SimulatedHost, step: StartArray) -> Pieces:
    host.arrays[step.uuid] = step.device
    yield


def _stop_array(host: SimulatedHost, step: StopArray) -> Pieces:
    unused_block(host, step.device)
    host.arrays = {uuid: node for uuid, node in host.arrays.items() if node != step.device}
    host.left_out = {uuid: names for uuid, names in host.left_out.items() if uuid in host.arrays}
    yield


def _replace_member(host: SimulatedHost, step: ReplaceMember) -> Pieces:
    """Replace a member as md does: the new one is a spare first, then a copy, and only then the old one is none."""
    array = host.by_node(step.device)
    there = {block.node: (block, raid) for block, raid in host.members(host.blocks(), array.uuid)}
    _block, known = list(there.values())[0]
    need(known.level != "raid0", "there is no other copy")
    need(len({raid.role for _block, raid in there.values() if raid.role < raid.members}) == known.members, f"{step.device} lacks a member")
    if step.new not in there:
        new = clean_block(host, step.new)
        need(new.size >= known.size, f"{new.name} is too small")
        host.media.sign(new, MDADM_KIND[known.metadata], replace(known, role=known.members + len(there), size=new.size))
        yield
    new = host.by_node(step.new)
    if step.old not in there:
        return
    old, raid = there[step.old]
    host.media.copy(old, new)
    host.media.sign(new, MDADM_KIND[known.metadata], replace(raid, size=new.size))
    yield
    host.left_out = {**host.left_out, str(array.uuid): host.left_out.get(str(array.uuid), frozenset()) | {old.name}}
    yield
    yield from _forget_member(host, ForgetMember(step.device, step.old, step.metadata))


def _forget_member(host: SimulatedHost, step: ForgetMember) -> Pieces:
    array, old = host.by_node(step.device), host.by_node(step.old)
    need(old.name not in array.parents, f"{old.name} is a member of {step.device}")
    host.media.wipe(old)
    host.left_out = _without(host.left_out, array.uuid, old.name)
    yield


PERFORMERS: Performers = {
    CreateArray: _create_array,
    AddMembers: _add_members,
    ReAddMembers: _re_add_members,
    WidenArray: _widen_array,
    GrowArray: _grow_array,
    StartArray: _start_array,
    StopArray: _stop_array,
    ReplaceMember: _replace_member,
    ForgetMember: _forget_member,
}
