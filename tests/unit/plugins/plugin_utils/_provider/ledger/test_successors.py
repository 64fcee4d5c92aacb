# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A provider takes the place of another one: its consumers move along, and nothing that they have is lost."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.action.provider import ActionModule
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.clock import read_now
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.guards import GenerationMoved
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.history import Asked, read_history
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.inventories import StillInUse
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.provider import run_provider
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.names import aggregate_uuid, provider_uuid
from ansible_collections.bareon.allocator.tests.support.provider.consumers import consumer
from ansible_collections.bareon.allocator.tests.support.provider.passing_time import pass_time

NEW = "7b6c1c1a-2d4a-4f0c-8c5a-0d3e3e1f9f10"
OTHER = "0e5f5c35-98c4-4b37-9d0b-43b0c8e1b3a6"


@pytest.fixture
def fleet(bench):
    bench.put(
        {"name": "rack"},
        {
            "name": "web1",
            "parent": "rack",
            "inventories": {"VCPU": 8, "MEMORY_MB": 4096},
            "traits": ["CUSTOM_OLD"],
            "aggregates": ["row-1"],
        },
        {"name": "spare", "parent": "rack", "inventories": {"VCPU": 4}},
    )
    bench.claim(("a", {"web1": {"VCPU": 3, "MEMORY_MB": 1024}}), ("b", {"web1": {"VCPU": 2}, "spare": {"VCPU": 1}}))
    return bench


def held(bench):
    names = {provider.uuid: provider.name for provider in bench.world.providers}
    return {
        name: {names[uuid]: dict(amounts) for uuid, amounts in bench.world.allocations.get(consumer(name), {}).items()} for name in "abc"
    }


def provider(bench, name):
    (found,) = (each for each in bench.world.providers if each.name == name)
    return found


def spans(bench, name):
    found = bench.ledger.read(lambda connection: read_history(connection, Asked(), read_now(connection), 1000))
    return sorted((each.provider, each.provider_name, each.used, each.ended is None) for each in found if each.consumer == consumer(name))


def test_under_its_own_name(fleet):
    old, before = provider(fleet, "web1"), held(fleet)
    done = fleet.put({"name": "web1", "uuid": NEW, "replaces": "web1"})
    assert done.changed
    new = provider(fleet, "web1")
    assert (new.uuid, new.parent) == (NEW, old.parent)
    assert (new.inventories, new.traits, new.aggregates) == (old.inventories, old.traits, old.aggregates)
    assert held(fleet) == before
    assert fleet.used == {("web1", "VCPU"): 5, ("web1", "MEMORY_MB"): 1024, ("spare", "VCPU"): 1}
    assert {each.uuid for each in fleet.world.providers} == {NEW, provider_uuid("rack"), provider_uuid("spare")}
    again = fleet.put({"name": "web1", "uuid": NEW, "replaces": "web1"})
    assert not again.changed
    assert again.warnings == []


def test_under_another_name(fleet):
    declared = {"name": "web2", "replaces": "web1", "inventories": {"VCPU": 6, "MEMORY_MB": 2048}, "traits": ["CUSTOM_NEW"]}
    assert fleet.put(declared).changed
    assert held(fleet)["b"] == {"web2": {"VCPU": 2}, "spare": {"VCPU": 1}}
    new = provider(fleet, "web2")
    assert (new.traits, new.aggregates) == ({"CUSTOM_NEW"}, {aggregate_uuid("row-1")})
    assert new.inventories["VCPU"].total == 6
    assert not fleet.put(declared).changed


def test_what_changes_by_parts_begins_from_the_replaced_one(fleet):
    fleet.put({"name": "web2", "replaces": "web1", "add": {"traits": ["CUSTOM_NEW"]}, "remove": {"aggregates": ["row-1"]}})
    new = provider(fleet, "web2")
    assert (new.traits, new.aggregates) == ({"CUSTOM_OLD", "CUSTOM_NEW"}, frozenset())


def test_history_tells_the_move(fleet):
    old = provider(fleet, "web1").uuid
    fleet.put({"name": "web1", "uuid": NEW, "replaces": "web1"})
    assert spans(fleet, "b") == sorted([(old, "web1", 2, False), (NEW, "web1", 2, True), (provider_uuid("spare"), "spare", 1, True)])


def test_by_a_provider_that_is_there_and_used(fleet):
    fleet.put({"name": "spare", "inventories": {"VCPU": 6, "MEMORY_MB": 1024}, "replaces": "web1"})
    assert held(fleet)["b"] == {"spare": {"VCPU": 3}}
    assert fleet.used == {("spare", "VCPU"): 6, ("spare", "MEMORY_MB"): 1024}
    assert provider(fleet, "spare").traits == frozenset()


def test_a_provider_that_is_there_takes_the_name(fleet):
    generation = 0
    for _unused in range(9):
        fleet.claim(("c", {"web1": {"VCPU": 1}}))
        fleet.claim(("c", {}))
        generation = provider(fleet, "web1").generation
    fleet.put({"name": "spare", "inventories": {"VCPU": 6, "MEMORY_MB": 1024}})
    spare = provider(fleet, "spare")
    assert spare.generation < generation
    fleet.put({"name": "web1", "uuid": spare.uuid, "replaces": "web1"})
    new = provider(fleet, "web1")
    assert new.uuid == spare.uuid
    assert new.generation > generation
    assert held(fleet)["b"] == {"web1": {"VCPU": 3}}


def test_generations_go_on(fleet):
    before = fleet.generations["web1"]
    owners = {name: fleet.consumers[consumer(name)].generation for name in "ab"}
    fleet.put({"name": "web1", "uuid": NEW, "replaces": "web1"})
    assert fleet.generations["web1"] > before
    assert {name: fleet.consumers[consumer(name)].generation for name in "ab"} == {name: owners[name] + 1 for name in owners}
    fleet.put({"name": "web1-old", "uuid": provider_uuid("web1")})
    assert fleet.generations["web1-old"] > before


def test_a_generation_is_that_of_the_replaced_one(fleet):
    seen = fleet.generations["web1"]
    with pytest.raises(GenerationMoved):
        fleet.put({"name": "web1", "uuid": NEW, "replaces": "web1", "generation": seen - 1})
    assert fleet.put({"name": "web1", "uuid": NEW, "replaces": "web1", "generation": seen}).changed


def test_a_renamed_provider_does_not_fall_behind_who_had_the_name(bench):
    bench.put({"name": "x", "inventories": {"VCPU": 4}}, {"name": "y"})
    for number in range(5):
        bench.put({"name": "x", "inventories": {"VCPU": 5 + number}})
    seen = bench.generations["x"]
    bench.remove("x")
    bench.put({"uuid": provider_uuid("y"), "name": "x"})
    assert bench.generations["x"] > seen


def test_too_small_a_successor_is_refused_with_all_names(fleet):
    before = fleet.world
    with pytest.raises(StillInUse) as refused:
        fleet.put({"name": "web1", "uuid": NEW, "replaces": "web1", "inventories": {"VCPU": 4}})
    assert refused.value.conflict == {"used_by": {"web1": {"MEMORY_MB": [consumer("a")], "VCPU": sorted(map(consumer, "ab"))}}}
    assert fleet.world == before
    with pytest.raises(StillInUse) as refused:
        fleet.put(
            {"name": "web1", "uuid": NEW, "replaces": "web1", "inventories": {"VCPU": {"total": 8, "max_unit": 2}, "MEMORY_MB": 1024}}
        )
    assert refused.value.conflict["used_by"] == {"web1": {"VCPU": sorted(map(consumer, "ab"))}}
    assert fleet.world == before


def test_a_lease_that_has_ended_is_in_nobodys_way(fleet):
    fleet.claim(("c", {"web1": {"VCPU": 3}}, {"lease": "1h"}))
    pass_time(fleet.ledger, 3601)
    assert fleet.put({"name": "web1", "uuid": NEW, "replaces": "web1", "inventories": {"VCPU": 5, "MEMORY_MB": 1024}}).changed
    assert held(fleet)["c"] == {}
    # A lease that lasts stays the same.
    fleet.put({"name": "web1", "inventories": {"VCPU": 6, "MEMORY_MB": 1024}})
    fleet.claim(("c", {"web1": {"VCPU": 1}}, {"lease": "1h"}))
    ends = fleet.consumers[consumer("c")].expires_at
    fleet.put({"name": "web2", "replaces": "web1"})
    assert (held(fleet)["c"], fleet.consumers[consumer("c")].expires_at) == ({"web2": {"VCPU": 1}}, ends)


def test_a_drain_goes_with_the_replaced_one(fleet):
    fleet.put({"name": "web1", "drained": {"reason": "burnt"}})
    fleet.put({"name": "web1", "uuid": NEW, "replaces": "web1"})
    assert provider(fleet, "web1").drained is None
    assert fleet.claim(("c", {"web1": {"VCPU": 1}})).changed
    assert fleet.put({"name": "web2", "replaces": "web1", "drained": True}).changed
    assert held(fleet)["c"] == {"web2": {"VCPU": 1}}
    with pytest.raises(NoSolution):
        fleet.claim(("c", {"web2": {"VCPU": 2}}))


def test_a_shared_provider(bench):
    bench.put(
        {"name": "store", "inventories": {"DISK_GB": 100}, "traits": ["MISC_SHARES_VIA_AGGREGATE"], "aggregates": ["row"]},
        {"name": "host", "inventories": {"VCPU": 4}, "aggregates": ["row"]},
    )
    bench.claim(("a", {"store": {"DISK_GB": 60}, "host": {"VCPU": 1}}))
    bench.put({"name": "store2", "replaces": "store", "inventories": {"DISK_GB": 200}})
    new = provider(bench, "store2")
    assert (new.traits, new.aggregates) == ({"MISC_SHARES_VIA_AGGREGATE"}, {aggregate_uuid("row")})
    assert held(bench)["a"] == {"store2": {"DISK_GB": 60}, "host": {"VCPU": 1}}


@pytest.fixture
def trees(bench):
    bench.put(
        {"name": "h1"},
        {"name": "h1_numa0", "parent": "h1", "inventories": {"VCPU": 4}},
        {"name": "h1_numa1", "parent": "h1", "inventories": {"VCPU": 4}},
        {"name": "h1_gpu0", "parent": "h1_numa1", "inventories": {"PGPU": 1}},
        {"name": "h1_gpu1", "parent": "h1_numa1", "inventories": {"PGPU": 1}},
    )
    bench.claim(("a", {"h1_numa0": {"VCPU": 2}}), ("b", {"h1_numa1": {"VCPU": 4}, "h1_gpu0": {"PGPU": 1}}))
    return bench


def parents(bench):
    names = {each.uuid: each.name for each in bench.world.providers}
    return {each.name: names.get(each.parent) for each in bench.world.providers}


def test_those_below_move_along(trees):
    before = trees.generations
    trees.put({"name": "h1", "uuid": NEW, "replaces": "h1"})
    assert parents(trees) == {"h1": None, "h1_numa0": "h1", "h1_numa1": "h1", "h1_gpu0": "h1_numa1", "h1_gpu1": "h1_numa1"}
    assert provider(trees, "h1_gpu0").uuid == provider_uuid("h1_gpu0")
    assert held(trees)["b"] == {"h1_numa1": {"VCPU": 4}, "h1_gpu0": {"PGPU": 1}}
    assert all(trees.generations[name] > before[name] for name in before)


@pytest.mark.parametrize("name", ["h1", "h2"])
def test_a_tree_is_matched_by_the_names_below_the_root(trees, name):
    declared = [
        {"name": f"{name}_gpu0", "parent": f"{name}_numa1", "inventories": {"PGPU": 2}},
        {"name": f"{name}_numa1", "parent": name, "inventories": {"VCPU": 8}},
        {"name": name, "uuid": NEW, "replaces": "h1"},
        {"name": f"{name}_numa0", "parent": name, "inventories": {"VCPU": 8}, "traits": ["HW_NUMA_ROOT"]},
    ]
    done = trees.put(*declared)
    assert parents(trees) == {
        name: None,
        f"{name}_numa0": name,
        f"{name}_numa1": name,
        f"{name}_gpu0": f"{name}_numa1",
        "h1_gpu1": f"{name}_numa1",
    }
    assert held(trees)["b"] == {f"{name}_numa1": {"VCPU": 4}, f"{name}_gpu0": {"PGPU": 1}}
    assert len(done.warnings) == 1
    assert "h1_gpu1" in done.warnings[0]
    again = trees.put(*declared)
    assert (again.changed, list(again.warnings)) == (False, [])


def test_a_tree_with_uuids_of_its_own(trees):
    trees.put({"name": "h1", "uuid": NEW, "replaces": "h1"}, {"name": "h1_numa1", "uuid": OTHER, "parent": NEW, "inventories": {"VCPU": 4}})
    assert provider(trees, "h1_numa1").uuid == OTHER
    assert parents(trees)["h1_gpu0"] == "h1_numa1"
    assert held(trees)["b"] == {"h1_numa1": {"VCPU": 4}, "h1_gpu0": {"PGPU": 1}}


def test_a_tree_below_that_is_too_small(trees):
    before = trees.world
    with pytest.raises(StillInUse) as refused:
        trees.put(
            {"name": "h2", "replaces": "h1"},
            {"name": "h2_numa0", "parent": "h2", "inventories": {"VCPU": 1}},
            {"name": "h2_numa1", "parent": "h2", "inventories": {"VCPU": 3}},
        )
    assert refused.value.conflict["used_by"] == {"h2_numa0": {"VCPU": [consumer("a")]}, "h2_numa1": {"VCPU": [consumer("b")]}}
    assert trees.world == before


def test_what_is_put_below_the_replaced_one_goes_below_its_successor(trees):
    trees.put({"name": "h2", "replaces": "h1"}, {"name": "h2_new", "parent": "h1"}, {"name": "h1_numa0", "traits": ["HW_NUMA_ROOT"]})
    assert parents(trees)["h2_new"] == parents(trees)["h1_numa0"] == "h2"


def test_several_at_once_some_below_others(trees):
    trees.put({"name": "n", "replaces": "h1_numa1"}, {"name": "h2", "replaces": "h1"}, {"name": "g", "parent": "h2", "replaces": "h1_gpu0"})
    assert parents(trees) == {"h2": None, "h1_numa0": "h2", "n": "h2", "g": "h2", "h1_gpu1": "n"}
    assert held(trees)["b"] == {"n": {"VCPU": 4}, "g": {"PGPU": 1}}


def test_a_provider_gets_the_name_back_that_its_uuid_follows_from(fleet):
    fleet.put({"uuid": provider_uuid("web1"), "name": "web1-broken"})
    assert fleet.put({"name": "web1", "replaces": "web1-broken", "inventories": {"VCPU": 16, "MEMORY_MB": 4096}}).changed
    assert provider(fleet, "web1").inventories["VCPU"].total == 16
    assert held(fleet)["a"] == {"web1": {"VCPU": 3, "MEMORY_MB": 1024}}


def test_an_unknown_name_is_a_warning_once(fleet):
    done = fleet.put({"name": "web9", "replaces": "web11"})
    assert [warning for warning in done.warnings if "web11 (did you mean web1?)" in warning]
    assert not fleet.put({"name": "web9", "replaces": "web11"}).warnings


@pytest.mark.parametrize(
    ("entries", "places"),
    [
        ([{"name": "web2", "replaces": "web1"}, {"name": "web3", "replaces": "web1"}], ["providers[1].replaces"]),
        (
            [{"name": "web2", "replaces": "web1"}, {"name": "web3", "replaces": provider_uuid("web1")}, {"name": "web1"}],
            ["providers[0].replaces", "providers[1].replaces", "providers[1].replaces"],
        ),
        ([{"name": "spare", "replaces": "rack"}], ["providers[0].replaces"]),
        ([{"name": "web1", "uuid": NEW, "replaces": "web1", "parent": "web1"}], ["providers[0].parent"]),
        ([{"name": "rack2", "replaces": "rack", "parent": "spare"}], ["providers[0].parent"]),
        ([{"name": "web2", "replaces": 3}], ["providers[0].replaces"]),
        ([{"name": "spare", "uuid": NEW, "replaces": "web1"}], ["providers[0].name"]),
    ],
)
def test_what_cannot_be_meant(fleet, entries, places):
    before = fleet.world
    with pytest.raises(InputError) as error:
        fleet.put(*entries)
    assert [mistake.place for mistake in error.value.mistakes] == places
    assert fleet.world == before


@pytest.fixture
def task(fleet):
    url = fleet.ledger.url.render_as_string(hide_password=False)
    defaults = {name: spec.get("default") for name, spec in ActionModule.ARGUMENTS.items()}
    return lambda dry_run=False, **given: run_provider({**defaults, "database": url, **given}, dry_run=dry_run)


def test_the_task_reports_who_moved(fleet, task):
    asked = {"name": "web1", "uuid": NEW, "replaces": "web1"}
    before = fleet.world
    rehearsed = task(dry_run=True, **asked)
    assert fleet.world == before
    done = task(**asked)
    assert done == rehearsed
    assert done["changed"]
    assert done["moved"].keys() == {consumer("a"), consumer("b")}
    assert done["moved"][consumer("a")]["allocations"] == {NEW: {"MEMORY_MB": 1024, "VCPU": 3}}
    assert [done["diff"][side]["web1"]["uuid"] for side in ("before", "after")] == [provider_uuid("web1"), NEW]
    for side in ("before", "after"):
        assert done["diff"][side]["consumers"][consumer("a")]["allocations"] == {"web1": {"MEMORY_MB": 1024, "VCPU": 3}}
    again = task(**asked)
    assert (again["changed"], again["moved"]) == (False, {})
    assert again["diff"]["before"] == again["diff"]["after"]


def test_absent_replaces_nothing(task):
    with pytest.raises(InputError) as error:
        task(name="web1", replaces="spare", state="absent")
    assert [mistake.place for mistake in error.value.mistakes] == ["replaces"]
