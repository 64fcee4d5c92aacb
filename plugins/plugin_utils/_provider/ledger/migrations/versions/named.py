# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of consumers and aggregates, and what consumers are.

MariaDB commits each statement by itself, so every step may find that an interrupted run has done it already.
"""

from __future__ import annotations

import typing as t

from ansible_collections.bareon.allocator.plugins.plugin_utils._common.libraries import alembic_op, sa

revision = "named"
down_revision = "found_by"
branch_labels = None
depends_on = None

_OPTIONS: dict[str, t.Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin", "if_not_exists": True}
_COLUMNS = {"type": sa.String(255), "name": sa.String(200)}


def upgrade() -> None:
    """Add the columns and the table."""
    present = {column["name"] for column in sa.inspect(alembic_op.get_bind()).get_columns("consumers")}
    for name in _COLUMNS.keys() - present:
        alembic_op.add_column("consumers", sa.Column(name, _COLUMNS[name]))
    alembic_op.create_table(
        "aggregates",
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(200).with_variant(sa.String(200, collation="C"), "postgresql"), nullable=False),
        sa.PrimaryKeyConstraint("uuid", name="pk_aggregates"),
        sa.UniqueConstraint("name", name="uq_aggregates_name"),
        **_OPTIONS,
    )
