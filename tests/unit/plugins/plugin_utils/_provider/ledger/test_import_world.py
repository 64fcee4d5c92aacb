# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fleet of any size is taken over in one transaction, a few providers at a time."""

from __future__ import annotations

import random

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger import read
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.import_world import store_providers, store_world
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.model import Inventory, Provider, World
from ansible_collections.bareon.allocator.tests.support.provider.consumers import consumer
from ansible_collections.bareon.allocator.tests.support.provider.worlds import made_uuid

PART = 4


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(read, "_BATCH", PART)


def host(number):
    return Provider(
        made_uuid(f"host{number}"), f"host{number:03}", None, {"VCPU": Inventory(8)}, frozenset(["CUSTOM_A", f"CUSTOM_{number}"])
    )


def racks():
    """Three levels of providers, of which some share."""
    site = Provider(made_uuid("site"), "site", aggregates=frozenset([made_uuid("zone")]))
    rows = [Provider(made_uuid(f"row{row}"), f"row{row}", site.uuid, {"VCPU": Inventory(8)}) for row in range(4)]
    pools = frozenset(["MISC_SHARES_VIA_AGGREGATE"])
    nodes = [
        Provider(made_uuid(f"node{number}"), f"node{number}", rows[number % 4].uuid, {"DISK_GB": Inventory(9)}, pools, generation=number)
        for number in range(9)
    ]
    return [site, *rows, *nodes]


@pytest.mark.parametrize("seed", range(6))
def test_providers_may_come_before_their_parents(bench, seed):
    providers = racks()
    random.Random(seed).shuffle(providers)
    users = {consumer(f"user{number}"): number % 3 + 1 for number in range(PART + 2)}
    held = {user: {made_uuid(f"node{node}"): {"DISK_GB": 1} for node in range(count)} for user, count in users.items()}
    world = World(tuple(providers), held)
    bench.ledger.write(lambda connection: store_world(connection, world))
    assert bench.world.providers == world.providers
    assert bench.world.allocations == held
    assert bench.findings == []


def test_what_was_read_is_written_before_more_is_read(bench):
    written = []

    def store(connection):
        def fleet():
            for number in range(3 * PART):
                written.append(connection.exec_driver_sql("SELECT COUNT(*) FROM resource_providers").scalar())
                yield host(number)

        store_providers(connection, fleet())

    bench.ledger.write(store)
    assert written == [number // PART * PART for number in range(3 * PART)]
    assert len(bench.world.providers) == 3 * PART


def test_nothing_is_left_of_a_fleet_that_ends_too_soon(bench):
    def fleet():
        yield from map(host, range(3 * PART))
        raise OSError("its source broke")

    with pytest.raises(OSError, match="broke"):
        bench.ledger.write(lambda connection: store_providers(connection, fleet()))
    assert bench.world == World(())


def test_a_ledger_that_has_providers_may_get_more(bench):
    bench.put({"name": "first", "inventories": {"VCPU": {"total": 4}}})
    bench.ledger.write(lambda connection: store_providers(connection, map(host, range(PART))))
    assert [provider.name for provider in bench.world.providers] == ["first", *(f"host{number:03}" for number in range(PART))]
