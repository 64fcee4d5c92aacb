# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nothing more is given of a drained provider and of those below it; what consumers have stays theirs."""

from __future__ import annotations

from functools import partial

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.find import SearchOptions, find_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.index import build_index
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.why import explain
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.feasible.parts import Asker
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claim_plan import ClaimRefused
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claims import apply_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import ledger_of
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_claims, parse_reshape
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.plain import plain_world
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.reshape import reshape
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.worlds import read_world
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.model import Group, Request
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.times import Drain
from ansible_collections.bareon.allocator.tests.support.provider.consumers import consumer
from ansible_collections.bareon.allocator.tests.support.provider.passing_time import pass_time

ASKED = Request((Group("", (("VCPU", 1),)),))
WHY = {"reason": "disk replaced", "until": "2h"}


@pytest.fixture
def fleet(bench):
    bench.put(
        {"name": "h1", "inventories": {"DISK_GB": 10}},
        {"name": "h1_numa0", "parent": "h1", "inventories": {"VCPU": 4}},
        {"name": "h2", "inventories": {"VCPU": 4, "DISK_GB": 10}},
    )
    return bench


def hosts(bench, request=ASKED):
    """The hosts of the candidates, by the database's indexes; those of a search of the whole world are the same."""
    found = bench.ledger.read(lambda connection: Asker(connection).find(request, SearchOptions()))
    world = bench.world
    assert find_candidates(build_index(world), request).candidates == found.candidates
    names = {provider.uuid: provider.name for provider in world.providers}
    return [names[uuid] for candidate in found.candidates for uuid in candidate["allocations"]]


def test_no_candidate_is_drained_nor_below_a_drained_one(fleet):
    assert hosts(fleet) == ["h1_numa0", "h2"]
    assert fleet.put({"name": "h1", "drained": True}).changed
    assert not fleet.put({"name": "h1", "drained": True}).changed
    assert hosts(fleet) == ["h2"]
    assert hosts(fleet, Request(ASKED.groups, drained=True)) == ["h1_numa0", "h2"]
    assert fleet.put({"name": "h1", "drained": False}).changed
    assert hosts(fleet) == ["h1_numa0", "h2"]


def test_the_reason_is_in_why_and_in_refusals(fleet):
    fleet.put({"name": "h1", "drained": WHY}, {"name": "h2", "drained": True})
    why = explain(build_index(fleet.world), ASKED)
    assert why["first"]["kind"] == "drained"
    assert "h1 is drained (disk replaced, until 20" in " ".join(why["says"])
    assert "h2 is drained" in " ".join(why["says"])
    with pytest.raises(
        ClaimRefused, match=r"VCPU of h1_numa0: h1 is drained \(disk replaced, until 20\S+\); it gives nothing more"
    ) as refused:
        fleet.claim(("a", {"h1_numa0": {"VCPU": 1}}))
    assert [entry["reason"] for entry in refused.value.conflict["refused"]] == ["drained"]


@pytest.mark.parametrize("short", [True, False])
def test_a_claim_may_include_drained_ones(fleet, short):
    fleet.put({"name": "h1", "drained": True})
    way = fleet.claim if short else lambda entry: fleet.ledger.write(partial(apply_claims, claims=_claims(*entry)))
    with pytest.raises(ClaimRefused):
        way(("a", {"h1_numa0": {"VCPU": 1}}, {}))
    assert way(("a", {"h1_numa0": {"VCPU": 1}}, {"drained": "include"})).changed


def _claims(name, amounts, more):
    return parse_claims([{"consumer": consumer(name), "allocations": amounts, **more}], "consumers[{}]")


def test_what_consumers_have_stays_theirs(fleet):
    fleet.claim(("a", {"h1_numa0": {"VCPU": 2}}))
    fleet.put({"name": "h1", "drained": True})
    assert not fleet.claim(("a", {"h1_numa0": {"VCPU": 2}})).changed
    assert fleet.claim(("a", {"h1_numa0": {"VCPU": 1}})).changed
    with pytest.raises(ClaimRefused, match="h1 is drained"):
        fleet.claim(("a", {"h1_numa0": {"VCPU": 2}}))
    # A reshape moves what is there.
    work = partial(
        reshape, inventories=parse_reshape({"h1": {"VCPU": 4}, "h1_numa0": {}}, ""), claims=_claims("a", {"h1": {"VCPU": 1}}, {})
    )
    assert fleet.ledger.write(partial(work, generations={})).changed
    assert fleet.claim(("a", {})).changed


def test_a_drain_ends_by_itself(fleet):
    fleet.put({"name": "h1", "drained": WHY})
    assert [provider.drained.reason for provider in fleet.world.providers if provider.drained] == ["disk replaced"]
    pass_time(fleet.ledger, 7201)
    assert hosts(fleet) == ["h1_numa0", "h2"]
    assert fleet.claim(("a", {"h1_numa0": {"VCPU": 1}})).changed
    assert [provider for provider in fleet.world.providers if provider.drained] == []
    assert not fleet.put({"name": "h1", "drained": False}).changed
    assert not fleet.put({"name": "h1", "drained": {"until": "2001-01-01"}}).changed


def test_trees_that_change_while_drained(fleet):
    fleet.put({"name": "h1", "drained": {"reason": "first"}})
    fleet.put({"name": "h1_numa1", "parent": "h1", "inventories": {"VCPU": 4}})
    assert hosts(fleet) == ["h2"]
    fleet.put({"name": "h1_numa1", "parent": "h2"})
    assert hosts(fleet) == ["h2", "h1_numa1"]
    fleet.put({"name": "h1_numa0", "drained": {"until": "1h"}})
    fleet.put({"name": "h1", "drained": False})
    assert hosts(fleet) == ["h2", "h1_numa1"]
    pass_time(fleet.ledger, 3601)
    assert sorted(hosts(fleet)) == ["h1_numa0", "h1_numa1", "h2"]


def test_generations_of_all_below_move(fleet):
    before = fleet.generations
    fleet.put({"name": "h1", "drained": True})
    after = fleet.generations
    assert {name for name in after if after[name] != before[name]} == {"h1", "h1_numa0"}


@pytest.mark.parametrize(
    ("drained", "says"),
    [
        ("maybe", "drained: is 'maybe'; must be true, false, or a mapping"),
        ({"why": "x"}, "why"),
        ({"reason": "x" * 256}, "drained.reason: is"),
        ({"until": "tomorrow"}, "drained.until: is 'tomorrow'; must be a time"),
    ],
)
def test_mistakes_have_places(fleet, drained, says):
    with pytest.raises(InputError, match=says):
        fleet.put({"name": "h1", "drained": drained})


def test_a_world_written_out_has_drains():
    entries = [{"name": "h1", "drained": {"reason": "old", "until": "2130-01-01"}}, {"name": "h2"}, {"name": "h3", "drained": True}]
    world = parse_world({"providers": entries})
    assert [provider.drained for provider in world.providers] == [Drain("old", 5049129600), None, Drain()]
    with ledger_of(world) as ledger:
        written = plain_world(ledger.read(read_world))
    drained = [entry.get("drained") for entry in written["providers"]]
    assert drained == [{"reason": "old", "until": "2130-01-01T00:00:00Z"}, None, True]
    assert parse_world(written).drains().keys() == {world.providers[0].uuid, world.providers[2].uuid}
