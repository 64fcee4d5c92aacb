# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many requests at once: one after the other they get what tasks of their own would get; together, all if trying everything finds a way."""

from __future__ import annotations

from itertools import product

import pytest
from ansible_collections.bareon.allocator.plugins.action.provider_allocation import ActionModule
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.arguments import REQUEST_ARGUMENTS
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claim_plan import Claim
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import ledger_of
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.allocation import place
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.batch import parse_batch, place_batch
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.model import World
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.names import consumer_uuid
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from ansible_collections.bareon.allocator.tests.support.provider import oracle
from ansible_collections.bareon.allocator.tests.support.provider.refill import refill
from ansible_collections.bareon.allocator.tests.support.provider.strategies import AGGREGATES, CLASSES, TRAITS, requests, worlds
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
COMMON = settings(deadline=None, suppress_health_check=SLOW)
OPTIONS = {name: spec.get("default") for name, spec in ActionModule.ARGUMENTS.items()}
REQUEST = {name: spec.get("default") for name, spec in REQUEST_ARGUMENTS.items()}
GANGS = [{}, {"apart": "root"}, {"apart": "provider"}, {"within": "aggregate"}, {"within": "aggregate", "apart": "root"}]
NOT_HERE = ("with", "not_with", "limit", "root_member_of")
NAMES = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def ledger():
    with ledger_of(World(())) as opened:
        yield opened


def batch_of(asks, **more):
    entries = [{"consumer": name, "request": {**REQUEST, **ask}} for name, ask in asks.items()]
    return parse_batch({**OPTIONS, "requests": entries, **more}, {})


@st.composite
def several(draw):
    """A world, and requests of some consumers, a few of which name each other."""
    world = draw(worlds())
    kinds = [draw(requests(world)), draw(requests(world)), {"groups": {"": {"resources": {draw(st.sampled_from(CLASSES)): 1}}}}]
    order = draw(st.sampled_from(["none", "spread", "pack"]))
    asks = {}
    for name in NAMES[: draw(st.integers(1, 4))]:
        asks[name] = {**draw(st.sampled_from(kinds)), "order": order, "limit": 4}
        kind = draw(st.integers(0, 5))
        if kind < 2 and len(asks) > 1:
            asks[name]["with" if kind else "not_with"] = [draw(st.sampled_from(list(asks)[:-1]))]
        elif kind == 2:
            asks[name]["prefer"] = [{"trait": TRAITS[0]}]
    return world, asks


@given(case=several())
@settings(COMMON, max_examples=examples(150))
def test_each_gets_what_a_task_of_its_own_would_get(ledger, case):
    data, asks = case
    world = parse_world(data)
    ledger.write(lambda connection: refill(connection, world))
    expected = {}
    for name, ask in asks.items():
        try:
            placed = place(ledger, Claim(consumer_uuid(name), {}, name=name), {**REQUEST, **ask, "limit": 1})
        except InputError:
            assume(False)
        except NoSolution:
            continue
        expected[name] = placed.candidate["allocations"]
    ledger.write(lambda connection: refill(connection, world))
    result = place_batch(ledger, batch_of(asks))
    assert {each["name"]: each["allocations"] for each in result["placed"]} == expected
    assert {each["name"] for each in result["refused"]} == asks.keys() - expected.keys()
    again = place_batch(ledger, batch_of({name: asks[name] for name in expected})) if expected else result
    assert not expected or not again["changed"]
    assert {finding.kind for finding in ledger.read(audit)} <= {"overfull", "piece"}


def fits_together(world, choice, apart):
    """Whether candidates, one of each request, have room side by side, apart from each other."""
    loads = {}
    for uuid, name, amount in (part for allocations in choice for part in allocations):
        loads[uuid, name] = loads.get((uuid, name), 0) + amount
    if any(amount > world.free(uuid, name) for (uuid, name), amount in loads.items()):
        return False
    places = [{uuid if apart == "provider" else world.root(uuid) for uuid, _name, _amount in allocations} for allocations in choice]
    return apart is None or sum(map(len, places)) == len(set().union(*places))


def is_possible(data, asks, gang):
    world = oracle.World(data)
    for aggregate in AGGREGATES if gang.get("within") else [None]:
        more = {} if aggregate is None else {"root_member_of": [aggregate]}
        options = [{allocations for allocations, _mappings in oracle.brute_force(data, {**ask, **more})} for ask in asks.values()]
        if any(fits_together(world, choice, gang.get("apart")) for choice in product(*options)):
            return True
    return False


@given(case=several(), gang=st.sampled_from(GANGS))
@settings(COMMON, max_examples=examples(200))
def test_all_are_placed_if_there_is_any_way(ledger, case, gang):
    data, asks = case
    data = {**data, "providers": [{**each, "traits": [name for name in each["traits"] if name in TRAITS]} for each in data["providers"]]}
    asks = {name: {key: value for key, value in ask.items() if key not in NOT_HERE} for name, ask in asks.items()}
    assume(len(asks) > 1)
    world = parse_world(data)
    ledger.write(lambda connection: refill(connection, world))
    before = ledger.read(audit)
    try:
        batch = batch_of(asks, all_or_nothing=True, gang=gang or None)
        placed = place_batch(ledger, batch)["placed"]
    except InputError:
        assume(False)
    except NoSolution:
        assert not is_possible(data, asks, gang)
        return
    assert is_possible(data, asks, gang)
    chosen = [
        frozenset((uuid, name, amount) for uuid, amounts in each["allocations"].items() for name, amount in amounts.items())
        for each in placed
    ]
    assert len(chosen) == len(asks)
    assert fits_together(oracle.World(data), chosen, gang.get("apart"))
    assert len(ledger.read(audit)) <= len(before)
    assert not place_batch(ledger, batch)["changed"]
