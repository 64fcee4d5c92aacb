# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one gate for every step of a plan: it refuses a step that reaches anything foreign on a disk that `wipe` does not name. Pure.

Each kind of step states which bytes of which devices it reaches: a whole device, the sectors of a partition table, the room of a new
partition, single places. Contents found there pass where their disks may be wiped, or where they are our own unfinished work; a step that
only changes or opens something has to do that to a device of the layout. A plan that is refused here has no steps.
"""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from .._facts.present import Present
from .._facts.signatures import Signature
from .._facts.tree import PARTITION_TABLES, Device
from .._steps.reach import Reach
from .._steps.step import Judged
from .._storage.units import in_mib
from .disks import FoundDisk


@dataclass(frozen=True)
class Given:
    """What steps may reach without a permission.

    `own` are names of devices whose content is our own unfinished work, or nobody's; `kept` of those that the layout has, which may be
    opened and changed in place.
    """

    own: Collection[str]
    kept: Collection[str]


@dataclass(frozen=True)
class Finding:
    """Something on a device: in words, and at which offset where that is known."""

    device: Device
    words: str
    offset: t.Optional[int] = None


def check_steps(present: Present, disks: Sequence[FoundDisk], given: Given, steps: Iterable[Judged]) -> Iterator[str]:
    """Give a refusal for everything foreign that a step reaches; no refusal means that all steps may be done."""
    wiped = frozenset(disk.device.name for disk in disks if disk.may_wipe)
    for step in steps:
        for reach in step.reaches(present):
            for finding in _findings(present, reach):
                if not _is_given(present, reach, finding, given, wiped):
                    yield _refusal(present, disks, step, finding)


def _is_given(present: Present, reach: Reach, finding: Finding, given: Given, wiped: frozenset[str]) -> bool:
    if reach.keeps and finding.device.name in given.kept:
        return True
    return finding.device.name in given.own or wiped.issuperset(present.disks_below(finding.device.name))


def _refusal(present: Present, disks: Sequence[FoundDisk], step: Judged, finding: Finding) -> str:
    place = f" at {in_mib(finding.offset)}" if finding.offset is not None else ""
    known = {disk.device.name: disk for disk in disks}
    below = [known[name] for name in present.disks_below(finding.device.name) if name in known]
    node = finding.device.dev or finding.device.title or finding.device.name
    says = "; ".join(disk.permission() for disk in below) or "it is on no disk of the schema"
    return f"{node} has {finding.words}{place}, which would be lost to this: {step.says}; {says}"


def _findings(present: Present, reach: Reach) -> Iterator[Finding]:
    """Give what was found in the bytes that are reached."""
    device, tree = present.tree.devices[reach.device], present.tree
    if reach.end is None:
        for each in (device, *tree.descendants(device.name)):
            yield from _content(each)
        return
    for signature in device.signatures:
        if signature.type not in PARTITION_TABLES:
            yield from (Finding(device, signature.type, offset) for offset in signature.offsets if reach.start <= offset < reach.end)
    for signature in loose_in(present, reach):
        yield Finding(device, f"{_named(signature)} in no partition", signature.offsets[0])
    for child in tree.children(device.name):
        if child.partition is None and child.running:
            yield Finding(child, f"{child.kind} running on the disk as a whole")
        elif child.partition is not None and reach.meets(child.partition.start, child.partition.size):
            for each in (child, *tree.descendants(child.name)):
                yield from _content(each)


def loose_in(present: Present, reach: Reach) -> Iterator[Signature]:
    """Give what has a signature in the reached room of a disk, and lies in no partition."""
    for signature in present.loose.get(reach.device, ()):
        if reach.end is not None and reach.start <= signature.offsets[0] < reach.end:
            yield signature


def _named(signature: Signature) -> str:
    return f"{signature.type} {signature.label!r}" if signature.label else signature.type


def _content(device: Device) -> Iterator[Finding]:
    """Give what is on a device itself."""
    for signature in device.signatures:
        yield Finding(device, _named(signature), signature.offsets[0] if signature.offsets else None)
    if device.remains is not None:
        yield Finding(device, device.remains.words)
    if device.mountpoints:
        yield Finding(device, f"something mounted on {', '.join(device.mountpoints)}")
    if device.uses:
        yield Finding(device, f"something that is {' and '.join(device.uses)}")
    if device.openers:
        yield Finding(device, f"something that is open in {', '.join(device.openers)}")
    if device.claimed:
        yield Finding(device, "something that the kernel holds")
    if device.running and device.partition is None and device.parents and not device.is_part:
        yield Finding(device, f"{device.kind} running on it")
