# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries out steps on a simulated host, piece by piece: between two pieces the power can go. What real tools refuse fails here as well."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.module_utils._steps.step import Step
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import SimulatedHost
from ansible_collections.bareon.allocator.tests.support.host.simulated.performers import filesystems, luks, lvm, md, tables, thin, zfs
from ansible_collections.bareon.allocator.tests.support.host.simulated.performers.basics import Performers, Pieces

_PERFORMERS: Performers = {
    kind: performer for each in (tables, md, luks, lvm, thin, filesystems, zfs) for kind, performer in each.PERFORMERS.items()
}


def perform(host: SimulatedHost, step: Step) -> Pieces:
    """Do a step; every value that is drawn is a moment between two pieces of it."""
    return _PERFORMERS[type(step)](host, step)


def carry_out(host: SimulatedHost, step: Step) -> None:
    """Do a whole step."""
    for _moment in perform(host, step):
        pass
