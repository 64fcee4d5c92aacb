# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Worlds from plain data: what is filled in, and that every mistake is told at once with its place."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.model import LARGEST_AMOUNT, Inventory, inventory_warnings
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.names import provider_uuid
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world

CONSUMER = "2dc5cec5-9a3e-5c00-b7d0-ec8d9303f554"


def places(data):
    with pytest.raises(InputError) as caught:
        parse_world(data)
    return {mistake.place: mistake.says for mistake in caught.value.mistakes}


def test_a_name_is_enough_and_parents_and_allocations_may_name_providers():
    world = parse_world(
        {
            "providers": [{"name": "numa0", "parent": "host", "inventories": {"VCPU": 4}}, {"name": "host"}],
            "allocations": {CONSUMER.upper(): {"numa0": {"VCPU": 2}}},
        }
    )
    numa, host = world.providers
    assert host.uuid == provider_uuid("host")
    assert numa.parent == host.uuid
    assert numa.inventories["VCPU"] == Inventory(
        total=4, reserved=0, min_unit=1, max_unit=LARGEST_AMOUNT, step_size=1, allocation_ratio=1.0
    )
    assert world.allocations == {CONSUMER: {numa.uuid: {"VCPU": 2}}}
    assert world.usages() == {(numa.uuid, "VCPU"): 2}


def test_uuids_are_compared_in_lower_case():
    upper = "F743C90F-45D7-5765-AF56-12889982AF99"
    world = parse_world({"providers": [{"name": "a", "uuid": upper, "aggregates": [upper]}, {"name": "b", "parent": upper}]})
    assert world.providers[0].uuid == upper.lower()
    assert world.providers[0].aggregates == {upper.lower()}
    assert world.providers[1].parent == upper.lower()


def test_every_mistake_is_told_at_once():
    found = places(
        {
            "providers": [
                {"name": "a", "inventories": {"VCPU": {"total": "8"}, "VCPUS": {"total": 1}}, "traits": ["HW_CPU_X86_AVX22"]},
                {"name": "b", "uuid": "b", "parent": "nobody", "aggregates": ["!x"], "colour": "red"},
                {"inventories": {}},
                {"name": "c", "inventories": {"DISK_GB": {"total": 1, "reserved": 2}, "VCPU": {"reserved": 1}}},
                {"name": "d", "inventories": {"VCPU": {"total": 1, "allocation_ratio": -0.1}}, "generation": -1},
            ],
            "allocations": {CONSUMER: {"nobody": {"VCPU": 1}, "a": {"MEMORY_MB": 0}}, CONSUMER[:-1]: {}},
            "custom_traits": ["OWN"],
        }
    )
    assert found["world.providers[0].inventories.VCPU.total"] == "is '8'; must be a whole number from 1 to 2147483647"
    assert "did you mean VCPU?" in found["world.providers[0].inventories"]
    assert "did you mean HW_CPU_X86_AVX2?" in found["world.providers[0].traits[0]"]
    assert "is not a key of a provider" in found["world.providers[1].colour"]
    assert "is not a UUID" in found["world.providers[1].uuid"]
    assert "neither the UUID nor the name of an aggregate" in found["world.providers[1].aggregates[0]"]
    assert "needs a name or a uuid" in found["world.providers[2].name"]
    assert found["world.providers[3].inventories.DISK_GB.reserved"] == "is 2, more than the total of 1"
    assert "is missing" in found["world.providers[3].inventories.VCPU.total"]
    assert "from 0" in found["world.providers[4].inventories.VCPU.allocation_ratio"]
    assert "0 or more" in found["world.providers[4].generation"]
    assert "parent 'nobody' of b is not a provider" in found["world.providers"]
    assert f"world.allocations.{CONSUMER}.a.MEMORY_MB" in found
    assert "is not a UUID" in found["world.allocations"]
    assert "CUSTOM_" in found["world.custom_traits[0]"]


def test_loops_and_doubles_are_refused():
    assert (
        "its own ancestor"
        in places({"providers": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}, {"name": "c", "parent": "a"}]})[
            "world.providers"
        ]
    )
    assert "several providers with the name a" in places({"providers": [{"name": "a"}, {"name": "a", "uuid": CONSUMER}]})["world.providers"]
    assert (
        "have the same uuid" in places({"providers": [{"name": "a", "uuid": CONSUMER}, {"name": "b", "uuid": CONSUMER}]})["world.providers"]
    )


@pytest.mark.parametrize("data", [None, [], "world", 3])
def test_what_is_no_world_is_refused(data):
    assert "must be a mapping" in places(data)["world"]


@pytest.mark.parametrize(
    ("inventory", "capacity"),
    [
        (Inventory(total=100, allocation_ratio=0.29), 28),
        (Inventory(total=10, allocation_ratio=1.1), 11),
        (Inventory(total=30, allocation_ratio=0.1), 3),
        (Inventory(total=10, reserved=4), 6),
        (Inventory(total=10, allocation_ratio=0), 0),
    ],
)
def test_capacity(inventory, capacity):
    assert inventory.capacity == capacity


@pytest.mark.parametrize(
    ("inventory", "because"),
    [
        (Inventory(total=4, reserved=4), "is 0"),
        (Inventory(total=4, allocation_ratio=0.0), "is 0"),
        (Inventory(total=100, min_unit=8, max_unit=4), "min_unit 8 is more than max_unit 4"),
        (Inventory(total=4, min_unit=5), "min_unit 5 is more than its capacity 4"),
    ],
)
def test_inventories_that_never_give_anything_get_a_warning(inventory, because):
    (warning,) = inventory_warnings({"VCPU": inventory}, "host1")
    assert warning.startswith("host1.VCPU: ")
    assert because in warning


def test_a_large_step_is_no_reason_for_a_warning_since_min_unit_is_exempt():
    assert inventory_warnings({"VCPU": Inventory(total=4, step_size=10)}, "host1") == []
