# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups hold every acknowledged claim, and a restored ledger nothing of what was there before."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Unavailable
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import load_world, open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes, parse_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import put_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.backup import run_provider_backup, run_provider_restore
from ansible_collections.bareon.allocator.tests.support.provider.old_ledgers import fill_named, make_ledger


class Site:
    """A ledger in a file that another process has open all the time, so that its log stays beside it."""

    def __init__(self, folder):
        self.file, self.saved = folder / "ledger.sqlite", folder / "saved.sqlite"
        self.url = f"sqlite:///{self.file}"
        with open_ledger(self.url) as ledger:
            changes = parse_changes([{"name": "host", "inventories": {"VCPU": 100}}], "providers[{}]")
            ledger.write(lambda connection: put_providers(connection, changes))
        self.other = sqlite3.connect(self.file, isolation_level=None)
        self.other.execute("SELECT count(*) FROM consumers").fetchall()

    def claim(self, *names):
        with open_ledger(self.url) as ledger:
            for name in names:
                make_claims(ledger, parse_claims([{"consumer": name, "allocations": {"host": {"VCPU": 1}}}], "consumers[{}]"))

    def back_up(self, dry_run=False, **options):
        return run_provider_backup({"database": self.url, "timeout": 5.0, "path": str(self.saved), **options}, dry_run=dry_run)

    def restore(self, dry_run=False, **options):
        return run_provider_restore({"database": self.url, "timeout": 5.0, "path": str(self.saved), **options}, dry_run=dry_run)

    def names(self, url=None):
        return set(load_world(url or self.url).consumer_names.values())


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    with closing(made.other):
        yield made


def test_a_backup_has_what_a_copy_of_the_file_lacks(site, tmp_path):
    site.claim("a", "b", "c")
    assert (site.file.parent / "ledger.sqlite-wal").stat().st_size
    result = site.back_up()
    assert (result["providers"], result["consumers"], result["audit"]) == (1, 3, [])
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith((".", "saved"))) == ["saved.sqlite"]
    assert site.saved.stat().st_mode & 0o777 == 0o600
    shutil.copy(site.saved, tmp_path / "moved.sqlite")
    assert site.names(f"sqlite:///{tmp_path}/moved.sqlite") == {"a", "b", "c"}


def test_a_restored_ledger_is_what_was_saved_whatever_lies_in_the_log(site):
    site.claim("a")
    site.back_up()
    site.claim("b", "c")
    assert site.restore()["consumers"] == 1
    assert site.names() == {"a"}
    assert site.other.execute("SELECT count(*) FROM consumers").fetchone() == (1,)
    site.claim("d")
    assert site.names() == {"a", "d"}


def test_a_writer_is_not_overtaken(site):
    site.claim("a")
    site.back_up()
    site.claim("b")
    site.other.execute("BEGIN IMMEDIATE")
    for dry_run in (False, True):
        with pytest.raises(Unavailable, match="is being written to by another program"):
            site.restore(dry_run=dry_run)
    site.other.execute("ROLLBACK")
    assert site.names() == {"a", "b"}


def test_a_damaged_file_is_replaced_with_its_log(site):
    site.claim("a")
    site.back_up()
    site.claim("b")
    site.other.close()
    site.file.write_bytes(b"no database, but long enough to look like the header of one " * 99)
    (site.file.parent / "ledger.sqlite-wal").write_bytes(b"of another file")
    site.restore()
    assert site.names() == {"a"}
    site.claim("c")
    assert site.names() == {"a", "c"}


def test_check_mode_writes_nothing(site, tmp_path):
    site.claim("a")
    assert site.back_up(dry_run=True)["consumers"] == 1
    assert not site.saved.exists()
    site.back_up()
    site.claim("b")
    assert site.restore(dry_run=True)["consumers"] == 1
    assert site.names() == {"a", "b"}


def test_a_ledger_that_is_gone_is_restored_and_one_of_an_earlier_release_brought_up_to_date(tmp_path):
    fill_named(make_ledger(f"sqlite:///{tmp_path}/old.sqlite", "named", tmp_path / "migrations"))
    arguments = {"database": f"sqlite:///{tmp_path}/deep/new.sqlite", "timeout": 5.0, "path": str(tmp_path / "old.sqlite")}
    assert run_provider_restore(arguments, dry_run=False)["consumers"] == 3
    assert set(load_world(arguments["database"]).consumer_names.values()) == {"ci-1", "vm"}
    assert (tmp_path / "deep" / "new.sqlite").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"path": "/nowhere/saved.sqlite"}, "path: there is no file"),
        ({"path": "ledger.sqlite"}, "is the database itself"),
    ],
)
def test_what_cannot_be_restored_is_a_mistake(site, options, says, monkeypatch):
    monkeypatch.chdir(site.file.parent)
    site.back_up()
    with pytest.raises(InputError, match=says):
        site.restore(**options)


def test_a_backup_that_is_no_ledger_is_refused(site, tmp_path):
    site.claim("a")
    (tmp_path / "text").write_text("no database, but long enough to look like the header of one\n" * 99)
    with closing(sqlite3.connect(tmp_path / "other")) as other:
        other.execute("CREATE TABLE invoices (id INTEGER)")
    for name, says in (("text", "cannot be read as a ledger"), ("other", "is no backup of a ledger")):
        with pytest.raises(InputError, match=says):
            site.restore(path=str(tmp_path / name))
    assert site.names() == {"a"}


def test_a_file_without_a_folder_cannot_be_written(site, tmp_path):
    for path, says in ((tmp_path / "none" / "x", "there is no folder"), (tmp_path, "is a folder")):
        with pytest.raises(InputError, match=says):
            site.back_up(path=str(path))


def test_there_is_nothing_to_back_up_before_the_first_task(tmp_path):
    with pytest.raises(Unavailable, match="nothing to back up"):
        run_provider_backup({"database": f"sqlite:///{tmp_path}/none.sqlite", "timeout": 5.0, "path": str(tmp_path / "x")}, dry_run=False)


@pytest.mark.parametrize("name", ["a?b", "a%41b", "a#b", "a b@c", "a?mode=memory", "file:x?mode=rwc&uri=true", "a\nb", "{{ a }}", "-x"])
def test_a_path_is_no_url(site, tmp_path, name):
    site.claim("a", "b")
    folder = tmp_path / name
    folder.mkdir()
    assert site.back_up(path=str(folder / name))["consumers"] == 2
    assert [path.name for path in folder.iterdir()] == [name]
    site.claim("c")
    assert site.restore(path=str(folder / name))["consumers"] == 2
    assert site.names() == {"a", "b"}
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("ledger")) == [name]


def test_a_log_beside_the_backup_is_not_read_into_it(site, tmp_path):
    site.claim("a")
    site.back_up()
    with closing(sqlite3.connect(site.saved, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("UPDATE consumers SET name = 'of somebody else'")
        shutil.copy(tmp_path / "saved.sqlite-wal", tmp_path / "planted")
    (tmp_path / "planted").rename(tmp_path / "saved.sqlite-wal")
    site.claim("b")
    site.back_up()
    site.restore()
    assert site.names() == {"a", "b"}


@pytest.mark.parametrize(
    "program",
    [
        ["CREATE TRIGGER later AFTER INSERT ON consumers BEGIN UPDATE inventories SET total = 0; END"],
        ["CREATE TRIGGER consumers AFTER INSERT ON consumers BEGIN UPDATE inventories SET total = 0; END"],
        [
            "CREATE TRIGGER later AFTER INSERT ON consumers BEGIN UPDATE inventories SET total = 0; END",
            "PRAGMA writable_schema = ON",
            "UPDATE sqlite_master SET type = 'table' WHERE type = 'trigger'",
        ],
        [
            "ALTER TABLE consumers RENAME TO other",
            "CREATE VIEW consumers AS WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS id, x AS uuid FROM n",
        ],
    ],
)
def test_a_backup_with_programs_is_refused(site, program):
    site.claim("a")
    site.back_up()
    with closing(sqlite3.connect(site.saved)) as other:
        for statement in program:
            other.execute(statement)
        other.commit()
    with pytest.raises(InputError, match=r"path: .* (has triggers or views|cannot be read as a ledger) \((later|consumers|malformed)"):
        site.restore()
