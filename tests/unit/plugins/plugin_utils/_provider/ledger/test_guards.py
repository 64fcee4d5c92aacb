# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guards are taken in one order, whatever the order of what is asked: two claims then wait for each other, and never in a circle."""

from __future__ import annotations

import uuid

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claim_plan import Claim
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claims import apply_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.guards import guard_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.read import read_numbers

CONSUMERS = sorted(str(uuid.uuid5(uuid.NAMESPACE_DNS, name)) for name in ("one", "two", "three"))
HOSTS = ("host1", "host2", "host3", "host4")


@pytest.fixture
def hosts(bench):
    bench.put(*({"name": name, "inventories": {"VCPU": 4}} for name in HOSTS))
    return bench


@pytest.fixture
def numbers(hosts):
    """The ledger's numbers of the hosts, by name."""
    return {name: number for name, (number, _uuid) in hosts.ledger.read(lambda connection: read_numbers(connection, HOSTS)).items()}


def guards_of(ledger, work):
    """Return which rows `work` guards, in its order: consumers by UUID, providers by number."""
    statements = []

    def traced(connection):
        driver = connection.connection.driver_connection
        driver.set_trace_callback(statements.append)
        try:
            work(connection)
        finally:
            driver.set_trace_callback(None)

    ledger.write(traced)
    return [guarded for statement in statements if (guarded := guarded_row(statement)) is not None]


def guarded_row(statement):
    if statement.startswith("UPDATE resource_providers SET generation"):
        return "provider", int(statement.partition("resource_providers.id = ")[2].split()[0])
    if statement.startswith("INSERT INTO consumers"):
        return "consumer", next(entry for entry in CONSUMERS if entry in statement)
    return None


@pytest.mark.parametrize("order", [HOSTS, HOSTS[::-1], ("host3", "host1", "host4", "host2")])
def test_providers_are_guarded_by_number(hosts, numbers, order):
    found = guards_of(hosts.ledger, lambda connection: guard_providers(connection, {numbers[name]: None for name in order}))
    assert found == [("provider", number) for number in sorted(numbers.values())]


@pytest.mark.parametrize("turn", [1, -1])
def test_claims_guard_consumers_by_uuid_and_then_providers(hosts, numbers, turn):
    claims = [Claim(consumer, {name: {"VCPU": 1} for name in HOSTS[::turn]}) for consumer in CONSUMERS[::turn]]
    found = guards_of(hosts.ledger, lambda connection: apply_claims(connection, claims))
    assert found == [*(("consumer", entry) for entry in CONSUMERS), *(("provider", number) for number in sorted(numbers.values()))]
