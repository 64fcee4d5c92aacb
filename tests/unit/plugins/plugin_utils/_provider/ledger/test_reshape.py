# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reshape: inventories change their form and allocations move along, or nothing does."""

from __future__ import annotations

from functools import partial

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claim_plan import ClaimRefused
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.guards import GenerationMoved
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.inventories import StillInUse
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_claims, parse_reshape
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.reshape import reshape
from ansible_collections.bareon.allocator.tests.support.provider.consumers import consumer


@pytest.fixture
def flat_host(bench):
    """A host whose CPUs are in use by two consumers, and two NUMA nodes below it that have none yet."""
    bench.put(
        {"name": "host", "inventories": {"VCPU": 8, "DISK_GB": 100}},
        {"name": "numa0", "parent": "host"},
        {"name": "numa1", "parent": "host"},
    )
    bench.claim(("x", {"host": {"VCPU": 4, "DISK_GB": 10}}), ("y", {"host": {"VCPU": 4}}))
    return bench


NESTED = {"host": {"DISK_GB": 100}, "numa0": {"VCPU": 4}, "numa1": {"VCPU": 4}}


def run(bench, inventories, wanted, generations=None):
    claims = parse_claims([{"consumer": consumer(name), "allocations": amounts} for name, amounts in wanted.items()], "consumers[{}]")
    work = partial(reshape, inventories=parse_reshape(inventories, "inventories"), claims=claims, generations=generations or {})
    return bench.ledger.write(work)


def test_cpus_move_to_the_numa_nodes(flat_host):
    result = run(flat_host, NESTED, {"x": {"numa0": {"VCPU": 4}, "host": {"DISK_GB": 10}}, "y": {"numa1": {"VCPU": 4}}})
    assert result.changed
    assert flat_host.used == {("numa0", "VCPU"): 4, ("numa1", "VCPU"): 4, ("host", "DISK_GB"): 10}
    assert flat_host.generations == {"host": 2, "numa0": 1, "numa1": 1}


def test_again_changes_nothing(flat_host):
    wanted = {"x": {"numa0": {"VCPU": 4}, "host": {"DISK_GB": 10}}, "y": {"numa1": {"VCPU": 4}}}
    run(flat_host, NESTED, wanted)
    assert not run(flat_host, NESTED, wanted).changed
    assert flat_host.generations == {"host": 2, "numa0": 1, "numa1": 1}


def test_forgotten_consumer_stops_it_all(flat_host):
    before = (flat_host.used, flat_host.generations)
    with pytest.raises(StillInUse) as error:
        run(flat_host, NESTED, {"x": {"numa0": {"VCPU": 4}, "host": {"DISK_GB": 10}}})
    assert list(error.value.conflict["used_by"].values()) == [{"VCPU": [consumer("y")]}]
    assert (flat_host.used, flat_host.generations) == before


def test_what_does_not_fit_the_new_form_is_refused(flat_host):
    with pytest.raises(ClaimRefused):
        run(flat_host, NESTED, {"x": {"numa0": {"VCPU": 4}}, "y": {"numa0": {"VCPU": 4}}})
    assert flat_host.used["host", "VCPU"] == 8


def test_generations_and_unknown_providers(flat_host):
    with pytest.raises(GenerationMoved):
        run(flat_host, NESTED, {}, {"numa0": 7})
    with pytest.raises(NoSolution, match="there is no provider numa2"):
        run(flat_host, {"numa2": {}}, {})


@pytest.mark.parametrize("form", [{"max_unit": 3}, {"min_unit": 5}, {"step_size": 3}])
def test_what_a_consumer_declares_again_must_fit_the_new_form(flat_host, form):
    held = {"host": {"VCPU": 4, "DISK_GB": 10}}
    with pytest.raises(ClaimRefused) as error:
        run(flat_host, {"host": {"VCPU": {"total": 8, **form}, "DISK_GB": 100}}, {"x": held})
    assert [(entry["resource_class"], entry["reason"]) for entry in error.value.conflict["refused"]] == [("VCPU", "piece")]
    flat_host.put({"name": "host", "inventories": {"VCPU": {"total": 8, **form}, "DISK_GB": 100}})
    assert not flat_host.claim(("x", held)).changed, "whoever has something keeps it"
    flat_host.put({"name": "host", "inventories": {"VCPU": 8, "DISK_GB": 100}})
