# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What runs keep for later ones, and which run has it; earlier releases keep it in files alone.

MariaDB commits each statement by itself, so every step may find that an interrupted run has done it already.
"""

from __future__ import annotations

import typing as t

from ansible_collections.bareon.allocator.plugins.plugin_utils._common.libraries import alembic_op, sa

revision = "kept"
down_revision = "history"
branch_labels = None
depends_on = None

_OPTIONS: dict[str, t.Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin", "if_not_exists": True}


def upgrade() -> None:
    """Make the tables."""
    alembic_op.create_table(
        "states",
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("holder", sa.String(255)),
        sa.Column("held_until", sa.BigInteger),
        sa.PrimaryKeyConstraint("name", name="pk_states"),
        **_OPTIONS,
    )
    alembic_op.create_table(
        "state_texts",
        sa.Column("state", sa.String(255), nullable=False),
        sa.Column("part", sa.String(64), nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("content", sa.Text().with_variant(sa.Text(2**24), "mysql"), nullable=False),
        sa.PrimaryKeyConstraint("state", "part", name="pk_state_texts"),
        sa.ForeignKeyConstraint(["state"], ["states.name"], name="fk_state_texts_state"),
        **_OPTIONS,
    )
