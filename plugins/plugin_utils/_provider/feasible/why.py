# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a large ledger has no candidate: what its indexes can prove, without loading it.

A small ledger is loaded, and candidates/why.py explains everything. Here providers are counted for each group and constraint, up to
COUNTED, the largest free pieces are looked up, and groups that exclude each other are found by asking for fewer of them. Consumers are
read of the first providers that lack nothing but room. What else would help is not tried out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ....module_utils._data.words import listed
from ..._common.libraries import sa
from ..candidates.columns import MOST_NAMED
from ..candidates.exclusion import find_exclusion
from ..candidates.find import SearchOptions
from ..candidates.reasons import Counted, Plain, describe
from ..candidates.requirements import (
    Piece,
    Requirement,
    Room,
    Sql,
    Stocked,
    column_amounts,
    column_requirements,
    required_trait,
    stock_requirements,
)
from ..candidates.why import MOST_BUSY, TRIAL_BUDGET, Holders
from ..ledger.clock import read_now
from ..ledger.drains import why_closed
from ..request.model import Group, Request
from ..world.pieces import allows_piece
from .criteria import Atom, Criterion, atom_of, conjunction, has_row, numbers_in, on_provider, required_apart, rows
from .parts import Asker
from .roots import Finder

COUNTED = 100_000
"""Counts end here: more is as good as enough."""
_MANY = 10_000
"""Where more providers lack nothing but room, which of them are drained is of no interest."""
_MOST_DRAINED = 100
"""Drained providers that are read to say why they are."""


@dataclass(frozen=True)
class _Step:
    """One constraint on a provider: a row that it has, or else a condition on it.

    `stock` is the class of the inventory that it is about, `room` what has to be free of that.
    """

    kind: str
    says: str
    atom: Atom | None = None
    condition: Sql | None = None
    stock: str = ""
    room: Room | None = None


@dataclass(frozen=True)
class _Books:
    """What is read of one ledger to explain one request."""

    asker: Asker
    finder: Finder
    request: Request

    @property
    def connection(self) -> sa.Connection:
        """Where it is read."""
        return self.asker.connection

    def steps(self, group: Group, amounts: Sequence[tuple[str, int]], *, split: bool) -> list[_Step]:
        """Return what one provider of a column must be, room last: what nobody has is another reason than what others use."""
        stock = [asked for name, amount in amounts for asked in stock_requirements(name, amount, split=split)]
        others = [asked for asked in column_requirements(group, tuple(amounts), split=split) if asked.kind != "room"]
        first = [self.step(asked) for asked in [*stock, *others] if asked.kind != "room"]
        rooms = [self.step(asked) for asked in stock if asked.kind == "room"]
        if self.request.drained or (self.count(first) > _MANY and not self.count([*first, *rooms])):
            return [*first, *rooms]
        return [*first, *self._drained(first), *rooms]

    def _drained(self, first: Sequence[_Step]) -> Iterator[_Step]:
        """Yield the constraint that a provider gives something, where any of the first COUNTED that are as said gives nothing."""
        found, now = self.finder.together(_criterion(first), COUNTED), read_now(self.connection)
        text = f"SELECT r.id FROM ({found.text}) f JOIN resource_providers r ON r.id = f.provider_id WHERE r.closed_until > {now}"
        closed = rows(self.connection, Sql(f"{text} ORDER BY r.name LIMIT {_MOST_DRAINED}", found.values))
        if closed:
            reasons = sorted({why_closed(self.connection, number, now) for (number,) in closed})
            is_open = f"r.id = {{p}}.provider_id AND (r.closed_until IS NULL OR r.closed_until <= {now})"
            condition = Sql(f"EXISTS (SELECT 1 FROM resource_providers r WHERE {is_open})")
            yield _Step("drained", f"not drained ({listed(reasons, MOST_NAMED)})", condition=condition)

    def step(self, asked: Requirement) -> _Step:
        """Return a requirement as a constraint."""
        if isinstance(asked.what, Room):
            kept = frozenset(number for number, (free, fits) in self.freed(asked.what).items() if fits)
            return _Step(asked.kind, asked.says, atom_of(asked, kept), stock=asked.what.name, room=asked.what)
        if isinstance(asked.what, (Stocked, Piece)):
            return _Step(asked.kind, asked.says, atom_of(asked), stock=asked.what.name)
        if asked.forbidden or asked.root_counts:
            # Of a sharing provider the root does not matter: rather one provider too many than one too few.
            return _Step(asked.kind, asked.says, condition=on_provider(asked, with_root=asked.root_counts and not asked.forbidden))
        return _Step(asked.kind, asked.says, atom_of(asked))

    def freed(self, room: Room) -> dict[int, tuple[int, bool]]:
        """Return how much is free, and whether it is enough, where leases have ended or the consumer itself has something."""
        more = {number: amount for (number, name), amount in self.asker.free.items() if name == room.name and amount > 0}
        columns = "provider_id, capacity - used, min_unit, max_unit, step_size"
        text = f"SELECT {columns} FROM inventories WHERE resource_class = ? AND provider_id IN ({numbers_in(more)})"
        found = {}
        for number, left, least, most, step in rows(self.connection, Sql(text, (room.name,))) if more else ():
            free = left + more[number]
            fits = min(free, most) >= least if room.split else free >= room.amount and allows_piece(room.amount, least, most, step)
            found[number] = free, bool(fits)
        return found

    def count(self, steps: Sequence[_Step]) -> int:
        """Return how many providers are as all steps say, up to COUNTED."""
        return min(COUNTED, self.finder.count_together(_criterion(steps), COUNTED) + len(self._also(steps)))

    def find(self, steps: Sequence[_Step], most: int) -> list[int]:
        """Return the numbers of such providers."""
        return [*self._also(steps), *self.finder.find_together(_criterion(steps), most)][:most]

    def _also(self, steps: Sequence[_Step]) -> list[int]:
        """Return the providers that have room only because something counts as free that is still counted as used."""
        criterion = _criterion(steps)
        kept = frozenset().union(*(atom.kept for atom in criterion.atoms))
        if not kept:
            return []
        relaxed, strict = (
            conjunction(has_row(atom.table, "p", atom.relaxed if is_relaxed else atom.says) for atom in criterion.atoms)
            for is_relaxed in (True, False)
        )
        own = conjunction(says.of("p") for says in criterion.own)
        among = f"(SELECT id AS provider_id, root_id FROM resource_providers WHERE id IN ({numbers_in(kept)})) p"
        text = f"SELECT p.provider_id FROM {among} WHERE {own.text} AND {relaxed.text} AND NOT ({strict.text})"
        return [number for (number,) in rows(self.connection, Sql(text, (*own.values, *relaxed.values, *strict.values)))]

    def busy(self, first: Plain, holders: Holders) -> Iterator[Plain]:
        """Yield the providers that lack nothing but the room of the first empty constraint, and the consumers that use it."""
        (group,) = (group for group in self.request.groups if group.suffix == first["group"])
        for amounts, split in column_amounts(group, self.request.can_split):
            steps = self.steps(group, amounts, split=split)
            for number, step in enumerate(steps):
                if step.room is not None and not self.count(steps[: number + 1]):
                    yield from self._users(group, step.room, self.find(steps[:number], MOST_BUSY), holders)
                    return

    def _users(self, group: Group, room: Room, numbers: Sequence[int], holders: Holders) -> Iterator[Plain]:
        freed, asked = self.freed(room), 1 if room.split else room.amount
        columns = "p.id, p.uuid, p.name, d.capacity - d.used FROM inventories d JOIN resource_providers p ON p.id = d.provider_id"
        text = f"SELECT {columns} WHERE d.resource_class = ? AND p.id IN ({numbers_in(numbers)}) ORDER BY p.name"
        for number, uuid, name, left in rows(self.connection, Sql(text, (room.name,))):
            free = max(0, freed.get(number, (left, False))[0])
            used_by = [{**entry, "enough": free + entry["amount"] >= asked} for entry in holders(uuid, room.name)]
            about = {"group": group.suffix, "provider": uuid, "name": name, "resource_class": room.name}
            yield {**about, "free": free, "used_by": used_by}

    def largest(self) -> Iterator[Plain]:
        """Yield the largest amount of each class that one provider could give; there may be none."""
        for group in self.request.groups:
            for name, amount in group.resources:
                found = [*self._most_of(name, 0), *self._most_of(name, 1)]
                freed = {number: free for number, (free, _fits) in self.freed(Room(name, amount, split=False)).items()}
                found += [(min(freed[number], most), uuid, called) for number, most, uuid, called in self._named(name, freed)]
                if found:
                    most, uuid, called = max(found, key=lambda row: row[0])
                    free = max(0, most)
                    yield {"group": group.suffix, "resource_class": name, "asked": amount, "free": free, "provider": uuid, "name": called}

    def _most_of(self, name: str, shares: int) -> Sequence[tuple[int, str, str]]:
        text = (
            "SELECT d.most, p.uuid, p.name FROM inventories d JOIN resource_providers p ON p.id = d.provider_id "
            "WHERE d.resource_class = ? AND d.sharing = ? ORDER BY d.resource_class DESC, d.sharing DESC, d.most DESC LIMIT 1"
        )
        return rows(self.connection, Sql(text, (name, shares)))

    def _named(self, name: str, numbers: Mapping[int, int]) -> Sequence[tuple[int, int, str, str]]:
        text = (
            "SELECT p.id, d.max_unit, p.uuid, p.name FROM inventories d JOIN resource_providers p ON p.id = d.provider_id "
            f"WHERE d.resource_class = ? AND p.id IN ({numbers_in(numbers)})"
        )
        return rows(self.connection, Sql(text, (name,)))


def explain_from_indexes(
    asker: Asker, request: Request, have: int, *, truncated: bool, holders: Holders = lambda _provider, _name: ()
) -> Plain:
    """Return what candidates.why.explain returns, `relax` and `combination` empty.

    `truncated` says that the search which found `have` candidates did not come to its end.
    """
    books = _Books(asker, asker.finder(request), request)
    groups = {group.suffix: list(_counted(books, group)) for group in request.groups}
    size = int(rows(asker.connection, Sql(f"SELECT COUNT(*) FROM (SELECT 1 FROM resource_providers LIMIT {COUNTED}) counted"))[0][0])

    def impossible(smaller: Request) -> bool:
        if smaller is request and not truncated:
            return True
        answer = asker.find(replace(smaller, limit=1), SearchOptions(order="none", budget=TRIAL_BUDGET))
        return not answer.candidates and not answer.truncated

    return describe(
        Counted(size, groups, list(books.largest())),
        have,
        excluding=lambda: find_exclusion(request, impossible),
        ending="The ledger is too large to try out what would help.",
        busy=lambda first: list(books.busy(first, holders)),
    )


def _counted(books: _Books, group: Group) -> Iterator[Plain]:
    columns = [books.steps(group, amounts, split=split) for amounts, split in column_amounts(group, books.request.can_split)]
    together = required_apart(group, books.request.can_split)
    for steps in [*columns, *([books.step(required_trait(choice))] for choice in together)]:
        left: list[int] = []
        for number in range(len(steps), 0, -1):
            # Where all steps leave too many to be counted, so do the first of them.
            left.insert(0, COUNTED if left and left[0] >= COUNTED else books.count(steps[:number]))
        yield {"constraints": [{"kind": step.kind, "says": step.says, "left": count} for step, count in zip(steps, left)]}


def _criterion(steps: Sequence[_Step]) -> Criterion:
    """Return what all steps say. Of those about one inventory the last one says what those before it say."""
    last = {step.stock: step.atom for step in steps if step.stock}
    atoms = (step.atom for step in steps if step.atom is not None and step.atom is last.get(step.stock, step.atom))
    return Criterion(tuple(atoms), tuple(step.condition for step in steps if step.condition is not None))
