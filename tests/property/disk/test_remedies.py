# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Remedies as users follow them: sentences are read, schema and machine changed as they say, and planned again."""

from __future__ import annotations

import random
import re
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.tests.support.house.share import examples

Plain = dict[str, t.Any]
LOWERED = re.compile(r"reduce the minimum of (\w+) from (?:[0-9.]+ % \()?[0-9]+(?: MiB\))? to ([0-9]+) MiB")
NAME = r"(?!(?:which|leave|reduce|use|let|add|plan)\b)\w+(?: \(with [^)]*\))?"
LEFT_OUT = re.compile(rf"leave out ({NAME}(?:(?:, | and ){NAME})*)")
ONE_LEFT_OUT = re.compile(r"(\w+)(?: \(with (?P<along>(?!its name)[^)]*?)?(?:(?: and )?its name in (?P<named>[^)]*))?\))?")
NAMED = re.compile(r"(\w+) of (\w+)")
LARGER = re.compile(r"use a disk of at least ([0-9]+) MiB instead of (\w+) ")
KEYS_OF_DISKS = "apart_from|together_with|avoid_disks|disks(?: and avoid_disks)?"
WITHOUT = re.compile(rf"let (\w+) (?:share disks with|lie on other disks than|use any disk)\b.*?, without ({KEYS_OF_DISKS})")
NO_TWINS = re.compile(r"plan (\w+) without (mirror|alike)\b")
CHANGED = re.compile(r"plan (\w+) with ((?:(?: and )?(?!let|plan|add|use)\w+: \w+)+)")
KEY = re.compile(r"(\w+): (\w+)")
ADDED = re.compile(r"add ([0-9]+) disks? like (\w+)(?:, of at least ([0-9]+) MiB)?")
OF_ARRAYS = ("level", "legs", "spares", "chunk", "layout", "bitmap", "write_mostly")


def lvs(group: Plain, *volumes: Plain) -> list[Plain]:
    """Return a group with volumes in it."""
    return [{"type": "vg", "contains": [volume["id"] for volume in volumes], **group}, *({"type": "lv", **volume} for volume in volumes)]


def machine(seed: int) -> tuple[Plain, list[Plain]]:
    """Return a machine of up to four disks and a schema that is mostly too large for it."""
    chance = random.Random(seed)
    sizes = [chance.choice([60_000, 100_000, 228_936]) + chance.randint(0, 900) for _disk in range(chance.randint(1, 4))]
    disks = [{"id": f"d{at}", "size": size} for at, size in enumerate(sizes)]
    entries: list[Plain] = []
    for at in range(chance.randint(1, 4)):
        least = {"min_size": chance.randint(2_000, 150_000)}
        kind = chance.choice(["partition", "partitions", "raid", "vg", "zpool", "thin"])
        name = f"s{at}"
        if kind == "raid" and len(disks) > 1:
            entries.append({"id": name, "type": "raid", "level": chance.choice(["raid0", "raid1"]), **least})
        elif kind == "zpool" and len(disks) > 1:
            entries.append({"id": name, "type": "zpool", "vdev": chance.choice(["mirror", "stripe"]), **least})
        elif kind == "vg":
            entries += [{"id": name, "type": "vg", "contains": [f"{name}a", f"{name}b"]}, {"id": f"{name}a", "type": "lv", **least}]
            entries.append({"id": f"{name}b", "type": "lv", "size": chance.randint(1_000, 40_000)})
        elif kind == "thin":
            entries += [{"id": name, "type": "vg", "contains": [f"{name}a"]}, {"id": f"{name}a", "type": "thin_pool", **least}]
        else:
            kind = "partitions" if kind == "partitions" else "partition"
            entries.append({"id": name, "type": kind, **least})
    whole = [entry["id"] for entry in entries if entry["type"] == "partition"]
    if len(whole) > 1 and chance.random() < 0.5:
        next(entry for entry in entries if entry["id"] == whole[0])["apart_from"] = [whole[1]]
    return {"disks": disks}, entries


def followed(remedy: str, hardware: Plain, schema: list[Plain]) -> tuple[Plain, list[Plain]] | None:
    """Return machine and schema with what a sentence says, and nothing else; None where it says nothing exact."""
    lowered = {name: int(least) for name, least in LOWERED.findall(remedy)}
    sizes = {disk: int(size) for size, disk in LARGER.findall(remedy)}
    gone: set[str] = set()
    unnamed: set[tuple[str, str, str]] = set()
    for names in LEFT_OUT.findall(remedy):
        for one in re.findall(NAME, names):
            said = ONE_LEFT_OUT.fullmatch(one)
            assert said is not None, one
            own = {said[1], *re.findall(r"(?!and\b)\w+", said["along"] or "")}
            gone |= own
            unnamed |= {(key, owner, name) for key, owner in NAMED.findall(said["named"] or "") for name in own}
    without, changed = [*WITHOUT.findall(remedy), *NO_TWINS.findall(remedy)], CHANGED.findall(remedy)
    added = [(disk, int(count), size) for count, disk, size in ADDED.findall(remedy)]
    if not (lowered or sizes or gone or without or changed or added):
        return None
    entries = []
    for entry in schema:
        name, keys = entry["id"], dict(entry)
        if name in gone:
            continue
        if name in lowered:
            keys = {**keys, "min_size": lowered[name]} | ({"max_size": keys["size"]} if "size" in keys else {})
            keys.pop("size", None)
        for key in ("contains", "apart_from", "together_with"):
            if key in keys:
                keys[key] = [other for other in keys[key] if (key, name, other) not in unnamed]
        for key in [key for owner, given in without for key in given.split(" and ") if owner == name]:
            keys.pop(key)
        for said in [said for owner, said in changed if owner == name]:
            new = {key: int(value) if value.isdecimal() else value for key, value in KEY.findall(said)}
            keys = {key: value for key, value in keys.items() if "type" not in new or key not in OF_ARRAYS} | new
        entries.append(keys)
    disks = [{**disk, "size": sizes.get(disk["id"], disk["size"])} for disk in hardware["disks"]]
    for like, count, size in added:
        kind = next(disk for disk in disks if disk["id"] == like)
        new = {key: value for key, value in kind.items() if key not in ("drive", "partitions")}
        disks += [{**new, "id": f"{like}_like{at}"} | ({"size": int(size)} if size else {}) for at in range(count)]
    return {**hardware, "disks": disks}, entries


def machine_with_conflicts(seed: int) -> tuple[Plain, list[Plain]]:
    """Return a machine and a schema of one to three parts with disks of their own; most parts contradict themselves."""
    chance = random.Random(seed)
    disks: list[Plain] = []
    entries: list[Plain] = []
    for number in range(chance.choice([1, 2, 2, 2, 3])):
        sizes = [chance.choice([60_000, 100_000]) + chance.randint(0, 900) for _disk in range(chance.randint(1, 3))]
        own = [{"id": f"d{number}{at}", "size": size} for at, size in enumerate(sizes)]
        disks += own
        entries += _conflict(chance, f"s{number}", {"disks": [disk["id"] for disk in own]}, sizes)
    return {"disks": disks}, entries


def _conflict(chance: random.Random, name: str, there: Plain, sizes: list[int]) -> list[Plain]:
    """Return spaces that find no room on their disks, or contradict each other there."""
    most, whole = max(sizes), sum(sizes)

    def partition(suffix: str, share: float, **keys: t.Any) -> Plain:
        return {"id": name + suffix, "type": "partition", "min_size": int(most * share), **there, **keys}

    names = [f"{name}b{at}" for at in range(len(sizes))]
    return chance.choice(
        [
            [partition("a", 1.3)],
            [partition("a", 0.7), partition("b", 0.6), partition("c", 0.55)],
            [partition("a", 0.7), partition("b", 0.6, together_with=[f"{name}a"])],
            [partition("a", 0.01), *(partition(f"b{at}", 0.01, apart_from=[f"{name}a", *names[:at]]) for at in range(len(sizes)))],
            [partition("a", 0.8), {"id": f"{name}b", "type": "partitions", "min_size": int(whole * 0.7), **there}],
            [{"id": name, "type": "raid", "level": "raid1", "legs": len(sizes) + 1, **there}],
            [{"id": name, "type": "raid", "level": "raid1", "legs": 2, "min_size": int(most * 1.4), **there}],
            [
                {"id": name, "type": "vg", "contains": [f"{name}a", f"{name}b"], **there},
                {"id": f"{name}a", "type": "lv", "min_size": int(whole * 0.8)},
                {"id": f"{name}b", "type": "lv", "size": int(whole * 0.3)},
            ],
        ]
    )


def rich_machine(seed: int) -> tuple[Plain, list[Plain]]:
    """Return a machine whose disks may share drives and hold data, and a schema of spaces of all types, some optional or related."""
    chance = random.Random(seed)
    base = chance.choice([60_000, 100_000])
    sizes = [
        base + chance.randint(0, 900) if chance.random() < 0.7 else base * 2 + chance.randint(0, 9) for _disk in range(chance.randint(1, 4))
    ]
    disks: list[Plain] = [{"id": f"d{at}", "size": size, "logical_block": 512} for at, size in enumerate(sizes)]
    if chance.random() < 0.3:
        disks = [{**disk, "drive": chance.choice("xy")} for disk in disks]
    entries: list[Plain] = []
    if chance.random() < 0.35:
        disk, start = chance.choice(disks), chance.randint(100, 20_000)
        disk["partitions"] = [{"number": 1, "name": "kk", "start": start, "size": chance.randint(1000, disk["size"] - start - 10)}]
        entries.append({"id": "kk", "type": "partition", "keep_data": True})
    for at in range(chance.randint(1, 4)):
        entries += _any_space(chance, f"s{at}", [disk["id"] for disk in disks])
    alone = {"per_disk", "count", "keep_data", "cache_of"}
    whole = [entry for entry in entries if entry["type"] == "partition" and not alone & entry.keys()]
    if len(whole) > 1 and chance.random() < 0.6:
        whole[0][chance.choice(["apart_from", "together_with"])] = [whole[1]["id"]]
    for entry in entries:
        if chance.random() < 0.15:
            entry["optional"] = True
    if chance.random() < 0.2:
        entries.append({"id": "esp", "type": "esp", "size": chance.choice([512, 2000, "2 %"])})
    return {"disks": disks, "ram": 4096, "firmware": chance.choice(["uefi", "bios"])}, entries


def _any_space(chance: random.Random, name: str, disks: list[str]) -> list[Plain]:
    """Return a space of any type, with what lies in it or belongs to it."""
    size = chance.choice([chance.randint(2000, 150_000), f"{chance.randint(5, 70)} %"])
    least: Plain = {"min_size": size} if chance.random() < 0.6 else {"size": size}
    may_encrypt: Plain = {"encrypt": True} if chance.random() < 0.3 else {}
    some: Plain = {"disks": sorted(chance.sample(disks, chance.randint(1, len(disks))))} if chance.random() < 0.3 else {}
    group = {"id": name, **may_encrypt}
    volume = {"id": f"{name}a", **least}
    bound: Plain = {"max_size": chance.randint(10_000, 200_000)} if chance.random() < 0.3 else {}
    array = {"id": f"{name}r", "type": "raid", "level": chance.choice(["raid0", "raid1"]), "legs": 2, **bound}
    kinds: list[list[Plain]] = [
        [{"id": name, "type": "partition", **least, **may_encrypt, **some}],
        [{"id": name, "type": "partitions", **least, **may_encrypt, **some}],
        [{"id": name, "type": "partition", "boot": True, **least}],
        [{"id": name, "type": "partition", "per_disk": chance.randint(1, 2), **least, **may_encrypt, **some}],
        [{"id": name, "type": "partition", "count": 2, **least, **may_encrypt}],
        [{"id": name, "type": "raid", "level": chance.choice(["raid0", "raid1"]), **least, **may_encrypt, **some}],
        [{"id": name, "type": "raid", "level": "raid1", "legs": 2, "spares": 1, **least, **may_encrypt}],
        [{"id": name, "type": "zpool", "vdev": chance.choice(["mirror", "stripe", "raidz1"]), **least, **some}],
        [{"id": name, "type": "btrfs", "level": chance.choice(["raid0", "raid1"]), "legs": 2, "mount": f"/srv/{name}", **least}],
        lvs({**group, **some, **bound, **({"max_pvs": 1} if chance.random() < 0.3 else {})}, volume, {"id": f"{name}b", "size": "30 %"}),
        lvs({**group, "mirror": chance.choice(["required", "when_possible"])}, volume),
        lvs(group, {**volume, "stripes": 2}, {"id": f"{name}b", "min_size": chance.randint(1000, 90_000)}),
        [{"id": name, "type": "vg", "contains": [f"{name}r", f"{name}a"], **may_encrypt}, array, {"type": "lv", **volume}],
        [
            {"id": name, "type": "vg", "contains": [f"{name}a"]},
            {"id": f"{name}a", "type": "thin_pool", "contains": [f"{name}t"], **({} if chance.random() < 0.5 else least)},
            {"id": f"{name}t", "type": "thin", "size": chance.randint(1000, 150_000)},
        ],
        [
            *lvs({"id": name}, volume),
            {"id": f"{name}c", "type": "partition", "cache_of": f"{name}a", "min_size": chance.randint(1000, 60_000)},
        ],
    ]
    return chance.choice(kinds)


def faults(hardware: Plain, schema: list[Plain]) -> tuple[int, list[str]]:
    """Return how many remedies could be followed, and those after which there is no plan."""
    try:
        Planner(schema).plan(hardware)
    except InputError:
        return 0, []
    except NoSolution as error:
        tried, found = 0, []
        for remedy in error.conflict["remedies"]:
            changed = followed(remedy, hardware, schema)
            if changed is None:
                found.append(f"{remedy}: nobody can follow it")
                continue
            tried += 1
            try:
                Planner(changed[1]).plan(changed[0])
            except (InputError, NoSolution) as again:
                found.append(f"{remedy}: {again}")
        return tried, found if tried else [f"nothing to do: {error}"]
    return 0, []


@pytest.mark.parametrize("first", range(0, 160, 40))
def test_every_remedy_leads_to_a_plan(first: int) -> None:
    tried = {seed: faults(*machine(seed)) for seed in range(first, first + examples(40))}
    assert {seed: found for seed, (_count, found) in tried.items() if found} == {}
    assert sum(count for count, _found in tried.values()) > 0


@pytest.mark.parametrize("first", range(0, 240, 20))
def test_every_remedy_for_spaces_of_all_types_leads_to_a_plan(first: int) -> None:
    tried = {seed: faults(*rich_machine(seed)) for seed in range(first, first + examples(20))}
    assert {seed: found for seed, (_count, found) in tried.items() if found} == {}
    assert sum(count for count, _found in tried.values()) > 0


@pytest.mark.parametrize("first", range(0, 160, 40))
def test_conflicts_that_have_nothing_to_do_with_each_other_are_solved_together(first: int) -> None:
    tried = {seed: faults(*machine_with_conflicts(seed)) for seed in range(first, first + examples(40))}
    assert {seed: found for seed, (_count, found) in tried.items() if found} == {}
    assert sum(count for count, _found in tried.values()) > 0


def test_disks_that_a_space_may_use_are_no_reason_where_all_would_be_too_few() -> None:
    disks = [{"id": f"d{at}", "size": 100_000} for at in range(4)]
    for legs, names in ((6, ["legs:data"]), (4, ["legs:data", "disks:data"])):
        with pytest.raises(NoSolution) as raised:
            Planner([{"id": "data", "type": "raid", "level": "raid1", "legs": legs, "disks": ["d0", "d1"]}]).plan({"disks": disks})
        assert [one["name"] for one in raised.value.conflict["constraints"]] == names


ON_ONE_DRIVE = [{"id": f"d{at}", "size": 100_000, "drive": "x"} for at in range(2)]
KEPT = {"id": "d0", "size": 200_007, "logical_block": 512, "partitions": [{"number": 1, "name": "kk", "start": 13_552, "size": 100_638}]}
SMALL = [{"id": "d0", "size": 100_000}]


@pytest.mark.parametrize(
    ("disks", "schema", "ways"),
    [
        pytest.param(
            [KEPT],
            [
                {"id": "kk", "type": "partition", "keep_data": True},
                {"id": "s0", "type": "partition", "per_disk": 2, "min_size": 21_018},
                *lvs(
                    {"id": "s1", "encrypt": True, "max_pvs": 1},
                    {"id": "s1a", "size": 14_271, "optional": True},
                    {"id": "s1b", "size": "30 %"},
                ),
            ],
            [LOWERED, LARGER],
            id="less of one leaves more to take a part of",
        ),
        pytest.param(
            SMALL,
            [{"id": "root", "type": "partition", "size": "30 %"}, {"id": "data", "type": "partition", "min_size": 80_000}],
            [LOWERED, LARGER],
            id="a part of a larger disk",
        ),
        pytest.param(
            SMALL,
            lvs({"id": "os"}, {"id": "root", "min_size": "30 %"}, {"id": "data", "min_size": 80_000}),
            [LOWERED, LARGER],
            id="a part of a group on a larger disk",
        ),
        pytest.param(
            SMALL,
            [{"id": "root", "type": "partition", "size": "50 %"}, {"id": "data", "type": "partition", "size": "60 %"}],
            [LOWERED],
            id="more than a disk of any size has",
        ),
        pytest.param(
            SMALL,
            [
                *lvs({"id": "g"}, {"id": "a", "min_size": 90_000}),
                {"id": "c", "type": "partition", "cache_of": "a", "min_size": 50_000},
                {"id": "big", "type": "partition", "min_size": 99_000, "apart_from": ["a"]},
            ],
            [LEFT_OUT],
            id="a volume with a cache",
        ),
        pytest.param(
            SMALL,
            [
                {"id": "g", "type": "vg", "contains": ["pool"]},
                {"id": "pool", "type": "thin_pool", "contains": ["t"], "min_size": 60_000},
                {"id": "t", "type": "thin", "size": 90_000},
                {"id": "big", "type": "partition", "min_size": 99_990},
            ],
            [LEFT_OUT],
            id="a pool with volumes",
        ),
        pytest.param(SMALL, [{"id": "r", "type": "raid", "level": "raid1", "size": 4000}], [CHANGED, ADDED], id="a mirror on one disk"),
        pytest.param(
            ON_ONE_DRIVE,
            [{"id": "r", "type": "zpool", "min_size": 4000, "disks": ["d0", "d1"]}],
            [CHANGED, ADDED, WITHOUT],
            id="on one drive",
        ),
        pytest.param(
            [*SMALL, {"id": "d1", "size": 90_000}],
            [{"id": "r", "type": "raid", "level": "raid1", "legs": 2, "size": 4000, "disks": ["d0"]}],
            [WITHOUT],
            id="a mirror that may use one disk",
        ),
        pytest.param(
            SMALL,
            [*lvs({"id": "g", "mirror": "required"}, {"id": "a", "size": 4000}), {"id": "z", "type": "zpool", "alike": True}],
            [NO_TWINS, CHANGED],
            id="no disks alike",
        ),
        pytest.param(
            SMALL,
            [{"id": "r", "type": "raid", "level": "raid1", "legs": 2, "size": 120_000}],
            [LOWERED, LARGER, CHANGED],
            id="and a larger one",
        ),
    ],
)
def test_remedies_of_each_kind_are_there_and_lead_to_a_plan(disks: list[Plain], schema: list[Plain], ways: list[re.Pattern[str]]) -> None:
    with pytest.raises(NoSolution) as raised:
        Planner(schema).plan({"disks": disks})
    said = "; ".join(raised.value.conflict["remedies"])
    assert [way.pattern for way in ways if not way.search(said)] == [], said
    assert faults({"disks": disks}, schema)[1] == []


def test_a_larger_disk_is_as_large_as_it_must_be_and_hardly_larger() -> None:
    schema = [{"id": "root", "type": "partition", "size": "30 %"}, {"id": "data", "type": "partition", "min_size": 80_000}]
    with pytest.raises(NoSolution) as raised:
        Planner(schema).plan({"disks": SMALL})
    (size,) = (int(size) for remedy in raised.value.conflict["remedies"] for size, _disk in LARGER.findall(remedy))
    with pytest.raises(NoSolution):
        Planner(schema).plan({"disks": [{"id": "d0", "size": size - 3}]})
