# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Caches of simulated disks: what LVM writes stays there until something else flushes the disk, and a power cut takes any part of it."""

from __future__ import annotations

import random
from collections.abc import Iterable

from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import LayoutPlan
from ansible_collections.bareon.allocator.plugins.module_utils._steps.lvm import (
    CreateLogicalVolume,
    CreatePhysicalVolume,
    CreateStripedVolume,
    CreateVolumeGroup,
    ExtendLogicalVolume,
    ExtendStripedVolume,
    ExtendVolumeGroup,
    FinishLogicalVolumes,
    JoiningStep,
    MarkCleared,
    RemoveLogicalVolume,
    ResizePhysicalVolume,
    RewriteGroup,
)
from ansible_collections.bareon.allocator.plugins.module_utils._steps.signatures import ClearSignatures
from ansible_collections.bareon.allocator.plugins.module_utils._steps.step import Step
from ansible_collections.bareon.allocator.plugins.module_utils._steps.thin import CreateThinPool, CreateThinVolume, ExtendPoolMetadata
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import SimulatedHost
from ansible_collections.bareon.allocator.tests.support.host.simulated.media import Mark
from ansible_collections.bareon.allocator.tests.support.host.simulated.steps import perform

_UNFLUSHED = (
    CreatePhysicalVolume,
    ResizePhysicalVolume,
    CreateVolumeGroup,
    ExtendVolumeGroup,
    RewriteGroup,
    CreateLogicalVolume,
    CreateStripedVolume,
    ExtendStripedVolume,
    CreateThinPool,
    ExtendPoolMetadata,
    CreateThinVolume,
    ExtendLogicalVolume,
    RemoveLogicalVolume,
    MarkCleared,
    FinishLogicalVolumes,
)
"""What LVM's tools do: none of them flushes. All others flush what they write, and with it what is in the cache of the disk."""

Marks = dict[int, Mark]
Writes = list[tuple[int, "Mark | None"]]


class Caches:
    """The caches of a host's disks: `flushed` is what is on a disk, `pending` what was written since, in its order."""

    def __init__(self, host: SimulatedHost) -> None:
        self._host = host
        self._flushed: dict[str, Marks] = {}
        self._pending: dict[str, Writes] = {}
        self._seen: dict[str, Marks] = {}
        self.flush(host.media.sizes)

    def flush(self, disks: Iterable[str]) -> None:
        for disk in disks:
            self._flushed[disk] = self._seen[disk] = self._now(disk)
            self._pending[disk] = []

    def note(self, step: Step) -> None:
        """Note what a piece of a step has written."""
        for disk, before in list(self._seen.items()):
            now = self._now(disk)
            self._pending[disk] += [(at, now.get(at)) for at in sorted({*before, *now}) if before.get(at) != now.get(at)]
            self._seen[disk] = now
            if now != before and not isinstance(step, _UNFLUSHED):
                self.flush([disk])

    def lose(self, chance: random.Random) -> None:
        """Cut the power: of what is pending each write is there or not. One of the disks may come late to the next start."""
        for disk, writes in self._pending.items():
            left: dict[int, Mark | None] = {**self._flushed[disk]}
            for at, mark in writes:
                if chance.random() < 0.5:
                    left[at] = mark
            self._host.media.replace(disk, {at: mark for at, mark in left.items() if mark is not None})
        self._host.start_all(late=chance.choice([None, *self._pending]))

    def _now(self, disk: str) -> Marks:
        return dict(self._host.media.marks.get(disk, {}))


def run_until_cut(host: SimulatedHost, plan: LayoutPlan, moment: int, chance: random.Random) -> bool:
    """Carry out steps up to a moment, flushing as a run does, and cut the power; returns whether the moment came."""
    caches = Caches(host)
    for step in plan.steps:
        if isinstance(step, JoiningStep):
            caches.flush(host.media.sizes)
        for _moment in perform(host, step):
            caches.note(step)
            if moment == 0:
                caches.lose(chance)
                return True
            moment -= 1
        caches.note(step)
        if isinstance(step, ClearSignatures):
            # Zeros go down to the medium, whether there was something else or not.
            caches.flush(host.media.sizes)
    caches.flush(host.media.sizes)
    return False
