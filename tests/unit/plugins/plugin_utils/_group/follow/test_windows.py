# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Windows: over midnight, on some days, in a zone of their own."""

from __future__ import annotations

from datetime import datetime, time, timezone
from zoneinfo import ZoneInfo

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.follow.windows import Window, Windows

NIGHT = Window(frozenset(range(7)), time(22), time(5))
WEEKEND = Window(frozenset({5, 6}), time(0), time(0))


def at(day, hour, minute=0):
    """A time in the week that begins on Monday, the second of March 2026."""
    return datetime(2026, 3, 1 + day, hour, minute, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("windows", "now", "is_open", "following"),
    [
        ((), at(1, 12), True, None),
        ((NIGHT,), at(1, 12), False, at(1, 22)),
        ((NIGHT,), at(1, 22), True, at(2, 22)),
        ((NIGHT,), at(2, 4, 59), True, at(2, 22)),
        ((NIGHT,), at(2, 5), False, at(2, 22)),
        ((WEEKEND,), at(5, 23, 59), False, at(6, 0)),
        ((WEEKEND,), at(6, 0), True, at(7, 0)),
        ((WEEKEND,), at(7, 23, 59), True, at(13, 0)),
        ((NIGHT, WEEKEND), at(6, 12), True, at(6, 22)),
        ((Window(frozenset({0}), time(22), time(5)),), at(2, 3), True, at(8, 22)),
        ((Window(frozenset({0}), time(22), time(5)),), at(1, 3), False, at(1, 22)),
    ],
)
def test_windows_come_again(windows, now, is_open, following):
    told = Windows(windows, timezone.utc)
    assert (told.open_at(now), told.next_after(now)) == (is_open, following)


def test_windows_keep_to_the_clock_of_their_zone():
    """On the 29th of March 2026 clocks in Berlin go from two to three."""
    told = Windows((NIGHT,), ZoneInfo("Europe/Berlin"))
    assert told.open_at(datetime(2026, 3, 28, 21, 30, tzinfo=timezone.utc))
    assert not told.open_at(datetime(2026, 3, 29, 3, 30, tzinfo=timezone.utc))
    assert told.next_after(datetime(2026, 3, 29, 12, tzinfo=timezone.utc)) == datetime(2026, 3, 29, 20, tzinfo=timezone.utc)
