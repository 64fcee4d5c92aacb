# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ledgers that somebody else writes to: rows with any values in any column, for every action and lookup that reads a ledger."""

from __future__ import annotations

import contextlib
import pathlib
import random
import shutil
import sqlite3
import typing as t
from collections.abc import Callable, Mapping, Sequence

HOSTILE: tuple[t.Any, ...] = (
    *(
        "\x1b[2J\x1b]0;x\x07",
        "a\u202eb\u2066",
        "{{ query('ansible.builtin.pipe', 'touch pwned') }}",
        "../../etc/passwd",
        "'; DROP TABLE traits; --",
    ),
    *("x" * 100_000, '{"a":' * 10_000, "\x00", "", " ", "VCPU", "CUSTOM_A", "h", "n", "nan", "1e999"),
    *(-1, 0, 1, 2**31, 2**63 - 1, -(2**63), 0.5, 1e308, float("inf"), None, b"\xff\xfe", b"h"),
)
"""What SQLite keeps in a column of any type."""
Row = list[t.Any]
"""A table, a column, the number of a row, and the value that it gets."""


def tables_of(file: pathlib.Path) -> dict[str, list[str]]:
    """Return the columns of each table of a ledger."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")] for name in names}


def damage_rows(tables: Mapping[str, Sequence[str]]) -> Callable[[random.Random, t.Any], list[Row]]:
    """Return what draws a few changes of rows."""

    def draw_rows(draw: random.Random, _sound: t.Any) -> list[Row]:
        names = [draw.choice(sorted(tables)) for _change in range(draw.randint(1, 3))]
        return [[name, draw.choice(list(tables[name])), draw.randrange(3), draw.choice(HOSTILE)] for name in names]

    return draw_rows


def change_rows(file: pathlib.Path, rows: Sequence[Row]) -> None:
    """Write values into rows, as far as the ledger's own constraints let a user do so."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        for table, column, number, value in rows:
            with contextlib.suppress(sqlite3.Error):
                connection.execute(
                    f'UPDATE {table} SET "{column}" = ? WHERE rowid = (SELECT rowid FROM {table} LIMIT 1 OFFSET {int(number)})', (value,)
                )
        connection.commit()


def copied(file: pathlib.Path, to: pathlib.Path) -> pathlib.Path:
    """Return a copy of a ledger, without what a run before has left beside it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        pathlib.Path(f"{to}{suffix}").unlink(missing_ok=True)
    shutil.copyfile(file, to)
    return to
