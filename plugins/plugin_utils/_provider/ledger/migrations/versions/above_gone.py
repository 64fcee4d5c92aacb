# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The highest generation of providers that are gone, above which new providers begin."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.plugin_utils._common.libraries import alembic_op, sa

revision = "above_gone"
down_revision = "owned"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; MariaDB commits each statement by itself, so an interrupted run may have done it already."""
    if "gone_generation" not in {column["name"] for column in sa.inspect(alembic_op.get_bind()).get_columns("topology")}:
        alembic_op.add_column("topology", sa.Column("gone_generation", sa.BigInteger, nullable=False, server_default="0"))
