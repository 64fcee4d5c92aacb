# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Input of the ledger: all mistakes of a call at once, each with its place; nothing ill-formed passes."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import (
    parse_changes,
    parse_claims,
    parse_generations,
    parse_reshape,
)

CONSUMER = "11111111-2222-4333-8444-555555555555"


def places(parse, data, place):
    with pytest.raises(InputError) as error:
        parse(data, place)
    return [mistake.place for mistake in error.value.mistakes]


def test_all_mistakes_of_providers_at_once():
    entries = [
        {},
        {"name": "x" * 201, "uuid": "nonsense", "parent": 7, "generation": -1, "colour": "red"},
        {"name": "ok", "inventories": {"VCPU": {"total": 0, "reserved": -1, "min_unit": 0, "max_unit": 2**31, "step_size": 1.5}}},
        {"name": "also\x00ok", "inventories": {"vcpu": 1, "VCPU": {}, "DISK_GB": {"total": 1, "reserved": 2, "totl": 1}}},
        {"name": "same", "traits": ["HW_NUMA_RUT", 7], "aggregates": ["!x"]},
        {"name": "same", "traits": "HW_NUMA_ROOT", "inventories": []},
        "nonsense",
    ]
    assert places(parse_changes, entries, "providers[{}]") == [
        "providers[0]",
        "providers[1].colour",
        "providers[1].uuid",
        "providers[1].name",
        "providers[1].parent",
        "providers[1].generation",
        "providers[2].inventories.VCPU.total",
        "providers[2].inventories.VCPU.reserved",
        "providers[2].inventories.VCPU.min_unit",
        "providers[2].inventories.VCPU.max_unit",
        "providers[2].inventories.VCPU.step_size",
        "providers[3].name",
        "providers[3].inventories",
        "providers[3].inventories.VCPU.total",
        "providers[3].inventories.DISK_GB.totl",
        "providers[4].traits[0]",
        "providers[4].traits[1]",
        "providers[4].aggregates[0]",
        "providers[5].inventories",
        "providers[5].traits",
        "providers[6]",
        "providers[5].name",
    ]


def test_all_mistakes_of_claims_at_once():
    entries = [
        {"consumer": " vm1", "allocations": {"host": {"VCPU": 0, "vcpu": 1, "DISK_GB": True, "MEMORY_MB": "1"}}},
        {
            "consumer": CONSUMER,
            "allocations": {"": {"VCPU": 1}, "host": {}},
            "project": "",
            "user": "x" * 256,
            "consumer_generation": "1",
            "consumer_type": "Vm",
        },
        {"consumer": CONSUMER, "allocations": ["host"], "colour": 1},
    ]
    assert places(parse_claims, entries, "consumers[{}]") == [
        "consumers[0].consumer",
        "consumers[0].allocations.host.VCPU",
        "consumers[0].allocations.host",
        "consumers[0].allocations.host.DISK_GB",
        "consumers[0].allocations.host.MEMORY_MB",
        "consumers[1].allocations",
        "consumers[1].allocations.host",
        "consumers[1].project",
        "consumers[1].user",
        "consumers[1].consumer_type",
        "consumers[1].consumer_generation",
        "consumers[2].colour",
        "consumers[2].allocations",
        "consumers[2].consumer",
    ]


def test_a_place_of_one_entry_has_no_number():
    assert places(parse_claims, [{"consumer": CONSUMER[:-1]}], "") == ["consumer"]


def test_whole_candidate_is_taken_for_its_allocations():
    candidate = {"allocations": {"host": {"VCPU": 1}}, "mappings": {"": ["host"]}, "score": 0.5}
    (claim,) = parse_claims([{"consumer": CONSUMER.upper(), "allocations": candidate}], "")
    assert claim.consumer == CONSUMER
    assert claim.amounts == {"host": {"VCPU": 1}}


def test_reshape_and_generations():
    assert places(parse_reshape, {"": {}, "host": {"VCPU": -1}}, "inventories") == ["inventories", "inventories.host.VCPU.total"]
    assert places(parse_generations, {"host": -1}, "generations") == ["generations.host"]
    assert places(parse_generations, [], "generations") == ["generations"]


@pytest.mark.parametrize("name", ["'; DROP TABLE consumers; --", 'host"1', "%s %(x)s :y ?", "höst Ω"])
def test_odd_names_are_stored_as_they_are(bench, name):
    bench.put({"name": name, "inventories": {"VCPU": 1}}, {"name": "below", "parent": name})
    bench.claim(("vm", {name: {"VCPU": 1}}, {"project": name, "user": name}))
    assert bench.used == {(name, "VCPU"): 1}
    assert {(entry.project, entry.user) for entry in bench.consumers.values()} == {(name, name)}
