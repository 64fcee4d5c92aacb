# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the inventories of guarded providers; one that is in use does not go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from ...common.errors import NoSolution
from ...common.libraries import sa
from ..world.model import Inventory
from ..world.parse import INVENTORY_FIELDS
from .read import StoredProvider, read_users, run_batches
from .tables import inventories

_STOCK = (inventories.c.provider_id == sa.bindparam("provider"), inventories.c.resource_class == sa.bindparam("class"))
_ALTER_INVENTORY = sa.update(inventories).where(*_STOCK).values({name: sa.bindparam(f"new_{name}") for name in INVENTORY_FIELDS})
_DROP_INVENTORY = sa.delete(inventories).where(*_STOCK)


class StillInUse(NoSolution):
    """Something cannot be removed because it is used; `conflict` says by whom."""


def write_inventories(connection: sa.Connection, wanted: Sequence[tuple[StoredProvider, Mapping[str, Inventory]]]) -> None:
    """Make the inventories of guarded providers those that are wanted. Raises StillInUse when one that goes is in use."""
    gone = [(provider, name) for provider, inventory in wanted for name in sorted(provider.inventories.keys() - inventory.keys())]
    _refuse_to_drop(connection, gone)
    run_batches(connection, _DROP_INVENTORY, ({"provider": provider.id, "class": name} for provider, name in gone))
    new, altered = [], []
    for provider, declared in wanted:
        for name in sorted(declared):
            fields = asdict(declared[name])
            if name not in provider.inventories:
                new.append({"provider_id": provider.id, "resource_class": name, "used": 0, **fields})
            elif provider.inventories[name].inventory != declared[name]:
                altered.append({"provider": provider.id, "class": name, **{f"new_{key}": value for key, value in fields.items()}})
    run_batches(connection, sa.insert(inventories), new)
    run_batches(connection, _ALTER_INVENTORY, altered)


def used_by(used: Iterable[tuple[StoredProvider, str, list[str]]]) -> dict[str, dict[str, list[str]]]:
    """Return the consumers by provider's UUID and class."""
    found: dict[str, dict[str, list[str]]] = {}
    for provider, name, consumers in used:
        found.setdefault(provider.uuid, {})[name] = consumers
    return found


def _refuse_to_drop(connection: sa.Connection, gone: Sequence[tuple[StoredProvider, str]]) -> None:
    users = read_users(connection, {provider.id for provider, _name in gone})
    used = [(provider, name, users[provider.id, name]) for provider, name in gone if (provider.id, name) in users]
    if used:
        lines = [f"{name} of {provider.name} is used by {len(consumers)} consumers" for provider, name, consumers in used]
        raise StillInUse(f"the inventory cannot go: {'; '.join(lines)}", {"used_by": used_by(used)})
