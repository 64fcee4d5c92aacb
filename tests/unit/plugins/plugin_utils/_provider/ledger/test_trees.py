# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A provider goes with all below it, or stays with all of it."""

from __future__ import annotations

from functools import partial

import pytest
from ansible_collections.bareon.allocator.plugins.action.provider import ActionModule
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.guards import GenerationMoved
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.inventories import StillInUse
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import remove_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.provider import run_provider
from ansible_collections.bareon.allocator.tests.support.provider.passing_time import pass_time


@pytest.fixture
def fleet(bench):
    bench.put(
        {"name": "h1"},
        {"name": "h1_numa0", "parent": "h1", "inventories": {"VCPU": 4}},
        {"name": "h1_gpu0", "parent": "h1_numa0", "inventories": {"PGPU": 1}},
        {"name": "h2", "inventories": {"VCPU": 4}},
    )
    return bench


def remove(bench, *entries):
    changes = parse_changes(entries, "providers[{}]")
    return bench.ledger.write(partial(remove_providers, changes=changes, trees=True))


def names(bench):
    return sorted(provider.name for provider in bench.world.providers)


def test_all_below_goes_along(fleet):
    removed = remove(fleet, {"name": "h1"})
    assert sorted(provider.name for provider in removed.before.values()) == ["h1", "h1_gpu0", "h1_numa0"]
    assert names(fleet) == ["h2"]
    assert not remove(fleet, {"name": "h1"}).changed


def test_a_part_of_a_tree_goes_and_one_may_be_named_twice(fleet):
    assert remove(fleet, {"name": "h1_numa0"}, {"name": "h1_gpu0"}).changed
    assert names(fleet) == ["h1", "h2"]


def test_what_is_used_below_keeps_all(fleet):
    fleet.claim(("a", {"h1_gpu0": {"PGPU": 1}}, {"lease": "1h"}))
    with pytest.raises(StillInUse, match="PGPU of h1_gpu0 is used by"):
        remove(fleet, {"name": "h1"}, {"name": "h2"})
    assert names(fleet) == ["h1", "h1_gpu0", "h1_numa0", "h2"]
    pass_time(fleet.ledger, 3601)
    assert remove(fleet, {"name": "h1"}, {"name": "h2"}).changed
    assert names(fleet) == []


def test_a_generation_is_a_condition(fleet):
    fleet.put({"name": "h1", "traits": ["HW_NUMA_ROOT"]})
    with pytest.raises(GenerationMoved):
        remove(fleet, {"name": "h1", "generation": 0})


def test_the_task(fleet):
    url = fleet.ledger.url.render_as_string(hide_password=False)
    asked = {**{name: spec.get("default") for name, spec in ActionModule.ARGUMENTS.items()}, "database": url, "name": "h1", "tree": True}
    with pytest.raises(InputError, match="tree: only applies to state absent"):
        run_provider(asked, dry_run=False)
    assert set(run_provider({**asked, "state": "absent"}, dry_run=False)["diff"]["before"]) == {"h1", "h1_gpu0", "h1_numa0"}
    assert names(fleet) == ["h2"]
