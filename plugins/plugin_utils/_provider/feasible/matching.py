# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The single providers that satisfy a group by themselves, as OpenStack Placement's GET /resource_providers lists them."""

from __future__ import annotations

from ..._common.libraries import sa
from ..ledger.read import read_numbers
from ..request.model import Group
from .criteria import Sql, condition_on_provider, rows

_PROVIDERS = "SELECT p.provider_id FROM (SELECT id AS provider_id, root_id FROM resource_providers) p"


def read_matching(connection: sa.Connection, group: Group) -> set[int]:
    """Return the numbers of the providers that have room for the group's amounts now, and all else that it asks for."""
    tree = None
    if group.in_tree is not None:
        named = read_numbers(connection, [group.in_tree])
        number = named[group.in_tree][0] if named else 0
        found = rows(connection, Sql(f"SELECT root_id FROM resource_providers WHERE id = {number}"))
        tree = found[0][0] if found else 0
    says = condition_on_provider(group, tree).of("p")
    return {number for (number,) in rows(connection, Sql(f"{_PROVIDERS} WHERE {says.text}", says.values))}
