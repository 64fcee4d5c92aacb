# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make a ledger on a server what another ledger is, row by row, in one transaction that nobody writes beside.

Rows keep their numbers. What is read meanwhile is the state before, as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....module_utils._data.errors import Unavailable
from ..._common.libraries import sa
from .open import Ledger
from .read import run_batches
from .retry import mysql_code
from .statements import insert_rows
from .tables import metadata, providers
from .url import describe

_AT_ONCE = 4096
_POSTGRESQL_LOCKED = "55P03"
_MARIADB_LOCKED = 1205

_PUT_BELOW = (
    sa.update(providers).where(providers.c.id == sa.bindparam("number")).values(parent_id=sa.bindparam("above", type_=sa.BigInteger))
)


def replace_all(source: sa.Connection, target: Ledger) -> None:
    """Make the target what the source is. Raises Unavailable while somebody writes to it."""

    def write(connection: sa.Connection) -> None:
        lock_all(connection, target)
        connection.execute(sa.update(providers).values(parent_id=None))
        for table in reversed(metadata.sorted_tables):
            connection.execute(sa.delete(table))
        for table in metadata.sorted_tables:
            columns = [column for column in table.columns if column.computed is None]
            insert_rows(connection, table, [column.name for column in columns], _rows(source, columns))
        above = source.execute(sa.select(providers.c.id, providers.c.parent_id).where(providers.c.parent_id.is_not(None)))
        run_batches(connection, _PUT_BELOW, ({"number": number, "above": parent} for number, parent in above))
        if connection.dialect.name == "postgresql":
            _go_on_counting(connection)

    target.write(write)


def lock_all(connection: sa.Connection, target: Ledger) -> None:
    """Let nobody else write to a ledger's tables until the connection is closed. Raises Unavailable where somebody does."""
    quote = connection.dialect.identifier_preparer.quote
    names = [quote(table.name) for table in metadata.sorted_tables]
    try:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"LOCK TABLE {', '.join(names)} IN EXCLUSIVE MODE NOWAIT")
        else:
            connection.exec_driver_sql(f"LOCK TABLES {', '.join(f'{name} WRITE' for name in names)} NOWAIT")
    except sa.exc.DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != _POSTGRESQL_LOCKED and mysql_code(error.orig) != _MARIADB_LOCKED:
            raise
        says = "is being written to by another program; end it first. Nothing was changed"
        raise Unavailable(f"the database {describe(target.url)} {says}") from None


def _rows(source: sa.Connection, columns: Sequence[sa.Column[object]]) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a table, some at a time; a provider comes before those below it by having none above it at first."""
    found = source.execute(sa.select(*columns), execution_options={"yield_per": _AT_ONCE})
    above = next((place for place, column in enumerate(columns) if column is providers.c.parent_id), None)
    for row in found:
        yield tuple(row) if above is None else (*row[:above], None, *row[above + 1 :])


def _go_on_counting(connection: sa.Connection) -> None:
    """Have new rows begin above the highest number there is."""
    for table in metadata.sorted_tables:
        for column in table.primary_key.columns:
            sequence = connection.scalar(sa.select(sa.func.pg_get_serial_sequence(table.name, column.name)))
            if sequence is not None:
                connection.execute(sa.select(sa.func.setval(sequence, sa.select(sa.func.max(column)).scalar_subquery())))
