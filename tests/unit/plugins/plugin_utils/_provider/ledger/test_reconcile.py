# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger beside what exists: what is stale, what is unclaimed, and what is left alone."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.reap import run_provider_reap
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.reconcile import run_provider_reconcile
from ansible_collections.bareon.allocator.tests.support.provider.passing_time import pass_time

NOTHING = dict.fromkeys(("project", "user", "consumer_type", "providers", "older_than"))


@pytest.fixture
def site(bench):
    bench.put(*({"name": name, "inventories": {"VCPU": 8}} for name in ("host1", "host2")))
    bench.put({"name": "card", "parent": "host1", "inventories": {"PGPU": 1}})
    return bench


def claim(bench, name, host="host1", **more):
    amounts = {host: {"PGPU" if host == "card" else "VCPU": 1}}
    make_claims(bench.ledger, parse_claims([{"consumer": name, "allocations": amounts, **more}], "c[{}]"))


def run(bench, existing, *, release=False, dry_run=False, **more):
    database = str(bench.ledger.url.render_as_string(hide_password=False))
    arguments = {**NOTHING, "database": database, "timeout": 60.0, "existing": existing, "release": release, **more}
    return run_provider_reconcile(arguments, dry_run=dry_run)


def names(entries):
    return sorted(entry["name"] for entry in entries)


def test_what_does_not_exist_is_stale_and_stays_until_it_is_to_be_released(site):
    for name in ("a", "b", "c"):
        claim(site, name)
    found = run(site, ["a", "d"])
    assert (names(found["stale"]), found["unclaimed"], found["changed"]) == (["b", "c"], [{"consumer": "d", "project": None}], False)
    assert site.used == {("host1", "VCPU"): 3}
    assert run(site, ["a"], release=True, dry_run=True)["changed"]
    assert site.used == {("host1", "VCPU"): 3}
    assert names(run(site, ["a"], release=True)["stale"]) == ["b", "c"]
    assert site.used == {("host1", "VCPU"): 1}
    assert not run(site, ["a"], release=True)["changed"]


def test_names_hold_in_all_projects_unless_one_is_given(site):
    for project in ("red", "blue"):
        claim(site, "ci", project=project)
    assert run(site, ["ci"])["stale"] == []
    assert [each["project"] for each in run(site, [{"consumer": "ci", "project": "red"}])["stale"]] == ["blue"]
    (uuid,) = (each["consumer"] for each in run(site, [{"consumer": "ci", "project": "red"}])["stale"])
    assert run(site, [uuid])["stale"][0]["project"] == "red"
    assert run(site, ["x"], project="red")["stale"][0]["project"] == "red"
    assert run(site, [{"consumer": "ci", "project": "green"}])["unclaimed"]


def test_only_the_trees_of_some_providers_are_compared(site):
    claim(site, "a", "host1")
    claim(site, "b", "card")
    claim(site, "c", "host2")
    assert names(run(site, ["x"], providers=["host1"])["stale"]) == ["a", "b"]
    with pytest.raises(InputError) as error:
        run(site, ["x"], providers=["host1", "host9"], release=True)
    assert [mistake.place for mistake in error.value.mistakes] == ["providers"]


def test_young_claims_are_left_alone(site):
    claim(site, "old")
    pass_time(site.ledger, 3600)
    claim(site, "young")
    assert names(run(site, ["x"], older_than="15m")["stale"]) == ["old"]
    assert names(run(site, ["x"])["stale"]) == ["old", "young"]


def test_expired_claims_are_nobodys(site):
    claim(site, "lent", lease="1h")
    pass_time(site.ledger, 7200)
    assert run(site, ["x"])["stale"] == []
    assert run(site, ["lent"])["unclaimed"]


@pytest.mark.parametrize(
    ("existing", "more", "place"),
    [
        ([], {"release": True}, "existing"),
        (["a", ""], {}, "existing[1].consumer"),
        ([{"project": "red"}], {}, "existing[0].consumer"),
        (["a"], {"older_than": "soon"}, "older_than"),
        (["a"], {"consumer_type": "vm"}, "consumer_type"),
    ],
)
def test_mistakes_are_told_with_their_places(site, existing, more, place):
    with pytest.raises(InputError) as error:
        run(site, existing, **more)
    assert place in {mistake.place for mistake in error.value.mistakes}


def test_a_diff_has_consumers_of_one_name_apart(site):
    for project in ("red", "blue"):
        claim(site, "ci", project=project, lease="1h")
    claim(site, "web")
    shown = run(site, ["x"], release=True, dry_run=True)["diff"]["before"]
    assert sorted(shown) == ["ci of project blue", "ci of project red", "web"]
    assert shown["ci of project red"]["project"] == "red"
    pass_time(site.ledger, 7200)
    arguments = {"database": str(site.ledger.url.render_as_string(hide_password=False)), "timeout": 60.0}
    reaped = run_provider_reap(arguments, dry_run=False)["diff"]["before"]
    assert sorted(reaped) == ["ci of project blue", "ci of project red"]
