# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Traits and resource classes of one's own: they are there once somebody names them, and go when nobody uses them and they are named so."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ....module_utils._data.words import listed
from ..._common.libraries import sa
from .import_world import ensure_names
from .inventories import MOST_SHOWN, StillInUse
from .read import batches
from .tables import inventories, provider_traits, providers, resource_classes, traits

_MOST_READ = 1000


@dataclass(frozen=True)
class Names:
    """Custom traits and custom resource classes; none at all is false."""

    traits: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self.traits or self.classes)


def put_names(connection: sa.Connection, names: Names) -> Names:
    """Make the names that are not there yet; return these."""
    known = _present(connection, traits, names.traits), _present(connection, resource_classes, names.classes)
    new = Names(names.traits - known[0], names.classes - known[1])
    ensure_names(connection, resource_classes, new.classes)
    ensure_names(connection, traits, new.traits)
    return new


def remove_names(connection: sa.Connection, names: Names) -> Names:
    """Delete names; return those that were there. Raises StillInUse for those that a provider has."""
    users = {
        **_users(connection, provider_traits, "trait", names.traits),
        **_users(connection, inventories, "resource_class", names.classes),
    }
    if users:
        says = "; ".join(f"{name} is used by {listed(sorted(found), MOST_SHOWN)}" for name, found in sorted(users.items()))
        raise StillInUse(f"the names cannot be removed: {says}", {"had_by": {name: sorted(found) for name, found in sorted(users.items())}})
    found = Names(_present(connection, traits, names.traits), _present(connection, resource_classes, names.classes))
    for table, gone in ((traits, found.traits), (resource_classes, found.classes)):
        for part in batches(gone):
            connection.execute(sa.delete(table).where(table.c.name.in_(part)))
    return found


def plain_names(names: Names) -> dict[str, list[str]]:
    """Return the names as options of the task."""
    return {key: sorted(found) for key, found in (("custom_traits", names.traits), ("custom_classes", names.classes)) if found}


def _present(connection: sa.Connection, table: sa.Table, names: frozenset[str]) -> frozenset[str]:
    return frozenset(name for part in batches(names) for name in connection.scalars(sa.select(table.c.name).where(table.c.name.in_(part))))


def _users(connection: sa.Connection, table: sa.Table, column: str, names: frozenset[str]) -> dict[str, set[str]]:
    """Return the names of providers by what they have of the names; not all of them where they are very many."""
    found: dict[str, set[str]] = {}
    columns = sa.select(table.c[column], providers.c.name).join_from(table, providers)
    for part in batches(names):
        rows: t.Any = connection.execute(columns.where(table.c[column].in_(part)).limit(_MOST_READ))
        for name, provider in rows:
            found.setdefault(name, set()).add(provider)
    return found
