# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Drained providers: nothing more is given of them, nor of those below them, until a moment or for ever.

A provider's own drain stands in `drained_until`. `closed_until` follows from it and from those above: the last moment of all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..._common.libraries import sa
from ..world.times import FOREVER, Drain, describe_drain
from .read import batches, run_batches
from .statements import select_rows
from .tables import providers
from .topology import numbers_below

_DRAIN = (
    sa.update(providers)
    .where(providers.c.id == sa.bindparam("number"))
    .values(drain_reason=sa.bindparam("reason"), drained_until=sa.bindparam("until", type_=sa.BigInteger))
)
_CLOSE = (
    sa.update(providers).where(providers.c.id == sa.bindparam("number")).values(closed_until=sa.bindparam("until", type_=sa.BigInteger))
)


def stored_drain(drain: Drain | None) -> tuple[str | None, int | None]:
    """Return the reason and the end of a drain as they are stored."""
    return (None, None) if drain is None else (drain.reason or None, FOREVER if drain.until is None else drain.until)


def write_drains(connection: sa.Connection, drains: Mapping[int, Drain | None]) -> None:
    """Say of guarded providers, by their numbers, that they are drained, or not any more."""
    stored = {number: stored_drain(drain) for number, drain in drains.items()}
    run_batches(connection, _DRAIN, ({"number": number, "reason": reason, "until": until} for number, (reason, until) in stored.items()))


def write_closed(connection: sa.Connection, numbers: Collection[int]) -> None:
    """Say of guarded providers, and of all below them, until when nothing is given of them."""
    wanted = {*numbers, *numbers_below(connection, numbers)}
    rows = _read_drains(connection, wanted)
    present = {number: closed for number, (_parent, _drained, closed) in rows.items()}
    found = {number: _closed_until(number, rows) for number in wanted if number in rows}
    changed = ({"number": number, "until": until} for number, until in sorted(found.items()) if until != present[number])
    run_batches(connection, _CLOSE, changed)


def wrongly_closed(connection: sa.Connection) -> set[int]:
    """Return the numbers of the providers whose `closed_until` does not follow from what is drained."""
    text = "SELECT id, parent_id, drained_until, closed_until FROM resource_providers"
    rows = {number: (parent, drained, closed) for number, parent, drained, closed in select_rows(connection, text)}
    return {number for number, (_parent, _drained, closed) in rows.items() if closed != _closed_until(number, rows)}


def why_closed(connection: sa.Connection, number: int, now: int) -> str:
    """Return which provider is drained so that nothing is given of one, until when, and why."""
    columns = "SELECT id, name, parent_id, drain_reason, drained_until FROM resource_providers WHERE id = {}"
    here: int | None = number
    while here is not None:
        ((_number, name, above, reason, until),) = select_rows(connection, columns.format(here))
        if until is not None and until > now:
            return describe_drain(name, Drain(reason or "", None if until == FOREVER else until))
        here = above
    return ""


_Row = tuple[int | None, int | None, int | None]
"""A provider's parent, `drained_until` and `closed_until`."""


def _read_drains(connection: sa.Connection, numbers: Collection[int]) -> dict[int, _Row]:
    """Return the rows of providers, and of all above them, by number."""
    found: dict[int, _Row] = {}
    wanted = set(numbers)
    while wanted:
        for part in batches(sorted(wanted)):
            text = f"SELECT id, parent_id, drained_until, closed_until FROM resource_providers WHERE id IN ({', '.join(map(str, part))})"
            found.update((number, (parent, drained, closed)) for number, parent, drained, closed in select_rows(connection, text))
        wanted = {parent for parent, _drained, _closed in found.values() if parent is not None} - found.keys()
    return found


def _closed_until(number: int, rows: Mapping[int, _Row]) -> int | None:
    """Return the last moment until which a provider or one above it is drained; a loop or a lost parent ends the way up."""
    until: int | None = None
    here: int | None = number
    seen: set[int] = set()
    while here is not None and here in rows and here not in seen:
        seen.add(here)
        here, drained, _closed = rows[here]
        until = drained if until is None or (drained is not None and drained > until) else until
    return until
