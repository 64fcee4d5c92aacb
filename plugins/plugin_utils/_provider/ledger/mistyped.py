# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values that are not of their column's type: SQLite stores text in a column of whole numbers if a hand writes it there.

To look for them takes about a quarter of the time of reading the whole ledger. So a task looks when something went wrong, or before
tasks that read and pass on the whole ledger.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator

from ....module_utils._data.errors import Unavailable
from ....module_utils._data.kinds import shown
from ....module_utils._data.words import listed
from ..._common.libraries import sa
from .statements import select_rows
from .tables import metadata
from .url import describe

_MOST_TOLD = 3


class _Type(t.NamedTuple):
    """How SQLite stores the values of a column, by its names for that, and what they are in words."""

    stored: tuple[str, ...]
    wanted: str


_TYPES: tuple[tuple[type[t.Any], _Type], ...] = (
    (sa.Integer, _Type(("integer",), "a whole number")),
    (sa.Double, _Type(("real", "integer"), "a number")),
    (sa.String, _Type(("text",), "text")),
)


def refuse_mistyped(connection: sa.Connection) -> None:
    """Raise Unavailable for values of a type that is not their column's; servers store none."""
    if connection.dialect.name != "sqlite":
        return
    found = [says for table in metadata.sorted_tables for says in _mistyped(connection, table)]
    if found:
        more = " (there are more)" if len(found) > _MOST_TOLD else ""
        raise Unavailable(f"the database {describe(connection.engine.url)} was edited by hand: {'; '.join(found[:_MOST_TOLD])}{more}")


def _mistyped(connection: sa.Connection, table: sa.Table) -> Iterator[str]:
    """Yield a sentence for each wrong value of a table; of those that have very many not for all."""
    quote = connection.dialect.identifier_preparer.quote
    columns = [column for column in table.columns if column.computed is None]
    stored = ", ".join(f"typeof({quote(column.name)})" for column in columns)
    values = ", ".join(quote(column.name) for column in columns)
    wrong = " OR ".join(f"typeof({quote(column.name)}) NOT IN ({_allowed(column)})" for column in columns)
    for row in select_rows(connection, f"SELECT {stored}, {values} FROM {quote(table.name)} WHERE {wrong} LIMIT {_MOST_TOLD + 1}"):
        by_name = dict(zip((column.name for column in columns), row[len(columns) :]))
        for column, storage in zip(columns, row):
            if storage not in _stored_as(column):
                key = listed([f"{part.name} = {shown(by_name[part.name])}" for part in table.primary_key])
                value = "binary data" if storage == "blob" else shown(by_name[column.name])
                yield f"in table {table.name}, in the row where {key}, column {column.name} is {value}; must be {_type_of(column).wanted}"


def _type_of(column: sa.Column[t.Any]) -> _Type:
    return next(found for kind, found in _TYPES if isinstance(column.type, kind))


def _stored_as(column: sa.Column[t.Any]) -> tuple[str, ...]:
    return (*_type_of(column).stored, *(("null",) if column.nullable else ()))


def _allowed(column: sa.Column[t.Any]) -> str:
    return ", ".join(f"'{storage}'" for storage in _stored_as(column))
