# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Members of md arrays that are moved off a disk: md copies each onto a new one while the array is in use. Pure."""

from __future__ import annotations

import typing as t

from .._facts.tree import Device
from .._steps.md import ForgetMember, ReplaceMember, StopArray
from .._steps.signatures import ClearSignatures
from .arrays import WITH_REDUNDANCY
from .capacity import array_head
from .moving import ARRAYS, MEMBER, Found, Ground, no_way, strange_on, too_small, unplanned
from .partitions import PartitionMatch
from .replacing import Pair


def move_member(ground: Ground, found: Found, pair: Pair, device: Device, array: Device) -> None:
    match = _place_in_array(ground, pair, array)
    if match is None:
        unplanned(found, pair, device, f"is a member of the array {array.dev}")
        return
    name = f"{device.dev} of {pair.old.words} is a member of {array.dev}"
    if array.kind not in WITH_REDUNDANCY or array.inactive:
        why = "is not started" if array.inactive else f"is a {array.kind}"
        found.refusals.append(f"replace: {name}, which {why}: md replaces members of running mirrors and parity alone")
        return
    there = match.device is not None and match.device.name in array.parents
    if array.slots is not None and len(array.parents) - there < array.slots:
        found.refusals.append(
            f"replace: {name}, which lacks another member; md would build that up on {match.node} first: complete it before"
        )
        return
    metadata = array.metadata or ""
    wanted = array.legs.begin + array.legs.used if array.legs is not None and metadata in ("1.1", "1.2") else device.size
    if match.desired.size < wanted:
        found.refusals.append(too_small(match, device, wanted, match.desired.size))
        return
    strange = None if there else strange_on(match, lambda kind, uuid: kind == MEMBER and uuid == array.uuid)
    if strange is not None:
        found.refusals.append(strange)
        return
    found.move(device.name, match)
    if not there:
        found.steps.append(ClearSignatures((match.node,), array_head(match.desired.size, metadata)))
    found.steps.append(ReplaceMember(str(array.dev), array.name, str(device.dev), match.node, metadata))


def _place_in_array(ground: Ground, pair: Pair, array: Device) -> t.Optional[PartitionMatch]:
    """Return the partition on the new disk that the layout has as a member of an array that is there."""
    for desired in ground.layout.arrays:
        devices = (*desired.members, *desired.spares)
        matches = [ground.matches[device] for device in devices if device in ground.matches]
        here = [match for match in matches if match.disk is pair.new]
        is_it = any(match.device is not None and match.device.name in array.parents for match in matches)
        titled = str(array.title or "").rpartition(":")[2] == desired.title
        if here and (is_it or titled):
            return here[0]
    return None


def forget_member(ground: Ground, found: Found, pair: Pair, device: Device, half: t.Optional[Device]) -> None:
    """Plan what becomes of a member that its array does without, or whose array does not run."""
    uuid = device.filesystem.uuid if device.filesystem is not None else None
    arrays = (each for each in ground.present.tree.devices.values() if each.kind.startswith(ARRAYS) and each is not half)
    array = next((each for each in arrays if each.uuid == uuid and each.running and not each.inactive), None)
    match = _place_in_array(ground, pair, array) if array is not None else None
    if array is None:
        node = half.dev if half is not None else None
        start = f"mdadm --run {node}" if node else "mdadm --assemble --scan"
        found.refusals.append(no_way(pair, device, f"is a member of an array that does not run ({start} starts it)"))
    elif match is not None and match.device is not None and match.device.name in array.parents:
        found.steps += [StopArray(str(half.dev))] if half is not None else []
        found.steps.append(ForgetMember(str(array.dev), str(device.dev), array.metadata or ""))
    else:
        found.notes.append(f"replace: {device.dev} is a former member of {array.dev}, which does without it; it stays where it is")
