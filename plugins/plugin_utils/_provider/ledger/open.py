# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger: one database of providers and allocations, opened for one task.

What is done with it is written as functions of a connection (read.py, providers.py, claims.py, audit.py ...), each run
whole in one transaction.
"""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ....module_utils._data.errors import InputError, NoSolution, Unavailable
from ....module_utils._data.words import listed
from ..._common.lasting import loss_warnings
from ..._common.libraries import sa
from ..world.model import World
from .audit import audit
from .database import (
    KeptConnection,
    OutcomeUnknown,
    in_doubt,
    is_missing_file,
    make_engine,
    make_watchdog,
    memory_engine,
    overdue,
    reading,
    unavailable,
)
from .deadline import DEFAULT_TIMEOUT, Deadline, Watchdog
from .import_world import store_world
from .migrate import NEWEST, read_scripts, refuse_newer, revision_at_connect, tables_without_revision, upgrade
from .mistyped import refuse_mistyped
from .retry import PATIENT, Outcome, OutOfRetries, Overdue, RetryPolicy, run_transaction
from .url import ENVIRONMENT, describe, is_default, parse_database, why_default_is_lost
from .worlds import read_world

T = t.TypeVar("T")

_FEW = 3
_OF_WRONG_TYPES = (ArithmeticError, LookupError, TypeError, ValueError)
"""What computing with text in the place of numbers raises."""


@dataclass(frozen=True)
class Ledger:
    """An open database; a dry run carries every change out and takes it back, so that its results are the real ones."""

    url: sa.URL
    engine: sa.Engine
    policy: RetryPolicy = PATIENT
    dry_run: bool = False
    deadline: Deadline = field(default_factory=Deadline)
    watchdog: Watchdog | None = None
    outcome: Outcome = field(default_factory=Outcome)
    snapshots: bool = True
    made: str = ""
    """What to warn of: that the file of the ledger was made, though nobody has named it."""

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Return what `work` returns; it sees one moment of the database and may not write. Raises Unavailable."""
        return self._run(self._reader, work, Outcome())

    def write(self, work: Callable[[sa.Connection], T], outcome: Outcome | None = None) -> T:
        """Return what `work` returns, all of its changes made at once or none.

        Lost races are run again. Raises NoSolution when every attempt was lost, Unavailable (OutcomeUnknown where the changes may have
        been made), and what `work` raises. What is in doubt is noted in `outcome`, which is else that of the task.
        """
        # The server is not asked for a second connection.
        self._reader.close()
        return self._run(self._writer, _taken_back(work) if self.dry_run else work, outcome or self.outcome)

    def close(self) -> None:
        """Close all connections."""
        self._reader.close()
        self._writer.close()
        # The engine would make a new pool.
        self.engine.pool.dispose()
        if self.watchdog is not None:
            self.watchdog.close()

    @cached_property
    def _reader(self) -> KeptConnection:
        return reading(self.engine, snapshots=self.snapshots)

    @cached_property
    def _writer(self) -> KeptConnection:
        return KeptConnection(self.engine)

    def _run(self, opened: KeptConnection, work: Callable[[sa.Connection], T], outcome: Outcome) -> T:
        armed = nullcontext() if self.watchdog is None else self.watchdog.armed(self.deadline.left)
        try:
            with self.deadline.running(), armed:
                return run_transaction(opened, self.policy, work, self.deadline, outcome)
        except OutOfRetries as error:
            if outcome.in_doubt:
                raise in_doubt(self.url, error) from None
            raise NoSolution(
                f"the ledger is busy: {error}; nothing was changed. Allow more retries, or fewer writers", {"attempts": error.attempts}
            ) from None
        except Overdue as error:
            cause: t.Any = error.__cause__
            raise (in_doubt if outcome.in_doubt else overdue)(self.url, cause, self.deadline.seconds) from None
        except sa.exc.DBAPIError as error:
            raise in_doubt(self.url, error) if outcome.in_doubt else unavailable(self.url, error) from None


def _taken_back(work: Callable[[sa.Connection], T]) -> Callable[[sa.Connection], T]:
    def undone(connection: sa.Connection) -> T:
        result = work(connection)
        transaction = connection.get_transaction()
        if transaction is not None:
            transaction.rollback()
        return result

    return undone


@contextmanager
def open_ledger(
    database: str | None = None,
    policy: RetryPolicy = PATIENT,
    *,
    dry_run: bool = False,
    timeout: float = DEFAULT_TIMEOUT,
    snapshots: bool = True,
) -> Iterator[Ledger]:
    """Open a database (see parse_database), its tables made or brought up to date first.

    A dry run leaves even a database that is not there yet as it is, and works on an empty one in memory instead; so it is also the
    way to open for reading only. `timeout` is for how many seconds the database may be waited for, all in all. `snapshots` is false
    where each read asks one statement, which sees one moment by itself. Raises InputError for what is no URL, Unavailable for what
    cannot be used; also where the block fails because values are not of the type of their columns.
    """
    url = parse_database(database)
    deadline, watchdog = Deadline(timeout), make_watchdog(url)
    warning = _warning_of_new_file(database, url) if is_missing_file(url) else ""
    with _naming_default(database):
        engine = memory_engine() if dry_run and is_missing_file(url) else _engine(url, deadline, watchdog)
    ledger = Ledger(url, engine, policy, dry_run, deadline, watchdog, snapshots=snapshots, made="" if dry_run else warning)
    try:
        with _naming_default(database):
            opened = _with_tables(ledger)
        try:
            yield opened
        except InputError:
            raise
        except _OF_WRONG_TYPES:
            opened.read(_refuse_damaged)
            raise
    finally:
        ledger.close()


@contextmanager
def _naming_default(database: str | None) -> Iterator[None]:
    """Say of a file that nobody has named, and that cannot be used, what names another database."""
    try:
        yield
    except OutcomeUnknown:
        raise
    except Unavailable as error:
        if not is_default(database):
            raise
        raise Unavailable(f"{error}; name another database with the option database or with {ENVIRONMENT}") from None


def _refuse_damaged(connection: sa.Connection) -> None:
    """Raise Unavailable for a database that the ledger itself would not have written."""
    found = audit(connection)
    if found:
        says = "; ".join(finding.says for finding in found[:_FEW])
        raise Unavailable(f"the database {describe(connection.engine.url)} was edited by hand, and an audit of it says: {says}")


def _warning_of_new_file(database: str | None, url: sa.URL) -> str:
    """Return the warning for a file that is made because no database was named, or where it will be gone with the job.

    Raises Unavailable for one that was not named and would not outlive the job.
    """
    named = not is_default(database)
    if not named and (why := why_default_is_lost()):
        raise Unavailable(
            f"no database is named, and {why}: {describe(url)} would be new and empty at every job. Name a database on a server or on a "
            f"volume with the option database or the environment variable {ENVIRONMENT}"
        )
    lost = "".join(loss_warnings(Path(url.database or ""), f"the option database, or with {ENVIRONMENT}"))
    return (
        lost
        if named or lost
        else f"no database was named, so a new ledger was made: {describe(url)}. Name it with the option database or with {ENVIRONMENT}"
    )


@contextmanager
def ledger_of(world: World, policy: RetryPolicy = PATIENT) -> Iterator[Ledger]:
    """Open a ledger in memory that holds a world given inline; it ends with the task."""
    engine = memory_engine()
    ledger = Ledger(engine.url, engine, policy)
    try:
        ledger.write(lambda connection: upgrade(connection, read_scripts()))
        ledger.write(lambda connection: store_world(connection, world))
        yield ledger
    finally:
        ledger.close()


def load_world(database: str | None = None, timeout: float = DEFAULT_TIMEOUT) -> World:
    """Return all that a database holds at this moment; one that is not there yet holds nothing. Raises InputError and Unavailable."""

    def read(connection: sa.Connection) -> World:
        # The caller would not know why it cannot compute with such values.
        refuse_mistyped(connection)
        return read_world(connection)

    with open_ledger(database, dry_run=True, timeout=timeout) as ledger:
        return ledger.read(read)


def _engine(url: sa.URL, deadline: Deadline, watchdog: Watchdog | None) -> sa.Engine:
    try:
        return make_engine(url, deadline, watchdog)
    except OSError as error:
        raise Unavailable(f"the directory of the database {describe(url)} cannot be made ({error.strerror})") from None


def _with_tables(ledger: Ledger) -> Ledger:
    revision = ledger.read(revision_at_connect)
    if revision == NEWEST:
        return ledger
    scripts = read_scripts()
    refuse_newer(revision, scripts)
    if not ledger.dry_run:
        # What is in doubt of a task is not what is in doubt of its tables.
        ledger.write(lambda connection: upgrade(connection, scripts), Outcome())
        return ledger
    if revision is not None:
        raise Unavailable(
            f"the database {describe(ledger.url)} is from an older release; the next task that changes something brings it up to date"
        )
    found = ledger.read(tables_without_revision)
    if found:
        raise Unavailable(
            f"the database {describe(ledger.url)} has tables of a ledger ({listed(found, _FEW)}), but does not say of which revision they "
            "are: its table alembic_version is missing or empty. Restore the database; or, if that table alone is lost, run a task that "
            "changes something, which completes the tables and writes their revision"
        )
    stand_in = Ledger(ledger.url, memory_engine(), ledger.policy)
    stand_in.write(lambda connection: upgrade(connection, scripts))
    return Ledger(ledger.url, stand_in.engine, ledger.policy, dry_run=True)
