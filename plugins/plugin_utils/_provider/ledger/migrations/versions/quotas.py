# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much projects may have; of earlier releases none has a limit.

MariaDB commits each statement by itself, so every step may find that an interrupted run has done it already.
"""

from __future__ import annotations

import typing as t

from ansible_collections.bareon.allocator.plugins.plugin_utils._common.libraries import alembic_op, sa

revision = "quotas"
down_revision = "drained"
branch_labels = None
depends_on = None

_OPTIONS: dict[str, t.Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin", "if_not_exists": True}


def upgrade() -> None:
    """Make the tables."""
    alembic_op.create_table(
        "projects",
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("name", name="pk_projects"),
        **_OPTIONS,
    )
    alembic_op.create_table(
        "quotas",
        sa.Column("project", sa.String(255), nullable=False),
        sa.Column("resource_class", sa.String(255), nullable=False),
        sa.Column("most", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("project", "resource_class", name="pk_quotas"),
        sa.ForeignKeyConstraint(["project"], ["projects.name"], name="fk_quotas_project"),
        **_OPTIONS,
    )
