# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The array of a stack: which of its members it runs on, which join it, which come back, and by how much it grows. Pure.

Hosts get sources, and compile in each run what they import: the steps of md only where there is one to take.
"""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Iterable, Iterator, Sequence

from .._facts.present import Present
from .._facts.stacks import Superblock
from .._facts.tree import Device, Tree
from .._schema.model import DesiredArray
from .._steps.step import Step
from .._storage import overhead
from .._storage.raid import CHANGEABLE, FAR, WRITE_MOSTLY, RaidLevel, array_options, data_legs
from .._storage.units import KIB
from .capacity import EXTENT
from .partitions import PartitionMatch, Status
from .stack import Action, Found, Stack

WITH_REDUNDANCY = ("raid1", "raid5", "raid6", "raid10")
"""Levels of arrays that run without a member, and build up another one; their members can grow as well."""

_PARITY = ("raid5", "raid6")
"""Levels of arrays that md spreads over further members, so that they hold more; a mirror gets further copies."""

_AT_THEIR_BEGIN = ("1.1", "1.2")
"""Metadata that stay where they are when a member grows."""

_CHUNK = overhead.MD_CHUNK * KIB

_TORN = 1
"""How many events the superblocks of one array differ by when the power goes while md writes them."""

_IN_STEP = 8
"""How many events a member may be behind, and nothing is lost with it: a start and a mount make up to four (seen with md of Linux 6.12); a
file system that is written to makes more within a minute."""


def joining_of(present: Present, stack: Stack) -> tuple[Device, tuple[PartitionMatch, ...]]:
    """Return the array of a kept stack, and the new partitions that become its members."""
    found = look_at_array(present, stack)
    return t.cast(Device, found.device), found.joining


def array_of(present: Present, stack: Stack) -> t.Optional[Device]:
    """Return the array of a kept stack; None where it is none."""
    return look_at_array(present, stack).device if stack.array is not None and stack.action is Action.KEEP else None


def taking_back(present: Present, stack: Stack) -> t.Optional[Step]:
    """Return the step with which the array of a stack takes members back that it started without; md knows no spare again.

    Where udev has put such a member together by itself, that half is stopped first.
    """
    found = look_at_array(present, stack) if stack.array is not None else Found()
    halves = _halves(present.tree, stack) if found.device is not None else ()
    if halves:
        from .._steps.md import StopArray

        return StopArray(str(halves[0].dev))
    if found.device is None or not found.returning:
        return None
    from .._steps.md import AddMembers, ReAddMembers

    node, spares = str(found.device.dev), tuple(match.node for match in found.returning if _superblock(present, match).role is None)
    others = tuple(match.node for match in found.returning if match.node not in spares)
    return ReAddMembers(node, others) if others else AddMembers(node, spares)


def changed_options(present: Present, stack: Stack) -> Iterator[Step]:
    """Give the steps that give the array of a kept stack the bitmap and the write-mostly members that are desired."""
    array = array_of(present, stack)
    if array is None or stack.array is None:
        return
    from .._steps.md import ChangeBitmap, ChangeWriteMostly

    unlike = {key: wanted for key, _there, wanted in stack.array.options.unlike(array_options(array.details))}
    if "bitmap" in unlike:
        yield ChangeBitmap(str(array.dev), array.name, unlike["bitmap"])
    if stack.array.write_mostly is None or not array.running:
        return
    there = array.details.get(WRITE_MOSTLY, ())
    for match in stack.matches:
        slow, member = match.desired.device in stack.array.write_mostly, match.device
        if member is not None and member.name in array.parents and slow != (member.dev in there):
            yield ChangeWriteMostly(str(array.dev), array.name, match.node, member.name, slow)


def overwritten_in(present: Present, stack: Stack) -> tuple[Device, ...]:
    """Return the returning members that have something from before which the array has changed since."""
    if stack.array is None or stack.taking_back is None:
        return ()
    from .._steps.md import ReAddMembers

    if not isinstance(stack.taking_back, ReAddMembers):
        return ()
    found = look_at_array(present, stack)
    copies = [match for match in found.returning if _superblock(present, match).is_copy]
    behind = [match for match in copies if (_events_behind(present, t.cast(Device, found.device), match) or 0) > _IN_STEP]
    return tuple(match.device for match in behind if match.device is not None)


def is_degraded(present: Present, stack: Stack) -> bool:
    """Return whether the array of a stack runs without a member: what it has may be all that a failed disk left.

    Whether an array without a present member is right may need a person's decision. Where partitions are unfinished, an interrupted
    run already had permission to create the array again.
    """
    device = _running_array(present.tree, stack)
    if stack.array is None or device is None or not device.running or device.inactive:
        return False
    lacks = device.slots is not None and len(device.parents) < device.slots and not any(match.unfinished for match in stack.matches)
    return lacks or any(_is_left_out(device, match) for match in stack.matches)


def look_at_array(present: Present, stack: Stack) -> Found:
    """Return the array of a stack of which at least one partition is there, what it gains, or why it is not as desired."""
    array, tree = t.cast(DesiredArray, stack.array), present.tree
    members = {match.device.name: match for match in stack.matches if match.device is not None}
    device = _running_array(tree, stack)
    if device is None:
        return Found(problem=f"{stack.matches[0].node} is there, but not as a member of the array {array.device}")
    halves = _halves(tree, stack)
    if device in halves:
        from .._steps.md import StopArray

        # What udev put together by halves is taken apart, and started with all its members.
        return Found(opening=StopArray(str(device.dev)))
    # Another half's event count can be read once that half is stopped.
    out = tuple(match for match in stack.matches if not halves and (match.device is None or match.device.name not in device.parents))
    returning = tuple(match for match in out if _has_event_count(present, device, match))
    joining = _joining(stack, device, out) if not returning else ()
    problem = next((why for match in returning for why in [_why_it_stays_out(present, device, match)] if why), None)
    if out and not returning and not joining:
        problem = f"the array {array.device} lacks {out[0].node}; former members, and members that it cannot take, are not added"
    problem = problem or _otherwise(array, device, [tree.devices[name] for name in device.parents if name in tree.devices], members)
    if problem is not None:
        return Found(problem=problem)
    if not device.running:
        from .._steps.md import StartArray

        nodes = tuple(match.node for match in stack.matches)
        return Found(opening=StartArray(array.device, nodes, device.uuid or ""))
    return Found(device, joining=joining, returning=returning)


def _halves(tree: Tree, stack: Stack) -> tuple[Device, ...]:
    """Return what udev has put together of members of a stack, and of nothing else, and not started."""
    members = {match.device.name for match in stack.matches if match.device is not None}
    children = (child for name in sorted(members) for child in tree.children(name))
    return tuple(child for child in children if child.inactive and members.issuperset(child.parents))


def _running_array(tree: Tree, stack: Stack) -> t.Optional[Device]:
    """Return the array on the members of a stack: rather the running one than one of members that were left out."""
    there = [match.device.name for match in stack.matches if match.device is not None]
    candidates = [child for name in there for child in tree.children(name) if child.kind.startswith(("raid", "linear", "md"))]
    return min(candidates, key=lambda device: (not device.running, device.inactive), default=None)


def _otherwise(array: DesiredArray, device: Device, members: Iterable[Device], wanted: Collection[str]) -> t.Optional[str]:
    """Return in what an array is not the desired one."""
    strangers = [member for member in members if member.name not in wanted]
    if strangers:
        return f"the array {array.device} also has {strangers[0].dev or strangers[0].name}"
    if device.kind not in (array.level, "raid"):
        return f"the array {array.device} is a {device.kind}, which is not changed to {array.level}"
    if device.metadata not in (None, array.metadata):
        return f"the array {array.device} has metadata {device.metadata}, which is not changed to {array.metadata}"
    for key, there, wanted in array.options.unlike(array_options(device.details)):
        if key not in CHANGEABLE:
            return f"the array {array.device} has the {key} {there}, which is not changed to {wanted}"
    return None


def _is_left_out(device: Device, match: PartitionMatch) -> bool:
    """Return whether a partition is a member of a running array that this was started without."""
    if match.device is None or match.device.filesystem is None or not device.running:
        return False
    there = match.device.filesystem
    return match.device.name not in device.parents and (there.type, there.uuid) == ("linux_raid_member", device.uuid)


def _has_event_count(present: Present, device: Device, match: PartitionMatch) -> bool:
    """Return whether a partition that an array was started without has an event count of that array."""
    superblock = present.superblocks.get(match.device.name) if match.device is not None else None
    return _is_left_out(device, match) and device.kind in WITH_REDUNDANCY and superblock is not None and superblock.uuid == device.uuid


def _superblock(present: Present, match: PartitionMatch) -> Superblock:
    """Return what a former member says."""
    return present.superblocks[t.cast(Device, match.device).name]


def _events_behind(present: Present, device: Device, match: PartitionMatch) -> t.Optional[int]:
    """Return how many events a former member is behind its array; None where not all running members have a count."""
    seen = [present.superblocks[name].events for name in device.parents if name in present.superblocks]
    return max(seen) - _superblock(present, match).events if len(seen) == len(device.parents) else None


def runs_without(present: Present, member: Device) -> bool:
    """Return whether an array runs without a member, and has all that this has: it was never in use without those that run."""
    superblock = present.superblocks.get(member.name)
    known = (device for device in present.tree.devices.values() if superblock is not None and device.uuid == superblock.uuid)
    array = next((device for device in known if device.running and not device.inactive and device.kind.startswith(("raid", "md"))), None)
    if superblock is None or array is None or member.name in array.parents:
        return False
    others = [present.superblocks[name] for name in array.parents if name in present.superblocks]
    return len(others) == len(array.parents) and not _was_used_alone(superblock, others)


def _was_used_alone(superblock: Superblock, running: Sequence[Superblock]) -> bool:
    """Return whether a former member was in use without members that run."""
    roles, newest = {other.role for other in running}, max(other.events for other in running)
    return bool(superblock.missing & roles) or superblock.events > newest + _TORN


def _why_it_stays_out(present: Present, device: Device, match: PartitionMatch) -> t.Optional[str]:
    """Return why a former member is not taken back: md would silently overwrite data that only this member has.

    Only members that run count: what another former member lacks, such as one that failed earlier, proves nothing.
    """
    superblock, behind = _superblock(present, match), _events_behind(present, device, match)
    node, array = match.node, device.dev
    others = [present.superblocks[name] for name in device.parents if name in present.superblocks]
    giving_up = f"mdadm --zero-superblock {node}, then mdadm --manage {array} --add {node}"
    if superblock.role is not None and superblock.role in {other.role for other in others}:
        return f"the array {array} runs without {node}, whose place a spare has taken; to have it stand by, give it up: {giving_up}"
    if not superblock.is_copy:
        return None
    if behind is None:
        return f"the array {array} runs without {node}, and mdadm --examine does not show the event counts of its other members"
    if _was_used_alone(superblock, others):
        return (
            f"the array {array} runs without {node}, which was in use without the others: each may have what the other lacks, so neither "
            f"is overwritten, even with wipe; where {array} has all, give {node} up: {giving_up}"
        )
    if behind <= _IN_STEP or match.unfinished or match.disk.may_wipe:
        return None
    return (
        f"the array {array} runs without {node} and was changed since, so that {node} has an older state ({behind} events behind); "
        f"that is overwritten where wipe names its disk, or by hand: mdadm --manage {array} --re-add {node}"
    )


def _joining(stack: Stack, device: Device, new: tuple[PartitionMatch, ...]) -> tuple[PartitionMatch, ...]:
    """Return those of the new partitions that a running array can take: as many as it and its spares lack, or more where it is whole.

    Nothing is taken where something else than a new partition is not a member: what is on it may be the newer half.
    """
    array = t.cast(DesiredArray, stack.array)
    if not device.running or device.slots is None or device.kind not in WITH_REDUNDANCY:
        return ()
    if any(match.status not in (Status.NEW, Status.UNFINISHED) for match in new):
        return ()
    widened = device.kind in ("raid1", *_PARITY) and not array.spares
    whole = len(device.parents) == device.slots < len(array.members) and widened
    wanted = len(array.members) + len(array.spares)
    return new if len(device.parents) + len(new) == wanted and (device.slots == len(array.members) or whole) else ()


def array_growth(stack: Stack, device: t.Optional[Device]) -> int:
    """Return how many bytes more a kept array holds when it takes all of its members, as they will be; 0 for anything else."""
    if stack.array is None or device is None or device.legs is None or not members_can_grow(device):
        return 0
    least = min(match.desired.size if match.device is None or match.grows else match.size for match in stack.matches)
    growth = (least - device.legs.begin) // _CHUNK * _CHUNK - device.legs.used
    growth = growth if growth >= EXTENT else 0
    data = data_legs(RaidLevel(device.kind), len(stack.array.members))
    # An array that md spreads over further members holds more when the reshape is complete, not before.
    more = data * (device.legs.used + growth) - device.size if device.kind in _PARITY else data * growth
    return more if more >= EXTENT else 0


def members_can_grow(device: Device) -> bool:
    """Return whether an array can take more of its members."""
    return device.kind in WITH_REDUNDANCY and device.metadata in _AT_THEIR_BEGIN and device.details.get("layout") != FAR
