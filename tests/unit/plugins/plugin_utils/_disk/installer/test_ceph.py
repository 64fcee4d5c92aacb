# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written for Ceph's orchestrator; Ceph's own parser reads it in tests/peers."""

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.ceph import write_osds
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import Written
from ansible_collections.bareon.allocator.tests.support.disk.planned import hardware, make_plan, profile_plan

Plain = dict[str, t.Any]

NODE = hardware([("ssd", 48), ("hdd", 120), ("hdd", 120), ("nvme", 80)])
HDD = {"disks": "yaql=$.disks.where($.type = hdd)"}
NVME = {"disks": "yaql=$.disks.where($.get(transport) = nvme)"}
OSD = {"id": "osd", "type": "disk", **HDD}
DATABASES = [
    {"id": "fast", "type": "vg", "contains": ["ceph-db-1", "ceph-db-2"], **NVME},
    {"id": "ceph-db-1", "type": "lv", "size": 8192},
    {"id": "ceph-db-2", "type": "lv", "size": 8192},
]


def written(plan: t.Any, facts: t.Any = None, **given: t.Any) -> Written:
    return write_osds(plan, facts, {"host": "node1", **given})


def refused(plan: t.Any, **given: t.Any) -> str:
    with pytest.raises(InputError) as error:
        written(plan, **given)
    return str(error.value)


def test_a_node_gives_whole_disks_to_data_and_databases() -> None:
    plan = profile_plan("ceph-osd")
    made = written(plan)
    ids = {disk["id"]: disk for disk in hardware([("ssd", 48), *[("hdd", 120)] * 3, *[("nvme", 80)] * 2])["disks"]}
    assert made.value["placement"] == {"hosts": ["node1"]}
    assert made.value["service_type"] == "osd"
    assert {ids[path]["type"] for path in made.value["spec"]["data_devices"]["paths"]} == {"hdd"}
    assert len(made.value["spec"]["data_devices"]["paths"]) == 3
    assert made.warnings == ()


def test_volumes_are_taken_by_their_paths() -> None:
    plan = profile_plan("ceph-osd-nvme")
    paths = [f"/dev/{volume['vgname']}/{volume['name']}" for volume in plan["schema"]["lvs"] if volume["name"].startswith("osd")]
    assert written(plan).value["spec"] == {"data_devices": {"paths": paths}}
    mixed = make_plan([OSD, *DATABASES], NODE)
    assert written(mixed).value["spec"]["db_devices"] == {"paths": ["/dev/fast/ceph-db-1", "/dev/fast/ceph-db-2"]}


def test_options_become_those_of_the_specification() -> None:
    plan = make_plan([{**OSD, "id": "block"}, {"id": "ceph-wal", "type": "disk", **NVME}], NODE)
    made = written(plan, data=["block"], encrypted=True, osds_per_device=2, service_id="fast").value
    assert made["service_id"] == "fast"
    assert set(made["spec"]) == {"data_devices", "wal_devices", "encrypted", "osds_per_device"}


@pytest.mark.parametrize(
    ("schema", "place", "given"),
    [
        ([{"id": "osd", "type": "partition", "size": 9000, **HDD}], "osd", {}),
        ([{"id": "osd", "type": "raid", "level": "raid1", **HDD}], "osd", {}),
        ([OSD, *DATABASES], "ceph-db-1", {"db": ["ceph-db-1"]}),
        ([{**OSD}, *DATABASES[:2], {**DATABASES[2], "fs_type": "xfs", "mount": "/srv"}], "ceph-db-2", {}),
        ([OSD, *DATABASES], "ceph-db-1", {"osds_per_device": 2}),
        ([OSD, *DATABASES], "osd", {"db": ["osd"]}),
        ([{**OSD, "id": "other"}], "plan", {}),
        ([OSD], "host", {"host": "-x"}),
        ([OSD], "osds_per_device", {"osds_per_device": 0}),
    ],
)
def test_what_ceph_volume_refuses_is_an_error_that_names_the_space(schema: list[Plain], place: str, given: Plain) -> None:
    assert f"{place}:" in refused(make_plan(schema, NODE), **given)


@pytest.mark.parametrize(
    "damaged", [None, [], {"schema": []}, {"whole_disks": 1, "schema": {}}, {"whole_disks": [{"disk_id": 1}], "schema": {}}]
)
def test_what_is_no_plan_is_refused(damaged: t.Any) -> None:
    assert "plan" in refused(damaged)


def test_without_a_host_only_names_that_no_other_host_has_are_given() -> None:
    plan = make_plan([OSD], NODE)
    made = write_osds(plan, None, {})
    assert made.value["placement"] == {"host_pattern": "*"}
    assert len(made.warnings) == 1
    named = copy.deepcopy(plan)
    for disk, letter in zip(named["whole_disks"], "bc", strict=True):
        disk["device"] = disk["disk_id"] = f"/dev/sd{letter}"
    with pytest.raises(InputError, match="host"):
        write_osds(named, None, {})
    links = [{"id": f"/dev/sd{letter}", "links": [f"/dev/disk/by-id/wwn-0x500000000000000{letter}"], "empty": False} for letter in "bc"]
    made = write_osds(named, {"disks": links}, {})
    assert [path[-1] for path in made.value["spec"]["data_devices"]["paths"]] == ["b", "c"]
    assert sum("not empty" in says for says in made.warnings) == 2


def test_whole_disks_that_ceph_does_not_get_are_told() -> None:
    plan = make_plan([OSD, {"id": "scratch", "type": "disk", **NVME}], NODE)
    assert [says for says in written(plan).warnings if "scratch" in says]
