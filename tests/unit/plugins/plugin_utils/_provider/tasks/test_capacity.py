# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task that counts how many more consumers with a request fit."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.action.provider_capacity import ActionModule
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.capacity import _fill
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.capacity import run_provider_capacity
from ansible_collections.bareon.allocator.tests.support.provider.passing_time import pass_time

DEFAULTS = {name: spec.get("default") for name, spec in ActionModule.ARGUMENTS.items()}


def run(**arguments):
    return run_provider_capacity({**DEFAULTS, **arguments})


def of_bench(bench, amount=2, **arguments):
    url = bench.ledger.url.render_as_string(hide_password=False)
    return run(database=url, groups={"": {"resources": {"VCPU": amount}}}, **arguments)


def test_a_fleet_with_claims_leases_and_drains(bench):
    bench.put(*({"name": name, "inventories": {"VCPU": 8}} for name in ("h1", "h2", "h3")))
    bench.claim(("a", {"h1": {"VCPU": 3}}), ("b", {"h2": {"VCPU": 8}}, {"lease": "1h"}))
    assert of_bench(bench) == {"changed": False, "count": 6, "exact": True, "by_root": {"h1": 2, "h3": 4}}
    bench.put({"name": "h3", "drained": True})
    assert of_bench(bench)["by_root"] == {"h1": 2}
    assert of_bench(bench, drained="include")["count"] == 6
    pass_time(bench.ledger, 3601)
    assert of_bench(bench)["by_root"] == {"h1": 2, "h2": 4}
    assert of_bench(bench, 9)["count"] == 0


def test_a_query_and_a_world_written_out():
    world = {"providers": [{"name": "h1", "inventories": {"VCPU": {"total": 7, "allocation_ratio": 2.0}}}]}
    assert run(world=world, query="resources=VCPU:4")["count"] == 3


def test_what_cannot_be_known_is_not_called_exact():
    world = {"providers": [{"name": f"h{number}", "inventories": {"VCPU": 7}} for number in range(9)]}
    groups = {"": {"resources": {"VCPU": 2}}}
    assert run(world=world, groups=groups) == {
        "changed": False,
        "count": 27,
        "exact": True,
        "by_root": {f"h{number}": 3 for number in range(9)},
    }
    assert not run(world=world, groups=groups, can_split=["VCPU"])["exact"]
    assert not run(world=world, groups=groups, budget=3)["exact"]


def test_many_ways_to_combine_end():
    """Pairs of 25 devices, of which each gives three: 37 pairs at most, found before all ways are tried."""
    pairs = [((first, 1), (second, 1)) for second in range(25) for first in range(second)]
    times, most = _fill(pairs, [3] * 25)
    assert sum(times) <= most <= 75
    used = [0] * 25
    for pair, count in zip(pairs, times, strict=True):
        for place, amount in pair:
            used[place] += amount * count
    assert max(used) <= 3


@pytest.mark.parametrize("groups", [{}, {"": {"resources": {"VCPU": 0}}}, {"": {"resources": {"CUSTOM_NO": 1}}}])
def test_mistakes(groups):
    with pytest.raises(InputError):
        run(world={"providers": []}, groups=groups)
