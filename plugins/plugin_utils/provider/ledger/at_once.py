# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The usual claim, of one new consumer, in six statements: what it asks for is counted as used where there is room, in one update.

On PostgreSQL a claim of one provider is one statement. How many inventories were counted is the check. Where they are too few, nothing is
left of it, and the claim is made once more the long way, which finds out why. Everything else is made the long way from the start.
"""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Mapping
from functools import cache, partial

from ...common.libraries import sa
from ..world.names import canonical_uuid
from .claims import (
    Change,
    Claim,
    Claimed,
    ClaimPlan,
    ConsumerState,
    apply_plan,
    describe_claims,
    guard_consumers,
    plan_claims,
    refuse_outdated,
)
from .guards import owner_values, raise_generations
from .open import Ledger
from .read import Consumer, Guarded
from .statements import Statement
from .tables import allocations, inventories

_MOST_PARTS = 16
"""Claims of more inventories than this are made the long way; for each number of them there is a statement."""


class _TooLittle(Exception):
    """Some inventory lacks room, or gives no such piece."""


def make_claims(ledger: Ledger, claims: Collection[Claim], generations: Mapping[str, int] | None = None) -> Claimed:
    """Carry claims out in one transaction; a consumer that has what it claims is left as it is.

    Raises what apply_claims and Ledger.write raise.
    """
    expected = generations or {}
    try:
        return ledger.write(partial(_claim_at_once, claims=claims, generations=expected))
    except _TooLittle:
        return ledger.write(lambda connection: apply_plan(connection, plan_claims(connection, claims, expected), claims))


def _claim_at_once(connection: sa.Connection, claims: Collection[Claim], generations: Mapping[str, int]) -> Claimed:
    if connection.dialect.name == "postgresql" and _is_of_one_new_consumer(claims, generations):
        return _claim_in_one(connection, *claims)
    plan = plan_claims(connection, claims, generations)
    if not _is_usual(plan):
        return apply_plan(connection, plan, claims)
    (change,) = plan.needed
    numbers = guard_consumers(connection, plan.needed)
    raised = raise_generations(connection, plan.providers)
    _count_and_take(connection, change, numbers[change.wanted.uuid])
    guarded = Guarded(raised, plan.names, {})
    refuse_outdated(connection, [seen for claim in claims for seen in claim.seen], guarded)
    return describe_claims(plan, guarded)


def _is_usual(plan: ClaimPlan) -> bool:
    if len(plan.needed) != 1 or any(plan.expected.values()):
        return False
    change = plan.needed[0]
    return change.held is None and 1 <= len(change.amounts) <= _MOST_PARTS


def _is_of_one_new_consumer(claims: Collection[Claim], generations: Mapping[str, int]) -> bool:
    """Whether one statement on PostgreSQL may do: one claim of one provider; that the consumer is new, it finds out itself."""
    (claim, *others) = claims
    if others or generations or claim.generation:
        return False
    return len(claim.amounts) == 1 and all(1 <= len(amounts) <= _MOST_PARTS for amounts in claim.amounts.values())


def _claim_in_one(connection: sa.Connection, claim: Claim) -> Claimed:
    """Find the provider, make the consumer, raise the generation, count and take, all in one statement. Raises _TooLittle."""
    ((reference, amounts),) = claim.amounts.items()
    wanted = Consumer(claim.consumer, 1, claim.project, claim.user, claim.type, claim.name)
    values: dict[str, int | str | None] = {"uuid": canonical_uuid(reference), "called_so": reference, "who": wanted.uuid}
    for position, name in enumerate(sorted(amounts)):
        values |= {f"name{position}": name, f"amount{position}": amounts[name]}
    rows = _whole(len(amounts)).rows(connection, {**values, **owner_values(wanted)})
    if not rows or rows[0][-1] != len(amounts):
        raise _TooLittle
    number, uuid, name, generation, _counted = rows[0]
    refuse_outdated(connection, claim.seen, Guarded({number: generation}, {number: name}, {}))
    return Claimed({}, {wanted.uuid: ConsumerState(wanted, {uuid: dict(amounts)})}, {uuid: generation}, {uuid: name})


@cache
def _whole(parts: int) -> Statement:
    """Return all of a claim as one statement of PostgreSQL.

    Each part begins from what the one before it returns, so that the provider is locked before its inventories, as guards ask for.
    """
    positions = range(parts)
    pieces = ", ".join(f"(CAST(:name{position} AS VARCHAR), CAST(:amount{position} AS BIGINT))" for position in positions)
    text = f"""
        WITH found AS (
            SELECT id, uuid, name FROM resource_providers WHERE uuid = :uuid OR name = :called_so
            ORDER BY CASE WHEN uuid = :uuid THEN 0 ELSE 1 END LIMIT 1
        ), made AS (
            INSERT INTO consumers (uuid, generation, project, "user", type, name)
            SELECT CAST(:who AS VARCHAR), 1, CAST(:whose AS VARCHAR), CAST(:by AS VARCHAR), CAST(:kind AS VARCHAR), CAST(:called AS VARCHAR)
            FROM found ON CONFLICT DO NOTHING RETURNING id
        ), raised AS (
            UPDATE resource_providers p SET generation = p.generation + 1 FROM found, made WHERE p.id = found.id
            RETURNING p.id, p.uuid, p.name, p.generation
        ), asked (class, amount) AS (VALUES {pieces}), counted AS (
            UPDATE inventories i SET used = i.used + asked.amount FROM raised, asked
            WHERE i.provider_id = raised.id AND i.resource_class = asked.class
            AND i.used + asked.amount <= i.capacity AND asked.amount BETWEEN i.min_unit AND i.max_unit
            AND (asked.amount = i.min_unit OR asked.amount % i.step_size = 0)
            RETURNING i.provider_id, i.resource_class, asked.amount
        ), taken AS (
            INSERT INTO allocations (consumer_id, provider_id, resource_class, used)
            SELECT made.id, counted.provider_id, counted.resource_class, counted.amount FROM made, counted
        )
        SELECT id, uuid, name, generation, (SELECT COUNT(*) FROM counted) FROM raised"""
    return Statement(sa.text(text))


def _values(change: Change) -> dict[str, int | str | None]:
    values: dict[str, int | str | None] = {}
    for position, key in enumerate(sorted(change.amounts)):
        values |= {f"provider{position}": key[0], f"name{position}": key[1], f"amount{position}": change.amounts[key]}
    return values


def _count_and_take(connection: sa.Connection, change: Change, consumer: int) -> None:
    parts, values = len(change.amounts), {**_values(change), "consumer": consumer}
    if _counting(parts).change(connection, values) != parts:
        raise _TooLittle
    # Only now: on MariaDB a new allocation would lock its inventory against the update.
    _taking(parts).change(connection, values)


@cache
def _counting(parts: int) -> Statement:
    return Statement(_counts(parts))


@cache
def _taking(parts: int) -> Statement:
    return Statement(sa.insert(allocations).values(_rows(parts)))


def _counts(parts: int) -> sa.Update:
    keys, amounts = zip(*map(_part, range(parts)), strict=True)
    fits = [sa.and_(key, _gives(amount)) for key, amount in zip(keys, amounts, strict=True)]
    more = amounts[0] if parts == 1 else sa.case(*zip(keys, amounts, strict=True))
    return sa.update(inventories).where(sa.or_(*fits)).values(used=inventories.c.used + more)


def _rows(parts: int) -> list[dict[str, sa.BindParameter[t.Any]]]:
    return [
        {
            "consumer_id": sa.bindparam("consumer", type_=sa.BigInteger),
            "provider_id": sa.bindparam(f"provider{position}", type_=sa.BigInteger),
            "resource_class": sa.bindparam(f"name{position}", type_=inventories.c.resource_class.type),
            "used": sa.bindparam(f"amount{position}", type_=sa.BigInteger),
        }
        for position in range(parts)
    ]


def _part(position: int) -> tuple[sa.ColumnElement[bool], sa.BindParameter[int]]:
    is_key = sa.and_(
        inventories.c.provider_id == sa.bindparam(f"provider{position}"), inventories.c.resource_class == sa.bindparam(f"name{position}")
    )
    return is_key, sa.bindparam(f"amount{position}", type_=sa.BigInteger)


def _gives(amount: sa.BindParameter[int]) -> sa.ColumnElement[bool]:
    """Return the condition that an inventory has this amount free, and gives it in one piece: that of Inventory.allows_piece."""
    stepped = sa.or_(inventories.c.min_unit == amount, amount % inventories.c.step_size == 0)
    return sa.and_(
        inventories.c.used + amount <= inventories.c.capacity, amount.between(inventories.c.min_unit, inventories.c.max_unit), stepped
    )
