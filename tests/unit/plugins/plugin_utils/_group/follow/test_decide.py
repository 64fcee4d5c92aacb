# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Threshold, hysteresis, confirmation, cooldown and windows, one decision at a time."""

from __future__ import annotations

import dataclasses
from datetime import datetime, time, timedelta, timezone

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.follow.condition import Condition
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.follow.decide import Action, Rules, Why, decide, polled
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.follow.record import GroupRecord
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.follow.windows import Window, Windows

NOW = datetime(2026, 3, 2, 12, tzinfo=timezone.utc)
EARLIER = NOW - timedelta(minutes=10)
NIGHT = Windows((Window(frozenset(range(7)), time(22), time(5)),), timezone.utc)


def rules(confirm=0, cooldown=0, windows=None):
    return Rules(0.2, 0.1, timedelta(minutes=confirm), timedelta(minutes=cooldown), timedelta(), windows or Windows())


@pytest.mark.parametrize(
    ("value", "known", "options", "action", "why", "until"),
    [
        (0.2, GroupRecord(), {}, Action.CALM, None, None),
        (0.21, GroupRecord(), {}, Action.BALANCE, None, None),
        (0.15, GroupRecord(balancing=True), {}, Action.BALANCE, None, None),
        (0.1, GroupRecord(balancing=True), {}, Action.CALM, None, None),
        (0.21, GroupRecord(), {"confirm": 15}, Action.WAIT, Why.CONFIRM, NOW + timedelta(minutes=15)),
        (0.21, GroupRecord(over_since=EARLIER), {"confirm": 15}, Action.WAIT, Why.CONFIRM, EARLIER + timedelta(minutes=15)),
        (0.21, GroupRecord(over_since=EARLIER), {"confirm": 10}, Action.BALANCE, None, None),
        (0.15, GroupRecord(balancing=True), {"confirm": 15}, Action.BALANCE, None, None),
        (0.21, GroupRecord(acted=EARLIER), {"cooldown": 15}, Action.WAIT, Why.COOLDOWN, EARLIER + timedelta(minutes=15)),
        (0.21, GroupRecord(acted=EARLIER), {"cooldown": 10}, Action.BALANCE, None, None),
        (0.21, GroupRecord(), {"windows": NIGHT}, Action.WAIT, Why.WINDOW, NOW.replace(hour=22)),
    ],
)
def test_what_is_uneven(value, known, options, action, why, until):
    decision = decide(Condition(value, 1.0, (0.0, 0.0)), known, rules(**options), NOW)
    assert (decision.action, decision.why, decision.until) == (action, why, until)


def test_what_is_wrong_waits_for_a_second_look_and_nothing_else():
    condition = Condition(0.0, 1.0, (0.0, 1.0), ("n1",))
    for polls, actions in ((1, [Action.REPAIR]), (2, [Action.WAIT, Action.REPAIR]), (3, [Action.WAIT, Action.WAIT, Action.REPAIR])):
        known = GroupRecord(acted=EARLIER)
        asked = dataclasses.replace(rules(60, 60, NIGHT), urgent_polls=polls)
        for number, action in enumerate(actions, start=1):
            known = polled(condition, known, asked)
            decision = decide(condition, known, asked, NOW)
            assert (decision.action, decision.known.urgent) == (action, {"n1": number})


def test_the_worst_must_be_confirmed_and_what_is_gone_counts_anew():
    now, later = Condition(0.0, 1.0, (0.0, 1.0), ("n1",)), Condition(0.0, 1.0, (1.0, 1.0), ("down", "n1"))
    asked = dataclasses.replace(rules(), urgent_polls=2)
    known = polled(later, polled(now, GroupRecord(), asked), asked)
    assert known.urgent == {"down": 1, "n1": 2}
    assert decide(later, known, asked, NOW).why == Why.CONFIRM
    assert polled(now, polled(Condition(0.0, 1.0, (0.0, 0.0)), known, asked), asked).urgent == {"n1": 1}
    assert polled(now, polled(now, polled(now, known, asked), asked), asked).urgent == {"n1": 2}, "more looks say no more"


def test_a_peak_that_is_over_counts_no_more():
    begun = decide(Condition(0.3, 1.0, ()), GroupRecord(), rules(15), NOW).known
    assert begun.over_since == NOW
    assert decide(Condition(0.2, 1.0, ()), begun, rules(15), NOW).known == GroupRecord()
