# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Consumers whose lease has ended: they hold nothing, whether anybody has taken their allocations back yet or not.

No daemon does that. Their rows stay, and are counted as used, until a transaction that needs their room releases them, or provider_reap
does. A claim that releases one guards it with the generation that was read, so that of two claims for its room one starts again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from ..._common.libraries import sa
from .read import batches, read_holdings
from .statements import select_rows
from .stored import Holding, StoredInventory

Key = tuple[int, str]
"""A provider's number and a class."""

# SQLite takes the tables of a CROSS JOIN in this order. It would read all allocations, for their index is in the order of the groups.
_AMOUNTS = (
    "SELECT a.provider_id, a.resource_class, SUM(a.used) FROM consumers c CROSS JOIN allocations a "
    "WHERE a.consumer_id = c.id AND c.expires_at <= {now} GROUP BY a.provider_id, a.resource_class"
)
_HOLDERS = (
    "SELECT c.uuid, c.expires_at FROM consumers c "
    "WHERE c.expires_at <= {now} AND EXISTS (SELECT 1 FROM allocations a WHERE a.consumer_id = c.id)"
)
_HOLDERS_OF = (
    "SELECT DISTINCT c.uuid, c.expires_at FROM consumers c JOIN allocations a ON a.consumer_id = c.id "
    "WHERE c.expires_at <= {now} AND a.provider_id IN ({numbers})"
)


def expired_amounts(connection: sa.Connection, now: int) -> dict[Key, int]:
    """Return what counts as free although it is in use, by provider's number and class."""
    return {(number, name): int(used) for number, name, used in select_rows(connection, _AMOUNTS.format(now=now))}


def read_expired(connection: sa.Connection, now: int, numbers: Iterable[int] | None = None) -> list[Holding]:
    """Return the expired consumers, or those that have something of some providers, the first expired first."""
    if numbers is None:
        texts = [_HOLDERS.format(now=now)]
    else:
        texts = [_HOLDERS_OF.format(now=now, numbers=", ".join(map(str, part))) for part in batches(numbers)]
    found = {uuid: expires for text in texts for uuid, expires in select_rows(connection, text)}
    holdings = read_holdings(connection, found)
    return [holdings[uuid] for uuid in sorted(found, key=lambda uuid: (found[uuid], uuid)) if holdings[uuid].is_expired]


def choose_expired(holdings: Iterable[Holding], lacking: Mapping[Key, int]) -> list[Holding]:
    """Return the first expired consumers that together have what inventories lack, and none that has no part in these."""
    left = Counter(lacking)
    chosen = []
    for holding in holdings:
        if any(left[key] > 0 for key in holding.amounts):
            chosen.append(holding)
            left.subtract(holding.amounts)
    return chosen


def lacking_room(growth: Mapping[Key, int], stocks: Mapping[Key, StoredInventory]) -> dict[Key, int]:
    """Return how much inventories lack; `growth` is how much more will be counted as used."""
    return {
        key: more - (stocks[key].inventory.capacity - stocks[key].used)
        for key, more in growth.items()
        if key in stocks and stocks[key].used + more > stocks[key].inventory.capacity
    }


def are_used_by(holdings: Iterable[Holding], keys: Collection[Key]) -> list[Holding]:
    """Return the consumers that have something of some inventories."""
    return [holding for holding in holdings if not holding.amounts.keys().isdisjoint(keys)]
