# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Thin pools, ZFS pools, Btrfs and partitions of a plan as providers: each has room, less what the plan gives out."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Mistakes
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.plan_inventory import plan_to_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.planned_rooms import planned_rooms
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world

FACTS = {"processor_vcpus": 16, "memtotal_mb": 31859}
HARDWARE = {"ram": 65536, "firmware": "uefi", "disks": [{"id": f"hdd{number}", "type": "hdd", "size": 476940} for number in (1, 2, 3, 4)]}
THIN = [
    {"id": "guests", "type": "vg", "contains": ["thin"], "disks": ["hdd1"]},
    {"id": "thin", "type": "thin_pool", "contains": ["images"], "size": "100 GiB", "overcommit": 4},
    {"id": "images", "type": "thin", "size": "81 GiB"},
]


def planned(schema):
    return Planner(schema).plan(HARDWARE)


def storage(schema, **options):
    found = plan_to_providers(planned(schema), "h", FACTS, hardware=HARDWARE, **options)
    parse_changes(found, "providers[{}]")
    return {entry["name"]: entry for entry in found[1:]}


def capacity(entry):
    world = parse_world({"providers": [{"name": entry["name"], "inventories": entry["inventories"]}]})
    return world.providers[0].inventories["DISK_GB"].capacity


@pytest.mark.parametrize(("overcommit", "room"), [(None, 19), (1, 19), (2, 118), (4, 316)])
def test_a_thin_pool_gives_its_size_times_the_overcommit_less_its_volumes(overcommit, room):
    """Whole GiB are reserved: with 4, of 100 the 20.25 that 81 come to are 21, so that 316 of 319 are left."""
    pool = storage(THIN, overcommit=overcommit)["h_vg_guests_pool_thin"]
    assert (pool["parent"], pool["inventories"]["DISK_GB"]["total"]) == ("h_vg_guests", 100)
    assert pool["traits"] == ["CUSTOM_POOL_THIN", "STORAGE_DISK_HDD"]
    assert capacity(pool) == room


def test_a_pool_that_is_given_out_beyond_its_size_gives_nothing_without_overcommit():
    schema = [*THIN[:2], {**THIN[2], "size": "300 GiB"}]
    assert capacity(storage(schema)["h_vg_guests_pool_thin"]) == 0
    assert capacity(storage(schema, overcommit=4)["h_vg_guests_pool_thin"]) == 100


def test_a_group_that_a_pool_fills_is_offered_by_its_pool():
    schema = [THIN[0], {"id": "thin", "type": "thin_pool", "contains": [], "min_size": "100 GiB"}]
    found = storage(schema)
    assert found["h_vg_guests"]["inventories"] == {}
    assert capacity(found["h_vg_guests_pool_thin"]) > 400


def test_pools_are_chosen_with_their_groups():
    schema = [*THIN, {"id": "other", "type": "vg", "contains": [], "disks": ["hdd2"]}]
    assert list(storage(schema, volume_groups=["other"])) == ["h_vg_other"]


def zpool(vdev, legs, **more):
    return [{"id": "tank", "type": "zpool", "vdev": vdev, "legs": legs, "min_size": "100 GiB", **more}]


@pytest.mark.parametrize("schema", [zpool("raidz1", 3), zpool("mirror", 2), zpool("mirror", 4), zpool("stripe", 2)])
def test_a_zfs_pool_has_the_room_that_the_planner_gives_it(schema):
    """A pool of a fixed size is made large enough for it, and no larger than its metaslabs make it."""
    (room,) = planned_rooms(planned([{**schema[0], "min_size": "100 GiB", "max_size": "100 GiB"}]), (), Mistakes())
    assert 100 * 1024 <= room.size < 101 * 1024
    assert len(room.disks) == schema[0]["legs"]


def test_quotas_of_a_zfs_pool_are_reserved_once():
    datasets = [
        {"name": "a", "quota": "20 GiB"},
        {"name": "a/b", "quota": "10 GiB"},
        {"name": "ab", "quota": "5 GiB"},
        {"name": "c", "reservation": "7 GiB"},
        {"name": "d"},
    ]
    pool = storage(zpool("mirror", 2, datasets=datasets))["h_zpool_tank"]
    assert (pool["parent"], pool["traits"][0]) == ("h", "CUSTOM_ZPOOL_TANK")
    assert capacity(pool) == pool["inventories"]["DISK_GB"]["total"] - 32


BTRFS = [
    {
        "id": "data",
        "type": "btrfs",
        "level": "raid1",
        "legs": 2,
        "size": "100 GiB",
        "mount": "/data",
        "subvolumes": [{"name": "@x", "quota": "5 GiB"}, {"name": "@y"}],
    },
    {"id": "spare", "type": "partitions", "per_disk": True, "size": "30 GiB"},
    {"id": "os", "type": "vg", "contains": [], "disks": ["hdd4"]},
]


def test_what_is_offered_has_room():
    assert list(storage(BTRFS)) == ["h_vg_os"]
    found = storage(BTRFS, offered=["data", "spare"])
    assert capacity(found["h_btrfs_data"]) == 95
    spare = [found[f"h_partition_spare-{number}"] for number in (1, 2, 3, 4)]
    assert [capacity(entry) for entry in spare] == [30] * 4
    assert {entry["traits"][0] for entry in spare} == {"CUSTOM_PARTITION_SPARE"}


def test_limits_hold_for_all_rooms():
    found = storage(BTRFS, offered=["data"], limits={"DISK_GB": {"reserved": 10, "max_unit": 50}})
    assert capacity(found["h_btrfs_data"]) == 85
    assert found["h_btrfs_data"]["inventories"]["DISK_GB"]["max_unit"] == 50


@pytest.mark.parametrize(
    ("options", "places"),
    [
        ({"offered": ["os", "dat"]}, ["offered[0]", "offered[1]"]),
        ({"offered": "data"}, ["offered"]),
        ({"overcommit": 0.5}, ["overcommit"]),
        ({"overcommit": True}, ["overcommit"]),
        ({"overcommit": "4"}, ["overcommit"]),
    ],
)
def test_mistakes_have_places(options, places):
    with pytest.raises(InputError) as error:
        storage(BTRFS, **options)
    assert [mistake.place for mistake in error.value.mistakes] == places
