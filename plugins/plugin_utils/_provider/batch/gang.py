# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A gang: all entries in one aggregate, such as a rack, each on a root or a provider of its own; or which aggregate came nearest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..._common.libraries import sa
from ..candidates.requirements import Sql
from ..feasible.criteria import rows
from ..feasible.parts import Asker
from ..ledger.neighbours import Roots
from ..request.model import Request
from .exact import GaveUp, Tries, place_together
from .fleet import Fleet
from .model import Entry, Placement


@dataclass(frozen=True)
class Gang:
    """What holds for all entries together. `aggregates` are UUIDs, in order of preference; None: all that there are.

    `within`: all roots are in one aggregate. `apart`: "root" or "provider" that no two of them have in common.
    """

    within: bool = False
    apart: str | None = None
    aggregates: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Outcome:
    """Where entries go: `placed` is None where not all of them have room together.

    `aggregate` is where they are, or which came nearest, and `fits` how many of them have room there. `is_sure` is false where a limit
    ended the search, so that there may be a way. `looked_at` is how many aggregates there are.
    """

    placed: list[Placement] | None
    missing: tuple[Entry, ...] = ()
    aggregate: str | None = None
    fits: int = 0
    is_sure: bool = True
    looked_at: int = 0


@dataclass(frozen=True)
class Together:
    """Entries to be placed all together or not at all. `kept` are those that have what they ask for already."""

    connection: sa.Connection
    entries: Sequence[Entry]
    kept: Sequence[Placement]
    roots: Roots
    gang: Gang = Gang()
    tries: Tries = field(default_factory=Tries)

    def place(self) -> Outcome:
        """Return where they go."""
        if not self.gang.within:
            return self._anywhere(self.entries, self.kept)
        count = len(self.entries) + len(self.kept)
        found = self._aggregates()
        inside = read_roots_in(self.connection, {number for each in self.kept for number in each.roots.values()})
        # Where most of them are already comes first, then what the caller prefers, then the smallest aggregate.
        stay = {aggregate: sum(set(each.roots.values()) <= inside.get(aggregate, set()) for each in self.kept) for aggregate in found}
        least = count if self.gang.apart == "root" else 1
        large = [aggregate for aggregate in sorted(found, key=lambda aggregate: -stay[aggregate]) if found[aggregate] >= least]
        nearest = Outcome(None, tuple(self.entries))
        is_sure = True
        for aggregate in large:
            outcome = self._in(aggregate, inside)
            if outcome.placed is not None:
                return outcome
            is_sure = is_sure and outcome.is_sure
            nearest = max(nearest, outcome, key=lambda outcome: outcome.fits)
        if self.gang.apart == "root":
            for aggregate in sorted(found.keys() - set(large), key=lambda aggregate: (-found[aggregate], aggregate)):
                if found[aggregate] <= nearest.fits:
                    break
                nearest = max(nearest, self._in(aggregate, inside), key=lambda outcome: outcome.fits)
        return replace(nearest, is_sure=is_sure, looked_at=len(found))

    def _anywhere(self, entries: Sequence[Entry], kept: Sequence[Placement]) -> Outcome:
        if kept and not self._are_apart(kept):
            entries, kept = sorted([*entries, *(each.entry for each in kept)], key=lambda entry: entry.number), ()
        first = self._one_by_one(entries, kept)
        if first.placed is not None:
            return first
        counts = self._trees_for(entries)
        if self.gang.apart == "root" and any(counts[entry.alternatives] < many for entry, many in _alike(entries)):
            return first
        if self._ask_for_more_than_is_free(entries):
            return first
        second = self._one_by_one(sorted(entries, key=lambda entry: counts[entry.alternatives]), kept)
        if second.placed is not None:
            return second
        try:
            placed = place_together(self.connection, entries, kept, self.roots, self.gang.apart, self.tries)
        except GaveUp:
            return replace(first, is_sure=False)
        return first if placed is None else replace(first, placed=placed, missing=(), fits=len(entries) + len(kept))

    def _ask_for_more_than_is_free(self, entries: Sequence[Entry]) -> bool:
        """Whether entries ask for more of a class than all providers have."""
        asked: Counter[str] = Counter()
        for entry in entries:
            if entry.holding is None:
                every = [_amounts(alternative) for alternative in entry.alternatives]
                asked.update({name: min(amounts[name] for amounts in every) for name in every[0]})
        expired: Counter[str] = Counter()
        for (_number, name), amount in Asker(self.connection).free.items():
            expired[name] += amount
        free = {name: int(rows(self.connection, Sql(_FREE, (name,)))[0][0] or 0) for name, amount in asked.items() if amount}
        return any(asked[name] > amount + expired[name] for name, amount in free.items())

    def _trees_for(self, entries: Sequence[Entry]) -> dict[tuple[Request, ...], int]:
        """Return how many trees may do for each kind of entry, counted no further than there are entries."""
        # What a consumer has already may be all that it needs.
        counts = Counter(entry.alternatives for entry in entries if entry.holding is not None)
        for entry, _many in _alike(entries):
            counts[entry.alternatives] += Fleet(self.connection, [entry], {}).count(entry, len(entries))
        return counts

    def _one_by_one(self, entries: Sequence[Entry], kept: Sequence[Placement]) -> Outcome:
        fleet = Fleet(self.connection, [*(each.entry for each in kept), *entries], self.roots, self.gang.apart)
        for placement in kept:
            fleet.keep(placement)
        found = [(entry, fleet.place(entry)) for entry in entries]
        placed = [placement for _entry, placement in found if placement is not None]
        missing = tuple(entry for entry, placement in found if placement is None)
        return Outcome(None if missing else placed, missing, None, len(kept) + len(placed), not fleet.is_truncated)

    def _are_apart(self, kept: Sequence[Placement]) -> bool:
        if self.gang.apart is None:
            return True
        used = [where for each in kept for where in (each.roots.values() if self.gang.apart == "root" else each.providers)]
        return len(used) == len(set(used))

    def _in(self, aggregate: str, inside: Mapping[str, set[int]]) -> Outcome:
        members = inside.get(aggregate, set())
        kept = [each for each in self.kept if set(each.roots.values()) <= members]
        moving = [each.entry for each in self.kept if each not in kept]
        entries = sorted([*self.entries, *moving], key=lambda entry: entry.number)
        limited = [
            replace(
                entry,
                alternatives=tuple(
                    replace(one, root_member_of=(*one.root_member_of, frozenset([aggregate]))) for one in entry.alternatives
                ),
            )
            for entry in entries
        ]
        return replace(self._anywhere(limited, kept), aggregate=aggregate)

    def _aggregates(self) -> dict[str, int]:
        """Return how many roots are in each aggregate that will do, the ones to be tried first in front."""
        counted = dict(rows(self.connection, Sql(_ROOTS_IN_EACH)))
        if self.gang.aggregates is not None:
            return {aggregate: counted.get(aggregate, 0) for aggregate in self.gang.aggregates}
        return dict(sorted(counted.items(), key=lambda entry: (entry[1], entry[0])))


def _alike(entries: Sequence[Entry]) -> list[tuple[Entry, int]]:
    """Return one entry of each kind, and how many there are."""
    counted = Counter(entry.alternatives for entry in entries)
    return [(next(entry for entry in entries if entry.alternatives == kind), many) for kind, many in counted.items()]


def _amounts(request: Request) -> Counter[str]:
    amounts: Counter[str] = Counter()
    for group in request.groups:
        amounts.update(dict(group.resources))
    return amounts


_FREE = "SELECT SUM(capacity - used) FROM inventories WHERE resource_class = ? AND capacity > used"

_ROOTS_IN_EACH = (
    "SELECT a.aggregate, COUNT(*) FROM provider_aggregates a JOIN resource_providers p ON p.id = a.provider_id "
    "WHERE p.parent_id IS NULL GROUP BY a.aggregate"
)


def read_roots_in(connection: sa.Connection, roots: set[int]) -> dict[str, set[int]]:
    """Return those of some roots that are in each aggregate."""
    found: dict[str, set[int]] = {}
    if roots:
        listed = ",".join(map(str, sorted(roots)))
        text = f"SELECT aggregate, provider_id FROM provider_aggregates WHERE provider_id IN ({listed})"
        for aggregate, number in rows(connection, Sql(text)):
            found.setdefault(aggregate, set()).add(number)
    return found
