# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the rows of the ledger are as data: providers with their inventories, consumers with all they hold."""

from __future__ import annotations

import typing as t
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..world.model import Allocations, Inventory
from ..world.times import FOREVER, Drain
from .tables import inventories

INVENTORY_COLUMNS = (
    inventories.c.total,
    inventories.c.reserved,
    inventories.c.min_unit,
    inventories.c.max_unit,
    inventories.c.step_size,
    inventories.c.allocation_ratio,
)


@dataclass(frozen=True)
class Consumer:
    """A consumer: `generation` counts changes of its allocations, `project` and `user` own it, `type` is its kind.

    `claimed_at` is since when it has something, `expires_at` until when, by the database's clock; None where that is not known or has no
    end.
    """

    uuid: str
    generation: int
    project: str | None = None
    user: str | None = None
    type: str | None = None
    name: str | None = None
    claimed_at: int | None = None
    expires_at: int | None = None

    @property
    def label(self) -> str:
        """What people call it."""
        return self.name or self.uuid


@dataclass(frozen=True)
class ConsumerState:
    """A consumer and what it has."""

    consumer: Consumer
    amounts: Allocations


@dataclass(frozen=True)
class StoredInventory:
    """An inventory and how much is in use."""

    inventory: Inventory
    used: int


@dataclass(frozen=True)
class StoredProvider:
    """One provider's row and all that belongs to it; `id` is the ledger's own number, `parent` a UUID, and that one's name."""

    id: int
    uuid: str
    name: str
    generation: int
    parent: str | None
    inventories: Mapping[str, StoredInventory]
    traits: frozenset[str]
    aggregates: frozenset[str]
    parent_name: str | None = None
    drained: Drain | None = None


@dataclass(frozen=True)
class Holding:
    """What one consumer has: amounts by (provider's number, class), and those providers' UUIDs and names by number.

    `is_released` is true of a consumer that has given everything back, whose row alone is left. One that `is_expired` holds nothing any
    more, although its allocations are still counted until somebody needs their room.
    """

    id: int
    consumer: Consumer
    amounts: Mapping[tuple[int, str], int]
    uuids: Mapping[int, str]
    names: Mapping[int, str]
    is_released: bool = False
    is_expired: bool = False

    @property
    def is_live(self) -> bool:
        """Whether the consumer holds anything now."""
        return not (self.is_released or self.is_expired)

    @property
    def by_provider(self) -> Allocations:
        """The amounts by provider's UUID and class."""
        return amounts_by_provider(self.amounts, self.uuids)


@dataclass(frozen=True)
class Namesake:
    """A consumer that has a name; `is_live` is false where it has given everything back, or its lease has ended."""

    consumer: Consumer
    is_live: bool


@dataclass(frozen=True)
class Guarded:
    """What does not change until the transaction ends: providers' generations and names by number, inventories by (number, class).

    `closed` says until when nothing is given of the providers that are drained, or have been.
    """

    generations: Mapping[int, int]
    names: Mapping[int, str]
    stocks: Mapping[tuple[int, str], StoredInventory]
    closed: Mapping[int, int] = field(default_factory=dict)


def amounts_by_provider(amounts: Mapping[tuple[int, str], int], uuids: Mapping[int, str]) -> dict[str, dict[str, int]]:
    """Return amounts by provider's UUID and class of those by its number and class."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for (number, name), amount in amounts.items():
        found[uuids[number]][name] = amount
    return dict(found)


def read_drain(reason: str | None, until: int | None, now: int) -> Drain | None:
    """Return the drain that columns say, None where there is none or it is over `now`."""
    return None if until is None or until <= now else Drain(reason or "", None if until == FOREVER else until)


def sets_of(rows: Iterable[t.Any]) -> dict[int, frozenset[str]]:
    members: dict[int, list[str]] = defaultdict(list)
    for number, member in rows:
        members[number].append(member)
    return {number: frozenset(names) for number, names in members.items()}
