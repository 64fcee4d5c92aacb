# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Time that passes without waiting: all times that a ledger holds are moved into the past."""

from __future__ import annotations

import sqlalchemy as sa
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.tables import metadata
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.times import FOREVER

TIMES = {
    ("consumers", "claimed_at"),
    ("consumers", "expires_at"),
    ("resource_providers", "drained_until"),
    ("resource_providers", "closed_until"),
    ("allocations", "since"),
    ("history", "began"),
    ("history", "ended"),
    ("states", "held_until"),
}


def pass_time(ledger, seconds):
    """Let so many seconds pass in a ledger."""

    def move(connection):
        # A node of a Galera cluster waits for what others have committed before it reads, and not before it writes.
        connection.execute(sa.select(metadata.tables["topology"].c.id))
        for table, column in TIMES:
            held = metadata.tables[table].c[column]
            connection.execute(sa.update(metadata.tables[table]).where(held < FOREVER).values({column: held - seconds}))

    ledger.write(move)
