# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Takes a volume group off a physical volume: its extents are moved to others while volumes are in use, then it leaves the group."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .._facts.present import Present
from .lvm import GroupStep, members_of, report
from .machine import MOVING_PATIENCE, CommandFailed, Machine, StepFailed
from .needs import DEVICE_MAPPER, Ability, Tool
from .partitions import WIPEFS
from .picture import Picture, holding
from .reach import Reach, whole_devices
from .signatures import ClearSignatures
from .step import Writes


@dataclass(frozen=True)
class MoveExtents(GroupStep):
    """Move all extents of a physical volume to others of its group."""

    group: str
    device: str
    targets: tuple[str, ...]

    words: t.ClassVar[str] = "move all that the volume group {group} has on {device} to {targets}"

    def abilities(self) -> tuple[Ability, ...]:
        """See Step."""
        return (DEVICE_MAPPER,)

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, [self.device, *self.targets], keeps=True)

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device, *self.targets), self.group)

    def run(self, machine: Machine) -> None:
        """Move the extents, or go on with a move that was cut off, which pvmove finds by its source, and see that none is left."""
        if _extents_on(machine, self.device):
            machine.change(["pvmove", "--yes", "--interval", "5", self.device, *self.targets], patience=MOVING_PATIENCE)
        left = _extents_on(machine, self.device)
        if left:
            raise StepFailed(f"{self.device} still has {left} extents of {self.group} after they were moved")


@dataclass(frozen=True)
class LeaveGroup(GroupStep):
    """Take a physical volume without extents out of its group, and make it none."""

    group: str
    device: str

    words: t.ClassVar[str] = "take {device} out of the volume group {group}, and make it no physical volume any more"

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return (*super().tools(), WIPEFS)

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return whole_devices(present, [self.device], keeps=True)

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.device,), self.group)

    def after(self, picture: Picture) -> Picture:
        """See Step. The volumes lie on what is left."""
        before = members_of(picture, self.group)
        picture = holding(picture, [self.device], "")
        now = members_of(picture, self.group)
        moved = {key: replace(piece, on=now) for key, piece in picture.items() if self.device in piece.on and set(piece.on) <= set(before)}
        return {**picture, **moved}

    def run(self, machine: Machine) -> None:
        """Have it leave the group where it is in one, and take its label off."""
        rows = [row for row in report(machine, "pv", "pv_name,vg_name", self.device) if row["vg_name"]]
        if rows and rows[0]["vg_name"] != self.group:
            raise StepFailed(f"{self.device} is in the volume group {rows[0]['vg_name']} instead of {self.group}")
        if rows:
            machine.change(["vgreduce", "--yes", "--quiet", self.group, self.device])
        try:
            machine.change(["pvremove", "--yes", "--quiet", self.device])
        except CommandFailed:
            # A cut can leave half-written metadata, which pvremove does not touch. No group has the device, and nothing may hold it open.
            ClearSignatures((self.device,)).run(machine)
        machine.settle()


def _extents_on(machine: Machine, device: str) -> int:
    return sum(int(row["pv_pe_alloc_count"] or 0) for row in report(machine, "pv", "pv_pe_alloc_count", device))
