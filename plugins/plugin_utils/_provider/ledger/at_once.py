# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The usual claim, of one new consumer and one provider: what it asks for is counted as used where there is room, in one update.

On PostgreSQL that is one statement, elsewhere there are a few. How many inventories were counted is the check. Where they are too few,
or the consumer is not new, it is rolled back, and the claim is made once more the long way, which finds out why. Everything else is
made the long way from the start.
"""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Mapping
from functools import cache, partial

from ..._common.libraries import sa
from ..world.names import canonical_uuid, consumer_uuid
from ..world.pieces import sql_allows_piece
from ..world.times import NEVER
from .claim_plan import Claim, Claimed
from .claims import apply_plan, plan_claims, refuse_outdated
from .clock import sql_now
from .guards import guard_consumer, owner_values, raise_generation
from .open import Ledger
from .statements import Statement
from .stored import Consumer, ConsumerState, Guarded
from .tables import allocations, consumers, inventories, projects, providers

_MOST_PARTS = 16
"""Claims of more inventories than this are made the long way; for each number of them there is a statement."""

_NAMESAKES = Statement(
    sa.select(consumers.c.id).where(
        sa.or_(consumers.c.name == sa.bindparam("consumer_name"), consumers.c.uuid == sa.bindparam("named_uuid"))
    )
)


_QUOTA = Statement(sa.select(projects.c.generation).where(projects.c.name == sa.bindparam("owner_project")))


class _NotAtOnce(Exception):
    """The consumer is not new, its project has a quota, the provider is not known, or some inventory lacks room or gives no such piece."""


def make_claims(ledger: Ledger, claims: Collection[Claim], generations: Mapping[str, int] | None = None) -> Claimed:
    """Carry claims out in one transaction; a consumer that has what it claims is left as it is.

    Raises what apply_claims and Ledger.write raise.
    """
    expected = generations or {}
    try:
        return ledger.write(partial(_claim_at_once, claims=claims, generations=expected))
    except _NotAtOnce:
        return ledger.write(lambda connection: apply_plan(connection, plan_claims(connection, claims, expected), claims))


def _claim_at_once(connection: sa.Connection, claims: Collection[Claim], generations: Mapping[str, int]) -> Claimed:
    if len(claims) != 1 or generations:
        return apply_plan(connection, plan_claims(connection, claims, generations), claims)
    (claim,) = claims
    if claim.generation or len(claim.amounts) != 1 or not all(1 <= len(amounts) <= _MOST_PARTS for amounts in claim.amounts.values()):
        return apply_plan(connection, plan_claims(connection, claims, generations), claims)
    found, generation, now = (_claim_in_one if connection.dialect.name == "postgresql" else _claim_in_five)(connection, claim)
    number, uuid, name = found
    if claim.seen:
        refuse_outdated(connection, claim.seen, Guarded({number: generation}, {number: name}, {}))
    (amounts,) = claim.amounts.values()
    return Claimed({}, {claim.consumer: ConsumerState(_new(claim, 1, now), {uuid: dict(amounts)})}, {uuid: generation}, {uuid: name})


def _new(claim: Claim, generation: int, now: int) -> Consumer:
    ends = None if claim.lease is None else claim.lease.after(now)
    return Consumer(claim.consumer, generation, claim.project, claim.user, claim.type, claim.name, now, ends)


def _namesake(claim: Claim) -> dict[str, str | None]:
    """Return what finds consumers of the same name, which the claim may be for; nothing is found for a claim by UUID."""
    return {"consumer_name": claim.name, "named_uuid": None if claim.name is None else consumer_uuid(claim.name)}


def _claim_in_five(connection: sa.Connection, claim: Claim) -> tuple[tuple[int, str, str], int, int]:
    """Return the provider's number, UUID and name, its generation, and the present second.

    Raises _NotAtOnce, also where the consumer is not new.
    """
    ((reference, amounts),) = claim.amounts.items()
    names = {"uuid": canonical_uuid(reference), "provider_name": reference}
    if claim.name is not None and _NAMESAKES.rows(connection, _namesake(claim)):
        raise _NotAtOnce
    if claim.project is not None and _QUOTA.rows(connection, {"owner_project": claim.project}):
        raise _NotAtOnce
    rows = _find(sql_now(connection)).rows(connection, names)
    if not rows:
        raise _NotAtOnce
    number, uuid, name, generation, closed, now = min(rows, key=lambda row: row[1] != names["uuid"])
    if closed is not None and closed > now:
        raise _NotAtOnce
    wanted = _new(claim, 0, now)
    if wanted.expires_at is not None and wanted.expires_at <= now:
        raise _NotAtOnce
    try:
        consumer = guard_consumer(connection, None, wanted)
    except sa.exc.IntegrityError:
        raise _NotAtOnce from None
    generation = raise_generation(connection, number, generation, now)
    values: dict[str, int | str] = {"consumer": consumer, "provider": number}
    for position, resource_class in enumerate(sorted(amounts)):
        values[f"name{position}"], values[f"amount{position}"] = resource_class, amounts[resource_class]
    if _counting(len(amounts)).change(connection, values) != len(amounts):
        raise _NotAtOnce
    # Only now: on MariaDB a new allocation would lock its inventory against the update.
    _taking(len(amounts)).change(connection, {**values, "now": now})
    return (number, uuid, name), generation, now


def _claim_in_one(connection: sa.Connection, claim: Claim) -> tuple[tuple[int, str, str], int, int]:
    """Return the same; all that the other way does is one statement here."""
    ((reference, amounts),) = claim.amounts.items()
    wanted, lease = _new(claim, 1, 0), claim.lease or NEVER
    values: dict[str, int | str | None] = {"uuid": canonical_uuid(reference), "provider_name": reference, "consumer_uuid": wanted.uuid}
    for position, name in enumerate(sorted(amounts)):
        values[f"name{position}"], values[f"amount{position}"] = name, amounts[name]
    times: dict[str, int | None] = {"at": lease.at, "distance": lease.distance}
    rows = _whole(len(amounts), sql_now(connection)).rows(connection, {**values, **owner_values(wanted), **_namesake(claim), **times})
    if not rows or rows[0][-1] != len(amounts):
        raise _NotAtOnce
    number, uuid, name, generation, now, _counted = rows[0]
    return (number, uuid, name), generation, now


@cache
def _find(now: str) -> Statement:
    own = (providers.c.id, providers.c.uuid, providers.c.name, providers.c.generation, providers.c.closed_until)
    named = sa.or_(providers.c.uuid == sa.bindparam("uuid"), providers.c.name == sa.bindparam("provider_name"))
    return Statement(sa.select(*own, sa.literal_column(now, sa.BigInteger)).where(named))


@cache
def _whole(parts: int, now: str) -> Statement:
    """Return all of a claim as one statement of PostgreSQL.

    Each part begins from what the one before it returns, so that the provider is locked before its inventories, as guards ask for.
    """
    positions = range(parts)
    pieces = ", ".join(f"(CAST(:name{position} AS VARCHAR), CAST(:amount{position} AS BIGINT))" for position in positions)
    text = f"""
        WITH found AS (
            SELECT id, uuid, name, {now} AS present FROM resource_providers WHERE uuid = :uuid OR name = :provider_name
            ORDER BY CASE WHEN uuid = :uuid THEN 0 ELSE 1 END LIMIT 1
        ), ending AS (
            SELECT COALESCE(CAST(:at AS BIGINT), present + CAST(:distance AS BIGINT)) AS ends FROM found
        ), made AS (
            INSERT INTO consumers (uuid, generation, project, "user", type, name, claimed_at, expires_at)
            SELECT CAST(:consumer_uuid AS VARCHAR), 1, CAST(:owner_project AS VARCHAR), CAST(:owner_user AS VARCHAR),
                CAST(:consumer_type AS VARCHAR), CAST(:consumer_name AS VARCHAR), present, ends FROM found, ending
            WHERE NOT EXISTS (SELECT 1 FROM consumers WHERE name = :consumer_name OR uuid = :named_uuid)
            AND NOT EXISTS (SELECT 1 FROM projects WHERE name = :owner_project)
            AND (ends IS NULL OR ends > present)
            ON CONFLICT DO NOTHING RETURNING id, claimed_at
        ), raised AS (
            UPDATE resource_providers p SET generation = p.generation + 1 FROM found, made WHERE p.id = found.id
            AND (p.closed_until IS NULL OR p.closed_until <= found.present)
            RETURNING p.id, p.uuid, p.name, p.generation
        ), asked (class, amount) AS (VALUES {pieces}), counted AS (
            UPDATE inventories i SET used = i.used + asked.amount FROM raised, asked
            WHERE i.provider_id = raised.id AND i.resource_class = asked.class
            AND {_gives("i", "asked.amount")}
            RETURNING i.provider_id, i.resource_class, asked.amount
        ), taken AS (
            INSERT INTO allocations (consumer_id, provider_id, resource_class, used, since)
            SELECT made.id, counted.provider_id, counted.resource_class, counted.amount, made.claimed_at FROM made, counted
        )
        SELECT id, uuid, name, generation, (SELECT claimed_at FROM made), (SELECT COUNT(*) FROM counted) FROM raised"""
    return Statement(sa.text(text))


@cache
def _counting(parts: int) -> Statement:
    keys = [inventories.c.resource_class == sa.bindparam(f"name{position}") for position in range(parts)]
    amounts = [sa.bindparam(f"amount{position}", type_=sa.BigInteger) for position in range(parts)]
    fits = [
        sa.and_(key, sa.text(_gives("inventories", f":amount{position}")).bindparams(amount))
        for position, (key, amount) in enumerate(zip(keys, amounts, strict=True))
    ]
    more = amounts[0] if parts == 1 else sa.case(*zip(keys, amounts, strict=True))
    chosen = sa.and_(inventories.c.provider_id == sa.bindparam("provider"), sa.or_(*fits))
    return Statement(sa.update(inventories).where(chosen).values(used=inventories.c.used + more))


@cache
def _taking(parts: int) -> Statement:
    rows: list[dict[str, sa.BindParameter[t.Any]]] = [
        {
            "consumer_id": sa.bindparam("consumer", type_=sa.BigInteger),
            "provider_id": sa.bindparam("provider", type_=sa.BigInteger),
            "resource_class": sa.bindparam(f"name{position}", type_=inventories.c.resource_class.type),
            "used": sa.bindparam(f"amount{position}", type_=sa.BigInteger),
            "since": sa.bindparam("now", type_=sa.BigInteger),
        }
        for position in range(parts)
    ]
    return Statement(sa.insert(allocations).values(rows))


def _gives(of: str, amount: str) -> str:
    """Return the condition that the inventory `of` has this amount free, and gives it in one piece."""
    return f"{of}.used + {amount} <= {of}.capacity AND {amount} <= {of}.max_unit AND {sql_allows_piece(of, amount)}"
