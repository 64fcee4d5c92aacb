# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Statements that a claim is made of, compiled once for each kind of database.

SQLAlchemy takes 60 to 100 microseconds to hand a statement over and its rows back: on SQLite many times what the statement takes, on a
server as long as the driver and the server together. These statements therefore go straight to the driver, their values bound as ever.
"""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter

from ..._common.libraries import sa

Values = Mapping[str, t.Any]
Arrange = Callable[[Values], t.Any]
"""Puts values into the form that a driver takes."""

_INSERTED_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement whose values are bound parameters only; run inside a transaction that has begun.

    Raises DBAPIError.
    """

    clause: sa.Executable
    _compiled: dict[str, tuple[str, Arrange]] = field(default_factory=dict)

    def rows(self, connection: sa.Connection, values: Values) -> Sequence[Sequence[t.Any]]:
        """Return all rows that it selects, or says that it returns."""
        cursor = self._sent(connection, values)
        rows: Sequence[Sequence[t.Any]] = cursor.fetchall()
        cursor.close()
        return rows

    def change(self, connection: sa.Connection, values: Values) -> int:
        """Return how many rows it changes."""
        cursor = self._sent(connection, values)
        count: int = cursor.rowcount
        cursor.close()
        return count

    def add(self, connection: sa.Connection, values: Values) -> int:
        """Insert one row; return the number that the database gave it."""
        cursor = self._sent(connection, values)
        # Where a database can, SQLAlchemy has it return the key.
        number: int = cursor.fetchone()[0] if cursor.description else cursor.lastrowid
        cursor.close()
        return number

    def repeat(self, connection: sa.Connection, many: Sequence[Values]) -> None:
        """Run it with each of several sets of values."""
        if many:
            text, arrange = self._for(connection)
            _call(connection, text, [arrange(values) for values in many], many=True)

    def _sent(self, connection: sa.Connection, values: Values) -> t.Any:
        text, arrange = self._for(connection)
        return _call(connection, text, arrange(values))

    def _for(self, connection: sa.Connection) -> tuple[str, Arrange]:
        name = connection.dialect.name
        found = self._compiled.get(name)
        if found is None:
            found = self._compiled[name] = _compile(self.clause, connection)
        return found


def _compile(clause: sa.Executable, connection: sa.Connection) -> tuple[str, Arrange]:
    compiled = t.cast("t.Any", clause).compile(dialect=connection.dialect)
    constants = {name: value for name, value in compiled.params.items() if value is not None}
    names = compiled.positiontup
    if names is None:
        asked = list(compiled.params)
        return str(compiled), lambda values: {name: values[name] if name in values else constants[name] for name in asked}
    take: Arrange = itemgetter(*names) if len(names) > 1 else lambda values: [values[name] for name in names]
    return str(compiled), (lambda values: take({**constants, **values})) if constants else take


def _call(connection: sa.Connection, text: str, values: t.Any, *, many: bool = False) -> t.Any:
    """Return the cursor of the driver, which has run a statement; its errors become those of SQLAlchemy."""
    cursor: t.Any = connection.connection.cursor()
    try:
        if many:
            cursor.executemany(text, values)
        else:
            cursor.execute(text, values)
    except connection.dialect.loaded_dbapi.Error as error:
        cursor.close()
        raise _as_sqlalchemy(connection, text, values, error) from error
    return cursor


def _as_sqlalchemy(connection: sa.Connection, text: str, values: t.Any, error: Exception) -> BaseException:
    dialect = connection.dialect
    return sa.exc.DBAPIError.instance(text, values, error, dialect.loaded_dbapi.Error, dialect=dialect)


def select_rows(connection: sa.Connection, text: str, values: Sequence[t.Any] = ()) -> Sequence[t.Any]:
    """Return the rows that a text selects, `?` for each value; to have SQLAlchemy build it would take longer than to run it."""
    if connection.dialect.name != "sqlite":
        text = text.replace("%", "%%").replace("?", "%s")
    cursor = _call(connection, text, tuple(values))
    found: Sequence[t.Any] = cursor.fetchall()
    cursor.close()
    return found


def insert_rows(connection: sa.Connection, table: sa.Table, columns: Sequence[str], rows: Iterable[Sequence[t.Any]]) -> None:
    """Insert many rows, each a value for each column, by the quickest way that a database has; none of them is held.

    Raises DBAPIError.
    """
    quote = connection.dialect.identifier_preparer.quote
    into = f"{quote(table.name)} ({', '.join(map(quote, columns))})"
    if connection.dialect.name == "postgresql":
        text = f"COPY {into} FROM STDIN"
        cursor: t.Any = connection.connection.cursor()
        try:
            with cursor.copy(text) as copy:
                for row in rows:
                    copy.write_row(row)
        except connection.dialect.loaded_dbapi.Error as error:
            raise _as_sqlalchemy(connection, text, (), error) from error
        finally:
            cursor.close()
        return
    slot = "?" if connection.dialect.name == "sqlite" else "%s"
    rest = iter(rows)
    while part := list(islice(rest, _INSERTED_AT_ONCE)):
        _call(connection, f"INSERT INTO {into} VALUES ({', '.join([slot] * len(columns))})", part, many=True).close()


def padded(count: int) -> int:
    """Return how many slots a list of `count` values gets: with powers of two, few statements are ever compiled."""
    return 1 << (count - 1).bit_length()


@dataclass(frozen=True)
class Among:
    """Question marks for a list of values in a text, and the values that fill them."""

    slots: str
    values: tuple[t.Any, ...]


def among(values: Sequence[t.Any]) -> Among:
    """Return a list for a text, padded: a driver that sees the same text again has the server plan it once."""
    filled = (*values, *[values[-1]] * (padded(len(values)) - len(values)))
    return Among(", ".join("?" * len(filled)), filled)


def slots(column: sa.Column[t.Any], prefix: str, count: int) -> list[sa.BindParameter[t.Any]]:
    """Return parameters for a list of values that a column is compared with."""
    return [sa.bindparam(f"{prefix}{position}", type_=column.type) for position in range(count)]


def fill(prefix: str, values: Sequence[t.Any]) -> dict[str, t.Any]:
    """Return values by the names of their slots, the last value in those that are left over."""
    filled = [*values, *[values[-1]] * (padded(len(values)) - len(values))]
    return {f"{prefix}{position}": value for position, value in enumerate(filled)}
