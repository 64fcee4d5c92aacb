# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The request to balance a group, and the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ..cluster.moves import Move
from ..cluster.state import ClusterState
from ..metrics.score import ScoreMode
from ..metrics.shared_redundancy import SharedReserve
from ..neighbourhood.moves import MoveOptions
from ..neighbourhood.price import Prices


class Redundancy(StrEnum):
    """What N+1 on shared storage is worth."""

    KEEP = "keep"
    """It never gets worse."""
    PRICE = "price"
    """It gets worse only where something before it gets better."""
    OFF = "off"
    """Ignored, as in hbal."""


@dataclass(frozen=True)
class BalanceOptions:
    """What is wanted; `min_gain` is the least by which score and price together must fall with each move."""

    score: ScoreMode = ScoreMode.HTOOLS
    prices: Prices = Prices()
    min_gain: float = 1e-4
    moves: MoveOptions = MoveOptions()
    evacuation_only: bool = False
    redundancy: Redundancy = Redundancy.PRICE


@dataclass(frozen=True)
class Refused:
    """An instance did not go to a node, as the failure of nodes would have stranded `more` MiB in addition on shared storage."""

    target: int
    failing: tuple[int, ...]
    more: float


@dataclass(frozen=True)
class Balanced:
    """A placement, the instances that moved, those that were down first, all moves that led there, and if it was in time.

    No failure strands more on the way than `reserve` allows; None when N+1 is ignored.
    """

    state: ClusterState
    reserve: SharedReserve | None
    order: tuple[int, ...]
    made: tuple[Move, ...]
    in_time: bool
    refused: Mapping[int, Refused]
    """Instances that stay where they are, as they may not go where they should."""
