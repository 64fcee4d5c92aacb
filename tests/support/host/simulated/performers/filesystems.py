# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""File systems, swap and Btrfs of a simulated host, and their moves."""

from __future__ import annotations

import typing as t

from ansible_collections.bareon.allocator.plugins.module_utils._steps.btrfs import CreateSubvolumes, LimitSubvolumes, ReplaceDevice
from ansible_collections.bareon.allocator.plugins.module_utils._steps.filesystem import (
    CopyContents,
    GrowFilesystem,
    MakeFilesystem,
    MakeSwap,
    RestoreSuperblock,
)
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import HALF, TORN, SimulatedHost
from ansible_collections.bareon.allocator.tests.support.host.simulated.media import MIB, Block
from ansible_collections.bareon.allocator.tests.support.host.simulated.performers.basics import (
    Performers,
    Pieces,
    clean_block,
    copy_range,
    need,
    unused_block,
)


def _make_filesystem(host: SimulatedHost, step: MakeFilesystem) -> Pieces:
    blocks = [clean_block(host, device) for device in (step.device, *step.more)]
    for uuid in (f"{HALF}{step.uuid}", step.uuid):
        for block in blocks:
            host.media.sign(block, step.type, (uuid, block.size))
            yield


def _make_swap(host: SimulatedHost, step: MakeSwap) -> Pieces:
    block = clean_block(host, step.device)
    host.media.sign(block, "swap", (step.uuid, block.size))
    yield


def _grow_filesystem(host: SimulatedHost, step: GrowFilesystem) -> Pieces:
    (uuid, _size, *_subvolumes), _offsets = host.media.signatures(host.by_node(step.device))[step.type]
    for block in _members(host, uuid) if step.several else [host.by_node(step.device)]:
        (uuid, _size, *subvolumes), _offsets = host.media.signatures(block)[step.type]
        if step.type == "ext4":
            need(not subvolumes, f"the superblock on {step.device} is torn")
            host.media.sign(block, step.type, (uuid, block.size, TORN))
            yield
        host.media.sign(block, step.type, (uuid, block.size, *subvolumes))
        yield


def _restore_superblock(host: SimulatedHost, step: RestoreSuperblock) -> Pieces:
    block = unused_block(host, step.device)
    (uuid, size, torn), _offsets = host.media.signatures(block)[step.type]
    need(torn == TORN, f"the superblock on {step.device} is whole")
    host.media.sign(block, step.type, (uuid, size))
    yield


def _members(host: SimulatedHost, uuid: str) -> list[Block]:
    """The devices of a btrfs."""
    found = ((block, host.media.signatures(block).get("btrfs")) for block in host.blocks().values())
    return [block for block, signature in found if signature is not None and signature[0][0] == uuid]


def _create_subvolumes(host: SimulatedHost, step: CreateSubvolumes) -> Pieces:
    for name in step.names:
        payload, _offsets = host.media.signatures(host.by_node(step.device))["btrfs"]
        need(name not in dict(payload[2:]), f"there is a subvolume {name}")
        _set_subvolume(host, payload[0], name, None)
        yield


def _set_subvolume(host: SimulatedHost, uuid: str, name: str, limit: int | None) -> None:
    """Write what is known of a subvolume on all devices at once, as a transaction of btrfs does."""
    for block in _members(host, uuid):
        (_uuid, size, *subvolumes), _offsets = host.media.signatures(block)["btrfs"]
        host.media.sign(block, "btrfs", (uuid, size, *{**dict(subvolumes), name: limit}.items()))


def _limit_subvolumes(host: SimulatedHost, step: LimitSubvolumes) -> Pieces:
    for name, limit in zip(step.names, step.limits, strict=True):
        (uuid, _size, *subvolumes), _offsets = host.media.signatures(host.by_node(step.device))["btrfs"]
        need(name in dict(subvolumes), f"there is no subvolume {name}")
        _set_subvolume(host, uuid, name, limit)
        yield


def _replace_device(host: SimulatedHost, step: ReplaceDevice) -> Pieces:
    old = next((block for block in host.blocks().values() if block.node == step.device), None)
    need(old is not None and "btrfs" in host.media.signatures(t.cast(Block, old)), f"{step.device} has no btrfs")
    old, new = t.cast(Block, old), host.by_node(step.new)
    payload, _offsets = host.media.signatures(old)["btrfs"]
    there = host.media.signatures(new)
    need(new.size >= old.size, f"{new.name} is too small")
    need(set(there) <= {"btrfs"} and all(each[0][0] == payload[0] for each in there.values()), f"{new.name} has {list(there)}")
    host.media.sign(new, "btrfs", payload)
    yield
    copy_range(host, old, 0, new, 0, old.size)
    yield
    host.media.wipe(old)
    yield


def _copy_contents(host: SimulatedHost, step: CopyContents) -> Pieces:
    old, new = unused_block(host, step.device), unused_block(host, step.new)
    need(new.size >= step.size == old.size, f"{new.name} is too small")
    copy_range(host, old, MIB, new, MIB, step.size - MIB)
    yield
    copy_range(host, old, 0, new, 0, MIB)
    yield
    host.media.wipe(old)
    yield


PERFORMERS: Performers = {
    ReplaceDevice: _replace_device,
    CopyContents: _copy_contents,
    MakeFilesystem: _make_filesystem,
    MakeSwap: _make_swap,
    GrowFilesystem: _grow_filesystem,
    RestoreSuperblock: _restore_superblock,
    CreateSubvolumes: _create_subvolumes,
    LimitSubvolumes: _limit_subvolumes,
}
