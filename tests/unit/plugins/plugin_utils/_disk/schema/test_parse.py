# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading the dynamic schema."""

from __future__ import annotations

import copy
import math
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.module_utils._storage.raid import RaidLevel
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.model import Schema, Space, SpaceType
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.hardware import parse_hardware
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.parse import parse_schema

FACTS = {
    "ram": 2048,
    "disks": [
        {"id": "sda", "type": "hdd", "size": 1002, "dev": "/dev/sda", "links": ["/dev/disk/by-id/wwn-1"]},
        {"id": "sdb", "type": "ssd", "size": 502},
        {"id": "sdc", "type": "ssd", "size": 302},
    ],
}
LV = {"id": "a", "type": "lv"}
SSDS = 'yaql=$.disks.where($.type = "ssd")'


def parse(*entries: t.Any, facts: dict[str, t.Any] | None = None) -> Schema:
    return parse_schema(list(entries), parse_hardware(FACTS if facts is None else facts))


def one(**keys: t.Any) -> Space:
    return parse({**LV, **keys}).spaces[0]


def mistakes(*entries: t.Any) -> dict[str, str]:
    with pytest.raises(InputError) as caught:
        parse(*entries)
    return {mistake.place: mistake.says for mistake in caught.value.mistakes}


def test_the_basic_syntax_of_the_seed_is_read() -> None:
    schema = parse(
        {"id": "os", "type": "vg", "contains": [{"id": "swap"}, {"id": "root"}]},
        {"id": "root", "type": "lv", "max_size": 10000, "min_size": 5000, "mount": "/", "fs_type": "ext4"},
        {"id": "swap", "type": "lv", "size": 2000, "fs_type": "swap"},
    )
    os_group, root, swap = schema.spaces
    assert not schema.flat
    assert (os_group.type, os_group.contains, os_group.volume_group) == (SpaceType.VOLUME_GROUP, ("swap", "root"), None)
    assert (root.min_size, root.max_size, root.mount, root.fs_type, root.volume_group) == (5000, 10000, "/", "ext4", "os")
    assert (swap.min_size, swap.max_size, swap.weight, swap.place) == (2000, 2000, 1.0, "schema[2]")
    assert root.allowed == {0, 1, 2}
    assert root.preferred_disks == ()


@pytest.mark.parametrize(
    ("keys", "bounds"),
    [
        ({}, (0, None)),
        ({"min_size": 0}, (0, None)),
        ({"min_size": None, "max_size": None, "size": None}, (0, None)),
        ({"size": "1 GiB"}, (1024, 1024)),
        ({"size": 10.4}, (10, 10)),
        ({"size": 10.5}, (11, 11)),
        ({"size": 0.2}, (1, 1)),
        ({"min_size": 10.1, "max_size": 20.9}, (11, 20)),
        ({"min_size": "50 GB", "max_size": "50 GB"}, (47684, 47684)),
        ({"size": "10 %"}, (100, 100)),
        ({"size": "12.5%", "disks": ["sda"]}, (125, 125)),
        ({"size": "yaql=$.ram * 2"}, (4096, 4096)),
        ({"size": "yaql=$.ram / 3.0"}, (683, 683)),
        ({"min_size": "yaql='1 GiB'", "max_size": "yaql='200 %'"}, (1024, 2000)),
        ({"size": "512"}, (512, 512)),
    ],
)
def test_sizes(keys: dict[str, t.Any], bounds: tuple[int, int | None]) -> None:
    space = parse({"id": "p", "type": "partition", **keys}).spaces[0]
    assert (space.min_size, space.max_size) == bounds


def test_percentages_are_of_the_whole_disk_only_where_no_table_is() -> None:
    assert one(size="100 %", disks=["sda"]).min_size == 1002
    assert parse({"id": "p", "type": "partition", "size": "100 %", "disks": ["sda"]}).spaces[0].min_size == 1000


def test_percentages_of_what_is_on_each_disk_are_of_the_smallest() -> None:
    assert parse({"id": "p", "type": "partition", "size": "50 %", "per_disk": True, "avoid_disks": ["sdc"]}).spaces[0].min_size == 250


@pytest.mark.parametrize(("encrypted", "extents"), [(None, 249 + 124 + 74), ("g", 245 + 120 + 70), ("a", 245 + 120 + 70)])
def test_percentages_of_volumes_are_of_what_pvs_hold(encrypted: str | None, extents: int) -> None:
    entries = [{"id": "g", "type": "vg", "contains": ["a"], "max_size": "100 %"}, {**LV, "size": "100 %"}]
    schema = parse(*({**entry, "encrypt": entry["id"] == encrypted} for entry in entries))
    assert schema.by_id("g").max_size == schema.by_id("a").min_size == 4 * extents


@pytest.mark.parametrize(
    ("entries", "flat"),
    [
        ([LV], True),
        ([LV, {"id": "p", "type": "partition"}], True),
        ([{"id": "p", "type": "partitions"}], False),
        ([LV, {"id": "g", "type": "vg", "contains": ["a"]}], False),
        ([LV, {"id": "e", "type": "esp"}], False),
    ],
)
def test_without_a_vg_lvs_lie_straight_on_disks(entries: list[dict[str, t.Any]], flat: bool) -> None:
    assert parse(*entries).flat is flat


@pytest.mark.parametrize(
    ("keys", "allowed"),
    [
        ({}, {0, 1, 2}),
        ({"disks": ["sdb", "sda"]}, {0, 1}),
        ({"disks": "sdc"}, {2}),
        ({"disks": SSDS}, {1, 2}),
        ({"disks": "yaql=$.disks.first()"}, {0}),
        ({"disks": "yaql=$.disks.id"}, {0, 1, 2}),
        ({"disks": ["/dev/sda"]}, {0}),
        ({"disks": ["/dev/disk/by-id/wwn-1"]}, {0}),
        ({"disks": [{"id": "sdb"}, "yaql=$.disks.last()"]}, {1, 2}),
        ({"avoid_disks": SSDS}, {0}),
        ({"disks": SSDS, "avoid_disks": ["sdb"]}, {2}),
    ],
)
def test_sets_of_disks(keys: dict[str, t.Any], allowed: set[int]) -> None:
    assert one(**keys).allowed == allowed


@pytest.mark.parametrize(
    ("preference", "tiers"),
    [
        (SSDS, ({1, 2},)),
        (["sdb", "sda"], ({0, 1},)),
        ([{"id": "sdb"}, {"id": "sdc"}], ({1, 2},)),
        (["yaql=$.disks.where($.size < 400)", SSDS], ({2}, {1})),
        (["yaql=$.disks.first()", "yaql=$.disks.last()"], ({0}, {2})),
        ([["sdc"], ["sda", "sdb"]], ({2}, {0, 1})),
        ('yaql=$.disks.where($.type = "tape")', ()),
        (['yaql=$.disks.where($.type = "tape")', SSDS], ({1, 2},)),
        ("yaql=$.disks", ({0, 1, 2},)),
    ],
)
def test_preferences(preference: t.Any, tiers: tuple[set[int], ...]) -> None:
    schema = parse({**LV, "best_with_disks": preference})
    assert schema.spaces[0].preferred_disks == tiers
    assert bool(schema.warnings) is not bool(tiers)


def test_a_query_that_gives_no_disk_is_worth_a_warning() -> None:
    schema = parse({**LV, "best_with_disks": 'yaql=$.disks.where($.type = "tape")'}, {"id": "b", "type": "lv", "disks": "yaql=[]"})
    assert [warning.split(":")[0] for warning in schema.warnings] == ["schema[0].best_with_disks", "schema[1]"]


def test_what_a_vg_contains_lies_where_the_vg_lies() -> None:
    group = {"id": "g", "type": "vg", "contains": ["a", "b"], "disks": SSDS, "best_with_disks": ["sdc"]}
    schema = parse(group, LV, {"id": "b", "type": "lv", "size": "50 %", "best_with_disks": ["sdb"]})
    assert schema.by_id("a").allowed == schema.by_id("b").allowed == {1, 2}
    assert schema.by_id("a").preferred_disks == ({2},)
    assert schema.by_id("b").preferred_disks == ({1},)
    assert schema.by_id("b").min_size == 4 * 198 / 2


@pytest.mark.parametrize(
    ("first", "second", "tiers"),
    [(["sdb"], ["sdb"], ({1},)), (["sdb"], ["sdc"], ()), (["sdb"], None, ())],
)
def test_a_vg_likes_best_what_all_in_it_do(first: list[str], second: list[str] | None, tiers: tuple[set[int], ...]) -> None:
    schema = parse(
        {"id": "g", "type": "vg", "contains": ["a", "b"]},
        {**LV, "best_with_disks": first},
        {"id": "b", "type": "lv", "best_with_disks": second},
    )
    assert schema.by_id("g").preferred_disks == tiers


@pytest.mark.parametrize(
    ("keys", "legs"),
    [
        ({"level": "raid1"}, 2),
        ({"level": "raid5"}, 3),
        ({"level": "raid1", "legs": 3}, 3),
        ({"level": "raid5", "legs": "all"}, 3),
        ({"level": "raid1", "legs": "all", "disks": SSDS}, 2),
        ({"level": "raid6", "legs": 4}, 4),
        ({"level": "raid10"}, 4),
    ],
)
def test_legs(keys: dict[str, t.Any], legs: int) -> None:
    space = parse({"id": "r", "type": "raid", **keys}).spaces[0]
    assert (space.level, space.legs) == (RaidLevel(keys["level"]), legs)


def test_an_odd_disk_more_is_left_out_of_pairs() -> None:
    facts = {"disks": [{"id": f"d{number}", "size": 100} for number in range(5)]}
    assert parse({"id": "r", "type": "raid", "level": "raid10", "legs": "all"}, facts=facts).spaces[0].legs == 4


def test_a_vg_may_lie_on_an_array() -> None:
    schema = parse({"id": "g", "type": "vg", "contains": ["r", "a"]}, LV, {"id": "r", "type": "raid", "level": "raid1"})
    assert schema.by_id("g").contains == ("r", "a")
    assert schema.by_id("a").volume_group == "g"
    assert schema.by_id("r").volume_group is None


def test_every_key_is_read() -> None:
    space = parse(
        {
            "id": "p",
            "type": "partition",
            "weight": 2,
            "per_disk": True,
            "none_order": True,
            "boot": True,
            "encrypt": True,
            "keep_data": True,
            "mount": "/srv",
            "mount_options": "noatime",
            "fs_type": "XFS",
            "fs_options": "-m crc=1",
            "fs_label": "srv",
        },
    ).spaces[0]
    assert (space.weight, space.per_disk, space.none_order, space.boot, space.encrypt, space.keep_data) == (
        2.0,
        True,
        True,
        True,
        True,
        True,
    )
    assert (space.mount, space.mount_options, space.fs_type, space.fs_options, space.fs_label) == (
        "/srv",
        "noatime",
        "xfs",
        "-m crc=1",
        "srv",
    )
    assert parse({"id": "g", "type": "vg", "max_pvs": 2}).spaces[0].max_pvs == 2


def test_expressions_stand_anywhere() -> None:
    schema = parse(
        {"id": "yaql='g' + 'o'", "type": "yaql='vg'", "contains": ["yaql='a'", {"id": "yaql='b'"}]},
        {**LV, "weight": "yaql=1.0 / 2", "mount": "yaql='/srv'", "boot": "yaql=$.ram > 1"},
        {"id": "b", "type": "lv", "fs_type": "yaql='XFS'"},
    )
    assert schema.by_id("go").contains == ("a", "b")
    assert (schema.by_id("a").weight, schema.by_id("a").mount, schema.by_id("a").boot) == (0.5, "/srv", True)
    assert schema.by_id("b").fs_type == "xfs"


def test_nothing_given_is_changed() -> None:
    entries = [{"id": "g", "type": "vg", "contains": [{"id": "a"}]}, {**LV, "size": "yaql=$.ram", "best_with_disks": [SSDS]}]
    facts = copy.deepcopy(FACTS)
    before = copy.deepcopy((entries, facts))
    parse_schema(entries, parse_hardware(facts))
    assert (entries, facts) == before


@pytest.mark.parametrize(
    ("entries", "place", "says"),
    [
        ([{**LV, "mim_size": 5}], "schema[0].mim_size", "did you mean min_size?"),
        ([{**LV, "min": 5}], "schema[0].min", "is not a key"),
        ([{"id": "a", "type": "lvm"}], "schema[0].type", "must be one of vg, lv, thin_pool, thin, partition"),
        ([{"id": "a"}], "schema[0].type", "is missing"),
        ([{"id": "a", "type": ["lv"]}], "schema[0].type", "is a list; must be one of"),
        ([{"type": "lv"}], "schema[0].id", "is missing"),
        ([{"id": 5, "type": "lv"}], "schema[0].id", "must be text"),
        ([{"id": "", "type": "lv"}], "schema[0].id", "is ''; must be text"),
        ([{"id": "a b", "type": "lv"}], "schema[0].id", "cannot name a volume"),
        ([{"id": "unallocated", "type": "lv"}], "schema[0].id", "reserved"),
        ([LV, LV], "schema[1].id", "already the id of schema[0]"),
        (["a"], "schema[0]", "must be a mapping"),
        ([{**LV, "min_size": -5}], "schema[0].min_size", "must be 0 or more"),
        ([{**LV, "max_size": -5}], "schema[0].max_size", "must be 1 MiB or more"),
        ([{**LV, "size": "-5 GiB"}], "schema[0].size", "is '-5 GiB'; must be a size"),
        ([{**LV, "size": 0}], "schema[0].size", "is 0"),
        ([{**LV, "size": "0 %"}], "schema[0].size", "is 0"),
        ([{**LV, "max_size": 0}], "schema[0].max_size", "is 0"),
        ([{**LV, "size": 5, "min_size": 5}], "schema[0].size", "drop it or min_size"),
        ([{**LV, "size": True}], "schema[0].size", "must be a size"),
        ([{**LV, "min_size": math.inf}], "schema[0].min_size", "must be a size"),
        ([{**LV, "min_size": math.nan}], "schema[0].min_size", "must be a size"),
        ([{**LV, "size": "lots"}], "schema[0].size", "is not a size"),
        ([{**LV, "size": "5 parsec"}], "schema[0].size", "unknown unit"),
        ([{**LV, "size": [5]}], "schema[0].size", "is a list; must be a size"),
        ([{**LV, "weight": -1}], "schema[0].weight", "must be 0 or more"),
        ([{**LV, "weight": "1"}], "schema[0].weight", "must be a number"),
        ([{**LV, "weight": True}], "schema[0].weight", "must be a number"),
        ([{**LV, "weight": math.inf}], "schema[0].weight", "must be a number"),
        ([{**LV, "weight": 1e9}], "schema[0].weight", "out of range"),
        ([{**LV, "boot": "yes"}], "schema[0].boot", "true or false"),
        ([{**LV, "mount": "srv"}], "schema[0].mount", "absolute path"),
        ([{**LV, "mount": "/a b"}], "schema[0].mount", "without spaces"),
        ([{**LV, "mount": "/"}, {"id": "b", "type": "lv", "mount": "/"}], "schema[1].mount", "is already the mount point of 'a'"),
        ([{**LV, "mount": 5}], "schema[0].mount", "must be text"),
        ([{**LV, "fs_type": "xfs", "fs_label": "thirteen-char"}], "schema[0].fs_label", "at most 12 bytes"),
        ([{**LV, "fs_type": "ext5"}], "schema[0].fs_type", "did you mean ext4?"),
        ([{**LV, "fs_type": "fat"}], "schema[0].fs_type", "did you mean vfat?"),
        ([{**LV, "disks": ["sdd"]}], "schema[0].disks", "there is no disk 'sdd'"),
        ([{**LV, "disks": 5}], "schema[0].disks", "has a number"),
        ([{**LV, "disks": "yaql=$.ram"}], "schema[0].disks", "has a number"),
        ([{**LV, "best_with_disks": "yaql=$"}], "schema[0].best_with_disks", "without 'id'"),
        ([{**LV, "avoid_disks": ["sdz"]}], "schema[0].avoid_disks", "the disks are sda, sdb and sdc"),
        ([{**LV, "contains": ["b"]}], "schema[0].contains", "makes no sense for the type lv"),
        ([{**LV, "level": "raid1"}], "schema[0].level", "is for btrfs, raid"),
        ([{"id": "r", "type": "raid"}], "schema[0].level", "is missing"),
        ([{"id": "r", "type": "raid", "level": 1}], "schema[0].level", "must be one of raid0"),
        ([{"id": "r", "type": "raid", "level": "raid6", "legs": 3}], "schema[0].legs", "raid6 needs 4"),
        ([{"id": "r", "type": "raid", "level": "raid5", "legs": "all", "disks": SSDS}], "schema[0].legs", "all is 2 here"),
        ([{"id": "r", "type": "raid", "level": "raid10", "legs": 5}], "schema[0].legs", "is odd"),
        ([{"id": "r", "type": "raid", "level": "raid1", "legs": "two"}], "schema[0].legs", "whole number"),
        ([{"id": "g", "type": "vg", "max_pvs": 0}], "schema[0].max_pvs", "1 or more"),
        (
            [{"id": "g", "type": "vg", "contains": ["aa"]}, {"id": "p", "type": "partition"}],
            "schema[0].contains[0]",
            "there is no space 'aa'",
        ),
        ([{"id": "g", "type": "vg", "contains": ["p"]}, {"id": "p", "type": "partition"}], "schema[0].contains[0]", "has type partition"),
        ([{"id": "g", "type": "vg", "contains": ["a", "a"]}, LV], "schema[0].contains[1]", "twice in this vg"),
        ([{"id": "g", "type": "vg", "contains": [5, "a"]}, LV], "schema[0].contains[0]", "is a number"),
        ([{"id": "g", "type": "vg", "contains": "a"}, {**LV, "id": "ab"}, {**LV}], "schema[1]", "ab is in no vg"),
        (
            [{"id": "g", "type": "vg", "contains": ["a"]}, {"id": "h", "type": "vg", "contains": [{"id": "a"}]}, LV],
            "schema[1].contains[0]",
            "already in the vg 'g'",
        ),
        ([{"id": "g", "type": "vg"}, LV], "schema[1]", "is in no vg"),
        ([{"id": "g", "type": "vg", "contains": ["a"]}, {**LV, "disks": ["sda"]}], "schema[1].disks", "set this on 'g'"),
        (
            [{**LV, "mount": "/a"}, {"id": "b", "type": "lv", "mount": "//a/./"}],
            "schema[1].mount",
            "'/a' is already the mount point of 'a'",
        ),
        ([{**LV, "mount": "/a/../b"}], "schema[0].mount", "absolute path"),
        ([{**LV, "fs_type": "yaql=null"}], "schema[0].fs_type", "optional: true"),
        ([{**LV, "size": "yaql=$.nope"}], "schema[0].size", "expression '$.nope' failed"),
        ([{**LV, "size": "yaql=$.disks"}], "schema[0].size", "is a list; must be a size"),
        ([{**LV, "disks": ["sda", "yaql=$.("]}], "schema[0].disks[1]", "failed: Parse error"),
    ],
)
def test_a_mistake_is_named_with_its_place(entries: list[t.Any], place: str, says: str) -> None:
    found = mistakes(*entries)
    assert place in found, found
    assert says in found[place]
    assert len(found) == 1 or "disks[1]" in place


def test_an_entry_without_a_name_or_a_type_keeps_none_of_its_mistakes_for_the_next_round() -> None:
    found = mistakes(
        {"type": "lv", "weight": -1, "size": "lots", "disks": ["x"], "mount": "/a"},
        {"id": "b", "type": "lvm", "min_size": -1, "mount": "/a/", "fs_type": "xfs", "fs_label": "thirteen-char"},
        {"id": "c", "type": "lv", "boot": 1},
        {"id": "c", "type": "lv", "weight": "x"},
    )
    assert set(found) == {
        *(f"schema[0].{key}" for key in ("id", "weight", "size", "disks")),
        *(f"schema[1].{key}" for key in ("type", "min_size", "mount", "fs_label")),
        "schema[2].boot",
        *(f"schema[3].{key}" for key in ("id", "weight")),
    }


def test_what_an_expression_gives_nothing_for_is_left_out_where_it_is_optional() -> None:
    schema = parse(
        {"id": "g", "type": "vg", "contains": ["a", "cache", "log"]},
        LV,
        {"id": "cache", "type": "lv", "optional": True, "size": "yaql=null"},
        {"id": "log", "type": "lv", "optional": True, "avoid_disks": "yaql=$.disks"},
    )
    assert [space.id for space in schema.spaces] == ["g", "a"]
    assert schema.by_id("g").contains == ("a",)
    assert schema.left_out == (
        ("cache", "size: the expression gives nothing here"),
        ("log", "no disk of this machine is left for it"),
    )


def test_optional_spaces_alone_leave_nothing_to_plan() -> None:
    assert "nothing to plan" in mistakes({**LV, "optional": True, "disks": "yaql=null"})["schema"]


@pytest.mark.parametrize("schema", [None, {}, {"id": "a", "type": "lv"}, "a", 5])
def test_a_schema_that_is_no_list(schema: t.Any) -> None:
    with pytest.raises(InputError, match="must be a list of spaces"):
        parse_schema(schema, parse_hardware(FACTS))


def test_an_empty_schema() -> None:
    with pytest.raises(InputError, match="nothing to plan"):
        parse()


def test_all_mistakes_are_reported_at_once() -> None:
    found = mistakes(
        {**LV, "size": 0, "foo": 1, "weight": -1},
        {"id": "b", "type": "lv", "min_size": 5, "max_size": 2},
        {"id": "b", "type": "lv"},
        7,
        {"id": "c", "type": "lv", "size": "yaql=$.(", "disks": ["x"]},
    )
    assert set(found) == {
        "schema[0].size",
        "schema[0].foo",
        "schema[0].weight",
        "schema[1].min_size",
        "schema[2].id",
        "schema[3]",
        "schema[4].size",
        "schema[4].disks",
    }


def test_minimum_over_maximum_alone_is_a_conflict_with_its_place() -> None:
    with pytest.raises(NoSolution) as caught:
        parse({**LV, "min_size": 20, "max_size": "yaql=10"})
    assert str(caught.value) == "schema[0].min_size: 20 MiB is over max_size, which is 10 MiB"
    assert caught.value.conflict["short"] == 10
    assert [constraint["name"] for constraint in caught.value.conflict["constraints"]] == ["min:a", "max:a"]
