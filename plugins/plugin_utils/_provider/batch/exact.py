# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All entries together, where one after the other found no room for some: every way to give each of them one of its candidates.

Entries are tried from the one with the fewest candidates on; those that ask for the same take theirs in one order only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..._common.libraries import sa
from ..candidates.preferred import find_preferred
from ..feasible.parts import Asker
from ..ledger.neighbours import Roots
from .model import Entry, Key, Placement, placement_of

MOST_CANDIDATES = 1_000
"""How many candidates of one request are tried."""
MOST_ENTRIES = 200
"""More entries are not tried together."""
MOST_TRIES = 200_000
"""How many times a candidate is tried, in all aggregates together."""


class GaveUp(Exception):
    """It is not known whether there is a way."""


@dataclass
class Tries:
    """How many times a candidate may still be tried."""

    left: int = MOST_TRIES

    def spend(self) -> None:
        """Take one off. Raises GaveUp when there are none left."""
        if not self.left:
            raise GaveUp
        self.left -= 1


@dataclass
class _Search:
    """`free` is what is left of what any candidate takes; `order` are the places of the entries, as they are tried."""

    options: Sequence[Sequence[Placement]]
    order: Sequence[int]
    roots: Roots
    apart: str | None
    free: dict[Key, int]
    members: frozenset[str]
    tries: Tries
    chosen: dict[int, int] = field(default_factory=dict)
    _on: Counter[str | int] = field(default_factory=Counter)

    @cached_property
    def _names_others(self) -> bool:
        return any(any(some[0].entry.near) or any(some[0].entry.away) for some in self.options)

    def extend(self, depth: int = 0) -> bool:
        """Choose for the rest of the entries; return whether there was a way."""
        if depth == len(self.order):
            return True
        place = self.order[depth]
        for number in range(self._first(depth), len(self.options[place])):
            self.tries.spend()
            placement = self.options[place][number]
            if not self._has_room(placement) or not self._may(placement):
                continue
            self._take(placement, 1)
            self.chosen[place] = number
            if self.extend(depth + 1):
                return True
            del self.chosen[place]
            self._take(placement, -1)
        return False

    def _first(self, depth: int) -> int:
        """Return from where on an entry chooses: those that ask for the same are interchangeable."""
        if depth == 0:
            return 0
        place, before = self.order[depth], self.order[depth - 1]
        entry, other = self.options[place][0].entry, self.options[before][0].entry
        alike = (entry.alternatives, entry.options) == (other.alternatives, other.options)
        return self.chosen[before] if alike and not self._names_others and not entry.holding and not other.holding else 0

    def _has_room(self, placement: Placement) -> bool:
        had = {} if placement.entry.holding is None else placement.entry.holding.amounts
        return all(amount <= self.free[key] + had.get(key, 0) for key, amount in placement.amounts.items())

    def _take(self, placement: Placement, sign: int) -> None:
        had = {} if placement.entry.holding is None else placement.entry.holding.amounts
        for key, amount in placement.amounts.items():
            self.free[key] -= sign * max(0, amount - had.get(key, 0))
        for where in self._places(placement):
            self._on[where] += sign

    def _places(self, placement: Placement) -> Iterable[str | int]:
        """Return what no other entry may be on."""
        if self.apart is None:
            return ()
        return placement.roots if self.apart == "root" else placement.providers

    def _may(self, placement: Placement) -> bool:
        """Return whether a candidate is apart from the others, and its entry with and without those that it names."""
        if any(self._on[where] for where in self._places(placement)):
            return False
        if not self._names_others:
            return True
        consumer, roots = placement.entry.consumer, placement.roots.keys()
        others = {self.options[place][number].entry.consumer: self.options[place][number] for place, number in self.chosen.items()}
        for uuid in placement.near | placement.away:
            if uuid in self.members and uuid not in others:
                continue
            there = others[uuid].roots.keys() if uuid in others else self.roots.get(uuid, frozenset())
            if (uuid in placement.near and not roots <= there) or (uuid in placement.away and roots & there):
                return False
        return not any(
            (consumer in other.near and not roots <= other.roots.keys()) or (consumer in other.away and roots & other.roots.keys())
            for other in others.values()
        )


def place_together(
    connection: sa.Connection, entries: Sequence[Entry], kept: Sequence[Placement], roots: Roots, apart: str | None, tries: Tries
) -> list[Placement] | None:
    """Return where all entries go, in the room that kept entries leave; None if there is no way. Raises GaveUp."""
    if not tries.left or len(entries) + len(kept) > MOST_ENTRIES:
        raise GaveUp
    options = [[placement] for placement in kept]
    known: dict[object, list[Placement]] = {}
    free: dict[Key, int] = {}
    complete = True
    shapes: list[int] = []
    numbers: dict[object, int] = {}
    for entry in entries:
        limited = [replace(one, limit=MOST_CANDIDATES, near=(), away=()) for one in entry.alternatives]
        key = tuple(limited), entry.options, None if entry.holding is None else entry.consumer
        if key not in known:
            ranked = find_preferred(Asker(connection, entry.holding).find, limited, entry.options)
            answer = ranked.answer
            complete = complete and not answer.truncated and len(answer.candidates) < MOST_CANDIDATES
            known[key] = [
                placement_of(entry, candidate, alternative, anchor)
                for candidate, alternative, anchor in zip(answer.candidates, ranked.alternatives, answer.anchors, strict=True)
            ]
            for placement in known[key]:
                free.update(_free(placement))
            # An entry that takes from shared providers alone may be said to be on the root of any tree that shares them.
            complete = complete and not (any(entry.near) and any(not placement.providers for placement in known[key]))
        shapes.append(numbers.setdefault(key, len(numbers)))
        options.append([replace(placement, entry=entry) for placement in known[key]])
    if not all(options):
        return None
    for placement in kept:
        free.update(dict.fromkeys(placement.amounts, 0))
    members = frozenset(each[0].entry.consumer for each in options)
    kinds = [-1] * len(kept) + shapes
    order = sorted(range(len(options)), key=lambda place: (place >= len(kept), len(options[place]), kinds[place], place))
    search = _Search(options, order, roots, apart, free, members, tries)
    if search.extend():
        return [options[place][search.chosen[place]] for place in range(len(kept), len(options))]
    if not complete:
        raise GaveUp
    return None


def _free(placement: Placement) -> Iterator[tuple[Key, int]]:
    """Yield what is free of all that a candidate takes from, what its consumer has not counted."""
    index, _root = placement.anchor
    number_of = {index.providers[index.positions[uuid]].key: index.positions[uuid] for uuid in placement.candidate["allocations"]}
    for number, name in placement.amounts:
        used, capacity = index.classes[name].loads[number_of[number]]
        had = 0 if placement.entry.holding is None else placement.entry.holding.amounts.get((number, name), 0)
        yield (number, name), capacity - used - had
