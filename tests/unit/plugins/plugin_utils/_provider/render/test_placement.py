# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger as requests to OpenStack Placement; tests/peers/test_placement_export.py has Placement itself take them."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.bareon.allocator.plugins.filter.ledger_to_placement import ledger_to_placement

HOST, NUMA, VM = (f"0e5f5c35-98c4-4b37-9d0b-43b0c8e1b3a{number}" for number in range(3))
LEDGER = {
    "providers": [
        {"uuid": NUMA, "name": "a-numa", "parent": HOST, "inventories": {"CUSTOM_X": 4}, "traits": ["CUSTOM_T"]},
        {"uuid": HOST, "name": "host", "parent": None, "drained": {"reason": "old"}},
    ],
    "allocations": {VM: {NUMA: {"CUSTOM_X": 2}}},
    "consumers": {VM: {"project": "red", "user": None, "consumer_type": None}},
    "custom_traits": ["CUSTOM_T", "CUSTOM_UNUSED"],
    "custom_classes": [],
}


def test_requests_come_in_the_order_in_which_they_are_possible():
    found = ledger_to_placement(LEDGER, user="ann")
    assert [(each["method"], each["path"]) for each in found] == [
        ("PUT", "/resource_classes/CUSTOM_X"),
        ("PUT", "/traits/CUSTOM_T"),
        ("PUT", "/traits/CUSTOM_UNUSED"),
        ("POST", "/resource_providers"),
        ("PUT", f"/resource_providers/{HOST}/traits"),
        ("POST", "/resource_providers"),
        ("PUT", f"/resource_providers/{NUMA}/inventories"),
        ("PUT", f"/resource_providers/{NUMA}/traits"),
        ("PUT", f"/allocations/{VM}"),
    ]
    assert [each["body"]["resource_provider_generation"] for each in found[6:8]] == [0, 1]
    assert found[5]["body"] == {"name": "a-numa", "uuid": NUMA, "parent_provider_uuid": HOST}
    assert found[4]["body"]["traits"] == ["COMPUTE_STATUS_DISABLED"]
    owner = {key: found[-1]["body"][key] for key in ("project_id", "user_id", "consumer_type")}
    assert owner == {"project_id": "red", "user_id": "ann", "consumer_type": "INSTANCE"}


@pytest.mark.parametrize(
    "ledger", [None, [], {}, {"providers": [], "allocations": {}}, {**LEDGER, "providers": 3}, {**LEDGER, "consumers": 3}]
)
def test_what_is_no_ledger_is_refused(ledger):
    with pytest.raises(AnsibleFilterError, match="ledger_to_placement"):
        ledger_to_placement(ledger)
