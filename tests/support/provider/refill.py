# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One ledger for many worlds: making tables anew would take longer than all the rest of a test."""

from __future__ import annotations

import sqlalchemy as sa
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.import_world import store_world
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.tables import (
    allocations,
    consumers,
    inventories,
    provider_aggregates,
    provider_traits,
    providers,
    resource_classes,
    traits,
)


def refill(connection, world):
    """Make the ledger hold this world and nothing else."""
    connection.execute(sa.update(providers).values(parent_id=None))
    for table in (allocations, consumers, inventories, provider_traits, provider_aggregates, providers, traits, resource_classes):
        connection.execute(sa.delete(table))
    store_world(connection, world)
