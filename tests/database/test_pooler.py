# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger behind PgBouncer, which may give each transaction another connection to PostgreSQL."""

from __future__ import annotations

import os
import uuid

import pytest
import sqlalchemy
from ansible_collections.bareon.allocator.tests.support.provider import servers
from ansible_collections.bareon.allocator.tests.support.provider.histories import History

TASKS = int(os.environ.get("TEST_HISTORIES", "400"))


@pytest.fixture
def empty(postgresql):
    """The URL of a database without tables, on the server itself."""
    url = sqlalchemy.make_url(postgresql).set(database=f"pooled_{uuid.uuid4().hex[:8]}")
    engine = sqlalchemy.create_engine(postgresql, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {url.database}")
    engine.dispose()
    return url.render_as_string(hide_password=False)


# Each controller of a history keeps two connections, which a session holds until its end.
@pytest.mark.parametrize(("mode", "connections"), [("transaction", 3), ("session", 8)])
def test_every_task_ends_as_the_model_says(empty, mode, connections):
    with servers.pgbouncer(empty, mode, connections) as pooled:
        history = History([pooled] * 3, mode)
        history.run(TASKS)
    assert min(history.ended[how] for how in ("refused", "changed", "same")) > TASKS // 50


def test_other_clients_of_a_pool_keep_their_own_settings(empty):
    names = ("lock_timeout", "idle_in_transaction_session_timeout", "jit", "random_page_cost")

    def settings(url):
        engine = sqlalchemy.create_engine(url)
        with engine.connect() as connection:
            found = [connection.exec_driver_sql(f"SHOW {name}").scalar() for name in names]
        engine.dispose()
        return found

    before = settings(empty)
    with servers.pgbouncer(empty, "transaction", 1) as pooled:
        History([pooled], "settings").run(20)
        assert settings(pooled) == before
