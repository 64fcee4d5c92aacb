# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The database behind the ledger: how it is opened, and what its errors mean in one sentence.

SQLite is embedded; PostgreSQL and MariaDB (alone or as Galera) are reached by URL. All three run at a level where every statement
sees what was committed before it, which is what the ledger's guards rely on.
"""

from __future__ import annotations

import logging
import math
import os
import random
import sqlite3
import time
import typing as t
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ....module_utils._data.errors import InputError, Mistake, Unavailable
from ..._common.files import create_file, make_folder
from ..._common.libraries import sa
from .deadline import Deadline, Watchdog, cut_psycopg, cut_pymysql
from .retry import mysql_code, sqlite_code
from .url import describe, without_secrets

_LIBRARIES = {"postgresql": "psycopg", "mysql": "PyMySQL"}
_POSTGRESQL_PLANS = {"jit": "off", "max_parallel_workers_per_gather": "0", "random_page_cost": "1.1"}
_SQL_MODE = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
"""What the ledger's statements are written for; in the mode ORACLE a server would not understand them."""
_LONGEST_WAIT = 31536000
"""A year, in seconds: the timeout that servers get where there is no deadline."""
REVISION = "bareon_revision"
"""Where a new connection keeps the revision of the ledger's tables, if it knows that without a query."""
_POOLED = "bareon_pooled"
"""Where a connection to a pooler keeps what each transaction has to set for itself."""
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


_MOST_LINKS = 40
"""How many symbolic links Linux follows, one to the next."""


def is_missing_file(url: sa.URL) -> bool:
    """Return whether the URL names an SQLite file that is not there yet."""
    return url.get_backend_name() == "sqlite" and not _is_in_memory(url) and not file_of(url).exists()


def reading(engine: sa.Engine, *, snapshots: bool = True) -> KeptConnection:
    """Return where transactions begin that only read: all their statements see one moment, and they wait for no writer.

    Without snapshots no transaction is begun on a server, which saves two messages.
    """
    if engine.dialect.name == "sqlite":
        return KeptConnection(engine, {"bareon_reads_only": True})
    return KeptConnection(engine, {"isolation_level": "REPEATABLE READ" if snapshots else "AUTOCOMMIT"})


def memory_engine() -> sa.Engine:
    """Return an empty database of this process, for a dry run or a world given inline."""
    return make_engine(sa.make_url("sqlite+pysqlite://"), Deadline(None))


def make_engine(url: sa.URL, deadline: Deadline, watchdog: Watchdog | None = None) -> sa.Engine:
    """Return the engine of a database, which waits no longer than the deadline; nothing is opened yet.

    Raises Unavailable when the driver is not installed, InputError for options in the URL that it does not take.
    """
    try:
        is_file = url.get_backend_name() == "sqlite"
        engine = _make_sqlite_engine(url, deadline) if is_file else _make_server_engine(url, deadline)
    except ModuleNotFoundError as error:
        library = _LIBRARIES.get(url.get_backend_name(), error.name)
        raise Unavailable(f"the database {describe(url)} needs the Python library {library} on the controller") from None
    except (TypeError, ValueError, sa.exc.ArgumentError):
        raise _wrong_options(url) from None
    sa.event.listen(engine, "do_connect", _connector(url, deadline, watchdog))
    return engine


class KeptConnection:
    """One connection of an engine, kept from one transaction to the next.

    A pool has the server roll back what comes back to it, and SQLAlchemy makes a new connection of what it takes out: half of what a
    claim costs.
    """

    def __init__(self, engine: sa.Engine, options: Mapping[str, t.Any] | None = None) -> None:
        self.engine = engine
        self._options = options or {}
        self._connection: sa.Connection | None = None

    @contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        """Begin a transaction, which is committed at the end of the block; after an error the next one gets another connection."""
        # An engine with options of its own would set up all of its events again.
        connection, self._connection = self._connection or self.engine.connect().execution_options(**self._options), None
        try:
            with connection.begin():
                yield connection
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def make_watchdog(url: sa.URL) -> Watchdog | None:
    """Return what cuts the connections to a server when time is up; a file needs none."""
    cut = {"postgresql+psycopg": cut_psycopg, "mysql+pymysql": cut_pymysql}.get(url.drivername)
    return None if cut is None else Watchdog(cut)


def _connector(url: sa.URL, deadline: Deadline, watchdog: Watchdog | None) -> Callable[..., t.Any]:
    """Return what connects; drivers answer options that they do not know in as many ways as there are drivers."""

    def connect(dialect: t.Any, _record: t.Any, arguments: t.Any, options: t.Any) -> t.Any:
        seconds = _whole_seconds(deadline)
        waits = {
            "postgresql+psycopg": {"connect_timeout": seconds},
            # PyMySQL waits for the greeting of the server as long as for any other answer.
            "mysql+pymysql": {"connect_timeout": min(seconds, _LONGEST_WAIT), "read_timeout": seconds, "write_timeout": seconds},
        }
        try:
            connection = dialect.connect(*arguments, **{**options, **waits.get(url.drivername, {})})
        except (TypeError, ValueError):
            raise _wrong_options(url) from None
        if watchdog is not None:
            # At once: SQLAlchemy sends the server a few queries before its own event for the connection.
            watchdog.watch(connection)
        return connection

    return connect


def _wrong_options(url: sa.URL) -> InputError:
    return InputError([Mistake("database", f"{describe(url)}: has options after the ? that the driver does not accept")])


def _whole_seconds(deadline: Deadline) -> int:
    return max(1, math.ceil(min(deadline.left, _LONGEST_WAIT)))


def _make_server_engine(url: sa.URL, deadline: Deadline) -> sa.Engine:
    backend = url.get_backend_name()
    options: dict[str, t.Any]
    if backend == "mysql":
        options = {"connect_args": {"charset": "utf8mb4", "sql_mode": _SQL_MODE}}
    else:
        # A database without an encoding would answer with bytes. SQLAlchemy asks PostgreSQL for a type that no table here has.
        options = {"connect_args": {"client_encoding": "utf8"}, "use_native_hstore": False}
    engine = sa.create_engine(url, isolation_level="READ COMMITTED", **options)

    def prepare(connection: t.Any, record: t.Any) -> None:
        if backend == "mysql":
            _prepare_mysql(connection, _whole_seconds(deadline))
        else:
            record.info |= _prepare_postgresql(connection, _whole_seconds(deadline))

    if backend == "postgresql":
        _spare_questions(engine.dialect)
        logging.getLogger("psycopg").addFilter(_is_no_echo)
        sa.event.listen(engine, "begin", _begin_pooled)
    sa.event.listen(engine, "connect", prepare)
    return engine


def _spare_questions(dialect: t.Any) -> None:
    """Let SQLAlchemy learn from the driver what it would ask the server when it first connects, which takes as long as a search."""

    def version(connection: sa.Connection) -> tuple[int, int]:
        return divmod(t.cast("t.Any", connection.connection.driver_connection).info.server_version, 10_000)

    def escapes(connection: sa.Connection) -> None:
        info = t.cast("t.Any", connection.connection.driver_connection).info
        dialect._backslash_escapes = info.parameter_status("standard_conforming_strings") == "off"

    dialect._get_server_version_info = version
    dialect._get_default_schema_name = lambda _connection: None
    dialect.get_default_isolation_level = lambda _connection: "READ COMMITTED"
    dialect._set_backslash_escapes = escapes


def _is_no_echo(record: logging.LogRecord) -> bool:
    """Whether psycopg says something new: of a batch that fails it raises the error, and then warns of the same error once more."""
    return not record.getMessage().startswith("error ignored ")


def _make_sqlite_engine(url: sa.URL, deadline: Deadline) -> sa.Engine:
    if _is_in_memory(url):
        engine = sa.create_engine(url, poolclass=sa.pool.StaticPool)
    else:
        _make_file(url)
        with warnings.catch_warnings():
            # It would name options that SQLite does not know, and so, maybe, a password.
            warnings.simplefilter("ignore", sa.exc.SAWarning)
            engine = sa.create_engine(url, connect_args={"timeout": 0})
    sa.event.listen(engine, "connect", _prepare_sqlite)
    sa.event.listen(engine, "begin", lambda connection: _begin_sqlite(connection, deadline))
    return engine


def _make_file(url: sa.URL) -> None:
    """Create the file of a ledger for its owner alone, for SQLite would follow the umask; SQLite's log files get its mode.

    SQLite reads `file:...` as a URI, which may forbid to create the file; as a path it would name a folder `file:` in the working
    directory. What cannot be created is for SQLite to say.
    """
    file, is_uri = file_of(url), t.cast("str", url.database).startswith("file:")
    if is_uri and ("uri" not in url.query or url.query.get("mode", "rwc") != "rwc"):
        return
    target = _link_target(url, file)
    if not is_uri:
        make_folder(target.parent)
    if not os.path.lexists(target):
        with suppress(OSError):
            create_file(target, b"")


def _link_target(url: sa.URL, file: Path) -> Path:
    """Return the file that a ledger's links lead to. Raises Unavailable for another user's link, which could lead to any file."""
    for _link in range(_MOST_LINKS):
        if not os.path.islink(file):
            break
        if file.lstat().st_uid not in {0, os.geteuid()}:
            raise Unavailable(
                f"the database {describe(url)} is a symbolic link of another user ({file}); name the file that it should lead to"
            )
        file = file.parent / file.readlink()
    return file


def file_of(url: sa.URL) -> Path:
    """Return the file that an SQLite URL names, which with the option `uri` is a URI itself."""
    database = t.cast("str", url.database)
    return Path(unquote(urlsplit(database).path) if database.startswith("file:") and "uri" in url.query else database)


def _is_in_memory(url: sa.URL) -> bool:
    return url.database in {None, "", ":memory:"}


def _prepare_sqlite(connection: t.Any, _record: t.Any) -> None:
    # The driver would begin a transaction of its own choice, and only at the first write.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    # Readers go on while one writes. A power cut may cost the last commits, never the file; a killed process costs nothing.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")


def _begin_sqlite(connection: sa.Connection, deadline: Deadline) -> None:
    """Begin at once as a reader, or wait to be the one writer.

    A transaction that read first and wrote later would fail, without waiting, when another one wrote in between.
    """
    if connection.get_execution_options().get("bareon_reads_only", False):
        connection.exec_driver_sql("BEGIN")
        return
    # SQLite itself would wait longer each time, up to 0.1 s. A claim takes one millisecond, so that the file would mostly lie idle.
    cursor = connection.connection.cursor()
    while not deadline.is_over:
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


def _prepare_postgresql(connection: t.Any, seconds: int) -> dict[str, t.Any]:
    """Let the server give up what its client has given up, and plan for statements that want a few rows by way of an index.

    To compile one of them, or to begin processes for it, takes longer than to run it. A server that expects a disk that is slow to seek
    would read the whole of an index first.

    A pooler such as PgBouncer may give each transaction another connection to the server, and gives clients the id of a process that is
    not the one that answers. What stayed set on a connection would reach other clients, and prepared statements would be on another one.

    Returns what the connection keeps: the revision of the ledger's tables, which costs nothing here, and what a pooled one has to set.
    """
    mode, connection.autocommit = connection.autocommit, True
    settings = {"lock_timeout": f"{seconds}s", "idle_in_transaction_session_timeout": f"{seconds}s", **_POSTGRESQL_PLANS}
    is_pooled = f"pg_backend_pid() <> {connection.info.backend_pid}"
    set_up = f"SELECT {is_pooled}, {_set_configs(settings, is_pooled)}"
    kept: dict[str, t.Any] = {REVISION: None}
    try:
        cursor = connection.execute(f"{set_up}; SELECT version_num FROM alembic_version")
    except connection.ProgrammingError:
        # There is no such table; what was set is taken back with it.
        (pooled, *_values) = connection.execute(set_up).fetchone()
    else:
        (pooled, *_values) = cursor.fetchone()
        cursor.nextset()
        found = cursor.fetchone()
        kept[REVISION] = found and found[0]
    if pooled:
        connection.prepare_threshold = None
        kept[_POOLED] = f"SELECT {_set_configs(settings, 'true')}"
    connection.autocommit = mode
    return kept


def _set_configs(settings: Mapping[str, str], is_local: str) -> str:
    """Return what sets variables of PostgreSQL, for the transaction or for the whole connection."""
    return ", ".join(f"set_config('{name}', '{value}', {is_local})" for name, value in settings.items())


def _begin_pooled(connection: sa.Connection) -> None:
    if _POOLED in connection.info and connection.get_execution_options().get("isolation_level") != "AUTOCOMMIT":
        connection.exec_driver_sql(connection.info[_POOLED])


def _prepare_mysql(connection: t.Any, seconds: int) -> None:
    """Let the server give up what its client has given up; on a Galera node, let reads wait for what other nodes have committed.

    A variable that a server does not have is left out.
    """
    wanted = {
        "innodb_lock_wait_timeout": seconds,
        "lock_wait_timeout": seconds,
        "idle_transaction_timeout": seconds,
        "wsrep_sync_wait": 1,
    }
    with connection.cursor() as cursor:
        names = ", ".join(f"'{name}'" for name in (*wanted, "wsrep_on"))
        cursor.execute(f"SHOW VARIABLES WHERE Variable_name IN ({names})")
        present = dict(cursor.fetchall())
        if present.get("wsrep_on") != "ON":
            present.pop("wsrep_sync_wait", None)
        cursor.execute("SET " + ", ".join(f"SESSION {name} = {value}" for name, value in wanted.items() if name in present))


class OutcomeUnknown(Unavailable):
    """The way to the database was lost while a change was being committed; only another query finds whether it was made."""


_NOTHING_DONE = "Nothing was changed; running the task again is safe"
_IN_DOUBT = (
    "It was lost during the commit, so it is not known whether the change was made. Running the task again is "
    "safe: it finds out, and makes no change twice"
)


def unavailable(url: sa.URL, error: sa.exc.DBAPIError) -> Unavailable:
    """Return what an error of the database means, as one sentence."""
    return Unavailable(f"the database {describe(url)} {_message(url, error)}")


def overdue(url: sa.URL, error: Exception, seconds: float) -> Unavailable:
    """Return what kept a task waiting until its deadline."""
    return Unavailable(f"the database {describe(url)} {_message(url, error)}, for the {seconds:g} seconds of timeout. {_NOTHING_DONE}")


def in_doubt(url: sa.URL, error: Exception, seconds: float | None = None) -> OutcomeUnknown:
    """Return what left a change in doubt."""
    limit = "" if seconds is None else f", for the {seconds:g} seconds of timeout"
    return OutcomeUnknown(f"the database {describe(url)} {_message(url, error)}{limit}. {_IN_DOUBT}")


def _message(url: sa.URL, error: Exception) -> str:
    if not isinstance(error, sa.exc.DBAPIError):
        return "is busy: other writers always came first"
    return without_secrets(_meaning(error), url)


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
