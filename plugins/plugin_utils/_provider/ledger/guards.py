# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guards: the first thing a change does is to raise the generation of every row it builds on.

Spec "Resource Providers - Base Models" (seed 002) compares and updates the generation at the end, and without naming the provider.
Here the guard comes first and names it: until the transaction ends nobody else changes that provider, so what is read after it stays
true, nothing is lost at READ COMMITTED, and no retry is needed where the spec retries most. On Galera the same update is what
certification compares, so the later of two nodes fails at COMMIT and runs again.

Every change takes its guards in one order: topology, projects with a quota by name, consumers by UUID, providers by number.
"""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Iterable, Mapping

from ....module_utils._data.errors import NoSolution
from ..._common.libraries import sa
from .read import batches
from .retry import LostRace
from .statements import Statement
from .stored import Consumer, Holding
from .tables import consumers, providers, topology

_RAISE_TOPOLOGY = Statement(sa.update(topology).values(generation=topology.c.generation + 1))
_RAISE_GONE = Statement(
    sa.update(topology)
    .where(topology.c.gone_generation < sa.bindparam("generation", type_=sa.BigInteger))
    .values(gone_generation=sa.bindparam("generation", type_=sa.BigInteger))
)
_GONE = Statement(sa.select(topology.c.gone_generation))
_BEGIN_ABOVE = sa.update(providers).values(generation=sa.bindparam("first", type_=sa.BigInteger))
_RAISE_ANY_PROVIDER = sa.update(providers).where(providers.c.id == sa.bindparam("number")).values(generation=providers.c.generation + 1)
_RAISE_PROVIDER = Statement(_RAISE_ANY_PROVIDER)
_RAISE_EXPECTED_PROVIDER = Statement(_RAISE_ANY_PROVIDER.where(providers.c.generation == sa.bindparam("expected")))
_OWNER: dict[str, t.Any] = {
    "project": sa.bindparam("owner_project"),
    "user": sa.bindparam("owner_user"),
    "type": sa.bindparam("consumer_type"),
    "name": sa.bindparam("consumer_name"),
    "claimed_at": sa.bindparam("since", type_=sa.BigInteger),
    "expires_at": sa.bindparam("ends", type_=sa.BigInteger),
}
_RELEASED: dict[str, t.Any] = {"released": sa.bindparam("is_released")}
# MariaDB and MySQL return to a client what LAST_INSERT_ID was called with: the new generation without another question.
_RAISE_AND_TELL = Statement(
    sa.update(providers)
    .where(
        providers.c.id == sa.bindparam("number"),
        sa.or_(providers.c.closed_until.is_(None), providers.c.closed_until <= sa.bindparam("now", type_=sa.BigInteger)),
    )
    .values(generation=sa.func.last_insert_id(providers.c.generation + 1))
)
_MAKE_CONSUMER = Statement(sa.insert(consumers).values(uuid=sa.bindparam("consumer_uuid"), generation=1, **_OWNER))
_RAISE_CONSUMER = Statement(
    sa.update(consumers)
    .where(consumers.c.id == sa.bindparam("number"), consumers.c.generation == sa.bindparam("expected"))
    .values(generation=sa.bindparam("raised", type_=sa.BigInteger), **_OWNER, **_RELEASED)
)

_FREE_NAME = Statement(
    sa.update(consumers)
    .where(
        consumers.c.uuid == sa.bindparam("consumer_uuid"),
        consumers.c.generation == sa.bindparam("expected"),
        sa.or_(consumers.c.released == 1, consumers.c.expires_at <= sa.bindparam("now", type_=sa.BigInteger)),
    )
    .values(name=sa.null())
)


class GenerationMoved(NoSolution):
    """A generation that the caller gave is not the present one; it is for the caller to look again, so this is never retried."""

    def __init__(self, moved: Iterable[Mapping[str, str | int | None]]) -> None:
        every = [dict(entry) for entry in moved]
        lines = [f"{entry['kind']} {entry['name']} is at generation {entry['found']}, not {entry['expected']}" for entry in every]
        super().__init__(f"changed since it was read: {'; '.join(lines)}", {"generations": every})


def guard_topology(connection: sa.Connection) -> None:
    """From here to the end of the transaction no other one moves a provider below another."""
    _RAISE_TOPOLOGY.change(connection, {})


def remember_gone(connection: sa.Connection, numbers: Collection[int]) -> None:
    """Have new providers begin above the generations of these guarded ones, which go or lose their names; the topology is guarded."""
    for part in batches(numbers):
        highest = connection.scalar(sa.select(sa.func.max(providers.c.generation)).where(providers.c.id.in_(part)))
        _RAISE_GONE.change(connection, {"generation": highest or 0})


def begin_above_gone(connection: sa.Connection, uuids: Collection[str]) -> None:
    """Give new providers, whose rows nobody else can make by now, a generation that no provider of their UUID or name has had."""
    ((gone,),) = _GONE.rows(connection, {})
    for part in batches(uuids if gone else ()):
        connection.execute(_BEGIN_ABOVE.where(providers.c.uuid.in_(part)), {"first": gone + 1})


def raise_above_gone(connection: sa.Connection, numbers: Collection[int]) -> None:
    """Let guarded providers, which get names that others may have had, go on above the generations of those that are gone."""
    ((gone,),) = _GONE.rows(connection, {})
    for part in batches(numbers if gone else ()):
        connection.execute(_BEGIN_ABOVE.where(providers.c.id.in_(part), providers.c.generation <= gone), {"first": gone + 1})


def guard_providers(connection: sa.Connection, expected: Mapping[int, int | None]) -> None:
    """Raise the generation of each provider by its number, and make sure that it was the expected one where one is given.

    Raises GenerationMoved, or LostRace when a provider has gone.
    """
    moved = []
    for number in sorted(expected):
        wanted = expected[number]
        if wanted is None:
            if _RAISE_PROVIDER.change(connection, {"number": number}) != 1:
                raise LostRace
        elif _RAISE_EXPECTED_PROVIDER.change(connection, {"number": number, "expected": wanted}) != 1:
            moved.append(_moved_provider(connection, number, wanted))
    if moved:
        raise GenerationMoved(moved)


def raise_generation(connection: sa.Connection, number: int, read: int, now: int) -> int:
    """Raise the generation of a provider by its number; return the new one.

    `read` is the one that this transaction has read, on SQLite without other writers since. Raises LostRace when the provider has gone,
    or was drained meanwhile, on the servers that return the new generation with the update.
    """
    if connection.dialect.name == "mysql":
        generation = _RAISE_AND_TELL.add(connection, {"number": number, "now": now})
        if not generation:
            raise LostRace
        return generation
    if _RAISE_PROVIDER.change(connection, {"number": number}) != 1:
        raise LostRace
    return read + 1


def guard_consumer(connection: sa.Connection, held: Holding | None, wanted: Consumer, *, releases: bool = False) -> int:
    """Raise the generation of a consumer above the wanted one, or make the consumer; return its number.

    The row of a consumer that releases all it has stays: its generation goes on from there when the consumer comes back. Raises LostRace
    when it changed since it was read.
    """
    owner = owner_values(wanted)
    if held is None:
        return _MAKE_CONSUMER.add(connection, {"consumer_uuid": wanted.uuid, **owner})
    generations = {"expected": held.consumer.generation, "raised": wanted.generation + 1}
    values = {"number": held.id, **generations, "is_released": int(releases), **owner}
    if _RAISE_CONSUMER.change(connection, values) != 1:
        raise LostRace
    return held.id


def free_name(connection: sa.Connection, former: Consumer, now: int) -> None:
    """Take the name from a consumer that holds nothing `now`. Raises LostRace when it changed since it was read."""
    if _FREE_NAME.change(connection, {"consumer_uuid": former.uuid, "expected": former.generation, "now": now}) != 1:
        raise LostRace


def owner_values(consumer: Consumer) -> dict[str, str | int | None]:
    """Return the columns of a consumer other than its UUID and its generation."""
    owner = {"owner_project": consumer.project, "owner_user": consumer.user, "consumer_type": consumer.type, "consumer_name": consumer.name}
    return {**owner, "since": consumer.claimed_at, "ends": consumer.expires_at}


def _moved_provider(connection: sa.Connection, number: int, expected: int) -> dict[str, str | int | None]:
    row = connection.execute(
        sa.select(providers.c.uuid, providers.c.name, providers.c.generation).where(providers.c.id == number)
    ).one_or_none()
    if row is None:
        raise LostRace
    return {"kind": "provider", "uuid": row.uuid, "name": row.name, "expected": expected, "found": row.generation}
