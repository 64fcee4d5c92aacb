# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The databases that the ledger must hold on: SQLite, PostgreSQL, MariaDB, and two nodes of a Galera cluster."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location("bareon_test_servers", Path(__file__).with_name("servers.py"))
servers = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(servers)


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
