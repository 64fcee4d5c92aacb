# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The databases that the ledger must hold on: SQLite, PostgreSQL, MariaDB, and two nodes of a Galera cluster."""

from __future__ import annotations

import uuid

import pytest
import sqlalchemy
from ansible_collections.bareon.allocator.tests.support.provider import servers


@pytest.fixture(scope="session")
def postgresql():
    with servers.postgresql() as url:
        yield url


@pytest.fixture(scope="session")
def mariadb():
    with servers.mariadb() as url:
        yield url


@pytest.fixture(scope="session")
def galera():
    with servers.galera() as urls:
        yield urls


@pytest.fixture(params=["sqlite", "postgresql", "mariadb", "galera"])
def nodes(request, tmp_path):
    """URLs of one and the same database, to be shared out among writers."""
    if request.param == "sqlite":
        return [f"sqlite:///{tmp_path}/ledger.sqlite"]
    found = request.getfixturevalue(request.param)
    return found if isinstance(found, list) else [found]


@pytest.fixture(params=["postgresql", "mariadb", "galera"])
def empty(request):
    """URLs of one database without tables."""
    found = request.getfixturevalue(request.param)
    urls = [sqlalchemy.make_url(url) for url in (found if isinstance(found, list) else [found])]
    name = f"empty_{uuid.uuid4().hex[:8]}"
    engine = sqlalchemy.create_engine(urls[0], isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    return [url.set(database=name).render_as_string(hide_password=False) for url in urls]
