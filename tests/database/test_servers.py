# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers that refuse: each gives one sentence; and tables that are those of the model on every server."""

from __future__ import annotations

import pytest
import sqlalchemy
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import Unavailable
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import load_world, open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.tables import metadata
from ansible_collections.bareon.allocator.tests.support.provider.old_ledgers import check_migrated, fill_named, make_ledger
from sqlalchemy import make_url
from sqlalchemy.dialects.mysql import LONGTEXT


def says(url):
    with pytest.raises(Unavailable) as error, open_ledger(url.render_as_string(hide_password=False)) as ledger:
        ledger.write(lambda connection: connection.exec_driver_sql("DELETE FROM traits WHERE name = 'nothing'"))
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request):
    """The URL of a server whose ledger has been opened once."""
    url = request.getfixturevalue(request.param)
    with open_ledger(url):
        return make_url(url)


def is_of_another_type(context, _inspected, _column, found, wanted):
    """Say that MariaDB makes a text LONGTEXT that is declared too long for the others; None leaves the comparison to Alembic."""
    return False if isinstance(found, LONGTEXT) and wanted.dialect_impl(context.dialect).length == 2**24 else None


def test_tables_are_those_of_the_model(server):
    with open_ledger(server.render_as_string(hide_password=False)) as ledger, ledger.engine.connect() as connection:
        options = {
            "include_name": lambda name, kind, _parents: kind != "table" or name in metadata.tables,
            "compare_type": is_of_another_type,
        }
        own = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(own, metadata) == []


def test_consumers_of_an_earlier_release_belong_to_whom_they_did(server, tmp_path):
    with sqlalchemy.create_engine(server, isolation_level="AUTOCOMMIT").connect() as connection:
        connection.exec_driver_sql("CREATE DATABASE earlier")
    url = server.set(database="earlier").render_as_string(hide_password=False)
    engine = make_ledger(url, "named", tmp_path / "migrations")
    fill_named(engine)
    engine.dispose()
    check_migrated(url)
    with open_ledger(url) as ledger:
        assert ledger.read(audit) == []


def test_tables_without_their_revision_are_no_empty_ledger(server):
    url = server.render_as_string(hide_password=False)
    with open_ledger(url) as ledger:
        ledger.write(lambda connection: connection.exec_driver_sql("DELETE FROM alembic_version"))
    with pytest.raises(Unavailable, match="its table alembic_version is missing or empty"):
        load_world(url)
    with open_ledger(url):
        load_world(url)


def test_database_that_is_not_there(server):
    assert "does not exist on the server" in says(server.set(database="nowhere"))


def test_user_that_is_not_known(server):
    sentence = says(server.set(username="stranger", password="secret"))
    assert "refuses this user or password" in sentence
    assert "secret" not in sentence


def test_server_that_is_down(server):
    assert "does not answer" in says(server.set(port=1))


def test_read_only_postgresql(postgresql):
    with open_ledger(postgresql):
        pass
    assert "is read-only" in says(make_url(postgresql).update_query_dict({"options": "-c default_transaction_read_only=on"}))


def test_read_only_mariadb(mariadb):
    with open_ledger(mariadb) as ledger:
        ledger.write(lambda connection: connection.exec_driver_sql("CREATE USER IF NOT EXISTS onlooker"))
        ledger.write(lambda connection: connection.exec_driver_sql("GRANT SELECT, CREATE ON ledger.* TO onlooker"))
        ledger.write(lambda connection: connection.exec_driver_sql("SET GLOBAL read_only = ON"))
        try:
            assert "is read-only" in says(make_url(mariadb).set(username="onlooker"))
        finally:
            ledger.write(lambda connection: connection.exec_driver_sql("SET GLOBAL read_only = OFF"))


def test_user_without_rights(mariadb):
    with open_ledger(mariadb) as ledger:
        ledger.write(lambda connection: connection.exec_driver_sql("CREATE USER IF NOT EXISTS looker"))
        ledger.write(lambda connection: connection.exec_driver_sql("GRANT SELECT ON ledger.* TO looker"))
    assert "does not grant this user what the ledger needs" in says(make_url(mariadb).set(username="looker"))
