# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the inventories of guarded providers; one that is in use does not go."""

from __future__ import annotations

import functools
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from ....module_utils._data.errors import NoSolution
from ....module_utils._data.words import listed
from ..._common.libraries import sa
from ..world.model import Inventory
from ..world.names import SHARING_TRAIT
from ..world.parse import INVENTORY_FIELDS
from .read import read_users, run_batches
from .stored import StoredProvider
from .tables import inventories, provider_traits, providers


def found_by(provider: sa.ColumnElement[int]) -> dict[str, t.Any]:
    """Return further columns of a provider's new row: the root of its tree, and whether it shares."""
    shares = sa.select(sa.func.count()).where(provider_traits.c.provider_id == provider, provider_traits.c.trait == SHARING_TRAIT)
    root = sa.select(providers.c.root_id).where(providers.c.id == provider)
    return {"root_id": root.scalar_subquery(), "sharing": shares.scalar_subquery()}


def stored_inventory(inventory: Inventory) -> dict[str, t.Any]:
    """Return the columns of an inventory, in the order of STORED_FIELDS."""
    return {name: getattr(inventory, name) for name in STORED_FIELDS}


STORED_FIELDS = (*INVENTORY_FIELDS, "capacity")
_STOCK = (inventories.c.provider_id == sa.bindparam("provider"), inventories.c.resource_class == sa.bindparam("class"))
_ALTER_INVENTORY = sa.update(inventories).where(*_STOCK).values({name: sa.bindparam(f"new_{name}") for name in STORED_FIELDS})
_DROP_INVENTORY = sa.delete(inventories).where(*_STOCK)


@functools.cache
def _make_inventory() -> sa.Insert:
    return sa.insert(inventories).values(
        provider_id=sa.bindparam("provider"),
        resource_class=sa.bindparam("class"),
        used=0,
        **{name: sa.bindparam(f"new_{name}") for name in STORED_FIELDS},
        **found_by(sa.bindparam("provider")),
    )


class StillInUse(NoSolution):
    """Something cannot be removed because it is used; `conflict` has the consumers."""


def write_inventories(connection: sa.Connection, wanted: Sequence[tuple[StoredProvider, Mapping[str, Inventory]]]) -> None:
    """Make the inventories of guarded providers those that are wanted. Raises StillInUse when one that goes is in use."""
    gone = [(provider, name) for provider, inventory in wanted for name in sorted(provider.inventories.keys() - inventory.keys())]
    _refuse_to_drop(connection, gone)
    run_batches(connection, _DROP_INVENTORY, ({"provider": provider.id, "class": name} for provider, name in gone))
    new, altered = [], []
    for provider, declared in wanted:
        for name in sorted(declared):
            fields = {f"new_{key}": value for key, value in stored_inventory(declared[name]).items()}
            if name not in provider.inventories:
                new.append({"provider": provider.id, "class": name, **fields})
            elif provider.inventories[name].inventory != declared[name]:
                altered.append({"provider": provider.id, "class": name, **fields})
    run_batches(connection, _make_inventory(), new)
    run_batches(connection, _ALTER_INVENTORY, altered)


Use = tuple[StoredProvider, str, list[tuple[str, str]]]
"""A provider, a class, and the consumers that use it: UUIDs and labels."""

MOST_SHOWN = 3


def used_by(used: Iterable[Use]) -> dict[str, dict[str, list[str]]]:
    """Return what the consumers are called by provider's name and class."""
    found: dict[str, dict[str, list[str]]] = {}
    for provider, name, consumers in used:
        found.setdefault(provider.name, {})[name] = [label for _uuid, label in consumers]
    return found


def says_used(use: Use) -> str:
    """Return the consumers of a class of a provider as a sentence without its end."""
    provider, name, consumers = use
    return f"{name} of {provider.name} is used by {listed([label for _uuid, label in consumers], MOST_SHOWN)}"


def _refuse_to_drop(connection: sa.Connection, gone: Sequence[tuple[StoredProvider, str]]) -> None:
    users = read_users(connection, {provider.id for provider, _name in gone})
    used = [(provider, name, users[provider.id, name]) for provider, name in gone if (provider.id, name) in users]
    if used:
        raise StillInUse(f"the inventory cannot be removed: {'; '.join(map(says_used, used))}", {"used_by": used_by(used)})
