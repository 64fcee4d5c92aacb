# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Since when consumers have something, and until when; of consumers of earlier releases the one is not known, and the other has no end.

MariaDB commits each statement by itself, so every step may find that an interrupted run has done it already.
"""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.plugin_utils._common.libraries import alembic_op, sa

revision = "leased"
down_revision = "above_gone"
branch_labels = None
depends_on = None

_INDEX = "ix_consumers_expires_at"


def upgrade() -> None:
    """Add the columns and the index."""
    connection = alembic_op.get_bind()
    present = {column["name"] for column in sa.inspect(connection).get_columns("consumers")}
    for name in ("claimed_at", "expires_at"):
        if name not in present:
            alembic_op.add_column("consumers", sa.Column(name, sa.BigInteger))
    if _INDEX not in {index["name"] for index in sa.inspect(connection).get_indexes("consumers")}:
        alembic_op.create_index(_INDEX, "consumers", ["expires_at"])
