# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The database behind the ledger: how it is opened, and what its errors mean in one sentence.

SQLite is embedded; PostgreSQL and MariaDB (alone or as Galera) are reached by URL. All three run at a level where every statement
sees what was committed before it, which is what the ledger's guards rely on.
"""

from __future__ import annotations

import random
import sqlite3
import time
import typing as t
import warnings
from collections.abc import Callable
from pathlib import Path

from ...common.errors import InputError, Mistake, Unavailable
from ...common.libraries import sa
from .retry import mysql_code, sqlite_code
from .url import describe, without_secrets

_LIBRARIES = {"postgresql": "psycopg", "mysql": "PyMySQL"}
_WAIT_SECONDS = 30.0
_CONNECT_SECONDS = 10
_POLL_SECONDS = 0.004
_SQLITE_BUSY = 5

_SQLITE_ERRORS = {
    3: "may not be opened by this user",
    5: "stays locked by another program",
    6: "stays locked by another program",
    8: "is read-only",
    10: "cannot be read or written: the disk reports an error",
    11: "is damaged",
    13: "cannot grow: the disk is full",
    14: "cannot be opened; is its directory there, and may this user write to it?",
    26: "is a file of another kind, not an SQLite database",
}
_POSTGRESQL_ERRORS = {
    "08": "does not answer",
    "25006": "is read-only",
    "28": "refuses this user or password",
    "3D000": "does not exist on the server",
    "42501": "does not grant this user what the ledger needs",
    "53100": "cannot grow: the disk is full",
    "53300": "takes no more connections",
    "57P": "is shutting down or starting",
}
_MYSQL_ERRORS = {
    1021: "cannot grow: the disk is full",
    1044: "does not grant this user what the ledger needs",
    1045: "refuses this user or password",
    1047: "is on a Galera node that is not part of the cluster now",
    1049: "does not exist on the server",
    1114: "cannot grow: the disk is full",
    1142: "does not grant this user what the ledger needs",
    1290: "is read-only",
    1792: "is read-only",
    1836: "is read-only",
    2002: "does not answer",
    2003: "does not answer",
    2006: "does not answer any more",
    2013: "does not answer any more",
    3: "cannot grow: the disk is full",
}


def is_missing_file(url: sa.URL) -> bool:
    """Tell whether the URL names an SQLite file that is not there yet."""
    return url.get_backend_name() == "sqlite" and not _is_in_memory(url) and not Path(t.cast("str", url.database)).exists()


def reading(engine: sa.Engine) -> sa.Engine:
    """Return the engine for transactions that only read: all their statements see one moment, and they wait for no writer."""
    if engine.dialect.name == "sqlite":
        return engine.execution_options(bareon_reads_only=True)
    return engine.execution_options(isolation_level="REPEATABLE READ")


def memory_engine() -> sa.Engine:
    """Return an empty database of this process, for a dry run or a world given inline."""
    return make_engine(sa.make_url("sqlite+pysqlite://"))


def make_engine(url: sa.URL) -> sa.Engine:
    """Return the engine of a database; nothing is opened yet.

    Raises Unavailable when the driver is not installed, InputError for options in the URL that it does not take.
    """
    try:
        engine = _make_sqlite_engine(url) if url.get_backend_name() == "sqlite" else _make_server_engine(url)
    except ModuleNotFoundError as error:
        library = _LIBRARIES.get(url.get_backend_name(), error.name)
        raise Unavailable(f"the database {describe(url)} needs the Python library {library} on the controller") from None
    except (TypeError, ValueError, sa.exc.ArgumentError):
        raise _wrong_options(url) from None
    sa.event.listen(engine, "do_connect", _connector(url))
    return engine


def _connector(url: sa.URL) -> Callable[..., t.Any]:
    """Return what connects; drivers answer options that they do not know in as many ways as there are drivers."""

    def connect(dialect: t.Any, _record: t.Any, arguments: t.Any, options: t.Any) -> t.Any:
        try:
            return dialect.connect(*arguments, **options)
        except (TypeError, ValueError):
            raise _wrong_options(url) from None

    return connect


def _wrong_options(url: sa.URL) -> InputError:
    return InputError([Mistake("database", f"{describe(url)}: what follows the ? has options that the driver does not take")])


def _make_server_engine(url: sa.URL) -> sa.Engine:
    backend = url.get_backend_name()
    connect = {"connect_timeout": _CONNECT_SECONDS, **({"charset": "utf8mb4"} if backend == "mysql" else {})}
    engine = sa.create_engine(url, isolation_level="READ COMMITTED", connect_args=connect)
    if backend == "mysql":
        sa.event.listen(engine, "connect", _read_own_writes)
    return engine


def _make_sqlite_engine(url: sa.URL) -> sa.Engine:
    if _is_in_memory(url):
        engine = sa.create_engine(url, poolclass=sa.pool.StaticPool)
    else:
        _make_folder(t.cast("str", url.database))
        with warnings.catch_warnings():
            # It would name options that SQLite does not know, and so, maybe, a password.
            warnings.simplefilter("ignore", sa.exc.SAWarning)
            engine = sa.create_engine(url, connect_args={"timeout": 0})
    sa.event.listen(engine, "connect", _prepare_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _make_folder(database: str) -> None:
    # SQLite reads `file:...` as a URI; as a path it would name a folder `file:` in the working directory.
    if not database.startswith("file:"):
        Path(database).parent.mkdir(parents=True, exist_ok=True)


def _is_in_memory(url: sa.URL) -> bool:
    return url.database in {None, "", ":memory:"}


def _prepare_sqlite(connection: t.Any, _record: t.Any) -> None:
    # The driver would begin a transaction of its own choice, and only at the first write.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    # Readers go on while one writes. A power cut may cost the last commits, never the file; a killed process costs nothing.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")


def _begin_sqlite(connection: sa.Connection) -> None:
    """Begin at once as a reader, or wait to be the one writer.

    A transaction that read first and wrote later would fail, without waiting, when another one wrote in between.
    """
    if connection.get_execution_options().get("bareon_reads_only", False):
        connection.exec_driver_sql("BEGIN")
        return
    # SQLite itself would wait longer each time, up to 0.1 s. A claim takes one millisecond, so that the file would mostly lie idle.
    deadline = time.monotonic() + _WAIT_SECONDS
    cursor = connection.connection.cursor()
    while time.monotonic() < deadline:
        try:
            cursor.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if sqlite_code(error) != _SQLITE_BUSY:
                break
            time.sleep(random.uniform(0, _POLL_SECONDS))
        else:
            return
    # Once more by way of SQLAlchemy, so that the error is one of those that are understood.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _read_own_writes(connection: t.Any, _record: t.Any) -> None:
    """On a Galera node, let reads wait for what other nodes have committed; elsewhere the variable is not there or has no effect."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW VARIABLES LIKE 'wsrep_on'")
        row = cursor.fetchone()
        if row is not None and row[1] == "ON":
            cursor.execute("SET SESSION wsrep_sync_wait = 1")


def unavailable(url: sa.URL, error: sa.exc.DBAPIError) -> Unavailable:
    """Return what an error of the database means, as one sentence."""
    return Unavailable(f"the database {describe(url)} {without_secrets(_meaning(error), url)}")


def _meaning(error: sa.exc.DBAPIError) -> str:
    original = error.orig
    lines = str(original).strip().splitlines()
    says = f" ({lines[0]})" if lines else ""
    code = sqlite_code(original)
    if code is not None:
        return f"{_SQLITE_ERRORS.get(code, 'reports an error')}{says}"
    code = mysql_code(original)
    if code is not None:
        return f"{_MYSQL_ERRORS.get(code, 'reports an error')}{says}"
    return f"{_postgresql_meaning(getattr(original, 'sqlstate', None), str(original))}{says}"


def _postgresql_meaning(state: str | None, message: str) -> str:
    if state is None:
        # While connecting, libpq gives a text and no code.
        texts = {
            "password": "28",
            "role": "28",
            "does not exist": "3D000",
            "too many": "53300",
            "starting up": "57P",
            "shutting down": "57P",
        }
        state = next((code for words, code in texts.items() if words in message), "08")
    return next((says for code, says in _POSTGRESQL_ERRORS.items() if state.startswith(code)), "reports an error")
