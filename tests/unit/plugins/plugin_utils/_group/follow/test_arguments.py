# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of group_follow: what is left out, and all that is wrong at once."""

from __future__ import annotations

from datetime import time

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import Mistakes
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.follow.arguments import read_rules


def read(**arguments):
    mistakes = Mistakes()
    return read_rules(arguments, mistakes), [str(mistake) for mistake in mistakes.found()]


def test_the_usual():
    rules, mistakes = read()
    assert (rules.threshold, rules.target, mistakes) == (0.15, 0.075, [])
    assert read(measure="score", threshold=4.0)[0].target == 2.0


@pytest.mark.parametrize(
    ("given", "wanted"), [("22:00", time(22)), ("1320", time(22)), ("0:05", time(0, 5)), ("24:00", time(0)), (1439, time(23, 59))]
)
def test_times_of_the_day_are_read_as_yaml_gives_them(given, wanted):
    rules, mistakes = read(windows=[{"from": given, "to": "05:00"}])
    assert (rules.windows.windows[0].begin, mistakes) == (wanted, [])


def test_all_mistakes_are_told_at_once():
    windows = [{"from": "25:00", "to": "5 pm"}, {"from": "22:60", "to": "-1:00"}]
    _rules, mistakes = read(measure="score", target=3.0, cooldown=-1.0, rest=1e300, windows=windows, timezone="Mars/Olympus")
    assert [mistake.partition(":")[0] for mistake in mistakes] == [
        "cooldown",
        "rest",
        "threshold",
        "target",
        "windows[0].from",
        "windows[0].to",
        "windows[1].from",
        "windows[1].to",
        "timezone",
    ]
    assert "must be a time of the day such as '22:00'" in mistakes[4]
