# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much of inventories is used, by the sums that the ledger keeps with them: one statement each, and nothing else is loaded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ..._common.libraries import sa
from ..world.names import canonical_uuid
from .clock import sql_now
from .plain import plain_usage
from .read import batches
from .statements import among, select_rows

Usages = Mapping[str, Mapping[str, int]]
"""{class: {capacity, used, free}}, in the order of the classes' names."""

_EXPIRED = (
    "LEFT JOIN (SELECT a.provider_id, a.resource_class, SUM(a.used) AS used FROM consumers c JOIN allocations a ON a.consumer_id = c.id "
    "WHERE c.expires_at <= {now} GROUP BY a.provider_id, a.resource_class) e "
    "ON e.provider_id = i.provider_id AND e.resource_class = i.resource_class"
)
"""What consumers have whose lease has ended, which counts as free."""
_OF_PROVIDERS = (
    "SELECT p.uuid, p.name, i.resource_class, i.capacity, i.used - COALESCE(e.used, 0) "
    f"FROM resource_providers p LEFT JOIN inventories i ON i.provider_id = p.id {_EXPIRED} "
    "WHERE p.uuid IN ({uuids}) OR p.name IN ({names})"
)
_OF_ALL = (
    "SELECT u.resource_class, SUM(1.0 * u.capacity), SUM(u.used), "
    "SUM(CASE WHEN u.used < u.capacity THEN 1.0 * u.capacity - u.used ELSE 0 END) "
    f"FROM (SELECT i.resource_class, i.capacity, i.used - COALESCE(e.used, 0) AS used FROM inventories i {_EXPIRED}) u "
    "GROUP BY u.resource_class"
)


def read_usages(connection: sa.Connection, references: Iterable[str]) -> dict[str, Usages]:
    """Return the usages of the providers that UUIDs or names mean, by reference; those that mean none are left out."""
    wanted = set(references)
    by_uuid: dict[str, dict[str, dict[str, int]]] = defaultdict(dict)
    uuids: dict[str, str] = {}
    for part in batches(wanted):
        given, named = among([canonical_uuid(reference) for reference in part]), among(part)
        text = _OF_PROVIDERS.format(now=sql_now(connection), uuids=given.slots, names=named.slots)
        for uuid, name, resource_class, capacity, used in select_rows(connection, text, (*given.values, *named.values)):
            uuids[name] = uuid
            # A provider without inventories has one row, of no class.
            by_uuid[uuid].update({} if resource_class is None else {resource_class: plain_usage(capacity, int(used))})
    meant = {reference: uuids.get(reference) or canonical_uuid(reference) for reference in wanted}
    return {reference: dict(sorted(by_uuid[uuid].items())) for reference, uuid in meant.items() if uuid in by_uuid}


def read_total_usages(connection: sa.Connection) -> Usages:
    """Return the usages of all providers together."""
    # Databases give sums of whole numbers as decimal ones, but for SQLite, which fails beyond 2**63 unless it may be less exact.
    return {
        name: {"capacity": int(capacity), "used": int(used), "free": int(free)}
        for name, capacity, used, free in sorted(select_rows(connection, _OF_ALL.format(now=sql_now(connection))))
    }
