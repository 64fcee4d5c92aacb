# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Past allocations, with their begin and end: a row for each amount that a consumer has no more, written by the transaction that ends it.

An allocation knows since when it is there, so that a claim writes nothing here: however long the history is, it costs claims nothing.
What is still had is read from the allocations.
"""

from __future__ import annotations

import typing as t
from collections.abc import Sequence
from dataclasses import dataclass

from ..._common.libraries import sa
from ..world.names import LONGEST_NAME, LONGEST_PROVIDER_NAME
from .statements import Statement, select_rows
from .tables import allocations, history, providers

_GIVEN = {
    "consumer_uuid": sa.String(36),
    "consumer_name": sa.String(LONGEST_PROVIDER_NAME),
    "owner_project": sa.String(LONGEST_NAME),
    "owner_user": sa.String(LONGEST_NAME),
}
REMEMBER = Statement(
    sa.insert(history).from_select(
        ["consumer", "name", "project", "user", "provider", "provider_name", "resource_class", "used", "began", "ended"],
        sa.select(
            # In a SELECT, PostgreSQL does not guess the type of a value.
            *[sa.cast(sa.bindparam(name), kind) for name, kind in _GIVEN.items()],
            providers.c.uuid,
            providers.c.name,
            allocations.c.resource_class,
            allocations.c.used,
            allocations.c.since,
            sa.cast(sa.bindparam("ended"), sa.BigInteger),
        )
        .join_from(allocations, providers, providers.c.id == allocations.c.provider_id)
        .where(
            allocations.c.consumer_id == sa.bindparam("consumer"),
            allocations.c.provider_id == sa.bindparam("provider"),
            allocations.c.resource_class == sa.bindparam("name"),
        ),
    )
)
"""Remembers an allocation that ends, before it is changed."""

_COLUMNS = '{c}.uuid, {c}.name, {c}.project, {c}."user", p.uuid, p.name, a.resource_class, a.used, a.since, {c}.expires_at'
_PAST = 'consumer, name, project, "user", provider, provider_name, resource_class, used, began, ended'


@dataclass(frozen=True)
class Span:
    """What a consumer had or has of a provider: `began` is None where that is not known, `ended` where it has no end yet."""

    consumer: str
    name: str | None
    project: str | None
    user: str | None
    provider: str
    provider_name: str
    resource_class: str
    used: int
    began: int | None
    ended: int | None


@dataclass(frozen=True)
class Asked:
    """Which spans: those that lie at least in part between two moments, of one project, of one provider (UUID or name)."""

    since: int | None = None
    until: int | None = None
    project: str | None = None
    provider: str | None = None


def read_history(connection: sa.Connection, asked: Asked, now: int, most: int) -> list[Span]:
    """Return the last `most` spans: first those that last, then those that ended, the last one before the others."""
    return [*_present(connection, asked, now, most), *_past(connection, asked, most)][:most]


def _present(connection: sa.Connection, asked: Asked, now: int, most: int) -> list[Span]:
    """Return what allocations say; what has expired and nobody has released yet ended when it expired."""
    conditions, values = _conditions(asked, "a.since", "p.uuid", "p.name", "c.project")
    if asked.since is not None:
        conditions.append("(c.expires_at IS NULL OR c.expires_at > ?)")
        values.append(asked.since)
    text = (
        f"SELECT {_quoted(connection, _COLUMNS.format(c='c'))} FROM allocations a JOIN consumers c ON c.id = a.consumer_id "
        f"JOIN resource_providers p ON p.id = a.provider_id WHERE {' AND '.join(conditions)} "
        f"ORDER BY a.since DESC, c.uuid, p.name, a.resource_class LIMIT {most}"
    )
    rows = select_rows(connection, text, values)
    return [Span(*(*row[:-1], row[-1] if row[-1] is not None and row[-1] <= now else None)) for row in rows]


def _past(connection: sa.Connection, asked: Asked, most: int) -> list[Span]:
    conditions, values = _conditions(asked, "began", "provider", "provider_name", "project")
    if asked.since is not None:
        conditions.append("ended > ?")
        values.append(asked.since)
    text = f"SELECT {_quoted(connection, _PAST)} FROM history WHERE {' AND '.join(conditions)} ORDER BY ended DESC, id DESC LIMIT {most}"
    return [Span(*row) for row in select_rows(connection, text, values)]


def _conditions(asked: Asked, began: str, uuid: str, name: str, project: str) -> tuple[list[str], list[t.Any]]:
    conditions, values = ["1 = 1"], list[t.Any]()
    if asked.until is not None:
        conditions.append(f"({began} IS NULL OR {began} < ?)")
        values.append(asked.until)
    if asked.provider is not None:
        conditions.append(f"({uuid} = ? OR {name} = ?)")
        values += [asked.provider, asked.provider]
    if asked.project is not None:
        conditions.append(f"{project} = ?" if asked.project else f"{project} IS NULL")
        values += [asked.project] if asked.project else []
    return conditions, values


def _quoted(connection: sa.Connection, text: str) -> str:
    return text.replace('"user"', connection.dialect.identifier_preparer.quote("user"))


def prune_history(connection: sa.Connection, before: int) -> int:
    """Delete what ended before a moment; return how many rows."""
    return int(connection.execute(sa.delete(history).where(history.c.ended < before)).rowcount)


def ended_values(consumer: t.Any, ended: int) -> dict[str, t.Any]:
    """Return whose it was and when it ended, as REMEMBER takes it."""
    owner = {"consumer_uuid": consumer.uuid, "consumer_name": consumer.name, "owner_project": consumer.project, "owner_user": consumer.user}
    return {**owner, "ended": ended}


def limited(spans: Sequence[Span], most: int) -> tuple[list[Span], bool]:
    """Return the first spans, and whether there are more."""
    return list(spans[:most]), len(spans) > most
