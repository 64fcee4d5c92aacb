# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger's clock: whole seconds since 1970 by the database, one clock for all controllers."""

from __future__ import annotations

from ..._common.libraries import sa
from .statements import select_rows

_NOW = {
    "sqlite": "CAST(strftime('%s', 'now') AS INTEGER)",
    "postgresql": "CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp())) AS BIGINT)",
    "mysql": "UNIX_TIMESTAMP()",
}


def sql_now(connection: sa.Connection) -> str:
    """Return the SQL of the present second."""
    return _NOW[connection.dialect.name]


def read_now(connection: sa.Connection) -> int:
    """Return the present second by the clock of the database."""
    return int(select_rows(connection, f"SELECT {sql_now(connection)}")[0][0])
