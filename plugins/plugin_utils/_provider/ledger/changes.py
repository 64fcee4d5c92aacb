# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What providers are asked to be, and what has become of them: what tasks hand to the ledger, and get back from it."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..world.model import Inventory
from ..world.names import provider_uuid
from ..world.times import AskedDrain
from .stored import ConsumerState, StoredProvider

ROOT = ""
"""As a parent: none."""


@dataclass(frozen=True)
class Parts:
    """Single inventories, traits and aggregates (UUIDs); of inventories that go, only the classes count."""

    inventories: Mapping[str, Inventory | None] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ProviderChange:
    """What a provider shall be; None leaves a part as it is, and is nothing where the provider is new.

    `add` and `remove` change single parts of a provider. At least one of `uuid` and `name` is given; `parent` is a UUID, a name or
    ROOT. `generation` is the one the caller saw. `aggregates` are UUIDs, `aggregate_names` the names of those that have one. `replaces` is
    the UUID or the name of a provider whose consumers it takes over, and which then goes. `place` is where the caller wrote it.
    """

    place: str
    uuid: str | None = None
    name: str | None = None
    parent: str | None = None
    inventories: Mapping[str, Inventory] | None = None
    traits: frozenset[str] | None = None
    aggregates: frozenset[str] | None = None
    generation: int | None = None
    add: Parts | None = None
    remove: Parts | None = None
    aggregate_names: Mapping[str, str] = field(default_factory=dict)
    drained: AskedDrain | None = None
    replaces: str | None = None

    @property
    def reference(self) -> str:
        """What finds the provider in the ledger."""
        return t.cast("str", self.uuid or self.name)

    def place_of(self, part: str) -> str:
        """Return where the caller wrote a part of the change."""
        return f"{self.place}.{part}" if self.place else part

    def from_now_on(self, stored: StoredProvider | None) -> ProviderChange:
        """Return the change with whole sets instead of single parts, for a provider as it is in the ledger now; None for a new one."""
        if self.add is None and self.remove is None:
            return self
        add, remove = self.add or Parts(), self.remove or Parts()
        present = {name: stock.inventory for name, stock in stored.inventories.items()} if stored else {}
        wanted = {**present, **{name: inventory for name, inventory in add.inventories.items() if inventory is not None}}
        inventories = {name: inventory for name, inventory in wanted.items() if name not in remove.inventories}
        traits = ((stored.traits if stored else frozenset()) | add.traits) - remove.traits
        aggregates = ((stored.aggregates if stored else frozenset()) | add.aggregates) - remove.aggregates
        return replace(
            self,
            inventories=inventories if add.inventories or remove.inventories else self.inventories,
            traits=traits if add.traits or remove.traits else self.traits,
            aggregates=aggregates if add.aggregates or remove.aggregates else self.aggregates,
            add=None,
            remove=None,
        )

    def uuid_among(self, stored: Mapping[str, StoredProvider]) -> str:
        """Return the provider's UUID: its own, the one it has in the ledger, or that of its name."""
        known = stored.get(self.reference)
        return known.uuid if known else self.uuid or provider_uuid(t.cast("str", self.name))


@dataclass(frozen=True)
class Moved:
    """Consumers of replaced providers, by UUID, before and after; `names` are those of their providers, by UUID, at each of these times."""

    before: Mapping[str, ConsumerState] = field(default_factory=dict)
    after: Mapping[str, ConsumerState] = field(default_factory=dict)
    names_before: Mapping[str, str] = field(default_factory=dict)
    names_after: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ProvidersChanged:
    """Providers before and after by UUID, those that are not there left out, and the consumers that moved."""

    before: Mapping[str, StoredProvider]
    after: Mapping[str, StoredProvider]
    warnings: Sequence[str] = ()
    moved: Moved = field(default_factory=Moved)

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return self.before != self.after
