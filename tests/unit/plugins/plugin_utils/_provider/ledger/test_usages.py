# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Usages come from the sums that the ledger keeps, for providers by UUID or name, and for all together."""

from __future__ import annotations

from functools import partial

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import ledger_of
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.usages import read_total_usages, read_usages
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world

HOST, CARD = "aaaaaaaa-2222-4333-8444-555555555555", "bbbbbbbb-2222-4333-8444-555555555555"
CONSUMER = "11111111-2222-4333-8444-555555555555"
STOCK = {"VCPU": {"total": 4, "allocation_ratio": 2.0}, "MEMORY_MB": {"total": 9, "reserved": 1}}
WORLD = {
    "providers": [
        {
            "uuid": HOST,
            "name": "host",
            "inventories": {"VCPU": {"total": 4, "allocation_ratio": 2.0}, "MEMORY_MB": {"total": 9, "reserved": 1}},
        },
        {"uuid": CARD, "name": "card", "parent": "host", "inventories": {"VCPU": {"total": 1}}},
        {"name": "empty"},
    ],
    # The card has shrunk below its use.
    "allocations": {CONSUMER: {"host": {"VCPU": 3}, "card": {"VCPU": 2}}},
}
OF_HOST = {"MEMORY_MB": {"capacity": 8, "used": 0, "free": 8}, "VCPU": {"capacity": 8, "used": 3, "free": 5}}
OF_CARD = {"VCPU": {"capacity": 1, "used": 2, "free": 0}}


@pytest.fixture(name="ledger", scope="module")
def _ledger():
    with ledger_of(parse_world(WORLD)) as ledger:
        yield ledger


@pytest.mark.parametrize(
    ("references", "found"),
    [
        (["host", "card"], {"host": OF_HOST, "card": OF_CARD}),
        ([HOST.upper()], {HOST.upper(): OF_HOST}),
        (["host", HOST, "host"], {"host": OF_HOST, HOST: OF_HOST}),
        (["empty", "nobody"], {"empty": {}}),
        ([], {}),
    ],
)
def test_usages_of_providers(ledger, references, found):
    assert ledger.read(partial(read_usages, references=references)) == found


def test_totals_of_capacities_that_are_endless():
    endless = [{"name": f"host{number}", "inventories": {"VCPU": {"total": 2**31 - 1, "allocation_ratio": 3e38}}} for number in range(3)]
    with ledger_of(parse_world({"providers": endless})) as ledger:
        (of_one,) = ledger.read(partial(read_usages, references=["host0"])).values()
        total = ledger.read(read_total_usages)
        assert ledger.read(audit) == []
    assert total == {"VCPU": {"capacity": 3 * of_one["VCPU"]["capacity"], "used": 0, "free": 3 * of_one["VCPU"]["free"]}}


def test_total_usages(ledger):
    assert ledger.read(read_total_usages) == {**OF_HOST, "VCPU": {"capacity": 9, "used": 5, "free": 5}}
