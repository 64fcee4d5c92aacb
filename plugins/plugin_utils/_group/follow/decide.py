# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a group is to be changed now: what is wrong at once, what is uneven beyond a threshold, and then until a target.

decision = decide(condition, known, rules, now)
decision.action, decision.until, decision.known       # what to do, until when it waits, and what is known from now on
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from .condition import Condition
from .record import GroupRecord
from .windows import Windows


class Action(StrEnum):
    """What is done for a group."""

    CALM = "calm"
    """It is even enough."""
    WAIT = "wait"
    """It is uneven, but not for long enough, not yet again, or not at this time of the day."""
    BALANCE = "balance"
    REPAIR = "repair"
    RESUME = "resume"
    """Moves of an earlier run are left."""
    STUCK = "stuck"
    """It is uneven or something is wrong, and no move helps."""


class Why(StrEnum):
    """Why a group waits."""

    CONFIRM = "confirm"
    COOLDOWN = "cooldown"
    WINDOW = "window"
    REPAIRS = "repairs"
    """Another group is repaired first."""
    MOVES = "moves"
    """This run makes others, or as many as it may."""
    LOOK = "look"
    """This run only looks."""


@dataclass(frozen=True)
class Rules:
    """Beyond `threshold` a group is balanced until `target`; the spans are before that, between its runs, and for an instance."""

    threshold: float
    target: float
    confirm: timedelta
    cooldown: timedelta
    rest: timedelta
    windows: Windows
    urgent_polls: int = 1
    """In how many runs in a row the worst of what is wrong must have been so before it is repaired."""


@dataclass(frozen=True)
class Decision:
    """What to do for a group, why it waits and until when (None: that is not known), and its record from now on."""

    action: Action
    known: GroupRecord
    why: Why | None = None
    until: datetime | None = None


def decide(condition: Condition, known: GroupRecord, rules: Rules, now: datetime) -> Decision:
    """Return what to do for a group in a condition; whether moves help is found out later."""
    over = condition.value > rules.threshold
    balancing = known.balancing and condition.value > rules.target
    since = (known.over_since or now) if over else None
    is_well = not (over or balancing or condition.is_urgent)
    known = dataclasses.replace(known, over_since=since, balancing=balancing, fruitless={} if is_well else known.fruitless)
    if condition.is_urgent:
        confirmed = known.urgent.get(condition.worst, 0) >= rules.urgent_polls
        return Decision(Action.REPAIR, known) if confirmed else Decision(Action.WAIT, known, Why.CONFIRM)
    return uneven(known, rules, now)


def polled(condition: Condition, known: GroupRecord, rules: Rules) -> GroupRecord:
    """Return the record of a group after one more look at it: in how many runs in a row each kind has been wrong, as far as that counts."""
    return dataclasses.replace(known, urgent={kind: min(known.urgent.get(kind, 0) + 1, rules.urgent_polls) for kind in condition.wrong})


def uneven(known: GroupRecord, rules: Rules, now: datetime) -> Decision:
    """Return what to do for a group of which nothing is wrong, or nothing that moves can help."""
    if not known.balancing and known.over_since is None:
        return Decision(Action.CALM, known)
    if not known.balancing and known.over_since is not None and now < known.over_since + rules.confirm:
        return Decision(Action.WAIT, known, Why.CONFIRM, known.over_since + rules.confirm)
    if known.acted is not None and now < known.acted + rules.cooldown:
        return Decision(Action.WAIT, known, Why.COOLDOWN, known.acted + rules.cooldown)
    if not rules.windows.open_at(now):
        return Decision(Action.WAIT, known, Why.WINDOW, rules.windows.next_after(now))
    return Decision(Action.BALANCE, known)
