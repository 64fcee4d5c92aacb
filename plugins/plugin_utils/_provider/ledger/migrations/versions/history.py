# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Past allocations, with their begin and end; since when allocations of earlier releases are there is not known.

MariaDB commits each statement by itself, so every step may find that an interrupted run has done it already.
"""

from __future__ import annotations

import typing as t

from ansible_collections.bareon.allocator.plugins.plugin_utils._common.libraries import alembic_op, sa

revision = "history"
down_revision = "quotas"
branch_labels = None
depends_on = None

_OPTIONS: dict[str, t.Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin", "if_not_exists": True}
_INDEX = "ix_history_ended"


def upgrade() -> None:
    """Add the column, the table and its index."""
    connection = alembic_op.get_bind()
    if "since" not in {column["name"] for column in sa.inspect(connection).get_columns("allocations")}:
        alembic_op.add_column("allocations", sa.Column("since", sa.BigInteger))
    alembic_op.create_table(
        "history",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False, autoincrement=True),
        sa.Column("consumer", sa.String(36), nullable=False),
        sa.Column("name", sa.String(200)),
        sa.Column("project", sa.String(255)),
        sa.Column("user", sa.String(255)),
        sa.Column("provider", sa.String(36), nullable=False),
        sa.Column("provider_name", sa.String(200), nullable=False),
        sa.Column("resource_class", sa.String(255), nullable=False),
        sa.Column("used", sa.BigInteger, nullable=False),
        sa.Column("began", sa.BigInteger),
        sa.Column("ended", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_history"),
        **_OPTIONS,
    )
    if _INDEX not in {index["name"] for index in sa.inspect(connection).get_indexes("history")}:
        alembic_op.create_index(_INDEX, "history", ["ended"])
