# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The single providers that satisfy a group by themselves, as OpenStack Placement's GET /resource_providers lists them."""

from __future__ import annotations

from collections.abc import Mapping

from ..._common.libraries import sa
from ..candidates.requirements import Sql
from ..ledger.expired import Key, expired_amounts
from ..ledger.read import read_guarded, read_numbers
from ..ledger.stored import StoredInventory
from ..request.model import Group
from .criteria import condition_on_provider, rows

_PROVIDERS = "SELECT p.provider_id FROM (SELECT id AS provider_id, root_id FROM resource_providers) p"


def read_matching(connection: sa.Connection, group: Group, now: int) -> set[int]:
    """Return the numbers of the providers that have room for the group's amounts `now`, and all else that it asks for."""
    tree = None
    if group.in_tree is not None:
        named = read_numbers(connection, [group.in_tree])
        number = named[group.in_tree][0] if named else 0
        roots = rows(connection, Sql(f"SELECT root_id FROM resource_providers WHERE id = {number}"))
        tree = roots[0][0] if roots else 0
    expired = expired_amounts(connection, now)
    kept = frozenset(number for number, _name in expired)
    says = condition_on_provider(group, tree, kept).of("p")
    found = {number for (number,) in rows(connection, Sql(f"{_PROVIDERS} WHERE {says.text}", says.values))}
    stocks = read_guarded(connection, found & kept).stocks
    return {number for number in found if number not in kept or _has_room(group, number, stocks, expired)}


def _has_room(group: Group, number: int, stocks: Mapping[Key, StoredInventory], expired: Mapping[Key, int]) -> bool:
    """Whether a provider has room where what consumers have whose lease has ended counts as free."""
    for name, amount in group.resources:
        stock = stocks.get((number, name))
        used = 0 if stock is None else stock.used - expired.get((number, name), 0)
        if stock is None or used + amount > stock.inventory.capacity or not stock.inventory.allows_piece(amount):
            return False
    return True
