# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Claims: give consumers everything that they ask for or nothing, move it, or take it back.

A claim says what a consumer has from now on. Several claims are one transaction: their sums are checked together, so that consumers
may change places. Providers on the losing side of a move get a new generation like those on the winning side.
"""

from __future__ import annotations

import typing as t
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ....module_utils._data.errors import InputError, Mistake, suggest
from ..._common.libraries import sa
from ..world.times import Time, shown_time
from .claim_plan import Change, Claim, Claimed, ClaimPlan, ClaimRefused, Key, Outdated, Seen, _without_owner
from .clock import read_now
from .drains import why_closed
from .expired import are_used_by, choose_expired, lacking_room, read_expired
from .guards import GenerationMoved, free_name, guard_consumer, guard_providers
from .history import REMEMBER, ended_values
from .owners import find_consumers, find_former, refuse_others
from .quotas import refuse_beyond_quotas
from .read import batches, read_generations, read_guarded, read_holdings, read_identities, read_parent, read_providers, read_some_names
from .retry import LostRace
from .statements import Statement
from .stored import Consumer, ConsumerState, Guarded, Holding, StoredInventory, StoredProvider, amounts_by_provider
from .tables import allocations, inventories

_KEYS = (
    allocations.c.consumer_id == sa.bindparam("consumer"),
    allocations.c.provider_id == sa.bindparam("provider"),
    allocations.c.resource_class == sa.bindparam("name"),
)
_TAKE = Statement(
    sa.insert(allocations).values(
        consumer_id=sa.bindparam("consumer"),
        provider_id=sa.bindparam("provider"),
        resource_class=sa.bindparam("name"),
        used=sa.bindparam("amount"),
        since=sa.bindparam("now", type_=sa.BigInteger),
    )
)
_ALTER = Statement(sa.update(allocations).where(*_KEYS).values(used=sa.bindparam("amount"), since=sa.bindparam("now", type_=sa.BigInteger)))
_GIVE_BACK = Statement(sa.delete(allocations).where(*_KEYS))
_COUNT = Statement(
    sa.update(inventories)
    .where(inventories.c.provider_id == sa.bindparam("provider"), inventories.c.resource_class == sa.bindparam("name"))
    .values(used=inventories.c.used + sa.bindparam("more"))
)


def apply_claims(connection: sa.Connection, claims: Collection[Claim], generations: Mapping[str, int] | None = None) -> Claimed:
    """Carry claims out in the caller's transaction; a consumer that has what it claims is left as it is.

    `generations` are those of providers (by UUID or name) that the caller saw. Raises ClaimRefused, GenerationMoved, Outdated, LostRace.
    """
    return apply_plan(connection, plan_claims(connection, claims, generations or {}), claims)


def apply_plan(connection: sa.Connection, plan: ClaimPlan, claims: Collection[Claim]) -> Claimed:
    """Carry out what claims come to, in the transaction in which they were planned. Raises ClaimRefused, QuotaExceeded, ..."""
    plan = with_room(connection, plan)
    refuse_beyond_quotas(connection, plan.growth_of_projects, plan.now)
    consumers = guard_consumers(connection, plan.needed, plan.now)
    guard_providers(connection, plan.providers)
    guarded = read_guarded(connection, plan.providers)
    if plan.needed:
        refuse_outdated(connection, [seen for claim in claims for seen in claim.seen], guarded)
    settle(connection, plan, consumers, guarded)
    return describe_claims(plan, guarded)


def plan_claims(connection: sa.Connection, claims: Collection[Claim], generations: Mapping[str, int]) -> ClaimPlan:
    """Read what the claimed providers and consumers are now.

    Raises ClaimRefused for unknown providers, NotOwner, NameNotUnique, GenerationMoved, and InputError for a consumer that is given twice.
    """
    claims = identified(connection, claims)
    _refuse_doubles(claims)
    references = {reference for claim in claims for reference in claim.amounts}.union(generations)
    identities = read_identities(connection, references)
    unknown = sorted(references - identities.keys())
    if unknown:
        known = read_some_names(connection)
        raise ClaimRefused([_unknown_provider(reference, known) for reference in unknown])
    numbers = {reference: number for reference, (number, _uuid, _name) in identities.items()}
    # Before the consumers: none of those that are read as live has expired by then.
    now = read_now(connection)
    holdings = read_holdings(connection, [claim.consumer for claim in claims])
    refuse_others((claim.asked for claim in claims), holdings)
    changes = tuple(_named(connection, _change(claim, holdings.get(claim.consumer), numbers, now)) for claim in claims)
    _refuse_namesakes(changes)
    _check_generations(claims, changes)
    uuids = {number: uuid for number, uuid, _name in identities.values()}
    names = {number: name for number, _uuid, name in identities.values()}
    for holding in holdings.values():
        uuids.update(holding.uuids)
        names.update(holding.names)
    return ClaimPlan(changes, {numbers[reference]: generation for reference, generation in generations.items()}, uuids, names, now)


def with_room(connection: sa.Connection, plan: ClaimPlan) -> ClaimPlan:
    """Return a plan that releases as many consumers whose lease has ended as it needs the room of, those that ended first."""
    # A consumer whose own lease has ended may get back less than is still counted for it.
    asked = {key for key, more in _growth(plan.needed, lambda change: change.holds).items() if more > 0}
    numbers = {number for number, _name in asked}
    known = {change.wanted.uuid for change in plan.needed}
    found = read_expired(connection, plan.now, numbers) if numbers else []
    expired = [holding for holding in found if holding.consumer.uuid not in known]
    if not expired:
        return plan
    growth = _growth(plan.needed)
    lacking = lacking_room({key: growth.get(key, 0) for key in asked}, read_guarded(connection, numbers).stocks)
    return plan.with_ended(choose_expired(expired, lacking))


def identified(connection: sa.Connection, claims: Collection[Claim]) -> list[Claim]:
    """Return the claims with the UUIDs of the consumers that their names stand for now. Raises NameNotUnique."""
    uuids = find_consumers(connection, [claim.asked for claim in claims])
    return [replace(claim, consumer=uuid) for claim, uuid in zip(claims, uuids, strict=True)]


def read_own_holding(connection: sa.Connection, claim: Claim) -> Holding | None:
    """Return what the consumer of a claim has, None if it has nothing. Raises NotOwner, NameNotUnique."""
    (claim,) = identified(connection, [claim])
    holdings = read_holdings(connection, [claim.consumer])
    refuse_others([claim.asked], holdings)
    holding = holdings.get(claim.consumer)
    return holding if holding is not None and holding.is_live else None


def _refuse_doubles(claims: Collection[Claim]) -> None:
    counted = Counter(claim.consumer for claim in claims)
    doubles = sorted({claim.name or claim.consumer for claim in claims if counted[claim.consumer] > 1})
    if doubles:
        raise InputError(Mistake("consumers", f"{label} and another entry are one consumer; give it once") for label in doubles)


def _refuse_namesakes(changes: Iterable[Change]) -> None:
    """Raise InputError for consumers that would get one name in one project."""
    named = Counter(
        (change.wanted.project, change.wanted.name) for change in changes if change.is_needed and change.wanted.name is not None
    )
    doubles = sorted(name for (_project, name), count in named.items() if count > 1)
    if doubles:
        raise InputError(
            Mistake("consumers", f"several entries would be {name} of one project; give each another name") for name in doubles
        )


def _unknown_provider(reference: str, known: Sequence[str]) -> dict[str, t.Any]:
    says = f"there is no provider {reference}{suggest(reference, known)}"
    return {"consumer": None, "provider": reference, "resource_class": None, "reason": "unknown_provider", "says": says}


def guard_consumers(connection: sa.Connection, needed: Iterable[Change], now: int) -> dict[str, int]:
    """Guard the consumers that change, which come in the order of their UUIDs; return their numbers by UUID."""
    changes = {change.wanted.uuid: change for change in needed}
    numbers: dict[str, int] = {}

    def guard(change: Change, wanted: Consumer) -> None:
        numbers[wanted.uuid] = guard_consumer(connection, change.held, wanted, releases=not change.amounts)

    for former in [change.former for change in changes.values() if change.former is not None]:
        # One whose lease has ended may leave its room and its name in one transaction.
        leaving = changes.get(former.uuid)
        if leaving is not None:
            guard(leaving, replace(leaving.wanted, name=None))
    for change in changes.values():
        if change.wanted.uuid in numbers:
            continue
        if change.former is not None and change.former.uuid not in numbers:
            free_name(connection, change.former, now)
        guard(change, change.wanted)
    return numbers


def settle(
    connection: sa.Connection, plan: ClaimPlan, consumers: Mapping[str, int], guarded: Guarded, reshaped: Collection[Key] = ()
) -> None:
    """Check what the guarded changes ask for and write them. Raises ClaimRefused; LostRace where the room of a lease that ended will do.

    Of the inventories that are reshaped along with the claims, what a consumer has already is asked for again.
    """
    refusals = [*_poor_pieces(plan, guarded, reshaped), *_drained(connection, plan, guarded, reshaped), *_overfull(plan, guarded)]
    if refusals:
        numbers = {uuid: number for number, uuid in plan.uuids.items()}
        full = {(numbers[refusal["provider"]], refusal["resource_class"]) for refusal in refusals if refusal["reason"] == "full"}
        expired = read_expired(connection, plan.now, {number for number, _name in full}) if full else []
        known = {change.wanted.uuid for change in plan.needed}
        if any(holding.consumer.uuid not in known for holding in are_used_by(expired, full)):
            raise LostRace
        raise ClaimRefused(refusals)
    write_changes(connection, plan.needed, consumers, plan.now)


def refuse_outdated(connection: sa.Connection, seen: Sequence[Seen], guarded: Guarded) -> None:
    """Raise Outdated for providers that changed since they were seen.

    Where a generation has moved, it may have been for another claim; then the provider's own rows are read. Those that the claim takes
    from are guarded, so that they stay as they are; a root that changes from now on changes after the claim.
    """
    present = read_generations(connection, [entry.uuid for entry in seen])
    moved = []
    for entry in seen:
        number, generation = present.get(entry.uuid, (0, -1))
        if (number, generation) != (entry.number, entry.generation + (number in guarded.generations)):
            moved.append(entry)
    if not moved:
        return
    stored = read_providers(connection, [entry.uuid for entry in moved])
    outdated = [entry.name for entry in moved if not _is_as_seen(connection, entry, stored.get(entry.uuid))]
    if outdated:
        raise Outdated(outdated)


def _is_as_seen(connection: sa.Connection, entry: Seen, stored: StoredProvider | None) -> bool:
    if stored is None or (stored.id, stored.traits, stored.aggregates) != (entry.number, entry.traits, entry.aggregates):
        return False
    above, parent = [], stored.parent
    while parent is not None:
        above.append(parent)
        parent = read_parent(connection, parent)
    return tuple(above) == entry.above


def describe_claims(plan: ClaimPlan, guarded: Guarded) -> Claimed:
    """Return what a settled plan has changed."""
    before, after = {}, {}
    for change in plan.changes:
        consumer = change.wanted.uuid
        if change.held is not None and change.exists:
            before[consumer] = ConsumerState(change.held.consumer, amounts_by_provider(change.had, plan.uuids))
        if change.amounts:
            generation = change.wanted.generation + (1 if change.is_needed else 0)
            present = replace(change.wanted, generation=generation)
            after[consumer] = ConsumerState(present, amounts_by_provider(change.amounts, plan.uuids))
    generations = {plan.uuids[number]: generation for number, generation in guarded.generations.items()}
    ended = [
        ConsumerState(change.held.consumer, amounts_by_provider(change.had, plan.uuids)) for change in plan.ended if change.held is not None
    ]
    return Claimed(before, after, generations, {uuid: plan.names[number] for number, uuid in plan.uuids.items()}, ended)


def _change(claim: Claim, held: Holding | None, numbers: Mapping[str, int], now: int) -> Change:
    present = held.consumer if held else Consumer(claim.consumer, 0)
    if held is None or not held.is_live:
        present = replace(_without_owner(present), claimed_at=now)
    named: dict[str, t.Any] = {"project": claim.project, "user": claim.user, "type": claim.type, "name": claim.name}
    wanted: Counter[Key] = Counter()
    for reference, amounts in claim.amounts.items():
        for name, amount in amounts.items():
            wanted[numbers[reference], name] += amount
    owned = replace(present, **{key: value for key, value in named.items() if value is not None})
    if not claim.amounts:
        return Change(held, _without_owner(owned), {})
    if claim.lease is not None:
        owned = replace(owned, expires_at=end_of_lease(claim.lease, now, owned.label))
    return Change(held, owned, dict(wanted), on_drained=claim.on_drained)


def end_of_lease(lease: Time, now: int, label: str) -> int | None:
    """Return when a lease ends, None for never. Raises InputError where that is over already."""
    ends = lease.after(now)
    if ends is not None and ends <= now:
        says = f"of {label} would end at {shown_time(ends)}, but it is {shown_time(now)} by the clock of the database; give a later time"
        raise InputError([Mistake("lease", says)])
    return ends


def _named(connection: sa.Connection, change: Change) -> Change:
    """Return a change with the consumer whose name it gets, if there is one; the generation goes on above that one's, too."""
    wanted, held = change.wanted, change.held
    if held is None or not change.is_needed or (wanted.name, wanted.project) == (held.consumer.name, held.consumer.project):
        return change
    former = find_former(connection, wanted)
    if former is None:
        return change
    return replace(change, wanted=replace(wanted, generation=max(wanted.generation, former.generation)), former=former)


def _check_generations(claims: Iterable[Claim], changes: Iterable[Change]) -> None:
    """Refuse changes of consumers that are not as the caller saw them; what is as claimed already needs no change and is let pass."""
    moved: list[dict[str, str | int | None]] = [
        {
            "kind": "consumer",
            "uuid": claim.consumer,
            "name": change.wanted.label,
            "expected": claim.generation,
            "found": change.generation,
        }
        for claim, change in zip(claims, changes, strict=True)
        if change.is_needed and claim.generation is not None and claim.generation != change.generation
    ]
    if moved:
        raise GenerationMoved(moved)


def _poor_pieces(plan: ClaimPlan, guarded: Guarded, reshaped: Collection[Key]) -> Iterator[dict[str, t.Any]]:
    """Return what is wrong with each amount by itself; what a consumer has already is not asked for again, but of reshaped inventories."""
    for change in plan.changes:
        for key in sorted((change.asked | set(reshaped)) & change.amounts.keys()):
            says = why_no_piece(change.amounts[key], guarded.stocks.get(key))
            if says:
                reason = "piece" if key in guarded.stocks else "no_inventory"
                yield _refusal(plan, change.wanted, key, reason, f"{key[1]} of {guarded.names[key[0]]}: {says}")


def _drained(connection: sa.Connection, plan: ClaimPlan, guarded: Guarded, reshaped: Collection[Key]) -> Iterator[dict[str, t.Any]]:
    """Yield what is asked for of drained providers beyond what a consumer has; a reshape moves what it has."""
    closed = {number for number, until in guarded.closed.items() if until > plan.now}
    for change in plan.changes if closed else ():
        for key in sorted(change.asked.difference(reshaped)):
            if key[0] in closed and not change.on_drained and change.amounts[key] > change.holds.get(key, 0):
                says = f"{key[1]} of {guarded.names[key[0]]}: {why_closed(connection, key[0], plan.now)}; it gives nothing more"
                yield _refusal(plan, change.wanted, key, "drained", says)


def _overfull(plan: ClaimPlan, guarded: Guarded) -> Iterator[dict[str, t.Any]]:
    """Return where the sum is too much; a provider over its capacity (it was shrunk) may keep what it has given, but gives no more."""
    growth = _growth(plan.needed)
    for key, more in sorted(_growth(plan.changes, lambda change: change.holds).items()):
        stock = guarded.stocks.get(key)
        if stock is None or more <= 0 or stock.used + growth.get(key, 0) <= stock.inventory.capacity:
            continue
        free = max(0, stock.inventory.capacity - stock.used - growth.get(key, 0) + more)
        askers = [change.wanted for change in plan.changes if change.amounts.get(key, 0) > change.holds.get(key, 0)]
        says = f"{key[1]} of {guarded.names[key[0]]}: {more} more requested, {free} of {stock.inventory.capacity} free"
        yield {**_refusal(plan, askers[0], key, "full", says), "asked": more, "free": free}


def why_no_piece(amount: int, stock: StoredInventory | None) -> str:
    """Return why one consumer cannot have an amount of an inventory, whatever is free; an empty string where it can."""
    if stock is None:
        return f"{amount} requested, but there is no inventory"
    inventory = stock.inventory
    if inventory.allows_piece(amount):
        return ""
    least, most, step = inventory.min_unit, inventory.max_unit, inventory.step_size
    if step == 1:
        return f"{amount} requested, but one consumer may have from {least} (min_unit) to {most} (max_unit)"
    first, last = -(-least // step) * step, most // step * step
    alone = f"exactly {least} (min_unit) or " if least % step else ""
    return f"{amount} requested, but one consumer may have {alone}a multiple of {step} (step_size) from {first} to {last}"


def _growth(changes: Iterable[Change], before: Callable[[Change], Mapping[Key, int]] = lambda change: change.had) -> dict[Key, int]:
    more: Counter[Key] = Counter()
    for change in changes:
        for key in {*before(change), *change.amounts}:
            more[key] += change.amounts.get(key, 0) - before(change).get(key, 0)
    return dict(more)


def _refusal(plan: ClaimPlan, consumer: Consumer, key: Key, reason: str, says: str) -> dict[str, t.Any]:
    return {
        "consumer": consumer.uuid,
        "consumer_name": consumer.label,
        "provider": plan.uuids[key[0]],
        "provider_name": plan.names[key[0]],
        "resource_class": key[1],
        "reason": reason,
        "says": says,
    }


def write_changes(connection: sa.Connection, needed: Sequence[Change], consumers: Mapping[str, int], now: int) -> None:
    """Write guarded changes that were checked, and what ends with them into the history."""
    taken, altered, given_back, past = [], [], [], []
    for change in needed:
        consumer = consumers[change.wanted.uuid]
        for number, name in sorted(change.touched | change.renewed):
            key, amount = {"consumer": consumer, "provider": number, "name": name}, change.amounts.get((number, name))
            if change.held is not None and (number, name) in change.had:
                expired = change.held.consumer.expires_at if change.held.is_expired else None
                past.append({**key, **ended_values(change.held.consumer, now if expired is None else expired)})
            if amount is None:
                given_back.append(key)
            elif (number, name) in change.had:
                altered.append({**key, "amount": amount, "now": now})
            else:
                taken.append({**key, "amount": amount, "now": now})
    for statement, rows in ((REMEMBER, past), (_GIVE_BACK, given_back), (_ALTER, altered), (_TAKE, taken)):
        for part in batches(rows):
            statement.repeat(connection, part)
    counts = [{"provider": number, "name": name, "more": more} for (number, name), more in sorted(_growth(needed).items()) if more]
    for counted in batches(counts):
        _COUNT.repeat(connection, counted)
