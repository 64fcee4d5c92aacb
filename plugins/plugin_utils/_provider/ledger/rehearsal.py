# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A rehearsed ledger: a copy of a database, in which a run of Ansible in check mode makes its changes, so that later tasks see them.

The first task that would change something makes the copy, an SQLite file in a folder that goes with the run; tasks that only read look
into it once it is there. Nobody else sees it, and it does not see what others do to the database meanwhile.
"""

from __future__ import annotations

import fcntl
import hashlib
import sqlite3
import typing as t
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..._common.files import open_private
from ..._common.libraries import sa
from .database import is_missing_file, make_engine, unavailable
from .deadline import DEFAULT_TIMEOUT, Deadline
from .open import Ledger, open_ledger
from .statements import insert_rows
from .tables import metadata
from .url import file_url, parse_database

_AT_ONCE = 4096


def rehearse(database: str | None, folder: Path, timeout: float = DEFAULT_TIMEOUT) -> str:
    """Return the URL of the copy of a database in the folder, made if it is not there yet. Raises InputError and Unavailable."""
    copy = _copy_of(database, folder)
    with _locked(copy.with_suffix(".lock")):
        if not copy.exists():
            part = copy.with_suffix(".part")
            part.unlink(missing_ok=True)
            copy_ledger(database, part, timeout)
            part.rename(copy)
    return file_url(copy)


def rehearsed(database: str | None, folder: Path | None) -> str | None:
    """Return the URL of the copy if there is one, else the database as it was given."""
    if folder is None:
        return database
    copy = _copy_of(database, folder)
    return file_url(copy) if copy.exists() else database


def _copy_of(database: str | None, folder: Path) -> Path:
    written = parse_database(database).render_as_string(hide_password=False)
    return folder / f"bareon-{hashlib.sha256(written.encode()).hexdigest()[:24]}.sqlite"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process at a time through; hosts of a play are worked on side by side."""
    with open(open_private(path), "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def copy_ledger(database: str | None, copy: Path, timeout: float) -> None:
    """Write a ledger, as it is at one moment, into an SQLite file. Raises InputError and Unavailable."""
    url = parse_database(database)
    if not is_missing_file(url) and url.get_backend_name() == "sqlite":
        engine = make_engine(url, Deadline(timeout))
        try:
            with engine.connect() as source, closing(sqlite3.connect(copy)) as target:
                t.cast("sqlite3.Connection", source.connection.driver_connection).backup(target)
        except sa.exc.DBAPIError as error:
            raise unavailable(url, error) from None
        finally:
            engine.dispose()
    # What an older release has written is brought up to date in the copy alone.
    with open_ledger(file_url(copy)) as target_ledger:
        if url.get_backend_name() != "sqlite":
            with open_ledger(database, dry_run=True, timeout=timeout) as source_ledger:
                source_ledger.read(lambda connection: _copy_tables(connection, target_ledger))


def _copy_tables(source: sa.Connection, target: Ledger) -> None:
    def write(connection: sa.Connection) -> None:
        # A provider may have a smaller number than the one it was put below later.
        connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        for table in reversed(metadata.sorted_tables):
            connection.execute(sa.delete(table))
        for table in metadata.sorted_tables:
            columns = [column for column in table.columns if column.computed is None]
            # Some at a time, both in and out: a ledger may be larger than the memory of its controller.
            rows = source.execute(sa.select(*columns), execution_options={"yield_per": _AT_ONCE})
            insert_rows(connection, table, [column.name for column in columns], map(tuple, rows))

    target.write(write)
