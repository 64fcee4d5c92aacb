# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When moves are welcome: windows that come again every day or on some days of the week.

    windows = Windows((Window(frozenset({5, 6}), time(22), time(4)),), zone)
    windows.open_at(now), windows.next_after(now)

A window that ends before it begins goes on until the next day; its days are those on which it begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True)
class Window:
    """From a time of the day to another, on days of the week (0 is Monday); the same time twice is a whole day."""

    days: frozenset[int]
    begin: time
    end: time

    def on(self, day: date, zone: tzinfo | None) -> tuple[datetime, datetime]:
        """Return when it begins and ends that begins on a day."""
        begin = datetime.combine(day, self.begin, zone)
        last = day + timedelta(days=1) if self.end <= self.begin else day
        return begin, datetime.combine(last, self.end, zone)


@dataclass(frozen=True)
class Windows:
    """Any of these; none at all is always. Without a zone, times are those of the controller."""

    windows: tuple[Window, ...] = ()
    zone: tzinfo | None = None

    def open_at(self, now: datetime) -> bool:
        """Return whether moves are welcome."""
        return not self.windows or any(begin <= now < end for begin, end in self._around(now))

    def next_after(self, now: datetime) -> datetime | None:
        """Return when the next window begins."""
        return min((begin for begin, _end in self._around(now) if begin > now), default=None)

    def _around(self, now: datetime) -> list[tuple[datetime, datetime]]:
        """Return the beginnings and ends of windows from yesterday on, for a week."""
        today = now.astimezone(self.zone).date()
        found = []
        for window in self.windows:
            for ahead in range(-1, 8):
                day = today + timedelta(days=ahead)
                if day.weekday() in window.days:
                    begin, end = window.on(day, self.zone)
                    found.append((begin.astimezone(now.tzinfo), end.astimezone(now.tzinfo)))
        return found
