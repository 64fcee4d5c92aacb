# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The model of all resource providers at one moment; parse.py reads it from plain data.

Spec "Resource Providers - Base Models" (seed 002) names the inventory's fields and their meaning; the bounds of the values
are those of OpenStack Placement. Amounts are whole numbers in the unit that the resource class names (MEMORY_MB: MiB, DISK_GB: GiB).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .names import KnownNames, known_names
from .pieces import allows_piece
from .times import Drain, describe_drain

LARGEST_AMOUNT = 2**31 - 1
LARGEST_RATIO = 3.40282e38
LARGEST_CAPACITY = 2**62
"""What a larger capacity amounts to: more than anybody can ask for, and no more than arrays and databases count to."""

Amounts = Mapping[str, int]
"""Amount by resource class."""
Allocations = Mapping[str, Amounts]
"""What one consumer has: amounts by provider UUID."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """How much of one resource class a provider has, and in which pieces it may be taken."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = LARGEST_AMOUNT
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> int:
        """How much may be in use at once: what is not reserved, overcommitted by the ratio, rounded down."""
        amount = (self.total - self.reserved) * self.allocation_ratio
        # A ratio that somebody has written into the database by hand can be too large to count with.
        return int(max(-LARGEST_CAPACITY, min(amount, LARGEST_CAPACITY)))

    def allows_piece(self, amount: int) -> bool:
        """Whether one consumer may have exactly `amount`; nothing where a hand has written a step of 0 into the database."""
        return self.step_size > 0 and allows_piece(amount, self.min_unit, self.max_unit, self.step_size)


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider of a tree; `parent` is a UUID, None at the root; `drained` is set while the provider itself is."""

    uuid: str
    name: str
    parent: str | None = None
    inventories: Mapping[str, Inventory] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    generation: int = 0
    drained: Drain | None = None


@dataclass(frozen=True, slots=True)
class World:
    """All providers and what is allotted of them.

    `allocations` is {consumer UUID: {provider UUID: {class: amount}}}; custom names are those that exist although nothing uses them.
    `consumer_names` and `aggregate_names` are the names, by UUID, of those that have one.
    """

    providers: tuple[Provider, ...]
    allocations: Mapping[str, Allocations] = field(default_factory=dict)
    custom_traits: frozenset[str] = frozenset()
    custom_classes: frozenset[str] = frozenset()
    consumer_names: Mapping[str, str] = field(default_factory=dict)
    aggregate_names: Mapping[str, str] = field(default_factory=dict)

    def known_names(self) -> KnownNames:
        """Return every resource class and trait that exists in this world."""
        classes, traits = set(self.custom_classes), set(self.custom_traits)
        for provider in self.providers:
            classes.update(provider.inventories)
            traits.update(provider.traits)
        return known_names(classes, traits, self.aggregate_names.values())

    def roots(self) -> dict[str, str]:
        """Return the UUID of the root of each provider's tree."""
        parents = {provider.uuid: provider.parent for provider in self.providers}
        roots: dict[str, str] = {}
        for start in parents:
            path = [start]
            while path[-1] not in roots and (above := parents[path[-1]]) is not None:
                path.append(above)
            roots.update(dict.fromkeys(path, roots.get(path[-1], path[-1])))
        return roots

    def drains(self) -> dict[str, str]:
        """Return in words which provider is drained so that nothing is given of one, by the UUID of the latter."""
        own = {provider.uuid: describe_drain(provider.name, provider.drained) for provider in self.providers if provider.drained}
        if not own:
            return {}
        parents = {provider.uuid: provider.parent for provider in self.providers}
        found: dict[str, str] = {}
        for uuid in parents:
            here: str | None = uuid
            while here is not None and here not in own:
                here = parents[here]
            if here is not None:
                found[uuid] = own[here]
        return found

    def usages(self) -> dict[tuple[str, str], int]:
        """Return the sum in use by (provider UUID, class)."""
        used: dict[tuple[str, str], int] = {}
        for allocations in self.allocations.values():
            for provider, amounts in allocations.items():
                for resource_class, amount in amounts.items():
                    used[provider, resource_class] = used.get((provider, resource_class), 0) + amount
        return used


def inventory_warnings(inventories: Mapping[str, Inventory], place: str) -> list[str]:
    """Return a sentence for each inventory that no request can ever be given anything of."""
    return [
        f"{place}.{name}: nothing can ever be taken from it, because {reason}"
        for name, inventory in inventories.items()
        if (reason := _why_never_satisfied(inventory))
    ]


def _why_never_satisfied(inventory: Inventory) -> str:
    if inventory.capacity == 0:
        free = f"total {inventory.total} - reserved {inventory.reserved}"
        return f"its capacity, ({free}) x allocation_ratio {inventory.allocation_ratio:g}, is 0"
    if inventory.min_unit > inventory.max_unit:
        return f"min_unit {inventory.min_unit} is more than max_unit {inventory.max_unit}"
    if inventory.min_unit > inventory.capacity:
        return f"min_unit {inventory.min_unit} is more than its capacity {inventory.capacity}"
    return ""
