# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Placing: candidates and claim in one; others may be quicker, and a consumer that has what is asked for stays where it is."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils.common.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils.provider.arguments import REQUEST_ARGUMENTS
from ansible_collections.bareon.allocator.plugins.plugin_utils.provider.ledger.claims import Claim
from ansible_collections.bareon.allocator.plugins.plugin_utils.provider.tasks import allocation as placing
from ansible_collections.bareon.allocator.tests.support.provider.consumers import consumer

DEFAULTS = {name: spec.get("default") for name, spec in REQUEST_ARGUMENTS.items()}


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


def test_consumer_moves_when_it_asks_for_something_else(hosts):
    for number in range(4):
        place(hosts, f"vm{number}", wants(3))
    assert place(hosts, "vm0", wants(4)).chosen.claimed.changed
    assert sorted(hosts.used.values()) == [3, 3, 3, 4]


def test_loser_of_a_race_looks_again(hosts, monkeypatch):
    """Another consumer takes the best place between looking and claiming, again and again until the third look."""
    quicker = iter(["other0", "other1"])
    find = placing.find_in_world

    def find_and_lose(world, request):
        found = find(world, request)
        found["candidates"] = found["candidates"][:1]
        other = next(quicker, None)
        if other:
            hosts.ledger.write(
                lambda connection: placing_claims(connection, [Claim(consumer(other), found["candidates"][0]["allocations"])])
            )
        return found

    from ansible_collections.bareon.allocator.plugins.plugin_utils.provider.ledger.claims import apply_claims as placing_claims

    monkeypatch.setattr(placing, "find_in_world", find_and_lose)
    assert place(hosts, "vm", wants(4)).chosen.claimed.changed
    assert list(hosts.used.values()) == [4, 4, 4]


def test_mistakes_are_placed_in_the_request(hosts):
    with pytest.raises(InputError) as error:
        place(hosts, "vm", wants(0))
    assert error.value.mistakes[0].place.startswith("request.groups")
