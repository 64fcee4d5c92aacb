# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fair planner: the corpus of cases with known properties, and one type and key after the other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.highs import Undecided
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.fair.solve import allocate_fair
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.model import Allocation, Disk, Hardware, Schema
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.place import cutting_stock, search
from ansible_collections.bareon.allocator.tests.support.disk.build import CASES, case_models, hardware_of, schema_of
from ansible_collections.bareon.allocator.tests.support.disk.expectations import missed
from ansible_collections.bareon.allocator.tests.support.disk.rules import broken

FEASIBLE = [case for case in CASES if case["expect"]["feasible"]]
INFEASIBLE = [case for case in CASES if not case["expect"]["feasible"]]


@pytest.mark.parametrize("case", FEASIBLE, ids=lambda case: case["id"])
def test_feasible_cases_pass_the_check(case: dict) -> None:
    hardware, schema = case_models(case)
    allocation = allocate_fair(hardware, schema)
    assert broken(hardware, schema, allocation) == []
    assert missed(case, hardware, schema, allocation) == []


@pytest.mark.parametrize("case", INFEASIBLE, ids=lambda case: case["id"])
def test_infeasible_cases_give_their_unique_minimal_conflict(case: dict) -> None:
    with pytest.raises(NoSolution) as caught:
        allocate_fair(*case_models(case))
    reference = case["expect"]["reference"]
    conflict = caught.value.conflict
    assert sorted(item["name"] for item in conflict["constraints"]) == sorted(reference["iis"])
    assert conflict["short"] == reference["short_MiB"]
    assert conflict["remedies"]


def sizes(hardware: Hardware, schema: Schema, allocation: Allocation) -> dict[str, dict[str, int]]:
    """Return MiB by space and disk, after checking every rule."""
    assert broken(hardware, schema, allocation) == []
    found: dict[str, dict[str, int]] = {}
    for piece in allocation.pieces:
        found.setdefault(schema.spaces[piece.space].id, {})[hardware.disks[piece.disk].id] = piece.size
    return found


def volumes(schema: Schema, allocation: Allocation) -> dict[str, int]:
    return {schema.spaces[at].id: size for at, size in allocation.volumes.items()}


def vg(name: str, *members: dict, **keys: object) -> list[dict]:
    return [{"id": name, "type": "vg", "contains": [member["id"] for member in members], **keys}, *members]


def lv(name: str, **keys: object) -> dict:
    return {"id": name, "type": "lv", **keys}


def test_a_vg_without_volumes_grows_like_a_space() -> None:
    hardware = hardware_of(1002)
    schema = schema_of(hardware, {"id": "p", "type": "partition", "min_size": 1}, *vg("guests", min_size=100))
    assert sizes(hardware, schema, allocate_fair(hardware, schema)) == {"p": {"d0": 499}, "guests": {"d0": 501}}


def test_volumes_of_two_groups_and_partitions_are_equal() -> None:
    hardware = hardware_of(1000, 1000)
    schema = schema_of(
        hardware,
        {"id": "p", "type": "partition", "min_size": 1},
        *vg("g", lv("a"), lv("b")),
        *vg("h", lv("c", weight=2)),
    )
    allocation = allocate_fair(hardware, schema)
    got = sizes(hardware, schema, allocation)
    (p,) = got["p"].values()
    assert volumes(schema, allocation) == {"a": pytest.approx(p, abs=8), "b": pytest.approx(p, abs=8), "c": pytest.approx(2 * p, abs=12)}
    assert sum(piece.size for piece in allocation.pieces) == 2 * 998


def test_weight_0_never_grows() -> None:
    hardware = hardware_of(1000)
    schema = schema_of(
        hardware, {"id": "a", "type": "partition", "min_size": 100, "weight": 0}, {"id": "b", "type": "partition", "min_size": 1}
    )
    assert sizes(hardware, schema, allocate_fair(hardware, schema)) == {"a": {"d0": 100}, "b": {"d0": 898}}


def test_reserve_stays_free_on_every_disk() -> None:
    hardware = hardware_of(1000, 1000)
    schema = schema_of(hardware, {"id": "a", "type": "partition", "min_size": 1, "per_disk": True})
    allocation = allocate_fair(hardware, schema, reserve=50)
    assert sizes(hardware, schema, allocation) == {"a": {"d0": 948, "d1": 948}}


@pytest.mark.parametrize(("blocks", "size"), [(512, 100), (4096, 260)])
def test_an_esp_is_as_large_as_fat32_needs_on_these_blocks(blocks: int, size: int) -> None:
    hardware = hardware_of(2000, blocks=blocks)
    schema = schema_of(
        hardware, {"id": "esp", "type": "esp", "min_size": 100}, {"id": "root", "type": "partition", "min_size": 1, "boot": True}
    )
    assert sizes(hardware, schema, allocate_fair(hardware, schema)) == {"esp": {"d0": size}, "root": {"d0": 1998 - size}}


def test_a_fixed_esp_that_is_too_small_is_warned_about() -> None:
    hardware = hardware_of(2000, blocks=4096)
    schema = schema_of(
        hardware, {"id": "esp", "type": "esp", "size": 100}, {"id": "root", "type": "partition", "min_size": 1, "boot": True}
    )
    allocation = allocate_fair(hardware, schema)
    assert sizes(hardware, schema, allocation)["esp"] == {"d0": 100}
    assert "260 MiB" in allocation.warnings[0]


def test_boot_partitions_lie_first_and_pvs_last() -> None:
    hardware = hardware_of(5000, 5000)
    schema = schema_of(
        hardware,
        *vg("os", lv("root", min_size=100)),
        {"id": "boot", "type": "raid", "level": "raid1", "legs": 2, "size": 200, "boot": True},
        {"id": "esp", "type": "esp", "size": 100},
        {"id": "bios", "type": "bios_grub", "size": 1},
    )
    allocation = allocate_fair(hardware, schema)
    assert broken(hardware, schema, allocation) == []
    for disk in range(2):
        order = [schema.spaces[piece.space].id for piece in allocation.pieces if piece.disk == disk]
        assert order == ["esp", "bios", "boot", "os"]


def test_a_vg_that_boots_takes_companions_where_its_pvs_are() -> None:
    hardware = hardware_of(1000, 1000, 1000)
    schema = schema_of(
        hardware,
        *vg("os", lv("root", min_size=1200, max_size=1200, boot=True), max_pvs=2),
        {"id": "esp", "type": "esp", "size": 100},
    )
    allocation = allocate_fair(hardware, schema)
    got = sizes(hardware, schema, allocation)
    assert len(got["os"]) == 2
    assert set(got["esp"]) == set(got["os"])


def test_companions_without_anything_that_boots_follow_the_mount_points() -> None:
    hardware = hardware_of(1000, 1000)
    schema = schema_of(
        hardware,
        {"id": "esp", "type": "esp", "size": 100},
        {"id": "root", "type": "partition", "min_size": 1, "mount": "/", "disks": ["d1"]},
    )
    assert set(sizes(hardware, schema, allocate_fair(hardware, schema))["esp"]) == {"d1"}


@pytest.mark.parametrize("most", [1, 2, 3])
def test_max_pvs_takes_the_largest_disks(most: int) -> None:
    hardware = hardware_of(100, 900, 500, 700)
    schema = schema_of(hardware, *vg("g", lv("a", min_size=50)), {"id": "x", "type": "vg", "contains": [], "disks": ["d0"]})
    limited = schema_of(hardware, *vg("g", lv("a", min_size=50), max_pvs=most))
    assert len(sizes(hardware, schema, allocate_fair(hardware, schema))["g"]) >= 3
    got = sizes(hardware, limited, allocate_fair(hardware, limited))
    assert set(got["g"]) == set(["d1", "d3", "d2"][:most])


def test_bounds_of_a_vg_are_about_its_extents() -> None:
    hardware = hardware_of(1000)
    schema = schema_of(hardware, *vg("g", lv("a", min_size=10), max_size=101), *vg("h", lv("b", min_size=10), min_size=203))
    allocation = allocate_fair(hardware, schema)
    got = sizes(hardware, schema, allocation)
    assert volumes(schema, allocation)["a"] == 100
    assert got["g"]["d0"] < 106
    assert got["h"]["d0"] >= 205


def test_luks_below_a_vg_takes_its_header_of_every_pv() -> None:
    hardware = hardware_of(1019, 1019)
    schema = schema_of(hardware, *vg("g", lv("a", min_size=10, encrypt=True), lv("b", min_size=10, max_size=20)))
    allocation = allocate_fair(hardware, schema)
    assert broken(hardware, schema, allocation) == []
    assert volumes(schema, allocation) == {"a": 2000 - 20, "b": 20}


def test_a_vg_on_a_mirror_gets_what_md_and_lvm_leave() -> None:
    hardware = hardware_of(200_000, 300_000)
    schema = schema_of(
        hardware,
        *vg("g", lv("a", min_size=100), lv("b", min_size=100, max_size=5000)),
        {"id": "r", "type": "raid", "level": "raid1", "legs": 2},
    )
    group = schema.spaces[0]
    schema = Schema((replace(group, contains=("r", "a", "b")), *schema.spaces[1:]), flat=False)
    allocation = allocate_fair(hardware, schema)
    assert sizes(hardware, schema, allocation) == {"r": {"d0": 199_998, "d1": 199_998}}
    # 199998 - 129 (md) - 1 (LVM) = 199868 MiB = 49967 extents.
    assert volumes(schema, allocation) == {"a": 199_868 - 5000, "b": 5000}


def test_a_preference_falls_back_and_says_how_much() -> None:
    hardware = hardware_of(1000, 200)
    schema = schema_of(
        hardware, *vg("g", lv("a", min_size=400, max_size=400), best_with_disks=["d1"]), {"id": "p", "type": "partition", "min_size": 1}
    )
    allocation = allocate_fair(hardware, schema)
    got = sizes(hardware, schema, allocation)
    assert got["g"]["d1"] == 198
    assert allocation.off_preferred == {0: 400 - 196}


def test_tiers_are_used_best_first() -> None:
    hardware = hardware_of(500, 300, 1000)
    tiers = [["d1"], ["d0"]]
    schema = schema_of(
        hardware,
        {"id": "a", "type": "partition", "min_size": 400, "best_with_disks": tiers},
        {"id": "b", "type": "partition", "min_size": 200, "best_with_disks": tiers},
    )
    got = sizes(hardware, schema, allocate_fair(hardware, schema))
    assert set(got["a"]) == {"d0"}
    assert set(got["b"]) == {"d1"}


def test_volumes_of_one_vg_keep_to_their_own_disks() -> None:
    hardware = hardware_of(100_000, 20_000)
    schema = schema_of(
        hardware,
        *vg(
            "v",
            lv("journal", min_size=5000, max_size=8000, best_with_disks=["d1"]),
            lv("root", min_size=10_000, disks=["d0"]),
            lv("rest", min_size=100),
        ),
    )
    allocation = allocate_fair(hardware, schema)
    assert set(sizes(hardware, schema, allocation)["v"]) == {"d0", "d1"}
    assert volumes(schema, allocation)["journal"] == 8000
    assert allocation.off_preferred == {}
    assert sum(volumes(schema, allocation).values()) >= 119_996 - 8


def test_disks_of_a_volume_and_bounds_of_its_vg_are_too_much() -> None:
    hardware = hardware_of(1000, 1000)
    schema = schema_of(hardware, *vg("v", lv("a", min_size=5, disks=["d0"]), max_pvs=1))
    with pytest.raises(InputError, match=r"schema\[1\].*max_pvs"):
        allocate_fair(hardware, schema)


def test_what_is_kept_stays_where_it_is_and_the_rest_goes_around_it() -> None:
    hardware = hardware_of(1000, existing={0: [("old", 1, 99), ("home", 300, 400), ("rest", 700, 200)]})
    schema = schema_of(
        hardware,
        {"id": "home", "type": "partition", "keep_data": True, "size": 50},
        {"id": "a", "type": "partition", "min_size": 250},
        {"id": "b", "type": "partition", "min_size": 250},
    )
    allocation = allocate_fair(hardware, schema)
    assert broken(hardware, schema, allocation) == []
    assert [(schema.spaces[piece.space].id, piece.start, piece.size) for piece in allocation.pieces] == [
        ("a", None, 299),
        ("home", 300, 400),
        ("b", None, 299),
    ]


def test_what_is_to_be_kept_but_is_not_there_is_made_with_a_warning() -> None:
    hardware = hardware_of(1000)
    schema = schema_of(hardware, {"id": "home", "type": "partition", "keep_data": True, "min_size": 50})
    allocation = allocate_fair(hardware, schema)
    assert allocation.warnings == ("home is to be kept, but is not on any disk yet; it will be made",)
    assert sizes(hardware, schema, allocation) == {"home": {"d0": 998}}


def test_a_kept_vg_keeps_its_pvs_and_takes_new_volumes_into_what_is_free() -> None:
    hardware = hardware_of(1000, existing={0: [("g", 1, 501), ("data", 0, 300, "", "g"), ("other", 0, 40, "", "g")]})
    schema = schema_of(
        hardware, *vg("g", lv("data", keep_data=True, min_size=1), lv("new", min_size=8)), {"id": "p", "type": "partition", "min_size": 1}
    )
    allocation = allocate_fair(hardware, schema)
    assert broken(hardware, schema, allocation) == []
    assert [(piece.start, piece.size) for piece in allocation.pieces] == [(1, 501), (None, 497)]
    assert volumes(schema, allocation) == {"data": 300, "new": 160}


@pytest.mark.parametrize("keep_group", [True, False])
def test_a_kept_mirror_keeps_its_legs_and_what_its_vg_holds(keep_group: bool) -> None:
    there = {0: [("r", 1, 401), ("data", 0, 100, "", "g")], 1: [("r", 1, 401)]}
    hardware = hardware_of(1000, 1000, existing=there if keep_group else {disk: spaces[:1] for disk, spaces in there.items()})
    schema = schema_of(
        hardware,
        *vg("g", lv("data", keep_data=keep_group, min_size=100, max_size=100), lv("new", min_size=8), keep_data=keep_group),
        {"id": "r", "type": "raid", "level": "raid1", "legs": 2, "keep_data": True},
    )
    schema = replace(schema, spaces=(replace(schema.spaces[0], contains=("r", "data", "new")), *schema.spaces[1:]))
    allocation = allocate_fair(hardware, schema)
    assert [(piece.disk, piece.start, piece.size) for piece in allocation.pieces] == [(0, 1, 401), (1, 1, 401)]
    # 401 - 1 (md) - 1 (LVM) = 399 MiB = 99 extents.
    assert volumes(schema, allocation) == {"data": 100, "new": 296}
    assert allocation.warnings == ()


def test_a_kept_volume_without_its_vg_is_refused() -> None:
    hardware = hardware_of(1000, existing={0: [("data", 0, 300, "", "g")]})
    schema = schema_of(hardware, *vg("g", lv("data", keep_data=True, min_size=1)))
    with pytest.raises(InputError, match=r"schema\[1\].keep_data: data is there"):
        allocate_fair(hardware, schema)


def test_disks_count_in_the_order_of_their_paths() -> None:
    paths = ["pci-0000:00:10.0-ata-10", "pci-0000:00:10.0-ata-2"]
    disks = tuple(Disk(f"wwn-{at}", 1000, path=path) for at, path in enumerate(paths))
    hardware = Hardware(disks)
    schema = schema_of(hardware, {"id": "a", "type": "partition", "size": 600}, {"id": "b", "type": "partition", "size": 600})
    assert sizes(hardware, schema, allocate_fair(hardware, schema)) == {"a": {"wwn-1": 600}, "b": {"wwn-0": 600}}


def cut_short(*_arguments: object) -> None:
    raise Undecided("the nodes are used up")


def hard_machine() -> tuple[Hardware, Schema]:
    """Return a machine with partitions and arrays of many sizes, for which rules and proofs leave something open."""
    hardware = hardware_of(*(238_475, 476_940, 953_869, 3_815_447) * 3)
    entries: list[dict] = []
    for at in range(14):
        low, weight = 1000 + 7919 * at % 9000, 1 + at % 3
        if at % 3:
            entries.append({"id": f"p{at}", "type": "partition", "min_size": low, "weight": weight})
        else:
            entries.append({"id": f"r{at}", "type": "raid", "level": "raid1", "legs": 2, "min_size": low, "weight": weight})
    return hardware, schema_of(hardware, *entries)


def test_a_search_that_is_cut_short_leaves_a_plan_that_says_which_level_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    hardware, schema = hard_machine()
    monkeypatch.setattr(search, "maximise", cut_short)
    monkeypatch.setattr(search.Search, "_retry_blamed_first", lambda *_arguments: None)
    monkeypatch.setattr(search, "RULES", search.RULES[:1])
    monkeypatch.setattr(search, "_MOST_LINEAR_COLUMNS", 0)
    monkeypatch.setattr(cutting_stock, "_MOST_PATTERNS", 0)
    allocation = allocate_fair(hardware, schema)
    assert broken(hardware, schema, allocation) == []
    assert not allocation.proven
    assert allocation.gap > 0.005
    assert allocation.open_level


def test_without_any_answer_within_the_limits_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "maximise", cut_short)
    monkeypatch.setattr(cutting_stock, "_MOST_PATTERNS", 0)
    hardware = hardware_of(130, 130)
    sizes = {"a": 65, "b": 60, "c": 45, "d": 44, "e": 40}
    schema = schema_of(hardware, *({"id": name, "type": "partition", "size": size} for name, size in sizes.items()))
    with pytest.raises(NoSolution, match="without finding a plan") as caught:
        allocate_fair(hardware, schema)
    assert caught.value.conflict["short"] is None
    assert caught.value.conflict["remedies"]


GIB = 1024
PINNED_SYSTEM = (
    *vg("os", lv("root", min_size=20 * GIB), disks=["d0"]),
    {"id": "data", "type": "partition", "min_size": 100 * GIB, "disks": ["d1", "d2", "d3"]},
    *vg("bulk", lv("backup", min_size=100 * GIB), disks=["d1", "d2", "d3"]),
)
DATA_AND_GROUP = ({"id": "data", "type": "partition", "min_size": 100 * GIB}, *vg("bulk", lv("backup", min_size=100 * GIB)))
LOGS = {"id": "logs", "type": "partition", "min_size": GIB, "disks": ["d0"]}


@pytest.mark.parametrize(
    ("disks", "entries", "least"),
    [
        pytest.param((228_936, 476_940, 3_815_447, 3_815_447), PINNED_SYSTEM, 3_815_000, id="os on the SSD, data and backup on HDDs"),
        pytest.param((120 * GIB, 4000 * GIB, 4000 * GIB), DATA_AND_GROUP, 4_095_000, id="data and a group on all disks"),
        pytest.param((16 * GIB, 120 * GIB, 4000 * GIB, 4000 * GIB), (LOGS, *DATA_AND_GROUP), 4_095_000, id="logs on a small disk"),
    ],
)
def test_a_small_pinned_space_takes_no_fairness_from_the_others(disks: tuple[int, ...], entries: tuple[dict, ...], least: int) -> None:
    hardware = hardware_of(*disks)
    schema = schema_of(hardware, *entries)
    allocation = allocate_fair(hardware, schema)
    got = sizes(hardware, schema, allocation)
    assert allocation.proven
    assert min(sum(got["data"].values()), volumes(schema, allocation)["backup"]) >= least


def test_a_maximum_of_a_vg_caps_its_volumes_and_nothing_else() -> None:
    hardware = hardware_of(100_002, 100_002)
    entries = (*vg("g", lv("a"), lv("b"), max_size=10_000), {"id": "p", "type": "partition"}, {"id": "q", "type": "partition"})
    schema = schema_of(hardware, *entries)
    allocation = allocate_fair(hardware, schema)
    got = sizes(hardware, schema, allocation)
    assert allocation.proven
    assert volumes(schema, allocation) == {"a": 5000, "b": 5000}
    assert min(*got["p"].values(), *got["q"].values()) >= 89_000


def test_what_boots_and_may_be_cut_uses_the_large_disk_too() -> None:
    hardware = hardware_of(300, 226_000)
    schema = schema_of(
        hardware, {"id": "boot", "type": "partitions", "min_size": 100, "boot": True}, {"id": "esp", "type": "esp", "size": 100}
    )
    assert sum(sizes(hardware, schema, allocate_fair(hardware, schema))["boot"].values()) > 225_000


def test_a_large_fleet_server_is_planned_quickly_enough_to_be_planned_at_all() -> None:
    hardware = hardware_of(*(500_000 + 70_001 * at for at in range(60)))
    schema = schema_of(
        hardware,
        {"id": "esp", "type": "esp", "size": 512},
        {"id": "boot", "type": "raid", "level": "raid1", "legs": 2, "size": 1024, "boot": True},
        *({"id": f"p{at}", "type": "partition", "min_size": 10_000 * at + 1} for at in range(20)),
        *vg("a", lv("a1", min_size=1), lv("a2", min_size=1, weight=2)),
        *vg("b", lv("b1", min_size=1), lv("b2", min_size=1, max_size=10**6)),
    )
    allocation = allocate_fair(hardware, schema)
    assert broken(hardware, schema, allocation) == []
    assert sum(piece.size for piece in allocation.pieces) == sum(disk.size - 2 for disk in hardware.disks)
