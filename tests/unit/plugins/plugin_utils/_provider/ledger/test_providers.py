# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Providers: registered, changed and removed as declared; generations witness every change and nothing else."""

from __future__ import annotations

import sqlite3

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Unavailable
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger import providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.guards import GenerationMoved
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.inventories import StillInUse
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.model import Inventory
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.names import aggregate_uuid

AGGREGATE = "11111111-2222-4333-8444-555555555555"
OTHER = "99999999-2222-4333-8444-555555555555"


def by_name(bench):
    return {provider.name: provider for provider in bench.world.providers}


def test_a_whole_tree_in_one_call_whatever_the_order(bench):
    bench.put(
        {"name": "vf", "parent": "nic", "inventories": {"SRIOV_NET_VF": 8}},
        {"name": "nic", "parent": "host", "traits": ["CUSTOM_NIC"]},
        {"name": "host", "aggregates": [AGGREGATE.upper()]},
    )
    found = by_name(bench)
    assert found["vf"].parent == found["nic"].uuid
    assert found["nic"].parent == found["host"].uuid
    assert found["host"].aggregates == {AGGREGATE}
    assert bench.world.custom_traits == {"CUSTOM_NIC"}


def test_declared_again_changes_nothing(bench):
    entry = {"name": "host", "inventories": {"VCPU": {"total": 4}}, "traits": ["HW_NUMA_ROOT"], "aggregates": [AGGREGATE], "parent": ""}
    assert bench.put(entry).changed
    assert not bench.put(entry).changed
    assert bench.generations == {"host": 0}


@pytest.mark.parametrize(
    "more",
    [
        {"inventories": {"VCPU": 5}},
        {"inventories": {"VCPU": 4, "MEMORY_MB": 1}},
        {"inventories": {}},
        {"traits": ["HW_CPU_X86_AVX2"]},
        {"traits": []},
        {"aggregates": [OTHER]},
        {"aggregates": []},
        {"parent": "rack"},
    ],
)
def test_every_change_raises_the_generation_once(bench, more):
    bench.put({"name": "rack"}, {"name": "host", "inventories": {"VCPU": 4}, "traits": ["HW_NUMA_ROOT"], "aggregates": [AGGREGATE]})
    assert bench.put({"name": "host", **more}).changed
    assert bench.generations == {"rack": 0, "host": 1}
    assert not bench.put({"name": "host", **more}).changed


def test_what_is_not_declared_stays(bench):
    bench.put({"name": "host", "inventories": {"VCPU": 4}, "traits": ["HW_NUMA_ROOT"]})
    bench.put({"name": "host", "aggregates": [AGGREGATE]})
    found = by_name(bench)["host"]
    assert found.inventories == {"VCPU": Inventory(4)}
    assert found.traits == {"HW_NUMA_ROOT"}


def test_rename_by_uuid(bench):
    bench.put({"name": "old", "inventories": {"VCPU": 4}})
    address = by_name(bench)["old"].uuid
    assert bench.put({"uuid": address, "name": "new"}).changed
    assert by_name(bench)["new"].uuid == address
    assert bench.generations == {"new": 1}
    with pytest.raises(InputError, match=r"providers\[0\]\.uuid: give one"):
        bench.put({"name": "old"})


def test_taken_name_is_refused(bench):
    bench.put({"name": "a"}, {"name": "b"})
    with pytest.raises(InputError, match="b is already the name of the provider"):
        bench.put({"uuid": by_name(bench)["a"].uuid, "name": "b"})


def test_one_provider_twice_in_a_call_is_refused(bench):
    bench.put({"name": "a"})
    with pytest.raises(InputError, match="as is providers"):
        bench.put({"name": "a"}, {"uuid": by_name(bench)["a"].uuid, "name": "c"})


def test_new_provider_needs_a_name_and_known_parents(bench):
    with pytest.raises(InputError, match="a new one needs a name"):
        bench.put({"uuid": AGGREGATE})
    with pytest.raises(InputError, match=r"providers\[0\]\.parent: there is no provider 'rak'"):
        bench.put({"name": "host", "parent": "rak"})
    assert bench.world.providers == ()


def test_move_raises_the_generations_of_the_whole_subtree(bench):
    bench.put({"name": "a"}, {"name": "b"}, {"name": "x", "parent": "a"}, {"name": "y", "parent": "x"})
    bench.put({"name": "x", "parent": "b"})
    assert bench.generations == {"a": 0, "b": 0, "x": 1, "y": 1}
    bench.put({"name": "x", "parent": ""})
    assert by_name(bench)["x"].parent is None


@pytest.mark.parametrize("changes", [[("a", "a")], [("a", "c")], [("a", "b")], [("a", "new"), ("new", "c")]])
def test_loops_are_refused(bench, changes):
    bench.put({"name": "a"}, {"name": "b", "parent": "a"}, {"name": "c", "parent": "b"})
    with pytest.raises(InputError, match="must not form a loop"):
        bench.put(*({"name": child, "parent": parent} for child, parent in changes))
    assert set(bench.generations.values()) == {0}


def test_loop_among_new_providers_is_refused(bench):
    with pytest.raises(InputError, match="must not form a loop"):
        bench.put({"name": "a", "parent": "b"}, {"name": "b", "parent": "a"})


def test_two_may_change_places(bench):
    bench.put({"name": "a"}, {"name": "b", "parent": "a"})
    bench.put({"name": "b", "parent": ""}, {"name": "a", "parent": "b"})
    found = by_name(bench)
    assert found["a"].parent == found["b"].uuid
    assert found["b"].parent is None


def test_generation_of_the_caller_is_honoured(bench):
    bench.put({"name": "host", "inventories": {"VCPU": 4}})
    bench.put({"name": "host", "inventories": {"VCPU": 5}, "generation": 0})
    with pytest.raises(GenerationMoved):
        bench.put({"name": "host", "inventories": {"VCPU": 6}, "generation": 0})
    assert by_name(bench)["host"].inventories["VCPU"].total == 5


def test_inventory_in_use_cannot_go(bench):
    bench.put({"name": "host", "inventories": {"VCPU": 4, "DISK_GB": 10}})
    bench.claim(("vm", {"host": {"VCPU": 1}}))
    with pytest.raises(StillInUse, match="VCPU of host is used by"):
        bench.put({"name": "host", "inventories": {"DISK_GB": 10}})
    assert bench.put({"name": "host", "inventories": {"VCPU": 4}}).changed


def test_remove(bench):
    bench.put(
        {"name": "a", "traits": ["HW_NUMA_ROOT"], "aggregates": [AGGREGATE]}, {"name": "b", "parent": "a", "inventories": {"VCPU": 1}}
    )
    with pytest.raises(StillInUse, match="a has a provider below it"):
        bench.remove("a")
    bench.claim(("vm", {"b": {"VCPU": 1}}))
    with pytest.raises(StillInUse, match="VCPU of b is used"):
        bench.remove("b")
    bench.claim(("vm", {}))
    assert bench.remove("a", "b", "nowhere").changed
    assert bench.world.providers == ()
    assert not bench.remove("a").changed


@pytest.mark.parametrize(
    ("inventory", "says"),
    [
        ({"total": 4, "min_unit": 5}, "min_unit 5 is more than its capacity 4"),
        ({"total": 4, "min_unit": 3, "max_unit": 2}, "min_unit 3 is more than max_unit 2"),
        ({"total": 4, "reserved": 4}, "is 0"),
        ({"total": 4, "allocation_ratio": 0}, "is 0"),
    ],
)
def test_inventory_that_can_never_be_satisfied_is_warned_of(bench, inventory, says):
    (warning,) = bench.put({"name": "host", "inventories": {"VCPU": inventory}}).warnings
    assert warning.startswith("providers[0].inventories.VCPU: nothing can ever be taken")
    assert says in warning


@pytest.mark.parametrize("elsewhere", [{"parent": "other"}, {"traits": ["HW_NUMA_ROOT"]}, None])
def test_what_changes_after_it_was_found_as_declared_is_declared_again(bench, monkeypatch, elsewhere):
    """Nothing guards a provider that needs no change; somebody else changes or removes it before this transaction looks again."""
    bench.put({"name": "host"}, {"name": "other"}, {"name": "card", "parent": "host", "traits": [], "inventories": {"PGPU": 1}})
    declared = {"name": "card", "parent": "host", "traits": [], "inventories": {"PGPU": 1}}
    guard = providers._guard

    def overtaken(connection, *read):
        held = guard(connection, *read)
        monkeypatch.setattr(providers, "_guard", guard)
        change = providers.remove_providers if elsewhere is None else providers.put_providers
        change(connection, parse_changes([{"name": "card", **(elsewhere or {})}], "providers"))
        return held

    monkeypatch.setattr(providers, "_guard", overtaken)
    bench.put(declared)
    card = by_name(bench)["card"]
    assert (card.parent, card.traits, set(card.inventories)) == (by_name(bench)["host"].uuid, frozenset(), {"PGPU"})
    assert bench.ledger.read(audit) == []


def test_a_way_up_that_ends_nowhere_is_told_instead_of_followed_for_ever(unaudited):
    unaudited.put({"name": "a"}, {"name": "b", "parent": "a"})
    # A connection of its own: SQLite checks no foreign keys unless it is told to.
    with sqlite3.connect(unaudited.ledger.url.database) as connection:
        connection.execute("UPDATE resource_providers SET parent_id = 99 WHERE parent_id IS NOT NULL")
    with pytest.raises(Unavailable, match=r"below a parent that is not there \(row 99\); an audit names them"):
        unaudited.put({"name": "c", "parent": "b"})
    assert len(unaudited.world.providers) == 2


@pytest.mark.parametrize("uuids", [(None, None), (None, OTHER), (AGGREGATE, OTHER)])
def test_a_provider_that_is_registered_again_has_no_generation_of_before(bench, uuids):
    first, second = ({"name": "g", **({"uuid": uuid} if uuid else {})} for uuid in uuids)
    bench.put({**first, "inventories": {"VCPU": 1}})
    for total in (2, 3):
        bench.put({"name": "g", "inventories": {"VCPU": total}})
    seen = bench.generations["g"]
    bench.remove("g")
    bench.put({**second, "inventories": {"VCPU": 64}})
    for generation in range(seen + 1):
        with pytest.raises(GenerationMoved):
            bench.put({"name": "g", "inventories": {"VCPU": 1}, "generation": generation})
    assert bench.generations["g"] > seen
    assert by_name(bench)["g"].inventories == {"VCPU": Inventory(64)}


def test_a_new_provider_of_a_name_that_another_has_lost_has_no_generation_of_before(bench):
    bench.put({"name": "g", "uuid": OTHER, "inventories": {"VCPU": 1}})
    bench.put({"name": "g", "inventories": {"VCPU": 2}})
    bench.put({"uuid": OTHER, "name": "h"})
    bench.put({"name": "g", "inventories": {"VCPU": 64}})
    for generation in range(3):
        with pytest.raises(GenerationMoved):
            bench.put({"name": "g", "inventories": {"VCPU": 1}, "generation": generation})


def test_a_provider_that_another_writer_registers_between_two_reads_is_no_mistake(bench, monkeypatch):
    """As at READ COMMITTED: the first read does not see it yet."""
    read = providers.read_providers
    reads = []

    def late(connection, references):
        found = read(connection, references)
        reads.append(1)
        return {} if len(reads) == 1 else found

    bench.put({"name": "same", "inventories": {"VCPU": 4}})
    monkeypatch.setattr(providers, "read_providers", late)
    assert not bench.put({"name": "same", "inventories": {"VCPU": 4}}).changed


def test_a_fleet_that_is_as_declared_is_read_once_and_not_written(bench, monkeypatch):
    fleet = [
        entry
        for number in range(20)
        for entry in (
            {"name": f"host{number}", "inventories": {"VCPU": 4}, "traits": ["HW_NUMA_ROOT"], "aggregates": [aggregate_uuid("rack")]},
            {"name": f"numa{number}", "parent": f"host{number}", "inventories": {"MEMORY_MB": 8}},
        )
    ]
    bench.put(*fleet)
    for change in fleet[::2]:
        change["aggregates"] = ["rack"]
    read = providers.read_providers
    reads = []
    monkeypatch.setattr(providers, "read_providers", lambda connection, wanted: reads.append(1) or read(connection, wanted))
    monkeypatch.setattr(providers, "guard_providers", None)
    assert not bench.put(*fleet).changed
    assert len(reads) == 1
    assert bench.world.aggregate_names == {aggregate_uuid("rack"): "rack"}
