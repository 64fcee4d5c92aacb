# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who had what, from when to when: written by the transaction that ends it, and pruned by age."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.clock import read_now
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.history import Asked, read_history
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.history import run_provider_history_info
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.reap import run_provider_reap
from ansible_collections.bareon.allocator.tests.support.provider.passing_time import pass_time

HOUR = 3600


class Tasks:
    """Claims by name, and time that passes."""

    def __init__(self, bench):
        self.bench, self.ledger = bench, bench.ledger
        bench.put(*({"name": name, "inventories": {"VCPU": 8}} for name in ("h1", "h2")))

    def claim(self, name, amount, host="h1", **options):
        amounts = {host: {"VCPU": amount}} if amount else {}
        return make_claims(self.ledger, parse_claims([{"consumer": name, "allocations": amounts, **options}], "consumers[{}]"))

    def sleep(self, hours):
        pass_time(self.ledger, hours * HOUR)

    @property
    def spans(self):
        """(name, project, host, amount, hours ago when it began, and when it ended)."""

        def read(connection):
            now = read_now(connection)
            found = read_history(connection, Asked(), now, 1000)
            ago = [tuple(None if at is None else (now - at + 60) // HOUR for at in (span.began, span.ended)) for span in found]
            return [(span.name, span.project, span.provider_name, span.used, *times) for span, times in zip(found, ago, strict=True)]

        return sorted(self.ledger.read(read), key=str)

    def task(self, **arguments):
        asked = {"database": self.ledger.url.render_as_string(hide_password=False), "timeout": 60.0, "limit": 1000}
        return run_provider_history_info({**asked, **dict.fromkeys(("since", "until", "project", "provider")), **arguments})


@pytest.fixture
def tasks(bench):
    return Tasks(bench)


def test_a_claim_that_is_moved_and_released(tasks):
    tasks.claim("a", 2, project="red")
    tasks.sleep(1)
    tasks.claim("a", 3, project="red")
    tasks.sleep(1)
    tasks.claim("a", 3, host="h2", project="red")
    assert tasks.spans == [("a", "red", "h1", 2, 2, 1), ("a", "red", "h1", 3, 1, 0), ("a", "red", "h2", 3, 0, None)]
    tasks.sleep(1)
    assert not tasks.claim("a", 3, host="h2", project="red").changed
    tasks.claim("a", 0, project="red")
    assert tasks.spans == [("a", "red", "h1", 2, 3, 2), ("a", "red", "h1", 3, 2, 1), ("a", "red", "h2", 3, 1, 0)]


def test_a_new_owner_begins_anew(tasks):
    tasks.claim("a", 2, project="red", user="ann")
    tasks.sleep(1)
    tasks.claim("a", 2, project="blue", user="bob", take_over=True)
    assert tasks.spans == [("a", "blue", "h1", 2, 0, None), ("a", "red", "h1", 2, 1, 0)]


def test_what_expired_ended_with_its_lease(tasks):
    tasks.claim("a", 8, lease="1h")
    tasks.sleep(3)
    assert tasks.spans == [("a", None, "h1", 8, 3, 2)]
    tasks.claim("b", 8)
    assert tasks.spans == [("a", None, "h1", 8, 3, 2), ("b", None, "h1", 8, 0, None)]


def test_who_claims_again_what_expired_begins_anew(tasks):
    tasks.claim("a", 8, lease="1h")
    tasks.sleep(3)
    tasks.claim("a", 8)
    assert tasks.spans == [("a", None, "h1", 8, 0, None), ("a", None, "h1", 8, 3, 2)]


def test_providers_that_are_gone_keep_their_names(tasks):
    tasks.claim("a", 1, lease="1h")
    tasks.sleep(2)
    tasks.bench.remove("h1")
    assert tasks.spans == [("a", None, "h1", 1, 2, 1)]


def test_what_is_asked_for(tasks):
    tasks.claim("old", 1, project="red")
    tasks.sleep(1)
    tasks.claim("old", 0, project="red")
    tasks.sleep(1)
    tasks.claim("new", 2, host="h2", project="blue")
    tasks.claim("nobodys", 1, host="h2")

    def names(**asked):
        return sorted(entry["name"] for entry in tasks.task(**asked)["history"])

    assert names() == ["new", "nobodys", "old"]
    assert names(since="30m") == ["new", "nobodys"]
    assert names(since="90m") == ["new", "nobodys", "old"]
    assert names(until="30m") == ["old"]
    assert names(since="2001-01-01", until="2002-01-01") == []
    assert names(project="blue") == ["new"]
    assert names(project="") == ["nobodys"]
    assert names(provider="h1") == ["old"]
    assert tasks.task(limit=1)["truncated"]
    assert not tasks.task(limit=3)["truncated"]
    (entry,) = tasks.task(project="red")["history"]
    assert (entry["amount"], entry["resource_class"], entry["provider_name"]) == (1, "VCPU", "h1")
    assert entry["from"] < entry["until"]
    assert tasks.task(project="blue")["history"][0]["until"] is None


def test_pruned_by_age(tasks):
    tasks.claim("a", 1)
    tasks.claim("a", 0)
    tasks.sleep(48)
    tasks.claim("b", 1)
    tasks.claim("b", 0)
    asked = {"database": tasks.ledger.url.render_as_string(hide_password=False), "timeout": 60.0}
    assert not run_provider_reap({**asked, "keep_history": "3d"}, dry_run=False)["changed"]
    assert run_provider_reap({**asked, "keep_history": "1d"}, dry_run=True)["pruned"] == 1
    assert run_provider_reap({**asked, "keep_history": "1d"}, dry_run=False)["pruned"] == 1
    assert [span[0] for span in tasks.spans] == ["b"]


@pytest.mark.parametrize("asked", [{"since": "yesterday"}, {"limit": 0}, {"provider": " "}])
def test_mistakes(tasks, asked):
    with pytest.raises(InputError, match=next(iter(asked))):
        tasks.task(**asked)
