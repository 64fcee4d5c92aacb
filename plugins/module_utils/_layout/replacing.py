# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which disk that still works is emptied onto which other one: the pairs of `replace`, or why they are none. Pure.

The layout is that of the disks that stay: it has the new disk, and the old one no more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .._facts.present import Present
from .._facts.select import Disk
from .._schema.model import DesiredDisk
from .disks import FoundDisk, names_of
from .partitions import Status, is_ours, match_disk
from .protected import Protection, protections_of

OPTION = "replace"


@dataclass(frozen=True)
class Pair:
    """A disk that is emptied, with no partitions in the layout, and the new one, which takes its contents.

    `erased`: wipe names the old one, so that what is left on it in the end may be destroyed.
    """

    old: FoundDisk
    new: FoundDisk

    @property
    def erased(self) -> bool:
        """Whether what is left on the old disk may be destroyed."""
        return self.old.may_wipe


@dataclass(frozen=True)
class Pairs:
    """The pairs whose old disk is attached, reasons why they may not be, and what is worth a warning."""

    pairs: tuple[Pair, ...] = ()
    refusals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def why_no_pairs(asked: Mapping[str, object]) -> Iterator[str]:
    """Give what is wrong with the option, whatever disks the host has."""
    for old, new in asked.items():
        if not isinstance(new, str) or not new.strip() or not old.strip():
            yield f"{OPTION}.{old}: must be the id of the disk that takes the contents of {old}, not {new!r}"
        elif old == new:
            yield f"{OPTION}.{old}: {old} cannot take its own contents"
    for new in {str(value) for value in asked.values()}:
        olds = [old for old, value in asked.items() if value == new]
        if len(olds) > 1:
            yield f"{OPTION}: {new} is to take the contents of {' and '.join(olds)}, but a disk takes those of one"


def without_old_disks(present: Present, asked: Mapping[str, str], wipe: Iterable[str]) -> tuple[str, ...]:
    """Return what wipe names but for the disks that are emptied, which are none of the layout's."""
    olds = [disk for name in asked for disk in _called(present, name)]
    return tuple(each for each in wipe if each not in asked and not any(each in names_of(disk) for disk in olds))


def old_disks(present: Present, asked: Mapping[str, str]) -> frozenset[str]:
    """Return the kernel's names of the disks that are emptied."""
    return frozenset(disk.device.name for name in asked for disk in _called(present, name))


def find_pairs(
    present: Present, found: Sequence[FoundDisk], asked: Mapping[str, str], wipe: Collection[str], protections: Sequence[Protection]
) -> Pairs:
    """Return the pairs; `found` are the layout's disks."""
    pairs: list[Pair] = []
    refusals: list[str] = []
    notes: list[str] = []
    for name, other in asked.items():
        new = next((disk for disk in found if other in (disk.desired.id, *names_of(disk.disk))), None)
        if new is None:
            listed = ", ".join(disk.desired.id for disk in found) or "none"
            refusals.append(f"{OPTION}.{name}: {other} is not a disk of the schema, which has {listed}; plan for the disks that stay")
            continue
        olds = _called(present, name)
        if len(olds) != 1:
            if _is_complete(new, present):
                notes.append(f"{OPTION}: there is no disk {name} here any more, and {new.words} has all that the schema has there")
            else:
                there = ", ".join(disk.id for disk in present.disks) or "none"
                refusals.append(f"{OPTION}: there is no disk {name} here; there are {there}")
            continue
        old = _old(olds[0], name, present, wipe, protections)
        mistakes = list(_mistakes(old, new, found))
        refusals += mistakes
        if not mistakes:
            pairs.append(Pair(old, new))
    return Pairs(tuple(pairs), tuple(refusals), tuple(notes))


def _called(present: Present, name: str) -> list[Disk]:
    return [disk for disk in present.disks if name in names_of(disk)]


def _old(disk: Disk, name: str, present: Present, wipe: Collection[str], protections: Sequence[Protection]) -> FoundDisk:
    device = present.tree.devices[disk.device.name]
    by = protections_of(disk, present.tree, protections)
    named = any(each == name or each in names_of(disk) for each in wipe)
    return FoundDisk(DesiredDisk(OPTION, name, str(device.dev), None, ()), disk, device, named and not by, by, named and bool(by))


def _mistakes(old: FoundDisk, new: FoundDisk, found: Iterable[FoundDisk]) -> Iterator[str]:
    where = f"{OPTION}.{old.desired.id}"
    if old.desired.id == old.node and old.disk.id != old.node:
        yield f"{where}: {old.node} can be another disk after a reboot; name {old.disk.id}"
    if any(disk.device.name == old.device.name for disk in found):
        yield f"{where}: {old.words} is a disk of the schema; plan for the disks that stay, without it"
    for disk, does in ((old, "is emptied"), (new, "is written to")):
        if disk.protections:
            yield f"{where}: {disk.words} is {disk.protected}, but {does}"
    if _is_copy(old, new):
        yield (
            f"{where}: {new.words} is a copy of {old.words}, with the same identities, so that nothing tells what was moved from what was "
            f"copied; clear it by hand (wipefs --all on its partitions, then on {new.node}), or detach one of them"
        )
    if old.device.row.get("ro"):
        yield f"{where}: {old.words} is read-only, so that nothing on it can be made to end its membership"


def _is_copy(old: FoundDisk, new: FoundDisk) -> bool:
    """Return whether one disk was copied onto the other: their tables, or what is on them as a whole, have the same UUID."""
    own, other = ({table.uuid} if table is not None else set() for table in (old.device.table, new.device.table))
    own |= {signature.uuid for signature in old.device.signatures}
    other |= {signature.uuid for signature in new.device.signatures}
    return bool((own & other) - {None})


def _is_complete(new: FoundDisk, present: Present) -> bool:
    """Return whether a disk has all partitions of the layout, each of them finished."""
    matches = match_disk(new, present.tree)
    return is_ours(new, matches, present.tree) and all(match.status is Status.KEPT and not match.receiving for match in matches)


def as_kept(found: Iterable[FoundDisk], pairs: Iterable[Pair], present: Present) -> tuple[FoundDisk, ...]:
    """Return the disks of the layout, of which those that have taken something may not be wiped any more: that was for what was there."""
    news = {pair.new.device.name for pair in pairs}
    return tuple(
        replace(disk, may_wipe=False) if disk.device.name in news and is_ours(disk, match_disk(disk, present.tree), present.tree) else disk
        for disk in found
    )
