# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The audit finds what no task could have left behind, each kind of damage done by hand."""

from __future__ import annotations

import sqlite3

import pytest


@pytest.fixture
def damaged(unaudited):
    """Run SQL past every check, on a ledger with two hosts, a child and two consumers."""
    unaudited.put(
        {"name": "a", "inventories": {"VCPU": {"total": 4}}},
        {"name": "b", "parent": "a", "inventories": {"VCPU": {"total": 4, "step_size": 2}}, "traits": ["HW_NUMA_ROOT"]},
    )
    unaudited.claim(("x", {"a": {"VCPU": 3}}), ("y", {"b": {"VCPU": 2}}))
    assert unaudited.findings == []

    def run(statement):
        # A connection of its own: SQLite checks no foreign keys unless it is told to.
        with sqlite3.connect(unaudited.ledger.url.database) as connection:
            connection.execute(statement)
        return sorted(finding.kind for finding in unaudited.findings)

    return run


@pytest.mark.parametrize(
    ("statement", "kinds"),
    [
        ("UPDATE inventories SET used = used + 1 WHERE used = 3", ["sum"]),
        ("DELETE FROM allocations WHERE used = 3", ["idle", "sum"]),
        ("UPDATE inventories SET total = 2, capacity = 2 WHERE used = 3", ["overfull"]),
        ("UPDATE inventories SET max_unit = 1 WHERE used = 3", ["piece"]),
        ("UPDATE inventories SET total = -1, capacity = -1 WHERE used = 3", ["inventory"]),
        ("UPDATE resource_providers SET parent_id = 2 WHERE id = 1", ["loop", "loop"]),
        ("UPDATE resource_providers SET parent_id = 99 WHERE id = 2", ["dangling", "lost"]),
        ("UPDATE resource_providers SET root_id = 2 WHERE id = 1", ["lost", "lost"]),
        ("UPDATE inventories SET capacity = capacity + 1 WHERE used = 3", ["lost"]),
        ("UPDATE inventories SET root_id = 99 WHERE used = 3", ["lost"]),
        ("UPDATE provider_traits SET sharing = 1 - sharing WHERE provider_id = 2", ["lost"]),
        ("UPDATE resource_providers SET uuid = 'X' WHERE id = 2", ["malformed"]),
        ("UPDATE resource_providers SET generation = -1 WHERE id = 2", ["malformed"]),
        ("UPDATE consumers SET uuid = 'X' WHERE id = 2", ["malformed"]),
        ("UPDATE provider_traits SET trait = 'nonsense'", ["malformed"]),
        ("DELETE FROM consumers WHERE id = 1", ["dangling"]),
        ("DELETE FROM inventories WHERE provider_id = 1", ["dangling"]),
    ],
)
def test_damage_is_found(damaged, statement, kinds):
    assert damaged(statement) == kinds


def test_findings_tell_of_providers_and_consumers_by_name(unaudited):
    unaudited.put({"name": "a", "inventories": {"VCPU": {"total": 4}}})
    unaudited.claim(("x", {"a": {"VCPU": 3}}))
    with sqlite3.connect(unaudited.ledger.url.database) as connection:
        connection.execute("UPDATE inventories SET used = 4, max_unit = 1")
        connection.execute("UPDATE consumers SET name = 'web1'")
    findings = {finding.kind: (finding.name, finding.says) for finding in unaudited.findings}
    assert findings == {
        "sum": ("a", "VCPU of provider a: 4 are counted as used, but the allocations come to 3"),
        "piece": ("web1", "consumer web1: 3 VCPU of provider a is not an amount that its inventory allows now"),
    }
