# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs that were kept by a block server, of which any number of power cuts can be had, and what no cut may take."""

from __future__ import annotations

from dataclasses import dataclass

from .recorded_disks import Served
from .torn_disks import Event

State = dict[str, Served]
"""What is on the disks, by name."""


@dataclass(frozen=True)
class Safe:
    """What no power cut may take: file systems, by their mount points with their UUIDs, and mount points whose file has to be whole."""

    identities: dict[str, str]
    files: frozenset[str]


@dataclass(frozen=True)
class Run:
    """A run that was kept: the disks before it, what was written, and how much of that when it was reported, and when files were synced."""

    disks: State
    events: list[Event]
    reported: int
    synced: int
    before: Safe
    after: Safe
