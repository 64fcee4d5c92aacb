# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A search with a limit and a claim by request read what they look for by indexes, however large the ledger is: SQLite says how."""

from __future__ import annotations

import sqlite3
import uuid

import pytest
import sqlalchemy
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.arguments import REQUEST_ARGUMENTS
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.import_world import store_world
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.allocation import run_provider_allocation
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.candidates import run_provider_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world
from ansible_collections.bareon.allocator.tests.support.provider import worlds

ANYTHING = {name: option.get("default") for name, option in REQUEST_ARGUMENTS.items()}
SMALL = {"sqlite_master", "alembic_version", "resource_classes", "traits", "aggregates", "CONSTANT", "VALUES", "counted"}
"""What has a row for each name or for each ledger, or has a limit; all else has a row for each host, consumer or allocation."""


@pytest.fixture
def ledger(tmp_path):
    """The file and the URL of a ledger of 40 hosts with claims."""
    file = tmp_path / "ledger.sqlite"
    world = parse_world(worlds.flat_world(40))
    with open_ledger(f"sqlite:///{file}") as opened:
        opened.write(lambda connection: store_world(connection, world))
    return file


def search(url, query):
    asked = {**ANYTHING, "database": url, "world": None, "timeout": 60.0, "query": query, "limit": 1}
    assert run_provider_candidates({**asked, "distinct": "mappings", "explain_below": 0, "summaries": False})["candidates"]


def claim(url, query):
    nothing = ("allocations", "generations", "candidates", "inventories", "consumers", "project", "user", "consumer_type")
    asked = {**dict.fromkeys((*nothing, "consumer_generation")), "consumer": str(uuid.uuid4()), "state": "present", "retries": 40}
    request = {**ANYTHING, "query": query}
    assert run_provider_allocation({**asked, "request": request, "database": url, "world": None, "timeout": 60.0}, dry_run=False)["changed"]


@pytest.mark.parametrize("task", [search, claim])
@pytest.mark.parametrize("kind", sorted(worlds.FLAT_QUERIES.keys() - {"zero"}))
def test_no_table_of_hosts_or_claims_is_read_from_end_to_end(ledger, task, kind):
    asked: set[str] = set()

    def trace(connection, _record):
        connection.set_trace_callback(asked.add)

    sqlalchemy.event.listen(sqlalchemy.pool.Pool, "connect", trace)
    try:
        task(f"sqlite:///{ledger}", worlds.FLAT_QUERIES[kind])
    finally:
        sqlalchemy.event.remove(sqlalchemy.pool.Pool, "connect", trace)
    verbs = ("SELECT", "INSERT", "UPDATE", "DELETE")
    with sqlite3.connect(ledger) as connection:
        plans = {
            statement: [row[3].split() for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
            for statement in asked
            if statement.startswith(verbs)
        }
    assert len(plans) > 5
    assert {statement: step for statement, steps in plans.items() for step in steps if step[0] == "SCAN" and SMALL.isdisjoint(step)} == {}
