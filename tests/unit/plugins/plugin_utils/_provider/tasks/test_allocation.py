# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Placing: candidates and claim in one; others may be quicker, and a consumer that has what is asked for stays where it is."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from ansible_collections.bareon.allocator.plugins.action.provider_allocation import ActionModule
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.arguments import REQUEST_ARGUMENTS
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claim_plan import Claim
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claims import apply_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks import allocation as placing
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.allocation import run_provider_allocation
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.names import provider_uuid
from ansible_collections.bareon.allocator.tests.support.provider.consumers import consumer

TASK_DEFAULTS = {name: spec.get("default") for name, spec in ActionModule.ARGUMENTS.items()}
DEFAULTS = {name: spec.get("default") for name, spec in REQUEST_ARGUMENTS.items()}
IN_QUERY = ["one_of[1].groups", "one_of[1].resources"]


def wants(amount, **more):
    return {**DEFAULTS, "groups": {"": {"resources": {"VCPU": amount}}}, "order": "pack", **more}


@pytest.fixture
def hosts(bench):
    bench.put(*({"name": f"host{number}", "inventories": {"VCPU": 4}, "traits": [f"CUSTOM_{number}"]} for number in range(4)))
    return bench


def place(bench, name, request):
    return placing.place(bench.ledger, Claim(consumer(name), {}), request)


def test_consumers_are_placed_until_it_is_full(hosts):
    for number in range(8):
        assert place(hosts, f"vm{number}", wants(2)).chosen.claimed.changed
    assert hosts.used == {(f"host{number}", "VCPU"): 4 for number in range(4)}
    with pytest.raises(NoSolution) as error:
        place(hosts, "vm8", wants(1))
    assert error.value.conflict["why"]


def test_consumer_that_has_what_it_asks_for_stays(hosts):
    place(hosts, "vm", wants(4, order="none"))
    before = hosts.used
    assert not place(hosts, "vm", wants(4)).chosen.claimed.changed
    request = wants(4, groups={"": {"resources": {"VCPU": 4}, "forbidden": ["CUSTOM_3"]}})
    assert not place(hosts, "vm", request).chosen.claimed.changed
    assert hosts.used == before


def test_a_shared_pool_is_kept_while_others_use_it_too(bench):
    """Who asks for something of a shared pool and of no host stays in its pool, although others would now come first."""
    pools = [f"pool{number:02}" for number in range(25)]
    rack = provider_uuid("rack")
    shared = {"traits": ["MISC_SHARES_VIA_AGGREGATE"], "aggregates": [rack]}
    bench.put(
        {"name": "host", "inventories": {"VCPU": 8}, "traits": ["CUSTOM_READY"], "aggregates": [rack]},
        *({"name": name, "inventories": {"DISK_GB": 100}, **shared} for name in pools),
    )
    request = {**DEFAULTS, "groups": {"": {"resources": {"DISK_GB": 10}}}, "root_required": ["CUSTOM_READY"], "order": "spread"}
    place(bench, "vm", request)
    ((pool, _name),) = bench.used
    bench.claim(("other", {pool: {"DISK_GB": 60}}))
    assert not place(bench, "vm", request).chosen.claimed.changed
    assert bench.used == {(pool, "DISK_GB"): 70}
    bench.put({"name": "host", "traits": []})
    with pytest.raises(NoSolution):
        place(bench, "vm", request)


def test_a_group_without_resources_may_be_satisfied_by_a_pool_of_which_nothing_is_held(bench):
    """The consumer stays on its host, although another one would now come first."""
    rack = provider_uuid("rack")
    bench.put(
        *({"name": f"host{number}", "inventories": {"VCPU": 4}, "aggregates": [rack]} for number in range(2)),
        {"name": "pool", "traits": ["MISC_SHARES_VIA_AGGREGATE", "CUSTOM_FAST"], "aggregates": [rack]},
    )
    groups = {"CPU": {"resources": {"VCPU": 4}}, "POOL": {"required": ["CUSTOM_FAST"]}}
    request = {**DEFAULTS, "groups": groups, "same_subtree": [["CPU", "!POOL"]]}
    bench.claim(("other", {"host0": {"VCPU": 4}}))
    place(bench, "vm", request)
    bench.claim(("other", {}))
    assert not place(bench, "vm", request).chosen.claimed.changed
    assert bench.used == {("host1", "VCPU"): 4}


def test_what_is_held_is_checked_and_not_searched(bench):
    """16 GPUs and six unequal groups of their own GPU each: millions of candidates, one of which is held."""
    bench.put(
        {"name": "host"}, *({"name": f"gpu{number:02}", "parent": "host", "inventories": {"CUSTOM_GPU_MIB": 100}} for number in range(16))
    )
    groups = {f"G{number}": {"resources": {"CUSTOM_GPU_MIB": 10 + number}} for number in range(6)}
    request = {**DEFAULTS, "groups": groups, "group_policy": "isolate", "order": "spread"}
    place(bench, "vm", request)
    before = bench.used
    placed = place(bench, "vm", {**request, "budget": 100})
    assert not placed.chosen.claimed.changed
    assert set(placed.candidate["mappings"]) == set(groups)
    assert bench.used == before


def test_what_was_given_is_kept_when_the_inventory_shrinks(hosts):
    place(hosts, "vm", wants(3, order="none"))
    hosts.put({"name": "host0", "inventories": {"VCPU": 2}})
    assert not place(hosts, "vm", wants(3)).chosen.claimed.changed
    hosts.put({"name": "host0", "inventories": {"VCPU": 4}})


def before_the_claim(monkeypatch, change):
    claim = placing.claim_first

    def change_and_claim(ledger, candidates):
        monkeypatch.setattr(placing, "claim_first", claim)
        change()
        return claim(ledger, candidates)

    monkeypatch.setattr(placing, "claim_first", change_and_claim)


def test_root_that_changes_is_noticed_although_all_is_taken_from_a_pool(bench, monkeypatch):
    """Two hosts reach the pool; the candidate is one of the first host's tree, and that one is disabled before the claim."""
    shared = "22222222-3333-4444-8555-666666666666"
    bench.put(
        {"name": "host0", "aggregates": [shared], "traits": ["CUSTOM_GOOD"]},
        {"name": "pool", "aggregates": [shared], "traits": ["MISC_SHARES_VIA_AGGREGATE"], "inventories": {"DISK_GB": 10}},
    )
    before_the_claim(monkeypatch, lambda: bench.put({"name": "host0", "traits": []}))
    request = {"groups": {"": {"resources": {"DISK_GB": 4}}}, "root_required": ["CUSTOM_GOOD"]}
    with pytest.raises(NoSolution, match="trait CUSTOM_GOOD"):
        place(bench, "vm", {**wants(4), **request, "order": "none"})
    assert bench.used == {}


def test_provider_that_changes_between_search_and_claim_is_passed_over(hosts, monkeypatch):
    """The first choice loses the trait that was asked for, and the second its parent's, before the claim; both are passed over."""
    hosts.put(
        {"name": "above"},
        *({"name": f"host{number}", "parent": "above" if number == 1 else "", "traits": ["CUSTOM_GOOD"]} for number in range(4)),
    )
    before_the_claim(
        monkeypatch, lambda: hosts.put({"name": "host0", "traits": []}, {"name": "above", "traits": ["COMPUTE_STATUS_DISABLED"]})
    )
    request = {"groups": {"": {"resources": {"VCPU": 4}, "required": ["CUSTOM_GOOD"]}}, "root_forbidden": ["COMPUTE_STATUS_DISABLED"]}
    placed = place(hosts, "vm", {**wants(4), **request, "order": "none"})
    assert list(hosts.used) == [("host2", "VCPU")]
    assert [refusal.split()[0] for refusal in placed.chosen.refused] == ["above", "host0"]


def test_other_claims_on_the_same_provider_do_not_spoil_a_candidate(hosts, monkeypatch):
    before_the_claim(monkeypatch, lambda: hosts.claim(("other", {"host0": {"VCPU": 1}})))
    placed = place(hosts, "vm", wants(3, order="none"))
    assert (hosts.used["host0", "VCPU"], placed.chosen.index) == (4, 0)


def test_consumer_moves_when_it_asks_for_something_else(hosts):
    for number in range(4):
        place(hosts, f"vm{number}", wants(3))
    assert place(hosts, "vm0", wants(4)).chosen.claimed.changed
    assert sorted(hosts.used.values()) == [3, 3, 3, 4]


def test_loser_of_a_race_looks_again(hosts, monkeypatch):
    """Another consumer takes the best place between looking and claiming, again and again until the third look."""
    quicker = iter(["other0", "other1"])
    claim = placing.claim_first

    def lose_and_claim(ledger, candidates):
        best, other = next(iter(candidates)), next(quicker, None)
        if other:
            ledger.write(partial(apply_claims, claims=[replace(best, consumer=consumer(other), seen=())]))
        return claim(ledger, [best])

    monkeypatch.setattr(placing, "claim_first", lose_and_claim)
    assert place(hosts, "vm", wants(4)).chosen.claimed.changed
    assert list(hosts.used.values()) == [4, 4, 4]


def test_mistakes_are_placed_in_the_request(hosts):
    with pytest.raises(InputError) as error:
        place(hosts, "vm", wants(0))
    assert error.value.mistakes[0].place.startswith("request.groups")


def run(**arguments):
    """Run the task on a world given inline; return its result."""
    return run_provider_allocation({**TASK_DEFAULTS, **arguments}, dry_run=False)


FULL = {
    "providers": [{"name": "old", "inventories": {"VCPU": 2}}, {"name": "new", "inventories": {"VCPU": 2}}],
    "allocations": {consumer("vm"): {"old": {"VCPU": 2}}, consumer("migration"): {"new": {"VCPU": 2}}},
}


def test_allocations_pass_between_consumers_in_one_task():
    moved = [{"consumer": consumer("migration"), "allocations": {}}, {"consumer": consumer("vm"), "allocations": {"new": {"VCPU": 2}}}]
    result = run(world=FULL, consumers=moved)
    assert result["changed"]
    assert result["world"]["allocations"] == {consumer("vm"): {provider_uuid("new"): {"VCPU": 2}}}
    assert result["consumers"].keys() == {consumer("vm")}
    assert not run(world=result["world"], consumers=moved)["changed"]


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"consumers": [{"consumer": consumer("vm")}]}, "consumers[0].allocations"),
        ({"consumer": consumer("vm"), "allocations": {}}, "allocations"),
        ({"consumer": consumer("vm"), "allocations": {"new": {"VCPU": 1}}, "retries": -1}, "retries"),
        ({"database": "sqlite://", "world": None, "consumer": consumer("vm"), "state": "absent", "timeout": 0}, "timeout"),
    ],
)
def test_what_is_missing_or_out_of_bounds_is_told(arguments, place):
    with pytest.raises(InputError) as error:
        run(**{"world": FULL, **arguments})
    assert [mistake.place for mistake in error.value.mistakes] == [place]


@pytest.mark.parametrize("again", [[], ["CUSTOM_1"]])
def test_a_host_that_is_replaced_between_search_and_claim_is_not_taken_for_the_old_one(hosts, again, monkeypatch):
    request = wants(1, groups={"": {"resources": {"VCPU": 1}, "required": ["CUSTOM_1"]}})
    claim_first = placing.claim_first
    kept = []

    def replaced(ledger, claims):
        if not kept:
            kept.append(1)
            hosts.put({"name": "last", "inventories": {"VCPU": 1}})
            hosts.remove("host1")
            hosts.put({"name": "host1", "inventories": {"VCPU": 4}, "traits": again})
        return claim_first(ledger, claims)

    monkeypatch.setattr(placing, "claim_first", replaced)
    if again:
        assert place(hosts, "vm", request).chosen.claimed.changed
    else:
        with pytest.raises(NoSolution):
            place(hosts, "vm", request)
    assert hosts.used == ({("host1", "VCPU"): 1} if again else {})


def test_members_of_a_group_keep_apart_by_one_list_that_names_them_all(hosts):
    group = [f"web{number}" for number in range(3)]
    for name in group:
        placed = placing.place(hosts.ledger, Claim(consumer(name), {}, name=name), wants(1, not_with=group))
        assert placed.chosen.claimed.changed
    assert hosts.used == {(f"host{number}", "VCPU"): 1 for number in (0, 1, 2)}
    again = placing.place(hosts.ledger, Claim(consumer("web1"), {}, name="web1"), wants(1, not_with=group))
    assert not again.chosen.claimed.changed
    beside = placing.place(hosts.ledger, Claim(consumer("log"), {}, name="log"), wants(1, **{"with": ["web2"], "not_with": ["web1"]}))
    assert beside.chosen.claimed.changed
    assert hosts.used["host2", "VCPU"] == 2
    with pytest.raises(NoSolution) as error:
        placing.place(hosts.ledger, Claim(consumer("x"), {}, name="x"), wants(1, **{"with": ["nobody"]}))
    assert error.value.conflict["why"]["first"]["where"] == "roots"


def test_the_first_alternative_that_fits_is_claimed_and_kept(hosts):
    one_of = [{"groups": {"": {"resources": {"VCPU": amount}}}} for amount in (8, 4, 2)]
    request = {**DEFAULTS, "one_of": one_of, "prefer": [{"trait": "CUSTOM_2"}, {"trait": "CUSTOM_3", "weight": 2}]}
    placed = placing.place(hosts.ledger, Claim(consumer("vm"), {}), request)
    assert (placed.alternative, hosts.used) == (1, {("host3", "VCPU"): 4})
    hosts.put({"name": "host0", "inventories": {"VCPU": 8}})
    again = placing.place(hosts.ledger, Claim(consumer("vm"), {}), request)
    assert (again.alternative, again.chosen.claimed.changed) == (1, False)


@pytest.mark.parametrize(
    ("wrong", "places"),
    [
        ({"prefer": [{"trait": "CUSTOM_NOBODYS"}, {}, {"trait": "CUSTOM_1", "weight": 0}]}, ["prefer[1]", "prefer[2].weight"]),
        ({"prefer": [{"trait": "CUSTOM_NOBODYS"}]}, ["prefer[0].trait"]),
        ({"with": ["a"], "not_with": ["a", " "]}, ["not_with[1]", "with"]),
        ({"one_of": [], "groups": None}, ["one_of"]),
        (
            {"one_of": [{"groups": {}}, {"query": "resources=VCPU:x"}], "groups": None},
            ["one_of[0].groups", "one_of[1].groups", "one_of[1].resources"],
        ),
        ({"prefer": [{"trait": "CUSTOM_1"}] * 9}, ["prefer"]),
    ],
)
def test_mistakes_in_wishes_are_told_with_their_places(hosts, wrong, places):
    with pytest.raises(InputError) as error:
        place(hosts, "vm", wants(1, **wrong))
    assert sorted({mistake.place for mistake in error.value.mistakes}) == [f"request.{place}" for place in places]
