# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Time in the ledger: whole seconds since 1970 by the clock of the database, which is one for all controllers.

Tasks write a time as a distance, such as 90m, 2h or 7d, or as a date.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass
from datetime import datetime, timezone

from ....module_utils._data.kinds import Json, Kind
from ..._common.libraries import sa
from .statements import select_rows

_NOW = {
    "sqlite": "CAST(strftime('%s', 'now') AS INTEGER)",
    "postgresql": "CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp())) AS BIGINT)",
    "mysql": "UNIX_TIMESTAMP()",
}
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


def sql_now(connection: sa.Connection) -> str:
    """Return the SQL of the present second."""
    return _NOW[connection.dialect.name]


def read_now(connection: sa.Connection) -> int:
    """Return the present second by the clock of the database."""
    return int(select_rows(connection, f"SELECT {sql_now(connection)}")[0][0])


def shown_time(at: int | None) -> str | None:
    """Return a moment as results show it, None for none."""
    return None if at is None else datetime.fromtimestamp(at, tz=timezone.utc).strftime(_FORM)
