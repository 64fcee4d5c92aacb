# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Claims: what fits is given, all or nothing; what does not is refused with every reason."""

from __future__ import annotations

from functools import partial

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claim_first import claim_held_or_first as claim_first
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claim_plan import ClaimRefused
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claims import apply_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.guards import GenerationMoved
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.inventories import StillInUse
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.plain import plain_claimed
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.names import consumer_uuid
from ansible_collections.bareon.allocator.tests.support.provider.consumers import consumer


@pytest.fixture
def hosts(bench):
    bench.put(
        {"name": "host1", "inventories": {"VCPU": {"total": 8, "reserved": 2, "allocation_ratio": 2.0, "max_unit": 8}, "MEMORY_MB": 1024}},
        {"name": "host2", "inventories": {"VCPU": 4}},
    )
    return bench


def refusals(error):
    return [(entry["resource_class"], entry["reason"]) for entry in error.value.conflict["refused"]]


def test_claim_is_given_and_counted(hosts):
    result = hosts.claim(("vm", {"host1": {"VCPU": 8, "MEMORY_MB": 512}}, {"project": "p", "user": "u"}))
    assert result.changed
    assert hosts.used == {("host1", "VCPU"): 8, ("host1", "MEMORY_MB"): 512}
    present = hosts.consumers[consumer("vm")]
    assert (present.generation, present.project, present.user) == (1, "p", "u")
    assert hosts.generations == {"host1": 1, "host2": 0}
    assert list(result.generations.values()) == [1]


def test_same_claim_again_changes_nothing(hosts):
    hosts.claim(("vm", {"host1": {"VCPU": 8}}))
    before = (hosts.generations, hosts.consumers)
    assert not hosts.claim(("vm", {"host1": {"VCPU": 8}})).changed
    assert (hosts.generations, hosts.consumers) == before


def test_capacity_is_total_less_reserved_times_ratio(hosts):
    hosts.claim(("vm1", {"host1": {"VCPU": 8}}))
    with pytest.raises(ClaimRefused) as error:
        hosts.claim(("vm2", {"host1": {"VCPU": 5}}))
    assert error.value.conflict["refused"][0]["free"] == 4
    hosts.claim(("vm2", {"host1": {"VCPU": 4}}))
    assert hosts.used["host1", "VCPU"] == 12


def test_refused_claim_leaves_no_trace(hosts):
    with pytest.raises(ClaimRefused):
        hosts.claim(("vm", {"host2": {"VCPU": 1}, "host1": {"MEMORY_MB": 4096}}))
    assert hosts.used == {}
    assert hosts.consumers == {}
    assert hosts.generations == {"host1": 0, "host2": 0}


def test_every_reason_is_named(hosts):
    with pytest.raises(ClaimRefused) as error:
        hosts.claim(("a", {"host1": {"VCPU": 9, "DISK_GB": 1, "MEMORY_MB": 1000}}), ("b", {"host1": {"MEMORY_MB": 1000}}))
    assert sorted(refusals(error)) == [("DISK_GB", "no_inventory"), ("MEMORY_MB", "full"), ("VCPU", "piece")]


def test_unknown_provider_is_refused_by_name(hosts):
    with pytest.raises(ClaimRefused, match="there is no provider nowhere"):
        hosts.claim(("vm", {"nowhere": {"VCPU": 1}}))


@pytest.mark.parametrize("amount", [5, 10, 20, 1000])
def test_spec_step_example_permits(bench, amount):
    bench.put({"name": "pool", "inventories": {"DISK_GB": {"total": 5000, "min_unit": 5, "max_unit": 1000, "step_size": 10}}})
    assert bench.claim(("vm", {"pool": {"DISK_GB": amount}})).changed


@pytest.mark.parametrize("amount", [1, 4, 6, 7, 8, 15, 1010])
def test_spec_step_example_refuses(bench, amount):
    bench.put({"name": "pool", "inventories": {"DISK_GB": {"total": 5000, "min_unit": 5, "max_unit": 1000, "step_size": 10}}})
    with pytest.raises(ClaimRefused) as error:
        bench.claim(("vm", {"pool": {"DISK_GB": amount}}))
    assert refusals(error) == [("DISK_GB", "piece")]


@pytest.mark.parametrize(("amount", "is_given"), [(1, True), (2, True), (3, False), (4, True), (15, False), (16, True), (18, False)])
def test_spec_step_example_of_vcpus(bench, amount, is_given):
    bench.put({"name": "host", "inventories": {"VCPU": {"total": 32, "min_unit": 1, "max_unit": 16, "step_size": 2}}})
    if is_given:
        assert bench.claim(("vm", {"host": {"VCPU": amount}})).changed
    else:
        with pytest.raises(ClaimRefused):
            bench.claim(("vm", {"host": {"VCPU": amount}}))


def test_amounts_for_one_provider_under_two_names_are_one_amount(bench):
    bench.put({"name": "pool", "inventories": {"DISK_GB": {"total": 500, "min_unit": 5, "step_size": 10}}})
    address = bench.world.providers[0].uuid
    with pytest.raises(ClaimRefused, match="15 requested"):
        bench.claim(("vm", {"pool": {"DISK_GB": 5}, address: {"DISK_GB": 10}}))


def test_move_raises_both_generations(hosts):
    hosts.claim(("vm", {"host1": {"VCPU": 2}}))
    hosts.claim(("vm", {"host2": {"VCPU": 2}}))
    assert hosts.used == {("host2", "VCPU"): 2}
    assert hosts.generations == {"host1": 2, "host2": 1}


def test_untouched_provider_keeps_its_generation(hosts):
    hosts.claim(("vm", {"host1": {"VCPU": 2}, "host2": {"VCPU": 1}}))
    hosts.claim(("vm", {"host1": {"VCPU": 2}, "host2": {"VCPU": 2}}))
    assert hosts.generations == {"host1": 1, "host2": 2}


def test_consumers_may_change_places_on_full_providers(bench):
    bench.put({"name": "a", "inventories": {"VCPU": 4}}, {"name": "b", "inventories": {"VCPU": 4}})
    bench.claim(("x", {"a": {"VCPU": 4}}), ("y", {"b": {"VCPU": 4}}))
    bench.claim(("x", {"b": {"VCPU": 4}}), ("y", {"a": {"VCPU": 4}}))
    assert bench.used == {("a", "VCPU"): 4, ("b", "VCPU"): 4}
    assert bench.world.allocations[consumer("x")] == {bench.world.providers[1].uuid: {"VCPU": 4}}


def test_sums_of_one_call_are_checked_together(hosts):
    with pytest.raises(ClaimRefused):
        hosts.claim(("x", {"host2": {"VCPU": 3}}), ("y", {"host2": {"VCPU": 2}}))
    assert hosts.used == {}


def test_release_deletes_the_consumer_and_raises_generations(hosts):
    hosts.claim(("vm", {"host1": {"VCPU": 2}}))
    result = hosts.claim(("vm", {}))
    assert result.changed
    assert hosts.consumers == {}
    assert hosts.used == {}
    assert hosts.generations["host1"] == 2
    assert not hosts.claim(("vm", {})).changed


def test_consumer_generation_is_honoured(hosts):
    hosts.claim(("vm", {"host1": {"VCPU": 2}}, {"consumer_generation": 0}))
    with pytest.raises(GenerationMoved) as error:
        hosts.claim(("vm", {"host1": {"VCPU": 3}}, {"consumer_generation": 0}))
    assert error.value.conflict["generations"] == [
        {"kind": "consumer", "uuid": consumer("vm"), "name": consumer("vm"), "expected": 0, "found": 1}
    ]
    hosts.claim(("vm", {"host1": {"VCPU": 3}}, {"consumer_generation": 1}))
    assert hosts.used == {("host1", "VCPU"): 3}


def test_provider_generation_is_honoured(hosts):
    hosts.claim(("vm", {"host1": {"VCPU": 2}}))
    with pytest.raises(GenerationMoved) as error:
        hosts.claim(("vm2", {"host1": {"VCPU": 2}}), generations={"host1": 0})
    assert error.value.conflict["generations"][0]["found"] == 1
    assert hosts.claim(("vm2", {"host1": {"VCPU": 2}}), generations={"host1": 1}).changed


def test_shrunk_provider_keeps_what_it_gave_but_gives_no_more(hosts):
    hosts.claim(("vm", {"host2": {"VCPU": 4}}), ("other", {"host1": {"VCPU": 1}}))
    warnings = hosts.put({"name": "host2", "inventories": {"VCPU": 2}}).warnings
    assert "4 in use" in warnings[0]
    assert hosts.claim(("vm", {"host2": {"VCPU": 4}, "host1": {"VCPU": 1}})).changed
    with pytest.raises(ClaimRefused):
        hosts.claim(("new", {"host2": {"VCPU": 1}}))
    assert hosts.claim(("vm", {"host2": {"VCPU": 3 - 1}})).changed


def test_project_alone_may_change(hosts):
    hosts.claim(("vm", {"host2": {"VCPU": 4}}, {"project": "old"}))
    assert hosts.claim(("vm", {"host2": {"VCPU": 4}}, {"project": "new", "take_over": True})).changed
    assert hosts.consumers[consumer("vm")].project == "new"
    assert hosts.generations["host2"] == 1


def candidates(*providers):
    entries = [{"consumer": consumer("vm"), "allocations": {name: {"VCPU": 3}}} for name in providers]
    return [parse_claims([entry], "candidates[{}]")[0] for entry in entries]


def test_first_candidate_that_can_be_had_is_claimed(hosts):
    hosts.claim(("other", {"host2": {"VCPU": 3}}))
    chosen = claim_first(hosts.ledger, candidates("gone", "host2", "host1"))
    assert chosen.index == 2
    assert len(chosen.refused) == 2
    assert hosts.used == {("host2", "VCPU"): 3, ("host1", "VCPU"): 3}


def test_candidate_that_is_held_is_kept(hosts):
    claim_first(hosts.ledger, candidates("host2"))
    chosen = claim_first(hosts.ledger, candidates("host1", "host2"))
    assert not chosen.claimed.changed
    assert hosts.used == {("host2", "VCPU"): 3}


def test_no_candidate_can_be_had(hosts):
    hosts.claim(("other", {"host2": {"VCPU": 3}}))
    with pytest.raises(NoSolution, match="none of 2 candidates") as error:
        claim_first(hosts.ledger, candidates("host2", "gone"))
    assert [entry["candidate"] for entry in error.value.conflict["candidates"]] == [0, 1]


def test_what_one_consumer_has_passes_to_another_on_a_full_provider(hosts):
    hosts.claim(("migration", {"host2": {"VCPU": 4}}), ("vm", {"host1": {"VCPU": 4}}))
    result = hosts.claim(("migration", {}), ("vm", {"host2": {"VCPU": 4}}))
    assert result.changed
    assert hosts.used == {("host2", "VCPU"): 4}
    assert list(hosts.consumers) == [consumer("vm")]


@pytest.mark.parametrize(
    ("fields", "amount", "says"),
    [
        ({"min_unit": 2, "max_unit": 8}, 1, "from 2 (min_unit) to 8 (max_unit)"),
        ({"min_unit": 5, "step_size": 10}, 7, "exactly 5 (min_unit) or a multiple of 10 (step_size) from 10 to 1000"),
        ({"min_unit": 20, "step_size": 10}, 25, "a multiple of 10 (step_size) from 20 to 1000"),
    ],
)
def test_refusals_name_the_provider_and_the_rule(bench, fields, amount, says):
    bench.put({"name": "disks", "inventories": {"DISK_GB": {"total": 1000, "max_unit": 1004, **fields}}})
    with pytest.raises(ClaimRefused) as error:
        bench.claim(("vm", {"disks": {"DISK_GB": amount}}))
    assert str(error.value) == f"DISK_GB of disks: {amount} requested, but one consumer may have {says}"


def test_consumers_and_providers_are_shown_by_name(bench):
    bench.put({"name": "host1", "inventories": {"VCPU": 4}}, {"name": "host2", "inventories": {"VCPU": 4}})
    claims = parse_claims([{"consumer": "web1", "allocations": {"host1": {"VCPU": 3}}, "consumer_type": "INSTANCE"}], "")
    shown = plain_claimed(bench.ledger.write(partial(apply_claims, claims=claims)))
    (state,) = shown["consumers"].values()
    assert list(shown["consumers"]) == [consumer_uuid("web1")]
    assert (state["name"], state["consumer_type"]) == ("web1", "INSTANCE")
    assert shown["diff"]["before"] == {}
    assert shown["diff"]["after"]["web1"]["allocations"] == {"host1": {"VCPU": 3}}
    assert set(shown["names"].values()) == {"host1"}
    with pytest.raises(ClaimRefused) as error:
        bench.ledger.write(partial(apply_claims, claims=parse_claims([{"consumer": "web2", "allocations": {"host1": {"VCPU": 2}}}], "")))
    assert error.value.conflict["refused"][0]["consumer_name"] == "web2"
    assert error.value.conflict["refused"][0]["provider_name"] == "host1"
    with pytest.raises(StillInUse, match=r"^the inventory cannot be removed: VCPU of host1 is used by web1$"):
        bench.put({"name": "host1", "inventories": {}})


def test_a_consumer_keeps_its_name_and_its_type_when_its_uuid_is_given(bench):
    bench.put({"name": "host1", "inventories": {"VCPU": 4}})
    for who in ({"consumer": "web1", "consumer_type": "INSTANCE"}, {"consumer": consumer_uuid("web1")}):
        claims = parse_claims([{**who, "allocations": {"host1": {"VCPU": 3}}}], "")
        claimed = bench.ledger.write(partial(apply_claims, claims=claims))
    assert not claimed.changed
    assert [(entry.name, entry.type, entry.generation) for entry in bench.consumers.values()] == [("web1", "INSTANCE", 1)]


def test_unknown_provider_gets_a_suggestion(bench):
    bench.put({"name": "host1", "inventories": {"VCPU": 4}})
    with pytest.raises(ClaimRefused, match=r"there is no provider hots1 \(did you mean host1\?\)"):
        bench.claim(("vm", {"hots1": {"VCPU": 1}}))
