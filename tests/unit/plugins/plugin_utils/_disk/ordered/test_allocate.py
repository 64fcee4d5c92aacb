# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The seed's program against the results of the original implementation and against what the seed's text says."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.ordered.allocate import DoesNotPack, Infeasible, allocate
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.ordered.program import (
    NO_MAXIMUM,
    OrderedRequest,
    coefficients,
    weight_groups,
)

DATA = pathlib.Path(__file__).parents[4] / "data" / "disk" / "original_pairs.json"
PAIRS = {pair["id"]: pair for pair in json.loads(DATA.read_text(encoding="utf-8"))}

LOST_BY_FLOOR = "the original rounds down and loses a MiB that its program had placed"
RELAXED = "the original finds weights and bounds contradictory; the sizes then share as far as the bounds allow"
NOT_READ = "the original stops before it has a program"
DIFFERENT = {
    "seed/weight_1_half_min10": (LOST_BY_FLOOR, [[67], [33]]),
    "seed/rounding_thirds": (LOST_BY_FLOOR, [[34], [33], [33]]),
    "seed/weight_1_half_literal_size10": (RELAXED, [[10], [10]]),
    "seed/weight_binding_max": (RELAXED, [[30], [30]]),
}
UNREAD = {"seed/no_type_verbatim": NOT_READ, "seed/weight_zero_first": NOT_READ}
IMPOSSIBLE = {"etc/common_schema", "seed/basic_syntax_5000MB_disk"}


def make(spaces: list[dict], disks: list[int]) -> OrderedRequest:
    """Return the request of spaces given by the keys of the schema; `best` and `disks` are positions of disks."""
    everything = range(len(disks))

    def low(space: dict) -> int:
        return space.get("size") or space.get("min") or 0

    def high(space: dict) -> int:
        return space.get("size") or space.get("max") or NO_MAXIMUM

    return OrderedRequest(
        low=np.array([low(space) for space in spaces], dtype=np.int64),
        high=np.array([high(space) for space in spaces], dtype=np.int64),
        weight=np.array([float(space.get("weight", 1)) for space in spaces]),
        best=np.array([[disk in space.get("best", ()) for disk in everything] for space in spaces]),
        allowed=np.array([[disk in space.get("disks", everything) for disk in everything] for space in spaces]),
        none_order=np.array([bool(space.get("none_order")) for space in spaces]),
        single=np.array([bool(space.get("single")) for space in spaces]),
        capacity=np.array(disks, dtype=np.int64),
        stripes=np.array([space.get("stripes", 1) for space in spaces], dtype=np.int64),
    )


def request_of(pair: dict) -> OrderedRequest:
    ids = [disk["id"] for disk in pair["hw_info"]["disks"]]
    spaces = [
        {
            "min": space["min_size"],
            "max": space["max_size"],
            "weight": space["weight"],
            "best": [ids.index(disk) for disk in space["best_with_disks"]],
            "none_order": space["none_order"],
        }
        for space in pair["parsed_spaces"]
        if space["id"] != "unallocated"
    ]
    return make(spaces, [disk["size"] for disk in pair["hw_info"]["disks"]])


def static_of(pair: dict) -> list[list[int]]:
    """Return (S, D) of the original's answer."""
    names = [space["id"] for space in pair["parsed_spaces"] if space["id"] != "unallocated"]
    by_disk = [{entry["space_id"]: entry["size"] for entry in disk["spaces"]} for disk in pair["static"]]
    return [[disk[name] for disk in by_disk] for name in names]


def breaks_a_constraint(sizes: list[list[int]], request: OrderedRequest) -> bool:
    answer = np.array(sizes)
    total = answer.sum(axis=1)
    return bool((total < request.low).any() or (total > request.high).any() or (answer.sum(axis=0) > request.capacity).any())


@pytest.mark.parametrize("name", sorted(set(PAIRS) - set(DIFFERENT) - set(UNREAD) - IMPOSSIBLE))
def test_equals_the_original(name: str) -> None:
    pair = PAIRS[name]
    request = request_of(pair)
    assert not breaks_a_constraint(static_of(pair), request)
    allocation = allocate(request)
    assert allocation.sizes.tolist() == static_of(pair)
    assert allocation.loosened == ()


@pytest.mark.parametrize("name", sorted(DIFFERENT))
def test_differs_from_the_original_for_a_reason(name: str) -> None:
    reason, sizes = DIFFERENT[name]
    pair = PAIRS[name]
    allocation = allocate(request_of(pair))
    assert allocation.sizes.tolist() == sizes
    if reason == RELAXED:
        assert pair["static"] is None
        assert allocation.loosened == ((0, 1),)
    else:
        original = np.array(static_of(pair))
        assert original.sum() < round(sum(pair["raw_x"]))
        assert np.abs(original - allocation.sizes).max() <= 1
        assert allocation.loosened == ()


@pytest.mark.parametrize("name", sorted(IMPOSSIBLE))
def test_impossible_for_the_original_too(name: str) -> None:
    assert PAIRS[name]["error"].startswith("NoSolutionFound")
    with pytest.raises(Infeasible):
        allocate(request_of(PAIRS[name]))


def test_every_pair_is_accounted_for() -> None:
    assert {name for name, pair in PAIRS.items() if pair["static"] is None} == IMPOSSIBLE | set(UNREAD) | {
        name for name, (reason, _sizes) in DIFFERENT.items() if reason == RELAXED
    }


def test_coefficients_of_the_ceph_example() -> None:
    request = make([{"best": [1]}, {"min": 10}], [100, 10])
    expected = [[1 / 2, 2 + 1 / 9], [2 + 1 / 4, 1 / 12], [1, 1]]
    assert np.allclose(coefficients(request), expected, rtol=0, atol=1e-15)


class TestSeedText:
    """The examples of the seed, each with the result its text gives."""

    def test_root_takes_what_swap_leaves(self) -> None:
        assert allocate(make([{"min": 50}, {"size": 10}], [100])).sizes.tolist() == [[90], [10]]

    def test_two_disks(self) -> None:
        assert allocate(make([{"min": 50}, {"size": 10}], [100, 200])).sizes.tolist() == [[100, 190], [0, 10]]

    def test_order_of_spaces_is_order_of_disks(self) -> None:
        assert allocate(make([{"size": 100}, {"size": 100}], [100, 100])).sizes.tolist() == [[100, 0], [0, 100]]

    def test_equal_spaces_share_equally(self) -> None:
        assert allocate(make([{"min": 10}, {"min": 10}], [100])).sizes.tolist() == [[50], [50]]

    def test_half_the_weight_is_half_the_size(self) -> None:
        root, var = allocate(make([{"min": 10}, {"min": 10, "weight": 0.5}], [100])).sizes.sum(axis=1)
        assert root + var == 100
        assert abs(root - 2 * var) <= 2

    def test_journal_on_the_ssd_only(self) -> None:
        assert allocate(make([{"best": [1]}, {"min": 10}], [100, 10])).sizes.tolist() == [[0, 10], [100, 0]]


def test_sets_group_by_equality_not_by_inclusion() -> None:
    # The original sorts sets by inclusion, so the space in between breaks the group of the first and the third.
    request = make([{"best": [0]}, {"best": [1]}, {"best": [0]}], [100, 60])
    assert weight_groups(request) == ((0, 2),)
    assert allocate(request).sizes.tolist() == [[50, 0], [0, 60], [50, 0]]


def test_weight_zero_takes_no_part_in_equalities() -> None:
    request = make([{"weight": 0}, {"weight": 1}, {"weight": 1}], [90])
    assert weight_groups(request) == ((1, 2),)
    assert allocate(request).sizes.sum() == 90


def test_exact_size_survives_rounding() -> None:
    # The program gives 99 = 54.5 + 44.5 here; rounding down would make it 98.
    sizes = allocate(make([{}, {"size": 99}, {}], [180, 170])).sizes
    assert sizes.sum(axis=1).tolist()[1] == 99
    assert sizes.sum() == 350


def test_minimum_survives_rounding() -> None:
    sizes = allocate(make([{}, {"min": 10}, {"max": 49}, {}], [41, 32])).sizes
    assert sizes.sum(axis=1).tolist()[1] >= 10
    assert sizes.sum() == 73


def test_loosened_group_shares_in_proportion_as_far_as_bounds_allow() -> None:
    request = make([{"min": 20, "max": 30}, {"min": 20, "max": 30, "weight": 0.5}], [50])
    allocation = allocate(request)
    assert allocation.sizes.tolist() == [[30], [20]]
    assert allocation.loosened == ((0, 1),)


def test_loosening_one_group_leaves_the_others_alone() -> None:
    spaces = [{"min": 20, "max": 30}, {"min": 20, "max": 30, "weight": 0.5}, {"min": 5}, {"min": 5, "weight": 3}]
    allocation = allocate(make(spaces, [460]))
    assert allocation.loosened == ((0, 1),)
    assert allocation.sizes.tolist() == [[30], [30], [100], [300]]


def test_idle_space_where_nobody_is_best_suited() -> None:
    # Kept from the seed: for who prefers nothing, a MiB on a preferred disk is worth less than `unallocated`.
    assert allocate(make([{"max": 20, "best": [1]}, {}], [100, 1000])).sizes.tolist() == [[0, 20], [100, 0]]


class TestPartition:
    """Spaces on exactly one disk, which the original drops."""

    def test_keeps_to_one_disk(self) -> None:
        sizes = allocate(make([{"min": 60, "single": True}, {}], [50, 100])).sizes
        assert sizes.tolist() == [[0, 100], [50, 0]]

    def test_goes_to_its_best_disk(self) -> None:
        spaces = [{"min": 10, "single": True, "best": [1, 2]}, {"single": True, "best": [3]}, {"size": 20}, {"min": 50}]
        sizes = allocate(make(spaces, [100, 100, 100, 20])).sizes
        assert (sizes[0] > 0).tolist() == [False, True, False, False]
        assert sizes[1].tolist() == [0, 0, 0, 20]

    def test_packs_exactly(self) -> None:
        spaces = [{"size": size, "single": True} for size in (60, 60, 60, 39, 39)]
        sizes = allocate(make(spaces, [100, 100, 100])).sizes
        assert sizes.sum(axis=1).tolist() == [60, 60, 60, 39, 39]
        assert ((sizes > 0).sum(axis=1) == 1).all()

    def test_does_not_pack(self) -> None:
        with pytest.raises(DoesNotPack) as caught:
            allocate(make([{"size": 60, "single": True}] * 3, [100, 100]))
        assert caught.value.spaces == (0, 1, 2)

    def test_equal_partitions_share_equally(self) -> None:
        assert allocate(make([{"min": 5, "single": True}, {"min": 5, "single": True}], [100])).sizes.tolist() == [[50], [50]]


def test_order_holds_where_coefficients_are_tiny() -> None:
    # 60 disks and 40 spaces: neighbours differ by 1e-11, which a solver with a tolerance of 1e-7 cannot see unscaled.
    disks = [1000 + 7 * disk for disk in range(60)]
    spaces = [{"min": 900 + 13 * space} for space in range(40)]
    sizes = allocate(make(spaces, disks)).sizes
    assert sizes.sum() == sum(disks)
    filled = [(disk, space) for disk in range(60) for space in range(40) if sizes[space, disk]]
    order = [space for _disk, space in filled]
    assert order == sorted(order)
    assert sizes.sum(axis=1).tolist()[1:] == [900 + 13 * space for space in range(1, 40)]


def test_forbidden_disks_stay_empty() -> None:
    sizes = allocate(make([{"disks": [1]}, {"min": 5, "disks": [0]}], [10, 20])).sizes
    assert sizes.tolist() == [[0, 20], [10, 0]]


def test_minimum_on_forbidden_disks_is_infeasible() -> None:
    with pytest.raises(Infeasible):
        allocate(make([{"min": 15, "disks": [0]}, {"min": 5}], [10, 20]))


def test_a_striped_space_lies_in_equal_parts_on_as_many_disks_as_it_has_stripes() -> None:
    # 40 on two of 30, 25 and 20: they lie on those with most worth, and what is left is for the other one.
    sizes = allocate(make([{"size": 40, "stripes": 2}, {"min": 10}], [30, 25, 20])).sizes
    assert sorted(sizes[0].tolist()) == [0, 20, 20]
    assert sizes.sum() == 75
    with pytest.raises(DoesNotPack):
        allocate(make([{"size": 46, "stripes": 2}, {"min": 10, "disks": [0]}], [30, 22, 20]))


def test_a_striped_space_that_fills_its_disks_grows_to_the_smallest_of_them() -> None:
    assert allocate(make([{"stripes": 3}], [30, 22, 27])).sizes.tolist() == [[22, 22, 22]]
