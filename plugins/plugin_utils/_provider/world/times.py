# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Times as tasks write and results show them: a distance, such as 90m, 2h or 7d, or a date.

Inside, a moment is whole seconds since 1970.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass
from datetime import datetime, timezone

from ....module_utils._data.kinds import Json, Kind, shown
from .names import LONGEST_NAME

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DISTANCE = re.compile(r"([0-9]{1,10})([smhdw])")
_LONGEST = 36525 * 86400
"""A hundred years, in seconds."""
_FORM = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True)
class Time:
    """A moment `at` seconds since 1970, or `distance` seconds from now; with neither, never."""

    at: int | None = None
    distance: int | None = None

    def after(self, now: int) -> int | None:
        """Return the moment, a distance being one into the future."""
        return self.at if self.distance is None else now + self.distance

    def before(self, now: int) -> int | None:
        """Return the moment, a distance being one into the past."""
        return self.at if self.distance is None else now - self.distance


NEVER = Time()


class TimeKind(Kind):
    """A distance in time or a date; with `never`, a word that stands for neither."""

    blank = NEVER

    def __init__(self, never: str = "") -> None:
        self._never = never
        self.wanted = f"a time such as 90m, 2h or 7d, or a date such as 2030-12-31T18:00:00Z{f', or {never}' if never else ''}"

    def read(self, value: t.Any) -> Time:
        """Return the time. A date without a zone is in UTC, one without a time is midnight."""
        if self._never and value == self._never:
            return NEVER
        if isinstance(value, str) and (found := _DISTANCE.fullmatch(value)):
            distance = int(found[1]) * _SECONDS[found[2]]
            return Time(distance=distance) if 0 < distance <= _LONGEST else self.refuse(value)
        try:
            date = datetime.fromisoformat(value)
            at = (date if date.tzinfo else date.replace(tzinfo=timezone.utc)).timestamp()
        except (TypeError, ValueError, OverflowError):
            self.refuse(value)
        return Time(at=int(at)) if at >= 0 else self.refuse(value)

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        return {"type": "string"}


FOREVER = 2**62
"""The end of a drain that has none, where it is stored."""


@dataclass(frozen=True, slots=True)
class Drain:
    """Why nothing more is given of a provider, nor of those below it, and until when, in seconds since 1970; None: without an end."""

    reason: str = ""
    until: int | None = None


@dataclass(frozen=True)
class AskedDrain:
    """What a task says of a drain: whether there is one, why, and until when."""

    reason: str = ""
    until: Time | None = None
    is_drained: bool = True

    def at(self, now: int) -> Drain | None:
        """Return the drain that begins `now`; None where there is none, or it is over."""
        until = None if self.until is None else self.until.after(now)
        return Drain(self.reason, until) if self.is_drained and (until is None or until > now) else None

    def resolved(self, now: int) -> AskedDrain:
        """Return the same with a moment in the place of a distance; one that is over is none."""
        drain = self.at(now)
        if drain is None:
            return AskedDrain(is_drained=False)
        return AskedDrain(drain.reason, None if drain.until is None else Time(at=drain.until))


def why_no_reason(value: t.Any) -> str:
    """Return what is wrong with a reason, or an empty string."""
    if isinstance(value, str) and len(value) <= LONGEST_NAME and value.isprintable():
        return ""
    return f"is {shown(value)}; must be at most {LONGEST_NAME} printable characters"


def shown_time(at: int | None) -> str | None:
    """Return a moment as results show it, None for none."""
    return None if at is None else datetime.fromtimestamp(at, tz=timezone.utc).strftime(_FORM)


def describe_drain(name: str, drain: Drain) -> str:
    """Return in words that a provider is drained, why, and until when."""
    more = [part for part in (drain.reason, "" if drain.until is None else f"until {shown_time(drain.until)}") if part]
    return f"{name} is drained ({', '.join(more)})" if more else f"{name} is drained"
