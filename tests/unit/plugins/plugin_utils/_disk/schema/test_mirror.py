# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mirrors as a wish, and arrays of disks that are alike: on which machines they come, and what is said where they don't."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.alike import groups_of_alike_facts
from ansible_collections.bareon.allocator.tests.support.disk.planned import make_plan
from hypothesis import given
from hypothesis import strategies as st

Plain = dict[str, t.Any]

BOOT: Plain = {"id": "boot", "type": "partition", "min_size": 512, "max_size": 1024, "boot": True, "mount": "/boot", "fs_type": "ext4"}
OS: Plain = {"id": "os", "type": "vg", "contains": ["root"], "max_size": "20 GiB"}
ROOT: Plain = {"id": "root", "type": "lv", "min_size": 4096, "mount": "/", "fs_type": "ext4"}
WISH = {"mirror": "when_possible"}


def ssd(name: str, size: int = 50_000, **facts: t.Any) -> Plain:
    return {"id": name, "type": "ssd", "size": size, "transport": "sata", **facts}


def plan(disks: t.Sequence[Plain], *schema: Plain) -> Plain:
    return make_plan(list(schema), {"firmware": "uefi", "disks": list(disks)})


def where(planned: Plain, space: str) -> dict[str, int]:
    return {disk["disk_id"]: part["size"] for disk in planned["disks"] for part in disk["spaces"] if part["space_id"] == space}


def test_a_partition_and_a_group_lie_on_twins() -> None:
    planned = plan([ssd("a"), ssd("b", 50_500), ssd("c", 80_000)], {**BOOT, **WISH}, {**OS, **WISH}, ROOT)
    assert where(planned, "boot").keys() == where(planned, "os_mirror").keys() == where(planned, "esp").keys() == {"a", "b"}
    arrays = {array["space_id"]: array for array in planned["schema"]["mds"]}
    assert {name: (array["level"], len(array["devices"])) for name, array in arrays.items()} == {
        "boot": ("raid1", 2),
        "os_mirror": ("raid1", 2),
    }
    assert planned["schema"]["vgs"][0]["pvnames"] == [arrays["os_mirror"]["name"]]
    # The maximum of the group is that of the array, less what md and LVM keep.
    assert 20 * 1024 - 16 <= where(planned, "os_mirror")["a"] <= 20 * 1024 + 16
    assert planned["warnings"] == []


@pytest.mark.parametrize("other", [{"transport": "nvme"}, {"type": "hdd"}, {"logical_block": 4096}, {"size": 51_001}])
def test_disks_that_differ_are_no_twins(other: Plain) -> None:
    disks = [ssd("a"), {**ssd("b"), **other}]
    planned = plan(disks, {**BOOT, **WISH})
    assert len(where(planned, "boot")) == 1
    assert planned["warnings"] == ["boot is not mirrored, because no two of the disks that it may use are alike"]
    with pytest.raises(NoSolution) as caught:
        plan(disks, {**BOOT, "mirror": "required"})
    assert "boot needs disks of one transport, kind, block size and, within 2 %, size" in str(caught.value)
    assert caught.value.conflict["remedies"] == ["plan boot without mirror"]


def test_a_machine_with_one_disk_is_not_warned() -> None:
    planned = plan([ssd("a")], {**BOOT, **WISH}, {**OS, **WISH}, ROOT)
    assert len(where(planned, "boot")) == 1
    assert planned["warnings"] == []


def test_where_there_is_no_room_for_two_it_lies_alone() -> None:
    big = {"id": "data", "type": "partitions", "min_size": 60_000}
    planned = plan([ssd("a"), ssd("b")], {**BOOT, **WISH}, {**OS, "min_size": "25 GiB", "max_size": "30 GiB", **WISH}, ROOT, big)
    assert len(where(planned, "boot")) == 2
    assert where(planned, "os_mirror") == {}
    assert planned["warnings"] == ["os is not mirrored, because there is no room to mirror it"]
    with pytest.raises(NoSolution):
        plan([ssd("a"), ssd("b")], {**OS, "min_size": "25 GiB", "max_size": "30 GiB", "mirror": "required"}, ROOT, big)


def test_a_group_without_its_mirror_lies_on_one_disk() -> None:
    planned = plan([ssd("a"), ssd("b", 80_000)], {**OS, "max_size": None, **WISH}, ROOT)
    assert where(planned, "os").keys() == {"b"}
    assert planned["warnings"] == ["os is not mirrored, because no two of the disks that it may use are alike"]


def test_a_btrfs_mirrors_itself_or_lies_on_one_device() -> None:
    btrfs = {"id": "data", "type": "btrfs", "mount": "/srv", **WISH}
    (filesystem,) = plan([ssd("a"), ssd("b")], btrfs)["schema"]["fss"]
    assert (filesystem["level"], len(filesystem["devices"])) == ("raid1", 2)
    alone = plan([ssd("a"), ssd("b", 80_000)], btrfs)
    (filesystem,) = alone["schema"]["fss"]
    assert (filesystem["fs_type"], "devices" in filesystem) == ("btrfs", False)
    assert alone["warnings"] == ["data is not mirrored, because no two of the disks that it may use are alike"]
    with pytest.raises(InputError, match="cannot be combined with level; leave one of them out"):
        plan([ssd("a"), ssd("b")], {**btrfs, "level": "raid0"})


def test_one_warning_tells_of_all_that_lie_on_no_mirror() -> None:
    planned = plan([ssd("a"), ssd("b", 80_000)], {**BOOT, **WISH}, {**OS, **WISH}, ROOT)
    assert planned["warnings"] == ["boot and os are not mirrored, because no two of the disks that they may use are alike"]


def test_twins_that_are_liked_best_go_before_larger_ones() -> None:
    disks = [ssd("a"), ssd("b"), ssd("c", 90_000), ssd("d", 90_000)]
    assert where(plan(disks, {**BOOT, **WISH}), "boot").keys() == {"c", "d"}
    liked = {**BOOT, **WISH, "best_with_disks": ["a"]}
    assert where(plan(disks, liked), "boot").keys() == {"a", "b"}
    only = {**BOOT, **WISH, "disks": "yaql=$.disks.systemDisks()"}
    assert where(plan(disks, only), "boot").keys() == {"a", "b"}


def test_what_cannot_be_mirrored_is_said() -> None:
    array = {"id": "array", "type": "raid", "level": "raid1"}
    with pytest.raises(InputError) as caught:
        plan(
            [ssd("a"), ssd("b")],
            {**BOOT, **WISH, "keep_data": True},
            {**OS, **WISH, "contains": ["root", "array"]},
            {**ROOT, **WISH},
            array,
            {"id": "p", "type": "partition", "per_disk": True, "mirror": "sometimes"},
        )
    said = {mistake.place: mistake.says for mistake in caught.value.mistakes}
    assert said["schema[0].mirror"] == "cannot be combined with keep_data; leave one of them out"
    assert said["schema[1].mirror"] == "os already lies on the array 'array'; leave mirror out"
    assert said["schema[2].mirror"] == "makes no sense for the type lv; it is for btrfs, partition, vg"
    assert "when_possible" in said["schema[4].mirror"]


def test_an_optional_group_goes_with_its_mirror() -> None:
    data = {"id": "data", "type": "partition", "min_size": 45_000, "per_disk": True}
    planned = plan([ssd("a"), ssd("b")], data, {**OS, "min_size": "10 GiB", "optional": True, "mirror": "required"}, ROOT)
    assert where(planned, "os_mirror") == {}
    assert [one["id"] for one in planned["left_out"]][:1] == ["os"]


def test_an_array_of_disks_alike() -> None:
    disks = [ssd("a"), ssd("b"), ssd("c"), ssd("n", transport="nvme"), ssd("m", transport="nvme")]
    array = {"id": "data", "type": "raid", "level": "raid5", "legs": "all", "mount": "/srv"}
    assert len(where(plan(disks, array), "data")) == 5
    assert where(plan(disks, {**array, "alike": True}), "data").keys() == {"a", "b", "c"}
    with pytest.raises(NoSolution, match="data needs disks of one transport"):
        plan(disks, {**array, "legs": 4, "alike": True})
    with pytest.raises(InputError, match=r"schema\[0\].alike: makes no sense for the type partition"):
        plan(disks, {**BOOT, "alike": True})


def test_machines_alike_are_planned_with_one_mirror_each() -> None:
    planner = Planner([{**BOOT, **WISH}])
    first, second = (planner.plan({"firmware": "uefi", "disks": [ssd(f"{host}1"), ssd(f"{host}2")]}) for host in "xy")
    assert where(first, "boot").keys() == {"x1", "x2"}
    assert where(second, "boot").keys() == {"y1", "y2"}


SIZES = st.integers(min_value=1, max_value=400)


@given(st.lists(st.tuples(st.sampled_from(["sata", "nvme"]), SIZES), max_size=12))
def test_groups_hold_all_disks_and_none_that_differ(disks: list[tuple[str, int]]) -> None:
    facts = [{"id": str(at), "transport": transport, "type": "ssd", "size": size} for at, (transport, size) in enumerate(disks)]
    groups = groups_of_alike_facts(facts)
    assert sorted(disk["id"] for group in groups for disk in group) == sorted(disk["id"] for disk in facts)
    for group in groups:
        assert len({disk["transport"] for disk in group}) == 1
        sizes = [disk["size"] for disk in group]
        assert max(sizes) <= min(sizes) * 1.02
