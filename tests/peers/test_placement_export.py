# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""OpenStack Placement 16.0 takes a ledger as requests, and holds the same afterwards.

Run it with the peer's own virtual environment, as test_placement_candidates.py; a process can have only one Placement.
"""

from __future__ import annotations

from functools import partial

import pytest

pytest.importorskip("placement", reason="openstack-placement is in the virtual environment that tests/peers/placement-venv makes")

from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes, parse_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import put_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.render.placement import placement_requests
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.info import run_provider_info
from ansible_collections.bareon.allocator.tests.support.provider.placement_peer import Placement

FLEET = [
    {"name": "numa1", "parent": "z-host", "inventories": {"VCPU": {"total": 8, "allocation_ratio": 4.0, "max_unit": 8}}},
    {"name": "z-host", "inventories": {"MEMORY_MB": {"total": 4096, "reserved": 512}}, "traits": ["CUSTOM_GOLD"], "aggregates": ["rack1"]},
    {"name": "numa0", "parent": "z-host", "inventories": {"VCPU": 8, "CUSTOM_FPGA": 2}, "traits": ["HW_NUMA_ROOT"], "drained": True},
    {"name": "pool", "inventories": {"DISK_GB": 100}, "traits": ["MISC_SHARES_VIA_AGGREGATE"], "aggregates": ["rack1"]},
    {"name": "empty"},
]
CLAIMS = [
    {"consumer": "vm1", "allocations": {"numa1": {"VCPU": 4}, "pool": {"DISK_GB": 10}}, "project": "red", "user": "ann"},
    {"consumer": "vm2", "allocations": {"numa1": {"VCPU": 2}}, "consumer_type": "MIGRATION"},
]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('ledger')}/ledger.sqlite"
    with open_ledger(url) as opened:
        opened.write(partial(put_providers, changes=parse_changes(FLEET, "providers[{}]")))
        make_claims(opened, parse_claims(CLAIMS, "consumers[{}]"))
    options = dict.fromkeys(("providers", "matching", "consumers", "projects", "users", "consumer_types"))
    return run_provider_info({"database": url, "timeout": 60, "world": None, **options, "audit": False})


@pytest.fixture(scope="module")
def peer(ledger, tmp_path_factory):
    filled = Placement(tmp_path_factory.mktemp("placement"))
    for each in placement_requests(ledger, "nobodys", "nobody", "INSTANCE"):
        status, body = filled.send(each["method"], each["path"], each.get("body"))
        assert status in each["status"], (each, body)
    return filled


def get(peer, path):
    status, body = peer.send("GET", path)
    assert status == 200, body
    return body


def test_providers_are_the_same(ledger, peer):
    found = {each["uuid"]: each for each in get(peer, "/resource_providers")["resource_providers"]}
    assert found.keys() == {each["uuid"] for each in ledger["providers"]}
    for provider in ledger["providers"]:
        uuid, own = provider["uuid"], found[provider["uuid"]]
        assert (own["name"], own["parent_provider_uuid"]) == (provider["name"], provider["parent"])
        assert get(peer, f"/resource_providers/{uuid}/inventories")["inventories"] == provider["inventories"]
        drained = {"COMPUTE_STATUS_DISABLED"} if "drained" in provider else set()
        assert set(get(peer, f"/resource_providers/{uuid}/traits")["traits"]) == {*provider["traits"], *drained}
        names = {ledger["aggregates"][each] for each in get(peer, f"/resource_providers/{uuid}/aggregates")["aggregates"]}
        assert names == set(provider["aggregates"])


def test_consumers_have_the_same(ledger, peer):
    assert len(ledger["allocations"]) == 2
    for consumer, held in ledger["allocations"].items():
        found = get(peer, f"/allocations/{consumer}")
        assert {uuid: parts["resources"] for uuid, parts in found["allocations"].items()} == held
        owner = ledger["consumers"][consumer]
        told = (owner["project"] or "nobodys", owner["user"] or "nobody", owner["consumer_type"] or "INSTANCE")
        assert (found["project_id"], found["user_id"], found["consumer_type"]) == told


def test_a_request_finds_the_same(peer):
    status, body = peer.ask("resources=VCPU:8,DISK_GB:90")
    assert status == 200
    assert len(body["allocation_requests"]) == 2
    status, body = peer.ask("resources=VCPU:8,DISK_GB:91")
    assert (status, body["allocation_requests"]) == (200, [])
