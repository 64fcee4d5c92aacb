# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Striped volumes: equal parts on as many disks as there are stripes, exact in both objectives, and on which disks the plan says."""

from __future__ import annotations

import itertools
import json
import random
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.drift.compare import compare
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import disko, fai
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import write_plan
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner
from ansible_collections.bareon.allocator.tests.support.house.share import examples

Plain = dict[str, t.Any]
TABLE, HEAD, LUKS, EXTENT = 2, 1, 16, 4
"""MiB of a partition table, of a PV, of LUKS, of an extent."""


def machine(*sizes: int) -> Plain:
    disks = [{"id": f"/dev/disk/by-id/{at}", "path": str(at), "type": "ssd", "size": size} for at, size in enumerate(sizes)]
    return {"ram": 1024, "firmware": "uefi", "disks": disks}


def planned(sizes: t.Sequence[int], schema: list[Plain], objective: Objective = Objective.FAIR) -> Plain:
    plan = Planner(schema, objective).plan(machine(*sizes))
    check(plan)
    return plan


def check(plan: Plain) -> None:
    """A plan is a layout that has room for each stripe on the physical volume that it names, beside all others of the group."""
    layout = parse_static_schema(plan["schema"])
    for group in layout.groups:
        head = HEAD + (LUKS if plan["schema"]["luks"] else 0)
        left = {
            device: (sum(part.size for part in layout.partitions_below(device)) // 1024**2 - head) // (group.extent // 1024**2)
            for device in group.devices
        }
        linear = 0
        for volume in layout.volumes_of(group.name):
            count = -(-volume.size // group.extent)
            if volume.is_striped:
                assert len(set(volume.devices)) == volume.stripes
                assert count % volume.stripes == 0
                left.update({device: left[device] - count // volume.stripes for device in volume.devices})
            else:
                linear += count
        assert min(left.values()) >= 0
        assert sum(left.values()) >= linear


def fits(sizes: t.Sequence[int], striped: t.Sequence[tuple[int, int]], linear: int) -> bool:
    """By trying all disks: whether volumes of (stripes, extents of each) fit, and so many extents beside them."""
    room = [max(0, (size - TABLE - HEAD) // EXTENT) for size in sizes]
    for choice in itertools.product(*(itertools.combinations(range(len(sizes)), stripes) for stripes, _extents in striped)):
        left = list(room)
        for disks, (_stripes, extents) in zip(choice, striped):
            for disk in disks:
                left[disk] -= extents
        if min(left) >= 0 and sum(left) >= linear:
            return True
    return False


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("seed", range(examples(60)))
def test_there_is_a_plan_exactly_where_every_stripe_has_room(objective: Objective, seed: int) -> None:
    chance = random.Random(seed)
    sizes = [chance.randint(10, 60) for _disk in range(chance.randint(2, 4))]
    striped = [(chance.randint(2, len(sizes)), chance.randint(1, 6)) for _volume in range(chance.randint(1, 2))]
    linear = chance.randint(0, 12)
    volumes = [
        {"id": f"s{at}", "type": "lv", "stripes": stripes, "size": stripes * extents * EXTENT - chance.randint(0, 3)}
        for at, (stripes, extents) in enumerate(striped)
    ]
    volumes += [{"id": "linear", "type": "lv", "size": linear * EXTENT}] if linear else []
    schema = [{"id": "vg", "type": "vg", "contains": [volume["id"] for volume in volumes]}, *volumes]
    if fits(sizes, striped, linear):
        planned(sizes, schema, objective)
    else:
        with pytest.raises(NoSolution):
            planned(sizes, schema, objective)


@pytest.mark.parametrize("objective", list(Objective))
def test_on_all_disks_it_fits_to_the_extent_beside_others(objective: Objective) -> None:
    schema = [{"id": "vg", "type": "vg", "contains": ["wide", "root"]}, {"id": "wide", "type": "lv", "stripes": 3, "size": 240}]
    schema += [{"id": "root", "type": "lv", "size": 60}]
    # 20 extents of each disk are for stripes, 15 more in all.
    assert planned([103, 103, 103], schema, objective)["schema"]["lvs"][0]["stripes"] == 3
    with pytest.raises(NoSolution):
        planned([103, 103, 102], schema, objective)


@pytest.mark.parametrize("objective", list(Objective))
def test_what_no_stripe_fits_on_is_no_plan_though_there_is_room_in_all(objective: Objective) -> None:
    schema = [{"id": "vg", "type": "vg", "contains": ["wide"]}, {"id": "wide", "type": "lv", "stripes": 2, "size": 400}]
    with pytest.raises(NoSolution) as caught:
        planned([1000, 150], schema, objective)
    names = {constraint["name"] for constraint in caught.value.conflict["constraints"]}
    assert {"min:wide", "legs:wide"} <= names
    with pytest.raises(NoSolution) as caught:
        planned([1000], schema, objective)
    assert [constraint["name"] for constraint in caught.value.conflict["constraints"]] == ["legs:wide"]


def test_a_share_of_the_group_fits_beside_itself() -> None:
    schema = [{"id": "vg", "type": "vg", "contains": ["one", "two"]}]
    schema += [{"id": name, "type": "lv", "stripes": 2, "size": "50 %"} for name in ("one", "two")]
    sizes = [volume["size"] for volume in planned([1000, 700], schema)["schema"]["lvs"]]
    assert sizes == [696, 696]


def test_it_lies_on_the_disks_that_it_likes_and_encrypted_in_the_containers_on_them() -> None:
    schema = [
        {"id": "vg", "type": "vg", "contains": ["wide", "root"], "encrypt": True},
        {"id": "wide", "type": "lv", "stripes": 2, "size": 400, "best_with_disks": ["/dev/disk/by-id/1", "/dev/disk/by-id/3"]},
        {"id": "root", "type": "lv"},
    ]
    plan = planned([1000] * 4, schema)
    assert plan["schema"]["lvs"][0]["devices"] == ["/dev/mapper/vg-crypt2", "/dev/mapper/vg-crypt4"]
    assert plan["warnings"] == []


@pytest.mark.parametrize("where", ["vg", "wide"])
def test_every_disk_of_a_striped_volume_that_boots_gets_an_esp(where: str) -> None:
    schema = [{"id": "vg", "type": "vg", "contains": ["wide"]}, {"id": "wide", "type": "lv", "stripes": 2, "size": 800}]
    schema[0 if where == "vg" else 1]["boot"] = True
    schema.append({"id": "esp", "type": "esp", "size": 100})
    plan = planned([1000, 1000], schema)
    assert all("esp" in [space["space_id"] for space in disk["spaces"]] for disk in plan["disks"])


def test_another_space_lies_apart_from_a_group_in_stripes() -> None:
    schema = [{"id": "vg", "type": "vg", "contains": ["wide"], "weight": 0}, {"id": "wide", "type": "lv", "stripes": 2, "size": 800}]
    schema.append({"id": "other", "type": "partition", "size": 100, "apart_from": ["vg"]})
    plan = planned([1000, 1000, 1000], schema)
    assert all(len({space["space_id"] for space in disk["spaces"]}) == 1 for disk in plan["disks"])


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"stripes": 0}, "schema[1].stripes"),
        ({"stripes": 2, "stripe_size": "3 KiB"}, "schema[1].stripe_size"),
        ({"stripes": 2, "stripe_size": "8 MiB"}, "schema[1].stripe_size"),
        ({"stripe_size": "64 KiB"}, "schema[1].stripe_size"),
        ({"stripes": 2, "vg": {"max_pvs": 2}}, "schema[1].stripes"),
        ({"stripes": 2, "vg": {"min_size": 100}}, "schema[1].stripes"),
        ({"stripes": 2, "type": "partition"}, "schema[1].stripes"),
    ],
)
def test_stripes_that_make_no_sense_are_mistakes(changes: Plain, place: str) -> None:
    group = {"id": "vg", "type": "vg", "contains": ["wide"], **changes.pop("vg", {})}
    with pytest.raises(InputError) as caught:
        planned([1000, 1000], [group, {"id": "wide", "type": "lv", "size": 400, **changes}])
    assert place in [mistake.place for mistake in caught.value.mistakes]


def test_a_group_on_arrays_and_a_schema_without_groups_have_no_stripes() -> None:
    wide = {"id": "wide", "type": "lv", "size": 400, "stripes": 2}
    mirror = {"id": "pair", "type": "raid", "level": "raid1", "legs": 2}
    for schema in ([wide], [{"id": "vg", "type": "vg", "contains": ["wide", "pair"]}, mirror, wide]):
        with pytest.raises(InputError) as caught:
            planned([1000, 1000], schema)
        assert [mistake.place.rpartition(".")[2] for mistake in caught.value.mistakes] == ["stripes"]


def wide_plan() -> Plain:
    schema = [{"id": "vg", "type": "vg", "contains": ["wide"]}]
    schema += [{"id": "wide", "type": "lv", "size": 400, "stripes": 2, "stripe_size": "128 KiB", "fs_type": "xfs", "mount": "/srv"}]
    return planned([1000, 1000], schema)


def test_installers_give_lvcreate_its_stripes() -> None:
    assert 'lvcreateopts="--stripes=2 --stripesize=128k"' in write_plan(fai.TARGET, wide_plan(), None, lossy=True, passphrase=None).value
    text = write_plan(disko.TARGET, wide_plan(), None, lossy=True, password_file=None).value
    assert 'extraArgs = [ "--stripes=2" "--stripesize=128k" ]' in text


@pytest.mark.parametrize(("there", "found"), [({"stripes": 2}, []), ({"stripes": 3}, ["vg/wide"]), ({}, [])])
def test_drift_names_other_stripes(there: Plain, found: list[str]) -> None:
    plan = wide_plan()
    facts = json.loads(json.dumps(machine(1000, 1000)))
    for disk, table in zip(facts["disks"], plan["schema"]["parteds"]):
        (part,) = table["partitions"]
        entry = {"number": 1, "uuid": part["uuid"], "start": part["begin"], "size": part["end"] - part["begin"]}
        holder = {"type": "lvm", "volume_group": "vg", "name": "wide", "size": 400, **there}
        disk |= {"partitions": [entry], "holders": [holder]}
    assert [finding.place for finding in compare(plan, facts)] == found


def test_each_disk_of_a_group_with_stripes_has_an_esp_if_a_volume_of_it_boots() -> None:
    """LVM may put the volume that boots on a physical volume that was made for stripes."""
    schema = [
        {"id": "esp", "type": "esp", "size": 1024},
        {"id": "vg", "type": "vg", "contains": ["root", "fast"]},
        {"id": "root", "type": "lv", "size": 60_000, "boot": True},
        {"id": "fast", "type": "lv", "stripes": 2, "min_size": 20_000},
        {"id": "data", "type": "partitions", "min_size": 20_000},
    ]
    plan = planned((600_000, 600_000, 600_000), schema)
    on = {name: {disk["disk_id"] for disk in plan["disks"] for own in disk["spaces"] if own["space_id"] == name} for name in ("vg", "esp")}
    assert len(on["vg"]) > 1
    assert on["esp"] == on["vg"]
