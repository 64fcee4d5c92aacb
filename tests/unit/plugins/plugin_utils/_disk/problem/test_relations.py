# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Spaces apart from others and together with them: where they come to lie, and what is said where they can't."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.problem.formulate import formulate
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.picture import picture
from ansible_collections.bareon.allocator.tests.support.disk.build import hardware_of, schema_of

Plain = dict[str, t.Any]

LOG: Plain = {"id": "log", "type": "partition", "min_size": 1000}
DATA: Plain = {"id": "data", "type": "vg", "contains": ["files"]}
FILES: Plain = {"id": "files", "type": "lv", "min_size": 5000}
PAIR: Plain = {"id": "pair", "type": "raid", "level": "raid1", "min_size": 1000}


def plan(sizes: t.Sequence[int], *schema: Plain, **facts: t.Any) -> Plain:
    disks = [{"id": name, "size": size, **facts.get(name, {})} for name, size in zip("abcdef", sizes, strict=False)]
    return Planner(list(schema)).plan({"disks": disks})


def where(planned: Plain, space: str) -> set[str]:
    return {disk["disk_id"] for disk in planned["disks"] for part in disk["spaces"] if part["space_id"] == space}


def conflict(sizes: t.Sequence[int], *schema: Plain) -> NoSolution:
    with pytest.raises(NoSolution) as caught:
        plan(sizes, *schema)
    return caught.value


@pytest.mark.parametrize("name", ["data", "files"])
def test_a_log_apart_from_what_it_is_the_log_of(name: str) -> None:
    log = {**LOG, "max_size": 20_000}
    assert where(plan([50_000, 50_000, 60_000], log, DATA, FILES), "data") == {"a", "b", "c"}
    planned = plan([50_000, 50_000, 60_000], {**log, "apart_from": [name]}, DATA, FILES)
    assert where(planned, "data") == {"b", "c"}
    assert where(planned, "log") == {"a"}


def test_groups_apart_share_the_disks_fairly() -> None:
    log = [{"id": "logs", "type": "vg", "contains": ["log"], "apart_from": "data"}, {"id": "log", "type": "lv", "weight": 2}]
    planned = plan([50_000] * 3, *log, DATA, FILES)
    assert (len(where(planned, "logs")), len(where(planned, "data"))) == (2, 1)
    planned = plan([50_000] * 3, *[log[0], {**log[1], "weight": 1}], DATA, {**FILES, "weight": 2})
    assert (len(where(planned, "logs")), len(where(planned, "data"))) == (1, 2)


def test_a_group_on_an_array_is_where_the_array_is() -> None:
    group = {**DATA, "contains": ["pair", "files"]}
    planned = plan([50_000, 50_000, 20_000], {**LOG, "apart_from": ["data"]}, PAIR, group, FILES)
    assert (where(planned, "log"), where(planned, "pair")) == ({"c"}, {"a", "b"})


def test_three_that_are_apart_take_the_disk_that_each_needs() -> None:
    others = {"x": [], "y": ["x"], "z": ["x", "y"]}
    spaces = [{"id": name, "type": "partition", "min_size": least} for name, least in zip(others, (30_000, 45_000, 38_000), strict=True)]
    planned = plan([50_000, 32_000, 40_000], *({**space, "apart_from": others[space["id"]]} for space in spaces))
    assert [where(planned, name) for name in others] == [{"b"}, {"a"}, {"c"}]


def test_together_means_on_disks_of_the_other_only() -> None:
    journal = {"id": "journal", "type": "partition", "max_size": 5000, "together_with": "pair"}
    planned = plan([50_000, 50_000, 90_000], journal, {**PAIR, "disks": ["a", "b"]})
    assert where(planned, "journal") < where(planned, "pair") == {"a", "b"}
    planned = plan([50_000, 50_000, 90_000], {**LOG, "disks": ["b"]}, {**DATA, "together_with": "log"}, FILES)
    assert where(planned, "data") == {"b"}


def test_those_together_with_each_other_lie_on_the_same_disks() -> None:
    one = {**PAIR, "id": "one", "together_with": "two"}
    planned = plan([50_000, 50_000, 50_000, 20_000], one, {**PAIR, "id": "two", "together_with": "one"}, {**LOG, "min_size": 30_000})
    assert where(planned, "one") == where(planned, "two")


def test_the_conflict_names_who_is_to_be_apart() -> None:
    found = conflict([50_000], {**LOG, "apart_from": ["data"]}, DATA, FILES)
    assert "log shares no disk with data" in str(found)
    assert "apart:log" in [one["name"] for one in found.conflict["constraints"]]
    assert "let log share disks with data, without apart_from" in found.conflict["remedies"]


def test_the_conflict_names_who_is_to_be_together() -> None:
    spaces = {**LOG, "min_size": 30_000}, {**FILES, "type": "partition", "min_size": 30_000, "together_with": "log"}
    found = conflict([50_000, 20_000], *spaces)
    names = [one["name"] for one in found.conflict["constraints"]]
    assert names == ["one_disk:log", "min:log", "min:files", "together:files", "disk:a", "disk:b"]
    assert found.conflict["short"] == 10_002
    apart = "let files lie on other disks than log, without together_with"
    assert apart not in found.conflict["remedies"], "the other disk is too small for it"
    assert apart in conflict([50_000, 40_000], *spaces).conflict["remedies"]


def test_a_conflict_without_relations_names_none() -> None:
    found = conflict([50_000, 20_000], {**LOG, "min_size": 60_000, "apart_from": ["files"]}, {**FILES, "type": "partition"})
    assert not any(one["name"].startswith("apart:") for one in found.conflict["constraints"])


def test_mistakes_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        plan(
            [50_000],
            {**LOG, "apart_from": ["log", "dats", "esp"], "together_with": ["data"]},
            DATA,
            {**FILES, "apart_from": ["log"]},
            {"id": "esp", "type": "esp", "apart_from": ["log"]},
            {"id": "more", "type": "partition", "apart_from": [7]},
            {"id": "both", "type": "partition", "apart_from": ["log"], "together_with": ["log"]},
        )
    assert {(mistake.place, mistake.says) for mistake in caught.value.mistakes} == {
        (
            "schema[3].apart_from",
            "makes no sense for the type esp; it is for btrfs, lv, partition, partitions, raid, thin, thin_pool, vg, zpool",
        ),
        ("schema[4].apart_from", "is a list; must be the id of another space, or a list of such ids"),
        ("schema[0].apart_from", "'log' lies where 'log' does; name another space"),
        ("schema[0].apart_from", "there is no space 'dats' (did you mean data?)"),
        ("schema[0].apart_from", "'esp' lies on every disk that the machine starts from; name what it starts from"),
        (
            "schema[0].together_with",
            "'data' is split over disks as room allows; name a partition or an array, or set together_with on 'data' instead",
        ),
        ("schema[2].apart_from", "a volume lies on the disks of its vg; set this on 'data'"),
        ("schema[5].together_with", "'log' is also in apart_from; drop one of them"),
    }


def test_who_is_left_out_is_in_nobodys_way() -> None:
    optional = {**LOG, "min_size": 60_000, "optional": True}
    planned = plan([50_000], optional, {**DATA, "apart_from": ["log"]}, FILES)
    assert where(planned, "data") == {"a"}
    nowhere = {**LOG, "disks": [], "optional": True}
    assert where(plan([50_000], nowhere, {**DATA, "apart_from": ["log"]}, FILES), "data") == {"a"}


def test_what_is_kept_bars_its_disk() -> None:
    there = {"partitions": [{"name": "log", "number": 1, "start": 1, "size": 2000}]}
    planned = plan([90_000, 50_000], {**LOG, "keep_data": True}, {**DATA, "apart_from": ["log"]}, FILES, a=there)
    assert (where(planned, "log"), where(planned, "data")) == ({"a"}, {"b"})


def test_flat_volumes_keep_apart() -> None:
    planned = plan([50_000, 30_000], {"id": "x", "type": "lv"}, {"id": "y", "type": "lv", "apart_from": ["x"]})
    assert len(where(planned, "x")) == len(where(planned, "y")) == 1


def test_the_objective_ordered_does_not_know_it() -> None:
    with pytest.raises(InputError, match=r"schema\[0\].apart_from: the objective ordered does not support it; use the objective fair"):
        Planner([{**LOG, "apart_from": ["data"]}, DATA, FILES], Objective.ORDERED).plan({"disks": [{"id": "a", "size": 50_000}]})


def test_a_mirrored_group_keeps_its_mirror_apart() -> None:
    planned = plan([50_000] * 3, LOG, {**DATA, "mirror": "required", "apart_from": ["log"]}, FILES)
    assert not where(planned, "data_mirror") & where(planned, "log")


def test_the_conflict_says_what_keeps_an_array_to_its_disks() -> None:
    kinds = {name: {"transport": "nvme" if name in "ab" else "sata"} for name in "abcd"}
    log = {**PAIR, "id": "log", "disks": ["a", "b"]}
    with pytest.raises(NoSolution, match=r"pair may use c and d only \(alike: true\)"):
        plan([20_000, 20_000, 50_000, 50_000], log, {**PAIR, "alike": True, "together_with": "log"}, **kinds)


def test_the_reasons_say_it() -> None:
    schema = [{**LOG, "apart_from": ["data"]}, DATA, FILES]
    drawn = picture(plan([50_000, 50_000], *schema), schema=schema)
    assert "shares no disk with data" in drawn.by_id()["log"].reasons


@pytest.mark.parametrize(
    ("log", "pair", "left"),
    [
        ({"disks": ["d0"], "apart_from": ["pair"]}, {"disks": ["d1", "d2"]}, 0),
        ({"disks": ["d0", "d1"], "apart_from": ["pair"]}, {"disks": ["d1", "d2"]}, 1),
        ({"disks": ["d1"], "together_with": ["pair"]}, {"disks": ["d1", "d2"]}, 0),
        ({"disks": ["d0", "d1"], "together_with": ["pair"]}, {"disks": ["d1", "d2"]}, 1),
        ({"disks": ["d1"], "together_with": ["pair"]}, {"disks": ["d0", "d1", "d2"]}, 1),
    ],
)
def test_what_every_placement_has_is_no_relation(log: Plain, pair: Plain, left: int) -> None:
    hardware = hardware_of(50_000, 50_000, 50_000)
    problem = formulate(hardware, schema_of(hardware, {**LOG, **log}, {**PAIR, "legs": 2, **pair}))
    assert len(problem.relations) == left
