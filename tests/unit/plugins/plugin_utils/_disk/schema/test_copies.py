# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several of an array or a partition: alike, on disks of their own, each with its number."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.picture import picture
from ansible_collections.bareon.allocator.tests.support.disk.planned import make_plan

Plain = dict[str, t.Any]

PAIRS: Plain = {"id": "pair", "type": "raid", "level": "raid1", "count": 2}
STORE: Plain = {"id": "store", "type": "partition", "count": 3, "min_size": 1000}


def plan(sizes: t.Sequence[int], *schema: Plain, **facts: Plain) -> Plain:
    disks = [{"id": name, "size": size, **facts.get(name, {})} for name, size in zip("abcdefgh", sizes, strict=False)]
    return make_plan(list(schema), {"disks": disks})


def where(planned: Plain, space: str) -> dict[str, int]:
    return {disk["disk_id"]: part["size"] for disk in planned["disks"] for part in disk["spaces"] if part["space_id"] == space}


def test_arrays_alike_have_disks_of_their_own() -> None:
    planned = plan([50_000, 50_000, 60_000, 55_000, 20_000], {**PAIRS, "min_size": 30_000, "mount": "/srv/pair", "fs_label": "pair"})
    assert where(planned, "pair1") == dict.fromkeys("ab", 49_998)
    assert where(planned, "pair2") == dict.fromkeys("cd", 49_998)
    assert [array["name"] for array in planned["schema"]["mds"]] == ["/dev/md/pair1", "/dev/md/pair2"]
    made = [(fs["device"], fs["mount"], fs["fs_label"]) for fs in planned["schema"]["fss"]]
    assert made == [("/dev/md/pair1", "/srv/pair1", "pair1"), ("/dev/md/pair2", "/srv/pair2", "pair2")]


def test_all_disks_in_so_many_arrays_each_with_its_spare() -> None:
    planned = plan([50_000] * 8, {"id": "data", "type": "raid", "level": "raid5", "legs": "all", "spares": 1, "count": 2})
    assert [(len(array["devices"]), len(array["spares"])) for array in planned["schema"]["mds"]] == [(3, 1), (3, 1)]
    assert not where(planned, "data1").keys() & where(planned, "data2").keys()


def test_partitions_alike_are_of_one_size() -> None:
    planned = plan([50_000, 30_000, 60_000, 40_000], STORE)
    assert [set(where(planned, f"store{number}").values()) for number in (1, 2, 3)] == [{39_998}] * 3
    assert where(planned, "store1").keys() | where(planned, "store2").keys() | where(planned, "store3").keys() == {"a", "c", "d"}


def test_others_know_them_by_one_name() -> None:
    planned = plan([50_000] * 4, STORE, {"id": "log", "type": "partition", "apart_from": ["store"]})
    assert not where(planned, "log").keys() & {disk for number in (1, 2, 3) for disk in where(planned, f"store{number}")}
    planned = plan([50_000] * 4, STORE, {"id": "log", "type": "partition", "together_with": ["store"]})
    assert where(planned, "log").keys() <= {disk for number in (1, 2, 3) for disk in where(planned, f"store{number}")}
    planned = plan([50_000] * 4, {**STORE, "apart_from": ["log"]}, {"id": "log", "type": "partition"})
    assert len(planned["schema"]["parteds"]) == 4


def test_disks_alike_are_as_many_as_all_need() -> None:
    kinds = {name: {"transport": "nvme" if name in "abc" else "sata"} for name in "abcdefgh"}
    planned = plan([90_000] * 3 + [50_000] * 5, {**PAIRS, "alike": True}, **kinds)
    assert where(planned, "pair1").keys() | where(planned, "pair2").keys() < set("defgh")


def test_too_few_disks() -> None:
    with pytest.raises(NoSolution) as caught:
        plan([50_000] * 3, PAIRS)
    assert str(caught.value) == "No plan: pair is wanted 2 times and needs 4 disks, and may use 3"
    assert caught.value.conflict["remedies"] == ["plan pair with count: 1", "add 1 disk like a"]


def test_optional_ones_are_made_as_often_as_there_is_room() -> None:
    planned = plan([50_000, 50_000], {**STORE, "optional": True})
    assert [table["partitions"][0]["space_id"] for table in planned["schema"]["parteds"]] == ["store1", "store2"]
    assert [one["id"] for one in planned["left_out"]] == ["store3"]


def test_those_that_are_kept_keep_their_disks() -> None:
    there = {"partitions": [{"name": "store2", "number": 1, "start": 1, "size": 2000}]}
    planned = plan([50_000] * 3, {**STORE, "keep_data": True}, a=there)
    assert where(planned, "store2") == {"a": 2000}
    assert {*where(planned, "store1"), *where(planned, "store3")} == {"b", "c"}


def test_mistakes_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        plan(
            [50_000],
            PAIRS,
            {"id": "pair2", "type": "partition", "count": 0},
            {"id": "bulk", "type": "vg", "contains": ["pair"], "count": 2},
            {**STORE, "per_disk": True},
            {**STORE, "id": "os", "mirror": "required"},
        )
    assert {(mistake.place, mistake.says) for mistake in caught.value.mistakes} == {
        ("schema[1].count", "is 0; must be a whole number from 1 to 1000"),
        ("schema[2].count", "makes no sense for the type vg; it is for partition, raid"),
        ("schema[0].count", "one of them is called 'pair2', which is already the id of schema[1]; ids must differ"),
        ("schema[0].count", "'pair' is in the vg 'bulk', which must name each of its arrays; leave count out"),
        ("schema[3].count", "cannot be combined with per_disk; leave one of them out"),
        ("schema[4].count", "cannot be combined with mirror; leave one of them out"),
    }


def test_the_reasons_are_those_of_the_wish() -> None:
    drawn = picture(plan([50_000] * 4, STORE), schema=[STORE])
    assert "one of 3 alike, on disks of its own" in drawn.by_id()["store2"].reasons
