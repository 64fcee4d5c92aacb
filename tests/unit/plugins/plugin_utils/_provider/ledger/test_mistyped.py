# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Text where SQLite was to store a number: one sentence says where it is, whatever a task does with the ledger."""

from __future__ import annotations

import sqlite3
import warnings

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Unavailable
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import load_world, open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.candidates import run_provider_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.capacity import run_provider_capacity
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.info import look_up_tree_usages, run_provider_info
from ansible_collections.bareon.allocator.tests.support.provider.consumers import consumer

INFO = {
    "world": None,
    "providers": None,
    "matching": None,
    "consumers": None,
    "projects": None,
    "users": None,
    "types": None,
    "audit": False,
    "timeout": 30,
}
OF_THE_STOCK = "in the row where provider_id = 1 and resource_class = 'VCPU'"


@pytest.fixture
def edited(unaudited):
    """Return the URL of a ledger with a host and a consumer, on which SQL was run past every check."""
    unaudited.put({"name": "a", "inventories": {"VCPU": {"total": 4}}})
    unaudited.claim(("x", {"a": {"VCPU": 3}}))

    def run(statement):
        with sqlite3.connect(unaudited.ledger.url.database) as connection:
            connection.execute(statement)
        return unaudited.ledger.url.render_as_string()

    return run


def says(task):
    with pytest.raises(Unavailable) as error:
        task()
    return str(error.value)


def within(url, work):
    with open_ledger(url) as ledger:
        return ledger.read(work)


@pytest.mark.parametrize("read", [load_world, lambda url: within(url, audit)])
@pytest.mark.parametrize(
    ("statement", "where"),
    [
        ("UPDATE inventories SET total = 'many'", f"table inventories, {OF_THE_STOCK}, column total is 'many'; must be a whole number"),
        ("UPDATE inventories SET used = 1.5", f"table inventories, {OF_THE_STOCK}, column used is 1.5; must be a whole number"),
        (
            "UPDATE inventories SET allocation_ratio = 'x'",
            f"table inventories, {OF_THE_STOCK}, column allocation_ratio is 'x'; must be a number",
        ),
        (
            "UPDATE resource_providers SET parent_id = 'b'",
            "table resource_providers, in the row where id = 1, column parent_id is 'b'; must be a whole number",
        ),
        (
            "UPDATE consumers SET generation = 'new', name = x'00'",
            "table consumers, in the row where id = 1, column generation is 'new'; must be a whole number; "
            "in table consumers, in the row where id = 1, column name is binary data; must be text",
        ),
        (
            "UPDATE allocations SET provider_id = 'a'",
            "table allocations, in the row where consumer_id = 1, provider_id = 'a' and resource_class = 'VCPU', column provider_id is "
            "'a'; must be a whole number",
        ),
        ("UPDATE topology SET generation = ''", "table topology, in the row where id = 1, column generation is ''; must be a whole number"),
    ],
)
def test_what_reads_everything_says_where_it_is(edited, statement, where, read):
    url = edited(statement)
    assert says(lambda: read(url)) == f"the database {url} was edited by hand: in {where}"


def test_of_many_some_are_told(edited):
    url = edited("UPDATE inventories SET total = 'a', reserved = 'b', min_unit = 'c', max_unit = 'd'")
    told = says(lambda: load_world(url))
    assert told.count("must be") == 3
    assert told.endswith(" (there are more)")


@pytest.mark.parametrize(
    "task",
    [
        lambda url: run_provider_info({**INFO, "database": url}),
        lambda url: run_provider_info({**INFO, "database": url, "audit": True}),
        lambda url: run_provider_info({**INFO, "database": url, "providers": ["a"]}),
        lambda url: look_up_tree_usages(["a"], url),
    ],
)
def test_tasks_say_it_instead_of_failing_in_the_midst(edited, task):
    url = edited("UPDATE inventories SET total = 'many'")
    assert "column total is 'many'; must be a whole number" in says(lambda: task(url))


@pytest.mark.parametrize("step", [0, -3])
def test_a_step_that_is_none_is_said_and_not_computed_with(edited, step):
    url = edited(f"UPDATE inventories SET step_size = {step}")
    asked = {"database": url, "world": None, "groups": {"": {"resources": {"VCPU": 1}}}, "timeout": 30, "query": None}
    lists = dict.fromkeys(("one_of", "same_subtree", "prefer", "with", "not_with", "distinct", "group_policy"))
    limits = {"limit": 5, "explain_below": 1, "budget": 1000}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for run in (run_provider_candidates, run_provider_capacity):
            assert "VCPU of provider a has an inventory that no task could have declared" in says(
                lambda run=run: run(asked | lists | limits)
            )
    assert "inventory" in [found.kind for found in within(url, audit)]


def test_a_claim_says_it_and_changes_nothing(edited, unaudited):
    url = edited("UPDATE inventories SET max_unit = 'many'")

    def claim():
        with open_ledger(url) as ledger:
            make_claims(ledger, parse_claims([{"consumer": consumer("x"), "allocations": {"a": {"VCPU": 4}}}], "consumers[{}]"))

    assert "column max_unit is 'many'" in says(claim)
    assert [found.generation for found in unaudited.consumers.values()] == [1]


@pytest.mark.parametrize("error", [TypeError, InputError])
def test_other_failures_stay_what_they_are(unaudited, error):
    def fail(_connection):
        raise error(())

    with pytest.raises(error):
        within(unaudited.ledger.url.render_as_string(), fail)
