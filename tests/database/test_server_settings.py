# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers and databases whose administrators have set other modes, levels, zones and encodings: the ledger answers as everywhere."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from functools import partial

import pytest
import sqlalchemy
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import Unavailable
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import load_world, open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import put_providers
from ansible_collections.bareon.allocator.tests.support.provider.histories import History

MARIADB = {
    "strict": "sql_mode = ''",
    "ansi": "sql_mode = 'ANSI,ONLY_FULL_GROUP_BY,NO_AUTO_VALUE_ON_ZERO'",
    "oracle": "sql_mode = 'ORACLE'",
    "backslash": "sql_mode = 'NO_BACKSLASH_ESCAPES'",
    "level": "tx_isolation = 'SERIALIZABLE'",
    "zone": "time_zone = '+13:00'",
    "engine": "default_storage_engine = Aria",
    "keys": "foreign_key_checks = 0",
    "packet": "max_allowed_packet = 65536",
}
POSTGRESQL = {
    "level": "default_transaction_isolation = 'serializable'",
    "zone": "timezone = 'Pacific/Kiritimati'",
    "dates": "datestyle = 'SQL, DMY'",
    "strings": "standard_conforming_strings = off",
    "null": "transform_null_equals = on",
}


def execute(url, *statements):
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


def new_database(server, options=""):
    url = sqlalchemy.make_url(server).set(database=f"set_{uuid.uuid4().hex[:8]}")
    execute(server, f"CREATE DATABASE {url.database} {options}")
    return url


def run(url):
    history = History([url] * 2, "settings")
    history.run(50)
    assert history.ended["changed"] > 5


@contextmanager
def set_global(server, setting):
    execute(server, f"SET GLOBAL {setting}")
    try:
        yield
    finally:
        execute(server, f"SET GLOBAL {setting.split()[0]} = DEFAULT")


@pytest.mark.parametrize("setting", MARIADB.values(), ids=MARIADB)
def test_mariadb(mariadb, setting):
    url = new_database(mariadb)
    with set_global(mariadb, setting):
        run(url.render_as_string(hide_password=False))


@pytest.mark.parametrize("setting", POSTGRESQL.values(), ids=POSTGRESQL)
def test_postgresql(postgresql, setting):
    url = new_database(postgresql)
    execute(postgresql, f"ALTER DATABASE {url.database} SET {setting}")
    run(url.render_as_string(hide_password=False))


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "UTF8"])
def test_encodings_of_postgresql(postgresql, encoding):
    url = new_database(postgresql, f"ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    url = url.render_as_string(hide_password=False)

    def put(name):
        with open_ledger(url) as ledger:
            ledger.write(partial(put_providers, changes=parse_changes([{"name": name, "inventories": {"VCPU": 4}}], "providers[{}]")))

    put("zürich-1")
    if encoding == "LATIN1":
        with pytest.raises(Unavailable):
            put("東京-1")
    else:
        put("東京-1")
    world = load_world(url)
    assert {provider.name for provider in world.providers} == {"zürich-1"} | ({"東京-1"} if encoding != "LATIN1" else set())
