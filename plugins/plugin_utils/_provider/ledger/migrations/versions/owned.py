# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of consumers that are unique in their project, and rows of consumers that outlive what the consumers had.

Consumers of earlier releases keep their UUIDs, which follow from their names alone. MariaDB commits each statement by itself, so every
step may find that an interrupted run has done it already.
"""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.plugin_utils._common.libraries import alembic_op, sa

revision = "owned"
down_revision = "named"
branch_labels = None
depends_on = None

_INDEX = "ix_consumers_by_name"


def upgrade() -> None:
    """Add the columns, then the index."""
    connection = alembic_op.get_bind()
    # SQLite cannot add a column that is stored; an index on one that is not stores it all the same.
    scope = sa.Computed("coalesce(project, '')", persisted=connection.dialect.name != "sqlite")
    present = {column["name"] for column in sa.inspect(connection).get_columns("consumers")}
    if "released" not in present:
        alembic_op.add_column("consumers", sa.Column("released", sa.SmallInteger, nullable=False, server_default="0"))
    if "scope" not in present:
        alembic_op.add_column("consumers", sa.Column("scope", sa.String(255), scope))
    if _INDEX not in {index["name"] for index in sa.inspect(connection).get_indexes("consumers")}:
        alembic_op.create_index(_INDEX, "consumers", ["name", "scope"], unique=True)
