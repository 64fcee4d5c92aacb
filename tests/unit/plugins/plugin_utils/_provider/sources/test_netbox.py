# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices of NetBox as providers: what is read is in NetBox's published schema, and the ledger takes what comes out."""

from __future__ import annotations

import copy
import json
import pathlib

import jsonschema
import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.bareon.allocator.plugins.filter.netbox_to_providers import netbox_to_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.providers import put_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.worlds import read_world
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.sources import netbox

DATA = next(path for path in pathlib.Path(__file__).resolve().parents if path.name == "unit") / "data" / "provider"
DEVICES, ITEMS, SCHEMA = (
    json.loads((DATA / f"netbox_{name}.json").read_text(encoding="utf-8")) for name in ("devices", "inventory_items", "schema")
)
FIELDS = {"VCPU": "cpus", "MEMORY_MB": {"field": "memory_gib", "factor": 1024}}
PAGES = {"devices": "PaginatedDeviceWithConfigContextList", "items": "PaginatedInventoryItemList"}


def validator(name):
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})


def changed(**parts):
    """The sample with other values in its first device."""
    devices = copy.deepcopy(DEVICES)
    devices["results"][0].update(parts)
    return devices


def test_the_sample_fits_the_published_schema():
    validator(PAGES["devices"]).validate(DEVICES)
    validator(PAGES["items"]).validate(ITEMS)
    for page, name in ((DEVICES, "DeviceWithConfigContext"), (ITEMS, "InventoryItem")):
        for entry in page["results"]:
            assert entry.keys() == SCHEMA["$defs"][name]["properties"].keys()


@pytest.mark.parametrize(
    "parts", [{"status": {"value": "broken"}}, {"site": None}, {"rack": {"id": 1}}, {"tags": [{"id": 1}]}, {"id": "17"}]
)
def test_the_published_schema_refuses_what_netbox_does_not_send(parts):
    assert not validator(PAGES["devices"]).is_valid(changed(**parts))


def test_all_that_is_read_is_published():
    parts = SCHEMA["$defs"]["DeviceWithConfigContext"]["properties"]
    assert set(netbox.DEVICE.keys) <= parts.keys()
    assert set(netbox.ITEM.keys) <= SCHEMA["$defs"]["InventoryItem"]["properties"].keys()
    assert list(netbox.STATUSES) == parts["status"]["properties"]["value"]["enum"]
    for kind in ("BriefSite", "BriefRack", "BriefLocation", "BriefCluster", "BriefTenant", "BriefDeviceRole", "BriefPlatform", "NestedTag"):
        assert {"id", "name"} <= set(SCHEMA["$defs"][kind]["required"])
    for kind in ("BriefSite", "BriefLocation", "BriefTenant", "BriefDeviceRole", "BriefDeviceType", "BriefPlatform", "NestedTag"):
        assert "slug" in SCHEMA["$defs"][kind]["required"]


def test_devices_become_providers():
    limits = {"VCPU": {"allocation_ratio": 4.0}}
    found = netbox_to_providers(DEVICES, fields=FIELDS, inventory_items=ITEMS, item_roles={"PGPU": "gpu"}, limits=limits)
    assert found == [
        {
            "name": "node1",
            "drained": False,
            "inventories": {"VCPU": {"total": 64, "allocation_ratio": 4.0}, "MEMORY_MB": {"total": 262144}, "PGPU": {"total": 2}},
            "aggregates": ["fra1", "fra1/room-2/R07"],
            "traits": ["CUSTOM_TAG_SAS", "HW_CPU_X86_AVX2"],
        },
        {
            "name": "node2",
            "drained": {"reason": "Decommissioning in NetBox"},
            "inventories": {"VCPU": {"total": 32, "allocation_ratio": 4.0}, "MEMORY_MB": {"total": 131072}},
            "aggregates": ["fra1", "fra1/room-2/R08 -old-"],
            "traits": ["CUSTOM_TAG_SAS"],
        },
        {"name": "node3", "drained": False, "inventories": {"MEMORY_MB": {"total": 65536}}, "aggregates": ["fra1"], "traits": []},
    ]


def test_the_ledger_takes_them_and_a_second_run_changes_nothing(tmp_path):
    with open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite") as ledger:

        def register(devices):
            found = netbox_to_providers(devices, fields=FIELDS, inventory_items=ITEMS, item_roles={"PGPU": "gpu"})
            changes = parse_changes(found, "providers[{}]")
            return ledger.write(lambda connection: put_providers(connection, changes)).changed

        assert register(DEVICES)
        assert not register(DEVICES)
        drained = {each.name for each in ledger.read(read_world).providers if each.drained is not None}
        assert drained == {"node2"}
        moved = {**DEVICES["results"][0]["rack"], "id": 8, "name": "R08 (old)"}
        assert register(changed(rack=moved, status={"value": "offline", "label": "Offline"}))
        world = {each.name: each for each in ledger.read(read_world).providers}
        assert world["node1"].drained is not None
        assert world["node1"].aggregates == world["node2"].aggregates


def test_options_choose_what_is_said():
    found = netbox_to_providers(DEVICES, drains=False, aggregates=[], traits=[])
    assert found == [{"name": "node1"}, {"name": "node2"}, {"name": "node3"}]
    found = netbox_to_providers(
        DEVICES, usable=["active", "decommissioning"], aggregates=["location", "cluster"], traits=["role", "device_type"]
    )
    assert [each["drained"] for each in found] == [False] * 3
    assert [each["aggregates"] for each in found] == [["fra1/room-2"], ["fra1/room-2"], ["lab"]]
    assert found[0]["traits"] == ["CUSTOM_DEVICE_TYPE_AS_2024", "CUSTOM_ROLE_SERVER"]


def test_lists_and_pages_are_the_same():
    plain = netbox_to_providers(DEVICES)
    assert netbox_to_providers(DEVICES["results"]) == plain
    pages = [{**DEVICES, "results": DEVICES["results"][:2], "next": "there"}, {**DEVICES, "results": DEVICES["results"][2:]}]
    assert netbox_to_providers(pages) == plain
    assert netbox_to_providers([]) == netbox_to_providers({"count": 0, "results": []}) == []


RACK = DEVICES["results"][0]["rack"]


@pytest.mark.parametrize(
    ("devices", "options", "places"),
    [
        ("x", {}, ["devices"]),
        ({"detail": "Invalid token"}, {}, ["devices"]),
        ({**DEVICES, "count": 50, "next": "there"}, {}, ["devices"]),
        (changed(name=None), {}, ["devices.results[0].name"]),
        (changed(name="node2"), {}, ["devices.results[1].name"]),
        (changed(status=None, site=3), {}, ["devices.results[0].status", "devices.results[0].site"]),
        (changed(rack={**RACK, "id": 99, "name": "R08 (old)"}), {}, ["devices"]),
        (changed(custom_fields={"cpus": -1, "memory_gib": "x"}), {"fields": FIELDS}, ["devices.results[0].custom_fields.cpus"]),
        (DEVICES, {"fields": {"VCPU": "cpu"}}, ["devices.results[2].custom_fields.cpu"]),
        (DEVICES, {"fields": {"CPUS": "cpus"}}, ["fields"]),
        (DEVICES, {"item_roles": {"PGPU": "gpu"}}, ["inventory_items"]),
        (DEVICES, {"inventory_items": []}, ["inventory_items"]),
        (DEVICES, {"limits": {"VCPU": {"reserved": 1}}}, ["limits.VCPU"]),
        (DEVICES, {"usable": ["Active"], "aggregates": ["racks"]}, ["usable[0]", "aggregates[0]"]),
        (DEVICES, {"field": {}}, ["field"]),
    ],
)
def test_what_is_wrong_is_said_with_its_place(devices, options, places):
    with pytest.raises(AnsibleFilterError) as error:
        netbox_to_providers(devices, **options)
    for place in places:
        assert place in str(error.value)


def test_racks_of_one_name_in_two_locations_are_two():
    other = {**DEVICES["results"][0]["location"], "id": 5, "name": "Room 3", "slug": "room-3"}
    found = netbox_to_providers(changed(location=other, rack={**RACK, "id": 99, "name": "R08 (old)"}))
    assert found[0]["aggregates"] == ["fra1", "fra1/room-3/R08 -old-"]
    assert found[1]["aggregates"] == ["fra1", "fra1/room-2/R08 -old-"]
