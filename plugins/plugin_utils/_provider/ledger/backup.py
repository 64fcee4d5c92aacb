# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups: a whole ledger, as it was at one moment, in an SQLite file; and a ledger made what such a backup holds.

A copy of the file alone lacks SQLite's log files. SQLite's own backup reads and writes by way of its locks and its log, so that
the commits of all processes are in it, and none is written into half of another state.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import typing as t
from collections.abc import Callable
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from ....module_utils._data.errors import InputError, Mistake, Unavailable
from ....module_utils._data.words import listed
from ..._common.files import create_file, make_folder, sync_folder
from ..._common.libraries import sa
from .audit import Finding, audit
from .database import file_of, is_missing_file
from .deadline import Deadline
from .open import open_ledger
from .read import read_consumers
from .rehearsal import copy_ledger
from .replace import replace_all
from .tables import providers
from .url import describe, file_url, parse_database

_PAGES = 1024
_MARKS = {"alembic_version", "consumers"}
"""Tables that every ledger has since its first release, and other files do not."""
_INDEX = "CREATE INDEX"
"""What SQLite makes by itself for a key of a table; it notes no statement for it."""
_DATA = [["CREATE", kind] for kind in ("TABLE", "INDEX", "UNIQUE")]
_SHOWN = 3
_BUSY = (5, 6)


class Contents(t.NamedTuple):
    """How much a ledger holds, and what its audit finds."""

    providers: int
    consumers: int
    findings: list[Finding]


def read_contents(database: str) -> Contents:
    """Return how much an SQLite ledger holds. Raises Unavailable."""
    with open_ledger(database, dry_run=True) as ledger:
        return ledger.read(_contents)


def back_up(database: str | None, path: Path, timeout: float, *, dry_run: bool) -> Contents:
    """Write a whole ledger, as it is at one moment, into a new SQLite file, which replaces one of that name at once.

    Raises InputError and Unavailable.
    """
    url = parse_database(database)
    if is_missing_file(url):
        raise Unavailable(f"the database {describe(url)} is not there, so there is nothing to back up")
    if url.get_backend_name() == "sqlite" and path.exists() and path.samefile(file_of(url)):
        raise InputError([Mistake("path", "is the database itself; give another file")])
    if not path.parent.is_dir():
        raise InputError([Mistake("path", f"there is no folder {path.parent}")])
    if path.is_dir():
        raise InputError([Mistake("path", f"{path} is a folder; give a file")])
    try:
        with tempfile.TemporaryDirectory(prefix="bareon-") as away, _draft_beside(Path(away) / path.name if dry_run else path) as draft:
            copy_ledger(database, draft, timeout)
            with closing(sqlite3.connect(draft)) as copied:
                # One file, which can be copied as it is.
                copied.execute("PRAGMA journal_mode = DELETE")
            contents = read_contents(file_url(draft))
            _forget_log(draft)
            if not dry_run:
                _sync(draft)
                # SQLite would read the log of an earlier file into the new one.
                _forget_log(path)
                draft.replace(path)
                sync_folder(path.parent)
    except OSError as error:
        raise Unavailable(f"the backup {path} cannot be written ({error.strerror})") from None
    return contents


def restore(database: str | None, path: Path, timeout: float, *, dry_run: bool) -> Contents:
    """Make a ledger what a backup holds, in one transaction; a damaged file of SQLite is replaced, with its logs.

    Raises InputError for a backup that is none, and Unavailable while another program writes.
    """
    url = parse_database(database)
    target, deadline = file_of(url) if url.get_backend_name() == "sqlite" else None, Deadline(timeout)
    if not path.is_file():
        raise InputError([Mistake("path", f"there is no file {path}")])
    if target is not None and target.exists() and path.samefile(target):
        raise InputError([Mistake("path", "is the database itself; give a backup")])
    with tempfile.TemporaryDirectory(prefix="bareon-") as folder:
        # What is checked is what is restored, brought up to date first; the backup stays as it is.
        checked = Path(folder) / "checked.sqlite"
        _refuse_no_ledger(path)
        copy_ledger(file_url(path), checked, timeout)
        contents = read_contents(file_url(checked))
        if target is None:
            _restore_on_server(database, checked, timeout, dry_run=dry_run)
            return contents
        if dry_run:
            with suppress(sqlite3.DatabaseError):
                _refuse_writer(target, str(describe(url)))
            return contents
        _make_missing(target)
        with closing(sqlite3.connect(checked)) as source:
            try:
                _refuse_writer(target, str(describe(url)))
                with deadline.running(), closing(sqlite3.connect(target, timeout=0)) as written:
                    source.backup(written, pages=_PAGES, progress=_until(deadline, str(describe(url))), sleep=0.05)
                    written.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            except sqlite3.DatabaseError as error:
                if getattr(error, "sqlite_errorcode", None) not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                    raise Unavailable(f"the database {describe(url)} cannot be restored ({error})") from None
                _replace_damaged(source, target)
    return contents


def _restore_on_server(database: str | None, checked: Path, timeout: float, *, dry_run: bool) -> None:
    with open_ledger(file_url(checked), dry_run=True) as source, open_ledger(database, dry_run=dry_run, timeout=timeout) as target:
        if not dry_run:
            source.read(lambda connection: replace_all(connection, target))


def _refuse_no_ledger(path: Path) -> None:
    """Raise InputError for a file that has no tables of a ledger, which would become an empty one, or that has programs.

    No ledger has triggers or views. Those of somebody else would change the books later, or never end.
    """
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            made = [(str(name), str(sql or _INDEX)) for name, sql in connection.execute("SELECT name, sql FROM sqlite_master")]
    except sqlite3.DatabaseError as error:
        raise InputError([Mistake("path", f"{path} cannot be read as a ledger ({error})")]) from None
    if not {name for name, _sql in made} >= _MARKS:
        raise InputError([Mistake("path", f"{path} is no backup of a ledger: it has none of its tables")])
    programs = sorted(name for name, sql in made if sql.upper().split()[:2] not in _DATA)
    if programs:
        raise InputError([Mistake("path", f"{path} is no backup of a ledger alone: it has triggers or views ({listed(programs, _SHOWN)})")])


def _contents(connection: sa.Connection) -> Contents:
    count = connection.scalar(sa.select(sa.func.count()).select_from(providers)) or 0
    return Contents(count, len(read_consumers(connection)), audit(connection))


def _refuse_writer(target: Path, called: str) -> None:
    """Raise Unavailable while another program is about to write; it would go on with what it has read before."""
    if not target.exists():
        return
    with closing(sqlite3.connect(target, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _BUSY:
                raise
            says = "is being written to by another program; end it first. Nothing was changed"
            raise Unavailable(f"the database {called} {says}") from None


def _make_missing(target: Path) -> None:
    try:
        make_folder(target.parent)
        with suppress(FileExistsError):
            create_file(target, b"")
    except OSError as error:
        raise Unavailable(f"the database {target} cannot be made ({error.strerror})") from None


def _until(deadline: Deadline, called: str) -> Callable[[int, int, int], None]:
    def check(_status: int, _remaining: int, _total: int) -> None:
        if deadline.is_over:
            raise Unavailable(f"the database {called} stays locked by another program. Nothing was changed")

    return check


def _replace_damaged(source: sqlite3.Connection, target: Path) -> None:
    with _draft_beside(target) as draft:
        with closing(sqlite3.connect(draft)) as written:
            source.backup(written)
        _sync(draft)
        # Its log belongs to the damaged file, and would be read into the new one.
        _forget_log(target)
        draft.replace(target)
        sync_folder(target.parent)


def _forget_log(path: Path) -> None:
    for end in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + end).unlink(missing_ok=True)


@contextmanager
def _draft_beside(path: Path) -> t.Iterator[Path]:
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(number)
    draft = Path(name)
    try:
        yield draft
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
        _forget_log(draft)


def _sync(path: Path) -> None:
    with path.open("rb") as written:
        os.fsync(written.fileno())
