# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bring a database's tables to the newest revision; the migrations are files of this collection, run by Alembic."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ....module_utils._data.errors import Unavailable
from ..._common import libraries
from ..._common.libraries import sa
from .database import REVISION
from .retry import LostRace, mysql_code
from .statements import select_rows
from .tables import metadata

libraries.expect("alembic")

MIGRATIONS = Path(__file__).parent / "migrations"
NEWEST = "kept"
"""The revision of tables.py; where a database has it already, Alembic, which is dear to load, has nothing to do."""
_LOCK = 0x62617265
"""Any number that no other program uses for an advisory lock of the same database: the letters `bare`."""
_LOCK_SECONDS = 60
_MADE_MEANWHILE = frozenset({1050, 1060, 1061, 1091, 1317})
"""MariaDB's numbers for tables, columns and indexes that are there already, for indexes that are there no more, and for a statement that
Galera ends for that of another node.
"""
_HAS_REVISION = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'alembic_version'",
    "postgresql": "SELECT 1 WHERE to_regclass('alembic_version') IS NOT NULL",
    "mysql": "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'alembic_version'",
}
_TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table'",
    "postgresql": "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND pg_table_is_visible(oid)",
    "mysql": "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()",
}


def read_scripts(directory: Path = MIGRATIONS) -> libraries.alembic_script.ScriptDirectory:
    """Return the migrations in their one order."""
    return libraries.alembic_script.ScriptDirectory(directory)


def current_revision(connection: sa.Connection) -> str | None:
    """Return the revision of a database's tables, None when it has none."""
    # An inspector of SQLAlchemy takes as long as a whole search.
    if not select_rows(connection, _HAS_REVISION[connection.dialect.name]):
        return None
    found = select_rows(connection, "SELECT version_num FROM alembic_version")
    return str(found[0][0]) if found else None


def revision_at_connect(connection: sa.Connection) -> str | None:
    """Return the same of a connection that was just made, which may know it already."""
    return connection.info.get(REVISION) or current_revision(connection)


def tables_without_revision(connection: sa.Connection) -> list[str]:
    """Return the names of a ledger's tables in a database that does not say of which revision they are; none where it does."""
    # The tables first: those that somebody makes meanwhile are committed with their revision.
    present = {name for (name,) in select_rows(connection, _TABLES[connection.dialect.name])}
    found = sorted(present & metadata.tables.keys())
    return found if found and current_revision(connection) is None else []


def upgrade(connection: sa.Connection, scripts: libraries.alembic_script.ScriptDirectory) -> None:
    """Run the migrations that a database lacks, inside the caller's transaction.

    A second migration at the same time waits, and then finds nothing to do. Raises Unavailable when the database has a newer revision, and
    LostRace where a migration on another node of a Galera cluster came in between: locks hold on one node only.
    """
    # That of MariaDB belongs to the session, as MariaDB commits at every CREATE TABLE; it ends with the connection.
    named = {"lock": f"bareon-{_LOCK}", "seconds": _LOCK_SECONDS}
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    elif connection.dialect.name == "mysql" and not connection.scalar(sa.text("SELECT GET_LOCK(:lock, :seconds)"), named):
        raise LostRace("another migration has its lock")
    try:
        _run_missing(connection, scripts)
    except sa.exc.DBAPIError as error:
        if mysql_code(error.orig) in _MADE_MEANWHILE:
            raise LostRace("another migration has done the same") from error
        raise


def _run_missing(connection: sa.Connection, scripts: libraries.alembic_script.ScriptDirectory) -> None:
    revision = current_revision(connection)
    refuse_newer(revision, scripts)
    missing = [
        script for script in scripts.iterate_revisions("head", revision or "base") if isinstance(script, libraries.alembic_script.Script)
    ]
    context = libraries.alembic_migration.MigrationContext.configure(connection, opts={"render_as_batch": True})
    with libraries.alembic_operations.Operations.context(context):
        for script in reversed(missing):
            t.cast("t.Any", script.module).upgrade()
            if current_revision(connection) != revision:
                raise LostRace("the tables were brought up to date meanwhile")
    context.stamp(scripts, "head")


def refuse_newer(revision: str | None, scripts: libraries.alembic_script.ScriptDirectory) -> None:
    """Raise Unavailable when a revision is none of ours."""
    known = {script.revision for script in scripts.walk_revisions()}
    if revision is not None and revision not in known:
        raise Unavailable(
            f"the database has revision {revision!r}, which this release of bareon.allocator does not know; "
            "a newer release has written it, so update the collection here"
        )
