# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A backup of any ledger goes back into any database: all rows, their numbers and generations, and nothing of what was there."""

from __future__ import annotations

from functools import partial

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import Unavailable
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes, parse_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import put_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.read import read_consumers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.worlds import read_world
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.backup import run_provider_backup, run_provider_restore


def put(ledger, *entries):
    ledger.write(partial(put_providers, changes=parse_changes(entries, "providers[{}]")))


def claim(ledger, name, provider, amount=1):
    make_claims(ledger, parse_claims([{"consumer": name, "project": "red", "allocations": {provider: {"VCPU": amount}}}], "consumers[{}]"))


def state(url):
    with open_ledger(url) as ledger:
        assert ledger.read(audit) == []
        return ledger.read(read_world), ledger.read(read_consumers)


def test_what_was_backed_up_comes_back_and_nothing_else(nodes, tmp_path):
    url, other = nodes[0], nodes[-1]
    saved = {"path": str(tmp_path / "saved.sqlite"), "timeout": 60.0}
    with open_ledger(url) as ledger:
        put(ledger, {"name": "restored_numa0", "inventories": {"VCPU": 8}}, {"name": "restored_host", "aggregates": ["rack1"]})
        put(ledger, {"name": "restored_numa0", "parent": "restored_host", "traits": ["CUSTOM_SAVED"]})
        claim(ledger, "before", "restored_numa0", 2)
    run_provider_backup({"database": url, **saved}, dry_run=False)
    expected = state(url)
    with open_ledger(other) as ledger:
        claim(ledger, "after", "restored_numa0", 3)
        put(ledger, {"name": "restored_later", "inventories": {"VCPU": 4}})
    changed = state(url)
    run_provider_restore({"database": url, **saved}, dry_run=True)
    assert state(other) == changed
    run_provider_restore({"database": url, **saved}, dry_run=False)
    assert state(other) == expected
    with open_ledger(other) as ledger:
        put(ledger, {"name": "restored_new", "inventories": {"VCPU": 4}})
        claim(ledger, "new", "restored_new")
        claim(ledger, "before", "restored_numa0", 1)
    assert len(state(url)[1]) == len(expected[1]) + 1


def test_a_ledger_that_is_written_to_is_not_restored(nodes, tmp_path):
    url = nodes[0]
    if len(nodes) > 1:
        url = nodes[-1]
    saved = {"path": str(tmp_path / "saved.sqlite"), "timeout": 20.0}
    with open_ledger(url) as ledger:
        put(ledger, {"name": "busy_host", "inventories": {"VCPU": 8}})
        run_provider_backup({"database": url, **saved}, dry_run=False)
        before = state(url)

        def restore_meanwhile(connection):
            put_providers(connection, changes=parse_changes([{"name": "busy_host", "inventories": {"VCPU": 9}}], "providers[{}]"))
            with pytest.raises(Unavailable, match="written to by another program"):
                run_provider_restore({"database": url, **saved}, dry_run=False)

        ledger.write(restore_meanwhile)
    world, _consumers = state(url)
    assert len(world.providers) == len(before[0].providers)
    assert next(each for each in world.providers if each.name == "busy_host").inventories["VCPU"].total == 9
