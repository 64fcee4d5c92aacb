# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Providers of which nothing more is given, until when, and why; none was drained in earlier releases.

MariaDB commits each statement by itself, so every step may find that an interrupted run has done it already.
"""

from __future__ import annotations

import typing as t

from ansible_collections.bareon.allocator.plugins.plugin_utils._common.libraries import alembic_op, sa

revision = "drained"
down_revision = "leased"
branch_labels = None
depends_on = None

_COLUMNS: dict[str, t.Any] = {"drain_reason": sa.String(255), "drained_until": sa.BigInteger(), "closed_until": sa.BigInteger()}


def upgrade() -> None:
    """Add the columns."""
    present = {column["name"] for column in sa.inspect(alembic_op.get_bind()).get_columns("resource_providers")}
    for name in _COLUMNS.keys() - present:
        alembic_op.add_column("resource_providers", sa.Column(name, _COLUMNS[name]))
