# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two plans of one host: which of its spaces the second makes smaller, less safe or not at all, and what else is other. Sizes are MiB."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping
from enum import StrEnum

from ....module_utils._data.units import format_mib
from ....module_utils._data.words import listed
from ....module_utils._schema.static import readable_layout
from ..render.picture import picture
from ..render.shapes import HostPicture, SpacePicture
from .redundancy import redundancy_of_spaces

_MOST_NAMES = 3


class Kind(StrEnum):
    """How a plan differs from the one before, the worst last."""

    ALIKE = "alike"
    CHANGED = "changed"
    BETTER = "better"
    SMALLER = "smaller"
    UNENCRYPTED = "unencrypted"
    LESS_REDUNDANT = "less_redundant"
    SPACE_LOST = "space_lost"
    NO_PLAN = "no_plan"


ORDER = tuple(Kind)
WORSE = ORDER[ORDER.index(Kind.SMALLER) :]


class Change(t.NamedTuple):
    """One difference: `place` is a space, SPACE/SUBVOLUME or a disk; `says` a sentence."""

    place: str
    kind: Kind
    says: str


class ComparedPlan:
    """A plan as it is compared: its spaces by id, and how many disks each of them can lose."""

    def __init__(self, plan: Mapping[str, t.Any]) -> None:
        self.host: HostPicture = picture(plan)
        self.spaces = self.host.by_id()
        self.redundancy = redundancy_of_spaces(readable_layout(plan.get("schema") or {}))

    def disks_of(self, space_id: str) -> set[str]:
        return {disk.id for disk in self.host.disks for segment in disk.segments if segment.space_id == space_id}

    def counterpart(self, space: SpacePicture) -> SpacePicture | None:
        """Return the space of the same id, else the space with the same mount point."""
        same_place = (other for other in self.host.spaces if space.mount and other.mount == space.mount)
        return self.spaces.get(space.id) or next(same_place, None)


def changes(old: ComparedPlan, new: ComparedPlan, tolerance: float = 0) -> list[Change]:
    """Return all differences between two plans of a host, worst first.

    A space that becomes smaller by at most `tolerance` per cent is changed, and not smaller.
    """
    found = [change for space in old.host.spaces for change in _of_space(space, old, new, tolerance)]
    known = {other.id for space in old.host.spaces if (other := new.counterpart(space)) is not None}
    found += [Change(space.id, Kind.CHANGED, f"is new, {format_mib(space.size)}") for space in new.host.spaces if space.id not in known]
    found += [Change("warning", Kind.CHANGED, says) for says in new.host.warnings if says not in old.host.warnings]
    return sorted(found, key=lambda change: -ORDER.index(change.kind))


def _of_space(space: SpacePicture, old: ComparedPlan, new: ComparedPlan, tolerance: float) -> Iterator[Change]:
    other = new.counterpart(space)
    if other is None:
        mount = f" (mounted at {space.mount})" if space.mount else ""
        yield Change(space.id, Kind.SPACE_LOST, f"is not planned any more, had {format_mib(space.size)}{mount}")
        return
    yield from _size(space, other, tolerance)
    yield from _safety(space, other, old, new)
    kept = {subvolume.name for subvolume in other.subvolumes}
    for subvolume in space.subvolumes:
        if subvolume.name not in kept:
            yield Change(f"{space.id}/{subvolume.name}", Kind.SPACE_LOST, f"the {subvolume.what} is not planned any more")
    for what, was, becomes in (
        ("name", space.id, other.id),
        ("type", space.label, other.label),
        ("file system", space.fs_type, other.fs_type),
        ("place", space.place, other.place),
        ("mount options", space.mount_options, other.mount_options),
    ):
        if was != becomes:
            yield Change(space.id, Kind.CHANGED, f"{what}: {becomes or 'none'} instead of {was or 'none'}")
    gone, added = old.disks_of(space.id) - new.disks_of(other.id), new.disks_of(other.id) - old.disks_of(space.id)
    if gone or added:
        moved = [f"{word} {listed(sorted(disks), _MOST_NAMES)}" for word, disks in (("no longer on", gone), ("now on", added)) if disks]
        yield Change(space.id, Kind.CHANGED, ", ".join(moved))


def _size(space: SpacePicture, other: SpacePicture, tolerance: float) -> Iterator[Change]:
    if space.size == other.size:
        return
    # Both sizes are read on one terminal, and some of a disk is less than what its usual unit shows.
    says = f"{format_mib(other.size)} instead of {format_mib(space.size)} ({other.size - space.size:+d} MiB)"
    if other.size > space.size:
        yield Change(space.id, Kind.BETTER, says)
    else:
        beyond = (space.size - other.size) * 100 > tolerance * space.size
        yield Change(space.id, Kind.SMALLER if beyond else Kind.CHANGED, says)


def _safety(space: SpacePicture, other: SpacePicture, old: ComparedPlan, new: ComparedPlan) -> Iterator[Change]:
    was, becomes = old.redundancy.get(space.id, 0), new.redundancy.get(other.id, 0)
    if was != becomes:
        kind = Kind.LESS_REDUNDANT if becomes < was else Kind.BETTER
        yield Change(space.id, kind, f"can lose {_disks(becomes)} without loss of data, before {_disks(was)}")
    if space.encrypted != other.encrypted:
        yield (
            Change(space.id, Kind.UNENCRYPTED, "is not encrypted any more")
            if space.encrypted
            else Change(space.id, Kind.BETTER, "is encrypted now")
        )


def _disks(count: int) -> str:
    return {0: "no disk", 1: "1 disk"}.get(count, f"{count} disks")
