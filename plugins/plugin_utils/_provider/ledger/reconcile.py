# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the ledger with what exists: consumers that nothing stands for any more, and what exists without a claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..._common.libraries import sa
from ..world.times import Time
from .clock import read_now
from .read import batches, read_consumers, read_holdings, read_numbers
from .reap import release_expired
from .statements import select_rows
from .stored import Consumer, ConsumerState
from .worlds import read_tree_numbers


@dataclass(frozen=True)
class Existing:
    """One consumer that exists, by UUID or name; `project` is its project, None for any."""

    consumer: str
    project: str | None = None


@dataclass(frozen=True)
class Scope:
    """Which consumers are compared: those of a project, a user and a type, None for any, that have something in the trees of `providers`.

    Consumers whose claim is younger than `older_than`, or not older than that date, are left alone.
    """

    project: str | None = None
    user: str | None = None
    type: str | None = None
    providers: Sequence[str] | None = None
    older_than: Time | None = None


@dataclass(frozen=True)
class Compared:
    """`stale` are the consumers that do not exist, with what they have; `unclaimed` is what exists and has no claim."""

    stale: Sequence[ConsumerState]
    unclaimed: Sequence[Existing]
    unknown: Sequence[str] = ()


def reconcile(connection: sa.Connection, existing: Sequence[Existing], scope: Scope, *, release: bool) -> Compared:
    """Return what differs, and with `release` take back what stale consumers have. Raises LostRace.

    Where `unknown` names providers that are not there, nothing is compared.
    """
    now = read_now(connection)
    numbers = None
    if scope.providers is not None:
        found = read_numbers(connection, scope.providers)
        unknown = [reference for reference in scope.providers if reference not in found]
        if unknown:
            return Compared((), (), unknown)
        numbers = read_tree_numbers(connection, {number for number, _uuid in found.values()})
    live = read_consumers(connection, None, now)
    known = _Known.of(existing)
    inside = None if numbers is None else _consumers_of(connection, numbers)
    stale = sorted(
        uuid
        for uuid, consumer in live.items()
        if _is_in(consumer, scope, now) and (inside is None or uuid in inside) and not known.has(consumer)
    )
    holdings = read_holdings(connection, stale)
    chosen = [holdings[uuid] for uuid in stale if holdings[uuid].is_live]
    if release:
        release_expired(connection, chosen, now)
    names = [(name, one.project) for one in live.values() for name in (one.uuid, one.label)]
    claimed = _Known.of([Existing(name, project) for name, own in names for project in (None, own)])
    return Compared(
        [ConsumerState(holding.consumer, holding.by_provider) for holding in chosen], [one for one in existing if not claimed.lists(one)]
    )


@dataclass(frozen=True)
class _Known:
    """What exists, to be looked up."""

    anywhere: frozenset[str]
    in_project: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, existing: Sequence[Existing]) -> _Known:
        return cls(
            frozenset(one.consumer for one in existing if one.project is None),
            frozenset((one.consumer, one.project) for one in existing if one.project is not None),
        )

    def lists(self, one: Existing) -> bool:
        return one.consumer in self.anywhere if one.project is None else (one.consumer, one.project) in self.in_project

    def has(self, consumer: Consumer) -> bool:
        names = {consumer.uuid, consumer.label}
        return bool(names & self.anywhere) or any((name, consumer.project or "") in self.in_project for name in names)


def _is_in(consumer: Consumer, scope: Scope, now: int) -> bool:
    wanted = (scope.project, consumer.project), (scope.user, consumer.user), (scope.type, consumer.type)
    if any(asked is not None and asked != own for asked, own in wanted):
        return False
    limit = None if scope.older_than is None else scope.older_than.before(now)
    return limit is None or consumer.claimed_at is None or consumer.claimed_at <= limit


def _consumers_of(connection: sa.Connection, numbers: set[int]) -> set[str]:
    """Return the UUIDs of the consumers that have something of some providers."""
    found: set[str] = set()
    for part in batches(sorted(numbers)):
        listed = ", ".join(map(str, part))
        text = f"SELECT DISTINCT c.uuid FROM consumers c JOIN allocations a ON a.consumer_id = c.id WHERE a.provider_id IN ({listed})"
        found.update(uuid for (uuid,) in select_rows(connection, text))
    return found
