# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Retries: lost races are run again as a whole, everything else is not, and there is an end to it."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution, Unavailable
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.database import KeptConnection
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.deadline import Deadline
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import Ledger, open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.retry import (
    LostRace,
    Outcome,
    RetryPolicy,
    is_lost_race,
    run_transaction,
)
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, IntegrityError

QUICK = RetryPolicy(retries=3, first=0.0001, longest=0.001)


class DriverError(Exception):
    """What a driver raises: PostgreSQL's carry a state, MariaDB's a number."""

    def __init__(self, *args, sqlstate=None, sqlite_errorcode=None):
        super().__init__(*args)
        if sqlstate:
            self.sqlstate = sqlstate
        if sqlite_errorcode:
            self.sqlite_errorcode = sqlite_errorcode


@pytest.fixture
def ledger(tmp_path):
    with open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite", QUICK) as opened:
        yield opened


def count_traits(connection):
    return connection.exec_driver_sql("SELECT count(*) FROM traits").scalar()


def test_whole_transaction_is_run_again(ledger):
    attempts = []

    def work(connection):
        attempts.append(count_traits(connection))
        connection.exec_driver_sql("INSERT INTO traits (name) VALUES ('X')")
        if len(attempts) < 3:
            raise LostRace
        return "done"

    assert ledger.write(work) == "done"
    assert attempts == [0, 0, 0]
    assert ledger.read(count_traits) == 1


def test_deadlock_at_commit_is_run_again(ledger):
    """Galera certifies at COMMIT: a node that was second learns only then that its whole transaction is void."""
    refusals = [1213, 1213]

    @event.listens_for(ledger.engine, "commit")
    def refuse(_connection):
        if refusals:
            raise DBAPIError(
                "COMMIT", {}, DriverError(refusals.pop(), "Deadlock found when trying to get lock; try restarting transaction")
            )

    attempts = []

    def work(connection):
        attempts.append(count_traits(connection))
        connection.exec_driver_sql("INSERT INTO traits (name) VALUES ('X')")

    ledger.write(work)
    assert attempts == [0, 0, 0]
    assert ledger.read(count_traits) == 1


def test_there_is_an_end_to_it(ledger):
    attempts = []

    def work(_connection):
        attempts.append(1)
        raise LostRace

    with pytest.raises(NoSolution, match="each of 4 attempts lost a race") as error:
        ledger.write(work)
    assert len(attempts) == 4
    assert error.value.conflict == {"attempts": 4}


def test_other_errors_are_not_run_again(ledger):
    attempts = []

    def work(connection):
        attempts.append(1)
        connection.exec_driver_sql("INSERT INTO nowhere VALUES (1)")

    with pytest.raises(Unavailable, match="no such table"):
        ledger.write(work)
    assert len(attempts) == 1


@pytest.mark.parametrize(
    ("original", "lost"),
    [
        (DriverError(1213, "Deadlock"), True),
        (DriverError(1205, "Lock wait timeout"), True),
        (DriverError(1020, "Record has changed since last read"), True),
        (DriverError("deadlock", sqlstate="40P01"), True),
        (DriverError("could not serialize", sqlstate="40001"), True),
        (DriverError("database is locked", sqlite_errorcode=5), True),
        (DriverError("database is locked (snapshot)", sqlite_errorcode=517), True),
        (DriverError("table is locked", sqlite_errorcode=6), True),
        (DriverError(1045, "Access denied"), False),
        (DriverError("disk full", sqlstate="53100"), False),
        (DriverError("readonly", sqlite_errorcode=8), False),
        (DriverError(), False),
    ],
)
def test_what_a_lost_race_is(original, lost):
    assert is_lost_race(DBAPIError("", {}, original)) is lost


def test_a_key_that_came_in_between_is_a_lost_race():
    assert is_lost_race(IntegrityError("", {}, DriverError("duplicate")))


def test_pauses_grow_up_to_the_longest_and_differ():
    policy = RetryPolicy(retries=12, first=0.01, longest=0.2)
    many = [list(policy.pauses()) for _unused in range(200)]
    assert all(len(pauses) == 12 for pauses in many)
    assert all(0 <= pause <= min(0.2, 0.01 * 2**retry) for pauses in many for retry, pause in enumerate(pauses))
    assert len({pauses[0] for pauses in many}) > 100


def test_result_is_that_of_the_attempt_that_was_kept(ledger):
    assert run_transaction(KeptConnection(ledger.engine), QUICK, count_traits, Deadline(), Outcome()) == 0
    assert isinstance(ledger, Ledger)


def test_a_connection_is_kept_until_an_error(tmp_path):
    with open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite", QUICK) as ledger:
        used = []
        for _unused in range(3):
            ledger.write(used.append)
        assert used[0] is used[1] is used[2]
        with pytest.raises(ZeroDivisionError):
            ledger.write(lambda connection: 1 / 0)
        ledger.write(used.append)
        assert used[3] is not used[2]
        assert used[2].closed
        assert ledger.read(count_traits) == 0
    assert used[3].closed
