# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Caches of volumes, from the wish to the host and the installers."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Mistakes
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes, parse_static_schema
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.planned_groups import planned_groups
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.drift.compare import compare
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import kickstart
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import write_plan
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.picture import picture
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.text import planned_layout, summary
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.static.host_files import needed_tools
from ansible_collections.bareon.allocator.tests.support.disk.planned import hardware, make_plan

Plain = dict[str, t.Any]

MACHINE = hardware([("hdd", 100), ("ssd", 20), ("ssd", 20)])
SLOW, *FAST = [disk["id"] for disk in MACHINE["disks"]]
BULK: Plain = {"id": "bulk", "type": "vg", "contains": ["mail"], "disks": [SLOW]}
MAIL: Plain = {"id": "mail", "type": "lv", "size": 50000, "mount": "/mail", "fs_type": "ext4"}
CACHE: Plain = {"id": "fast", "type": "partition", "size": 5001, "cache_of": "mail", "disks": FAST}


def planned(*spaces: Plain, **keys: t.Any) -> Plain:
    return make_plan(list(spaces or (BULK, MAIL, {**CACHE, **keys})), MACHINE)


def test_a_cache_joins_the_group_of_its_volume() -> None:
    made = planned()
    schema = made["schema"]
    (cache,) = schema["caches"]
    slow, fast = (table["partitions"][0] for table in schema["parteds"])
    assert cache == {
        **{"name": "fast", "vgname": "bulk", "origin": "mail", "device": fast["name"], "mode": "writethrough"},
        **{"keep_data": False, "space_id": "fast"},
    }
    assert schema["vgs"][0]["pvnames"] == [slow["name"], fast["name"]]
    assert [volume["name"] for volume in schema["pvs"]] == [slow["name"], fast["name"]]
    assert fast["guid"] == slow["guid"]
    assert [filesystem["device"] for filesystem in schema["fss"]] == ["/dev/mapper/bulk-mail"]
    assert made["warnings"] == []
    assert needed_tools(schema) == ["sfdisk", "lvm", "cache_check", "mkfs.ext4"]
    (group,) = planned_groups(made, Mistakes())
    assert group.free == (100 * 1024 - 3) // 4 * 4 - 50000


def test_tables_and_pictures_say_what_it_is_a_cache_of() -> None:
    made = planned(cache_mode="writeback")
    assert "partition cache of mail, writeback" in " ".join(summary(made).replace("│", "").split())
    assert "fast: cache of mail, writeback" in planned_layout(made)
    assert picture(made).by_id()["fast"].place == "cache of mail, writeback"
    (warning,) = made["warnings"]
    assert warning.startswith("fast: with writeback, unflushed writes to mail are lost if this disk fails")


@pytest.mark.parametrize("keys", [{"mirror": "required"}, {"type": "raid", "level": "raid1"}])
def test_on_a_mirror_writeback_is_no_risk(keys: Plain) -> None:
    made = planned(cache_mode="writeback", **keys)
    assert made["warnings"] == []
    (cache,) = made["schema"]["caches"]
    assert cache["device"] == "/dev/md/fast"
    assert [len(array["devices"]) for array in made["schema"]["mds"]] == [2]
    by_id = picture(made).by_id()
    assert (by_id["bulk"].inside, by_id["fast"].inside, by_id["bulk"].lies_on) == (None, None, ())
    (read,) = parse_static_schema(made["schema"]).caches
    assert (read.device, read.mode) == ("/dev/md/fast", "writeback")


@pytest.mark.parametrize("which", [0, 1, 2])
def test_the_cache_of_what_is_encrypted_is_encrypted(which: int) -> None:
    spaces = [{**space, "encrypt": at == which} for at, space in enumerate((BULK, MAIL, CACHE))]
    made = planned(*spaces)
    assert [container["name"] for container in made["schema"]["luks"]] == ["bulk-crypt", "fast-crypt"]
    assert made["schema"]["caches"][0]["device"] == "/dev/mapper/fast-crypt"


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        planned(
            BULK,
            MAIL,
            {**CACHE, "mount": "/x", "per_disk": True, "boot": True, "keep_data": True},
            {**CACHE, "id": "twice"},
            {**CACHE, "id": "lost", "cache_of": "nothing"},
            {**CACHE, "id": "wrong", "cache_of": "bulk"},
            {**CACHE, "id": "moody", "cache_of": None, "cache_mode": "writeback"},
            {**CACHE, "id": "odd", "cache_mode": "sometimes"},
            {"id": "more", "type": "vg", "cache_of": "mail"},
        )
    said = str(caught.value)
    for line in (
        "schema[2].cache_of: cannot be combined with mount; a cache holds nothing of its own",
        "schema[2].cache_of: cannot be combined with per_disk",
        "schema[2].cache_of: cannot be combined with boot",
        "schema[2].cache_of: cannot be combined with keep_data",
        "schema[3].cache_of: 'mail' already has the cache 'fast'; it has one at most",
        "schema[4].cache_of: there is no space 'nothing'",
        "schema[5].cache_of: 'bulk' has type vg; only an lv in a vg and a zpool can have a cache",
        "schema[6].cache_mode: says how a cache works, so it needs cache_of",
        "schema[7].cache_mode: is 'sometimes'; must be writethrough or writeback",
        "schema[8].cache_of: makes no sense for the type vg; it is for partition, raid",
    ):
        assert line in said, f"{line}\n\n{said}"


def test_what_is_left_out_takes_its_cache_along() -> None:
    made = planned({**BULK, "optional": True}, {**MAIL, "size": 200000}, CACHE, {"id": "other", "type": "partition", "size": 9})
    assert [space["id"] for space in made["left_out"]] == ["bulk", "mail", "fast"]
    assert "caches" not in made["schema"]
    made = planned(
        {**BULK, "contains": ["mail", "log"]},
        {**MAIL, "optional": True, "size": "yaql=null"},
        CACHE,
        {**MAIL, "id": "log", "mount": "/log"},
    )
    assert {space["id"]: space["reason"] for space in made["left_out"]}["fast"] == "left out because mail is"


def test_a_cache_that_is_left_out_is_not_told_to_lack_a_mirror() -> None:
    made = planned(BULK, MAIL, {**CACHE, "optional": True, "mirror": "when_possible", "disks": "yaql=$.disks.where($.type = tape)"})
    assert [space["id"] for space in made["left_out"]] == ["fast"]
    assert made["warnings"] == []


def test_blocks_larger_than_those_of_what_is_cached_are_told() -> None:
    slow, fast = MACHINE["disks"][0], MACHINE["disks"][2]
    for larger, warned in ((fast, True), (slow, False)):
        disks = [{**disk, "logical_block": 4096} if disk is larger else disk for disk in MACHINE["disks"]]
        cache = {**CACHE, "disks": FAST[1:]}
        warnings = Planner([BULK, MAIL, cache]).plan({**MACHINE, "disks": disks})["warnings"]
        assert [warning.startswith("fast: its disk has logical blocks of 4096 bytes, that of mail of 512") for warning in warnings] == (
            [True] if warned else []
        )


def test_the_other_objective_does_not_know_it() -> None:
    with pytest.raises(InputError, match="the objective ordered does not support it; use the objective fair"):
        Planner([BULK, MAIL, CACHE], Objective.ORDERED).plan(MACHINE)


def test_the_host_refuses_what_refers_to_nothing() -> None:
    schema = planned()["schema"]
    (cache,) = schema["caches"]
    for changes, said in (
        ({"vgname": "other"}, "caches[0].vgname: there is no vg other; there are bulk"),
        ({"device": "/dev/x"}, "caches[0].device: /dev/x is not one of the pvnames of bulk"),
        ({"origin": "other"}, "caches[0].origin: there is no volume other in bulk that is in no thin pool"),
        ({"name": "mail"}, "caches[0].name: bulk has a volume mail already"),
        ({"mode": "sometimes"}, "caches[0].mode: is 'sometimes'; must be writethrough or writeback"),
    ):
        with pytest.raises(SchemaMistakes) as caught:
            parse_static_schema({**schema, "caches": [{**cache, **changes}]})
        assert said in caught.value.mistakes, caught.value.mistakes
    with pytest.raises(SchemaMistakes, match="origin"):
        parse_static_schema({**schema, "caches": [cache, {**cache, "name": "more"}]})


def test_drift_tells_of_caches_and_not_of_the_parts_of_what_is_cached() -> None:
    made = planned()
    parts = ["mail_corig", "fast_cvol", "fast_cvol-cdata", "fast_cvol-cmeta"]
    holders = [{"type": "lvm", "name": name, "volume_group": "bulk", "size": 50000, "fs_type": "ext4"} for name in ["mail", *parts]]
    disks = []
    for table in made["schema"]["parteds"]:
        (part,) = table["partitions"]
        there = {"number": 1, "uuid": part["uuid"], "start": part["begin"], "size": part["end"] - part["begin"], "fs_type": "LVM2_member"}
        disks.append({"id": table["disk_id"], "size": table["disk_size"], "partitions": [there], "holders": holders})
    disks.append({"id": FAST[1], "size": MACHINE["disks"][2]["size"], "partitions": [], "holders": []})
    assert compare(made, {"disks": disks}) == []
    without = {**made, "schema": {name: entries for name, entries in made["schema"].items() if name != "caches"}}
    assert [(found.place, found.says) for found in compare(without, {"disks": disks})] == [("bulk/fast", "the cache is not in the plan")]
    del holders[1:]
    assert [(found.place, found.says) for found in compare(made, {"disks": disks})] == [("bulk/mail", "the volume is not cached by fast")]
    holders[0]["active"] = False
    assert [found.says for found in compare(made, {"disks": disks})] == []


def test_installers_say_that_they_make_none() -> None:
    with pytest.raises(
        InputError, match="fast: Kickstart makes no caches of LVM here; install without fast, and let disk_layout add it afterwards"
    ):
        write_plan(kickstart.TARGET, planned(), None, lossy=True, version="RHEL9", passphrase=None)
