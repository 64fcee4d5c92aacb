# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Place entries one after the other, each where it would go if the ones before had claimed what they got."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..._common.libraries import sa
from ..candidates.index import Index
from ..candidates.preferred import tiers
from ..candidates.write import Candidate
from ..feasible.parts import Asker
from ..ledger.neighbours import Roots
from ..ledger.read import read_numbers
from ..request.model import Request
from ..world.model import LARGEST_CAPACITY
from .model import Entry, Placement, placement_of
from .supply import Supply, Taken

APART = ("root", "provider")


@dataclass
class Fleet:
    """The ledger in one read transaction, and what the entries placed so far take.

    `roots` are those of consumers in the ledger that entries name. `apart`: no two entries on one root, or on one provider.
    """

    connection: sa.Connection
    entries: Sequence[Entry]
    roots: Roots
    apart: str | None = None
    taken: Taken = field(default_factory=Taken)
    is_truncated: bool = False
    _supplies: dict[tuple[Request, str, str, int], Supply] = field(default_factory=dict)
    _placed: dict[str, Placement] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)
    _open: set[str] = field(default_factory=set)
    _naming: list[Placement] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._open = {entry.consumer for entry in self.entries}

    def keep(self, placement: Placement) -> None:
        """Leave an entry where it is."""
        self._open.discard(placement.entry.consumer)
        self._placed[placement.entry.consumer] = placement
        if placement.near or placement.away:
            self._naming.append(placement)
        if self.apart == "provider":
            self.taken.close(placement.providers)

    def place(self, entry: Entry) -> Placement | None:
        """Return where an entry goes, and take that; None if it fits nowhere."""
        self._open.discard(entry.consumer)
        for number, alternative in enumerate(entry.alternatives):
            # The only roots that an entry may be on: those of consumers that it or that name it in `with`; None for
            # any.
            sets = []
            for uuid in entry.near[number] - {entry.consumer}:
                if uuid in self._placed:
                    sets.append(frozenset(self._placed[uuid].roots))
                elif uuid not in self._open:
                    sets.append(self.roots.get(uuid, frozenset()))
            sets += [frozenset(other.roots) for other in self._naming if entry.consumer in other.near]
            only, never = (frozenset.intersection(*sets) if sets else None), self._other_roots(entry, number)
            for tier in tiers(replace(alternative, near=(), away=(), roots=only, other_roots=frozenset())):
                found = self._find(entry, tier, never)
                if found is not None:
                    placement = placement_of(entry, found[0], number, found[1])
                    self.keep(placement)
                    self.taken.add(placement)
                    return placement
        return None

    def count(self, entry: Entry, most: int) -> int:
        """Return how many trees have what an entry asks for in any of its alternatives, nothing taken yet, and no further than `most`."""
        return min(most, sum(self._supply(entry, replace(one, near=(), away=())).count(most) for one in entry.alternatives))

    def _find(self, entry: Entry, tier: Request, never: frozenset[str]) -> tuple[Candidate, tuple[Index, int]] | None:
        if entry.holding is not None:
            # What other entries took; of what a consumer has where nothing more is given, all there can be.
            closed = [key for key in {*entry.holding.amounts, *self.taken.amounts} if key[0] in self.taken.closed]
            asker = Asker(self.connection, entry.holding, taken={**self.taken.amounts, **dict.fromkeys(closed, LARGEST_CAPACITY)})
            answer = asker.find(replace(tier, limit=1, other_roots=never), entry.options)
            self.is_truncated = self.is_truncated or answer.truncated
            return (answer.candidates[0], answer.anchors[0]) if answer.candidates else None
        supply = self._supply(entry, tier)
        unknown = never - self._numbers.keys()
        if unknown:
            self._numbers.update((uuid, number) for uuid, (number, _uuid) in read_numbers(self.connection, unknown).items())
        found = supply.take(frozenset(self._numbers[uuid] for uuid in never if uuid in self._numbers))
        self.is_truncated = self.is_truncated or supply.is_truncated
        return found

    def _supply(self, entry: Entry, tier: Request) -> Supply:
        if tier.roots is not None:
            return Supply(self.connection, tier, entry.options, self.taken, len(self.entries))
        key = tier, entry.options.order, entry.options.distinct, entry.options.budget
        if key not in self._supplies:
            self._supplies[key] = Supply(self.connection, tier, entry.options, self.taken, len(self.entries))
        return self._supplies[key]

    def _other_roots(self, entry: Entry, alternative: int) -> frozenset[str]:
        """Return the roots that an entry must not be on."""
        never: set[str] = set()
        if self.apart == "root":
            never.update(*(placed.roots for placed in self._placed.values()))
        for uuid in entry.away[alternative] - {entry.consumer}:
            if uuid in self._placed:
                never.update(self._placed[uuid].roots)
            elif uuid not in self._open:
                never |= self.roots.get(uuid, frozenset())
        never.update(*(other.roots for other in self._naming if entry.consumer in other.away))
        return frozenset(never)
