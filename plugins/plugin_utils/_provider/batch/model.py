# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is placed: entries, and where they go."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..candidates.find import SearchOptions
from ..candidates.index import Index
from ..candidates.write import Candidate
from ..ledger.stored import Holding
from ..request.model import Request

Key = tuple[int, str]
"""A provider's number and a class."""


@dataclass(frozen=True)
class Entry:
    """One consumer that is to be placed; `number` is its place among all.

    `alternatives` are its requests in order of preference; `near` and `away` are for each of them the UUIDs of the consumers that it is to
    be with, or not with. `holding` is what it has now and gives back.
    """

    number: int
    consumer: str
    alternatives: tuple[Request, ...]
    options: SearchOptions
    near: tuple[frozenset[str], ...]
    away: tuple[frozenset[str], ...]
    holding: Holding | None = None


@dataclass(frozen=True)
class Placement:
    """Where an entry goes: a candidate, the alternative that it satisfies, and where it was found (an index and the position of a root).

    `roots` are the roots of the trees that it takes from, by UUID with their numbers, those of shared providers left out where there are
    others; `providers` are the numbers of the providers that it takes from and that are not shared, `trees` those of the roots of all.
    """

    entry: Entry
    candidate: Candidate
    alternative: int
    anchor: tuple[Index, int]
    roots: Mapping[str, int]
    providers: frozenset[int]
    amounts: Mapping[Key, int] = field(default_factory=dict)
    trees: frozenset[int] = frozenset()

    @property
    def near(self) -> frozenset[str]:
        """The UUIDs of the other consumers that it is to be with."""
        return self.entry.near[self.alternative] - {self.entry.consumer}

    @property
    def away(self) -> frozenset[str]:
        """The UUIDs of the other consumers that it is not to be with."""
        return self.entry.away[self.alternative] - {self.entry.consumer}


def placement_of(
    entry: Entry, candidate: Candidate, alternative: int, anchor: tuple[Index, int], numbers: Mapping[str, int] | None = None
) -> Placement:
    """Return where an entry goes with a candidate that was found in an index.

    `numbers` are the ledger's own of providers by UUID; without them they are the keys of the index.
    """
    index, _root = anchor
    positions = {uuid: index.positions[uuid] for uuid in candidate["allocations"]}
    own = [position for position in positions.values() if position not in index.sharing]
    roots = {int(index.root[position]) for position in own or positions.values()}
    trees = set(index.root[list(positions.values())].tolist())
    used = {*positions.values(), *trees}
    number = {position: _number(index, position) if numbers is None else numbers[index.uuids[position]] for position in used}
    amounts = {
        (number[positions[uuid]], name): amount for uuid, parts in candidate["allocations"].items() for name, amount in parts.items()
    }
    named = {index.uuids[position]: number[position] for position in roots}
    providers = frozenset(number[position] for position in own)
    return Placement(entry, candidate, alternative, anchor, named, providers, amounts, frozenset(number[position] for position in trees))


def _number(index: Index, position: int) -> int:
    return t.cast("int", index.providers[position].key)
