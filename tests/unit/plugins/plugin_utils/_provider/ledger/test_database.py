# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Databases that cannot be used: each gives one sentence; and dry runs that leave them as they are."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Unavailable
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger import migrate as schema
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger import open as open_module
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger import url as url_module
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.import_world import store_world
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import ledger_of, load_world, open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.tables import metadata
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.worlds import read_world
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world

ROWS_OF_THE_FIRST_RELEASE = """
INSERT INTO traits VALUES ('MISC_SHARES_VIA_AGGREGATE');
INSERT INTO resource_classes VALUES ('VCPU');
INSERT INTO resource_providers VALUES (1, '11111111-2222-4333-8444-555555555551', 'host', 0, NULL);
INSERT INTO resource_providers VALUES (2, '11111111-2222-4333-8444-555555555552', 'numa', 0, 1);
INSERT INTO resource_providers VALUES (3, '11111111-2222-4333-8444-555555555553', 'pool', 0, NULL);
INSERT INTO provider_traits VALUES (3, 'MISC_SHARES_VIA_AGGREGATE');
INSERT INTO provider_aggregates VALUES (3, '11111111-2222-4333-8444-555555555554');
INSERT INTO inventories VALUES (2, 'VCPU', 10, 0, 1, 4, 1, 1.49, 3), (3, 'VCPU', 11, 1, 1, 100, 1, 1.0, 0);
INSERT INTO consumers VALUES (1, '11111111-2222-4333-8444-555555555555', 1, NULL, NULL);
INSERT INTO allocations VALUES (1, 2, 'VCPU', 3);
"""
ROW_OF_A_PROVIDER = (
    "INSERT INTO resource_providers (id, uuid, name, generation, root_id) VALUES (1, '11111111-2222-4333-8444-555555555551', 'host', 0, 1)"
)


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/deep/ledger.sqlite"


def make(url):
    with open_ledger(url):
        pass


def path_of(url):
    return Path(url.removeprefix("sqlite:///"))


def says(url, dry_run=False):
    with pytest.raises(Unavailable) as error, open_ledger(url, dry_run=dry_run):
        pass
    assert "\n" not in str(error.value)
    return str(error.value)


def test_default_is_the_environment_then_a_file(monkeypatch, tmp_path):
    monkeypatch.setenv("BAREON_DATABASE", "postgresql://u@h/d")
    assert url_module.default_database() == "postgresql://u@h/d"
    monkeypatch.delenv("BAREON_DATABASE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert url_module.default_database() == f"sqlite:///{tmp_path}/bareon/providers.sqlite"
    with open_ledger():
        assert (tmp_path / "bareon" / "providers.sqlite").exists()


@pytest.mark.parametrize(
    ("given", "drivername"),
    [
        ("sqlite:///x", "sqlite"),
        ("postgresql://h/d", "postgresql+psycopg"),
        ("mariadb://h/d", "mysql+pymysql"),
        ("mysql+mysqldb://h/d", "mysql+pymysql"),
        ("postgresql+pg8000://h/d", "postgresql+pg8000"),
    ],
)
def test_url_gets_the_tested_driver(given, drivername):
    assert url_module.parse_database(given).drivername.startswith(drivername)


@pytest.mark.parametrize("given", ["/var/lib/x.sqlite", "oracle://h/d", "nonsense"])
def test_what_is_no_url_is_an_input_error(given):
    with pytest.raises(InputError, match="^database: "):
        url_module.parse_database(given)


def test_tables_are_made_on_first_use_and_are_those_of_the_model(url):
    with open_ledger(url) as ledger, ledger.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    with open_ledger(url) as ledger:
        assert ledger.read(schema.current_revision) == schema.read_scripts().get_current_head()


def test_many_processes_make_the_tables_at_once(url):
    package = "ansible_collections.bareon.allocator.plugins.plugin_utils._provider"
    code = f"from {package}.ledger.open import open_ledger\nwith open_ledger({url!r}): pass"
    started = [subprocess.Popen([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}) for _unused in range(6)]
    assert [process.wait(120) for process in started] == [0] * 6
    assert load_world(url).providers == ()


def test_newer_revision(url):
    make(url)
    with sqlite3.connect(path_of(url)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'from_the_future'")
    assert "revision 'from_the_future', which this release of bareon.allocator does not know" in says(url)
    assert "from_the_future" in says(url, dry_run=True)


def test_older_revision_is_upgraded_but_not_in_a_dry_run(url, tmp_path, monkeypatch):
    make(url)
    newer = tmp_path / "migrations"
    (newer / "versions").mkdir(parents=True)
    for script in (schema.MIGRATIONS / "versions").glob("*.py"):
        (newer / "versions" / script.name).write_text(script.read_text())
    body = ["def upgrade():", "    op.execute('CREATE TABLE more (id INTEGER)')"]
    lines = ["from alembic import op", "revision = 'more'", f"down_revision = '{schema.NEWEST}'", *body]
    (newer / "versions" / "more.py").write_text("\n".join(lines))
    scripts = schema.read_scripts(newer)
    monkeypatch.setattr(open_module, "read_scripts", lambda: scripts)
    monkeypatch.setattr(open_module, "NEWEST", "more")
    assert "is from an older release" in says(url, dry_run=True)
    with open_ledger(url) as ledger:
        assert ledger.read(schema.current_revision) == "more"


@pytest.mark.parametrize("lost", ["DROP TABLE alembic_version", "DELETE FROM alembic_version"])
def test_tables_without_their_revision_are_no_empty_ledger(url, lost):
    make(url)
    with sqlite3.connect(path_of(url)) as connection:
        connection.executescript(f"{ROW_OF_A_PROVIDER}; {lost}")
    told = says(url, dry_run=True)
    assert "has tables of a ledger (aggregates, allocations, consumers and 12 more)" in told
    assert "its table alembic_version is missing or empty" in told
    assert "Restore the database" in told
    make(url)
    assert [provider.name for provider in load_world(url).providers] == ["host"]


def test_tables_of_others_are_no_ledger(url):
    path_of(url).parent.mkdir()
    with sqlite3.connect(path_of(url)) as connection:
        connection.executescript("CREATE TABLE invoices (id INTEGER); CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
    assert load_world(url).providers == ()


def test_rows_of_the_first_release_are_found_by_what_they_are(url, tmp_path, monkeypatch):
    first = tmp_path / "migrations"
    (first / "versions").mkdir(parents=True)
    (first / "versions" / "ledger.py").write_text((schema.MIGRATIONS / "versions" / "ledger.py").read_text())
    with monkeypatch.context() as old:
        scripts = schema.read_scripts(first)
        old.setattr(open_module, "read_scripts", lambda: scripts)
        old.setattr(open_module, "NEWEST", "ledger")
        make(url)
    with sqlite3.connect(path_of(url)) as connection:
        connection.executescript(ROWS_OF_THE_FIRST_RELEASE)
    with open_ledger(url) as ledger:
        assert ledger.read(audit) == []
        columns = "SELECT provider_id, root_id, sharing, capacity, most FROM inventories ORDER BY provider_id"
        assert ledger.read(lambda connection: list(map(tuple, connection.exec_driver_sql(columns)))) == [
            (2, 1, 0, 14, 4),
            (3, 3, 1, 10, 10),
        ]


def test_the_newest_revision_is_that_of_the_migrations():
    assert schema.read_scripts().get_current_head() == schema.NEWEST


def test_file_of_another_kind(url):
    path_of(url).parent.mkdir()
    path_of(url).write_text("not a database, but long enough to look like the header of one\n" * 9)
    assert "is a file of another kind" in says(url)


def test_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be made" in says(f"sqlite:///{tmp_path}/file/below/ledger.sqlite")


def test_directory_in_place_of_the_file(tmp_path):
    assert "cannot be opened" in says(f"sqlite:///{tmp_path}")


@pytest.mark.parametrize("through", ["one link", "a chain of links", "a link to a file that is there"])
def test_a_link_of_ones_own_leads_to_the_ledger(url, tmp_path, through):
    """A ledger may lie on another disk. What is created there is its owner's alone, too, whatever the umask is."""
    real, link = tmp_path / "data" / "real.sqlite", path_of(url)
    link.parent.mkdir()
    if through == "a chain of links":
        link.symlink_to("next")
        link = link.parent / "next"
    link.symlink_to(real)
    if through == "a link to a file that is there":
        make(f"sqlite:///{real}")
    umask = os.umask(0)
    try:
        make(url)
    finally:
        os.umask(umask)
    assert path_of(url).is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert stat.S_IMODE(real.parent.stat().st_mode) == 0o700
    with closing(sqlite3.connect(real)) as connection:
        assert connection.execute("SELECT count(*) FROM resource_providers").fetchone() == (0,)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_link_of_another_user_is_refused(url, tmp_path, monkeypatch, there, dry_run):
    """Where others may write they could choose which file is read as a ledger, and where one is created."""
    real = tmp_path / "theirs.sqlite"
    if there:
        make(f"sqlite:///{real}")
    path_of(url).parent.mkdir()
    path_of(url).symlink_to(real)
    user = os.geteuid()
    if user == 0:
        os.lchown(path_of(url), 65534, 65534)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    if there or not dry_run:
        assert "symbolic link of another user" in says(url, dry_run)
    assert real.exists() == there


def test_links_in_a_circle_are_no_ledger(url):
    path_of(url).parent.mkdir()
    path_of(url).symlink_to(path_of(url))
    assert path_of(url).name in says(url)


def test_read_only_file(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make(url)
    read_only = f"{url.replace('sqlite:///', 'sqlite:///file:')}?mode=ro&uri=true"
    with open_ledger(read_only) as ledger, pytest.raises(Unavailable, match="is read-only"):
        ledger.write(lambda connection: connection.exec_driver_sql("DELETE FROM consumers"))
    assert not (tmp_path / "file:").exists(), "a URI is no path"


@pytest.mark.parametrize("written", ["file:{}?mode=ro&uri=true", "file://{}?uri=true"])
def test_what_a_uri_names_is_read_by_dry_runs(url, written):
    with open_ledger(url) as ledger:
        ledger.write(lambda connection: store_world(connection, parse_world({"providers": [{"name": "host"}]})))
    path = url.removeprefix("sqlite:///")
    with open_ledger(f"sqlite:///{written.format(path)}", dry_run=True) as ledger:
        assert [provider.name for provider in ledger.read(read_world).providers] == ["host"]


def test_full_disk(url):
    with open_ledger(url) as ledger:

        def fill(connection):
            connection.exec_driver_sql("PRAGMA max_page_count = 1")
            connection.exec_driver_sql("INSERT INTO traits (name) SELECT hex(zeroblob(100000))")

        with pytest.raises(Unavailable, match="the disk is full"):
            ledger.write(fill)


@pytest.mark.parametrize("given", ["postgresql://somebody:secret@127.0.0.1:1/ledger", "mariadb://somebody:secret@127.0.0.1:1/ledger"])
def test_server_that_is_down(given):
    sentence = says(given)
    assert re.search(r"^the database \S+ does not answer", sentence)
    assert "secret" not in sentence


def test_driver_that_is_not_installed():
    assert "needs the Python library" in says("postgresql+psycopg2cffi://h/d")


def test_dry_run_makes_no_file(url):
    with open_ledger(url, dry_run=True) as ledger:
        ledger.write(lambda connection: connection.exec_driver_sql("INSERT INTO traits (name) VALUES ('X')"))
    assert not path_of(url).exists()


def test_dry_run_on_an_empty_file_leaves_it_empty(url):
    path_of(url).parent.mkdir()
    sqlite3.connect(path_of(url)).close()
    with open_ledger(url, dry_run=True) as ledger:
        ledger.write(lambda connection: connection.exec_driver_sql("INSERT INTO traits (name) VALUES ('X')"))
    with sqlite3.connect(path_of(url)) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def test_dry_run_takes_everything_back(url):
    make(url)
    with open_ledger(url, dry_run=True) as ledger:
        added = ledger.write(lambda connection: connection.exec_driver_sql("INSERT INTO traits (name) VALUES ('X')").rowcount)
        assert added == 1
        assert ledger.read(lambda connection: connection.exec_driver_sql("SELECT count(*) FROM traits").scalar()) == 0


def test_inline_world_is_the_same_world_in_a_ledger(unaudited):
    data = {
        "providers": [{"name": "a", "inventories": {"VCPU": 4}}, {"name": "b", "parent": "a", "traits": ["CUSTOM_X"]}],
        "allocations": {"11111111-2222-4333-8444-555555555555": {"a": {"VCPU": 4}}},
        "custom_classes": ["CUSTOM_IDLE"],
    }
    world = parse_world(data)
    with ledger_of(world) as ledger:
        from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.worlds import read_world

        stored = ledger.read(read_world)
    assert (stored.providers, stored.allocations, stored.known_names()) == (world.providers, world.allocations, world.known_names())
