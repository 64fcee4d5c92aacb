# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A project gets no more than its quota, by whatever way it asks; what it has stays."""

from __future__ import annotations

from functools import partial

import pytest
from ansible_collections.bareon.allocator.plugins.action.provider_allocation import ActionModule
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.arguments import REQUEST_ARGUMENTS
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_claims, parse_reshape
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.quotas import QuotaExceeded, put_quota, read_limits
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.reshape import reshape
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.allocation import run_provider_allocation
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.quota import run_provider_quota
from ansible_collections.bareon.allocator.tests.support.provider.passing_time import pass_time


class Tasks:
    """Claims for projects."""

    def __init__(self, bench):
        self.bench, self.ledger = bench, bench.ledger
        bench.put(*({"name": name, "inventories": {"VCPU": 8, "PGPU": 4}} for name in ("h1", "h2")))

    def claim(self, name, amount, project="red", host="h1", resource="VCPU", **options):
        amounts = {host: {resource: amount}} if amount else {}
        entry = {"consumer": name, "allocations": amounts, "project": project, **options}
        return make_claims(self.ledger, parse_claims([entry], "consumers[{}]"))

    def limit(self, project="red", **limits):
        return self.ledger.write(partial(put_quota, project=project, limits=limits))


@pytest.fixture
def tasks(bench):
    return Tasks(bench)


def test_a_project_gets_no_more_than_its_quota(tasks):
    tasks.limit(VCPU=4)
    tasks.claim("a", 3)
    with pytest.raises(QuotaExceeded, match="project red: 2 more VCPU requested, 3 of its quota of 4 in use") as refused:
        tasks.claim("b", 2, host="h2")
    assert refused.value.conflict == {"quotas": [{"project": "red", "resource_class": "VCPU", "asked": 2, "used": 3, "limit": 4}]}
    assert tasks.claim("b", 1, host="h2").changed
    assert tasks.claim("c", 8, project="blue", host="h2", resource="PGPU", allocations={"h2": {"PGPU": 4}}).changed
    assert tasks.claim("g", 4, resource="PGPU").changed
    assert tasks.claim("a", 1).changed
    assert tasks.claim("b", 3, host="h2").changed
    with pytest.raises(QuotaExceeded):
        tasks.claim("a", 2)


def test_several_consumers_are_added_up_and_change_places(tasks):
    tasks.limit(VCPU=4)
    tasks.claim("a", 4)

    def both(first, second):
        entries = [
            {"consumer": name, "project": "red", "allocations": {host: {"VCPU": amount}} if amount else {}}
            for name, host, amount in (("a", "h1", first), ("b", "h2", second))
        ]
        return make_claims(tasks.ledger, parse_claims(entries, "consumers[{}]"))

    with pytest.raises(QuotaExceeded, match="1 more VCPU"):
        both(3, 2)
    assert both(0, 4).changed
    assert both(2, 2).changed


def test_a_quota_below_what_is_there_takes_nothing_back(tasks):
    tasks.claim("a", 4)
    assert tasks.limit(VCPU=2).used == {"VCPU": 4}
    assert not tasks.claim("a", 4).changed
    assert tasks.claim("a", 3).changed
    with pytest.raises(QuotaExceeded):
        tasks.claim("b", 1)
    assert tasks.limit().after == {}
    assert tasks.claim("b", 1).changed
    assert tasks.ledger.read(read_limits) == {}


def test_who_takes_a_consumer_over_needs_the_quota(tasks):
    tasks.limit("blue", VCPU=2)
    tasks.claim("a", 3)
    with pytest.raises(QuotaExceeded, match="project blue: 3 more VCPU requested, 0 of its quota of 2"):
        tasks.claim("a", 3, project="blue", take_over=True)
    tasks.claim("a", 2)
    assert tasks.claim("a", 2, project="blue", take_over=True).changed


def test_what_has_expired_does_not_count(tasks):
    tasks.limit(VCPU=2)
    tasks.claim("a", 2, lease="1h")
    with pytest.raises(QuotaExceeded):
        tasks.claim("b", 1)
    pass_time(tasks.ledger, 3601)
    assert tasks.claim("b", 2).changed
    with pytest.raises(QuotaExceeded):
        tasks.claim("a", 2, lease="1h")


def test_a_reshape_asks_for_the_quota_too(tasks):
    tasks.limit(PCPU=1)
    tasks.claim("a", 2)
    forms = parse_reshape({"h1": {"PCPU": 8, "PGPU": 4}}, "")
    entry = {"consumer": "a", "project": "red", "allocations": {"h1": {"PCPU": 2}}}
    with pytest.raises(QuotaExceeded, match="PCPU"):
        tasks.ledger.write(partial(reshape, inventories=forms, claims=parse_claims([entry], ""), generations={}))


def test_a_request_is_refused_at_once(tasks):
    """Other candidates would not help, nor would to look again."""
    tasks.limit(VCPU=1)
    defaults = {name: spec.get("default") for name, spec in ActionModule.ARGUMENTS.items()}
    request = {**{name: spec.get("default") for name, spec in REQUEST_ARGUMENTS.items()}, "groups": {"": {"resources": {"VCPU": 2}}}}
    url = tasks.ledger.url.render_as_string(hide_password=False)
    asked = {**defaults, "database": url, "timeout": 60.0, "consumer": "a", "project": "red", "request": request}
    with pytest.raises(QuotaExceeded):
        run_provider_allocation(asked, dry_run=False)


def task(bench, **arguments):
    url = bench.ledger.url.render_as_string(hide_password=False)
    return run_provider_quota({"database": url, "timeout": 60.0, "limits": None, "state": "present", **arguments}, dry_run=False)


def test_the_task(tasks):
    tasks.claim("a", 3)
    first = task(tasks.bench, project="red", limits={"VCPU": 2, "PGPU": 4})
    assert (first["changed"], first["limits"], first["used"]) == (True, {"PGPU": 4, "VCPU": 2}, {"PGPU": 0, "VCPU": 3})
    assert first["warnings"] == ["project red has 3 VCPU, more than 2; it gets no more of it"]
    assert not task(tasks.bench, project="red", limits={"VCPU": 2, "PGPU": 4})["changed"]
    lifted = task(tasks.bench, project="red", state="absent")
    assert lifted["diff"] == {"before": {"red": {"PGPU": 4, "VCPU": 2}}, "after": {}}
    assert not task(tasks.bench, project="red", state="absent")["changed"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"project": "red"}, "limits: is missing"),
        ({"project": "red", "limits": {"VCPU": 1}, "state": "absent"}, "limits: only applies"),
        ({"project": "", "limits": {"VCPU": -1, "vcpu": 1}}, "3 mistakes"),
        ({"project": "red", "limits": {}}, "limits"),
    ],
)
def test_mistakes_of_the_task(tasks, arguments, says):
    with pytest.raises(InputError, match=says):
        task(tasks.bench, **arguments)
