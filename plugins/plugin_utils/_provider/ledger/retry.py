# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a transaction, and again when it lost a race: as a whole, for no result of a lost one can be trusted.

A race is lost as a deadlock or serialisation failure (on Galera at COMMIT, when another node was first), as a locked SQLite file,
as a unique key that somebody else has just inserted, or as a generation that moved between reading and writing.

A connection that is lost is a race, too, and one that is lost at COMMIT leaves in doubt whether the transaction was carried out. What the
ledger does is declared, not added: run again, it finds out.
"""

from __future__ import annotations

import random
import time
import typing as t
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from ..._common.libraries import sa
from .deadline import Deadline

T = t.TypeVar("T")

_POSTGRESQL_RACES = frozenset({"40001", "40P01", "55P03"})
_MYSQL_RACES = frozenset({1205, 1213, 1020, 1412})
"""1412: the tables were brought up to date while the transaction ran."""
_POSTGRESQL_LOST = ("08", "57P", "25P03")
_MYSQL_LOST = frozenset({0, 1053, 1927, 2002, 2003, 2006, 2013, 2014, 2055, 4031})
_SQLITE_BUSY = 5
_LOCKED_PAUSE = 0.02
_SQLITE_RACES = frozenset({5, 6})
_SQLITE_PRIMARY_CODE = 0xFF


class LostRace(Exception):
    """Another transaction changed what this one had read."""


class Overdue(Exception):
    """The deadline is over; the last attempt's error is the cause."""


@dataclass
class Outcome:
    """What is known of a ledger's writes: `in_doubt` once a connection was lost while a transaction was being committed."""

    in_doubt: bool = False


class OutOfRetries(Exception):
    """Every attempt lost a race; `attempts` says how many there were."""

    def __init__(self, attempts: int) -> None:
        super().__init__(f"each of {attempts} attempts lost a race against other writers")
        self.attempts = attempts


@dataclass(frozen=True)
class RetryPolicy:
    """How often a transaction is run again, and how many seconds it waits before: a random part of `first`, doubled up to `longest`."""

    retries: int = 40
    first: float = 0.004
    longest: float = 0.2

    def pauses(self) -> Iterator[float]:
        """Return the seconds to wait before each retry.

        "Full jitter" (M. Brooker, Exponential Backoff and Jitter, AWS Architecture Blog, 2015): competing writers spread out best.
        """
        for retry in range(self.retries):
            yield random.uniform(0, min(self.longest, self.first * 2**retry))


PATIENT = RetryPolicy()
"""What is used where nobody says otherwise."""


class Transactions(t.Protocol):
    """Where transactions are begun, one after the other."""

    @property
    def engine(self) -> sa.Engine:
        """What connects."""

    def begin(self) -> AbstractContextManager[sa.Connection]:
        """Begin one, which is committed at the end of the block."""


def run_transaction(
    transactions: Transactions, policy: RetryPolicy, work: Callable[[sa.Connection], T], deadline: Deadline, outcome: Outcome
) -> T:
    """Return what `work` returns, its changes committed; lost races are run again until the deadline.

    Raises OutOfRetries, Overdue, what `work` raises, and DBAPIError for what is no race; `outcome` says whether a COMMIT was lost.
    """
    pauses = policy.pauses()
    while True:
        begun = committing = False
        try:
            with transactions.begin() as connection:
                begun = True
                result = work(connection)
                committing = connection.in_transaction()
            return result
        except (LostRace, sa.exc.DBAPIError) as error:
            is_cut = begun and is_lost_connection(error)
            outcome.in_doubt = outcome.in_doubt or (is_cut and committing)
            is_race = is_cut or is_lost_race(error)
            if deadline.is_over and (is_race or is_lost_connection(error)):
                raise Overdue from error
            if not is_race:
                raise
            pause = _LOCKED_PAUSE if is_locked(error) else next(pauses, None)
            if pause is None:
                raise OutOfRetries(policy.retries + 1) from error
        if is_cut:
            transactions.engine.dispose()
        time.sleep(min(pause, deadline.left))


def is_locked(error: Exception) -> bool:
    """Return whether a file of SQLite stayed locked until the deadline, or while it was opened: a wait, and no race."""
    return sqlite_code(getattr(error, "orig", None)) == _SQLITE_BUSY


def is_lost_connection(error: Exception) -> bool:
    """Return whether the server, or the way to it, is gone; whatever was sent last may have arrived or not."""
    if not isinstance(error, sa.exc.DBAPIError) or sqlite_code(error.orig) is not None:
        return False
    state, number = getattr(error.orig, "sqlstate", None), mysql_code(error.orig)
    if number is not None:
        return number in _MYSQL_LOST
    if state is None:
        return isinstance(error, (sa.exc.OperationalError, sa.exc.InterfaceError))
    return state.startswith(_POSTGRESQL_LOST)


def is_lost_race(error: Exception) -> bool:
    """Return whether running the whole transaction again may succeed."""
    if isinstance(error, (LostRace, sa.exc.IntegrityError)):
        # Everything is checked before it is written, so a violated key means that it came in between.
        return True
    original = getattr(error, "orig", None)
    return (
        getattr(original, "sqlstate", None) in _POSTGRESQL_RACES
        or sqlite_code(original) in _SQLITE_RACES
        or mysql_code(original) in _MYSQL_RACES
    )


def sqlite_code(original: BaseException | None) -> int | None:
    """Return the primary result code of an error of SQLite, None for any other error."""
    code = getattr(original, "sqlite_errorcode", None)
    return None if code is None else code & _SQLITE_PRIMARY_CODE


def mysql_code(original: BaseException | None) -> int | None:
    """Return the number of an error of MariaDB or MySQL, None for any other error."""
    code = original.args[0] if original is not None and original.args else None
    return code if isinstance(code, int) else None
