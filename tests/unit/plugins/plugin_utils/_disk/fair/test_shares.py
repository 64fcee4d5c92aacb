# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fair shares on problems with known answers. Spaces are given by the keys of the schema, disks by their sizes."""

from __future__ import annotations

import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.tests.support.disk.shares import NO_MAXIMUM, UNPREFERRED, Request, off_preferred, share


def make(spaces: list[dict], disks: list[int]) -> Request:
    """Return the request; `best` is a list of tiers, each a list of positions of disks, `disks` a list of positions."""

    def tier(space: dict, disk: int) -> int:
        tiers = space.get("best", [])
        return next((rank for rank, liked in enumerate(tiers) if disk in liked), UNPREFERRED if tiers else 0)

    everything = range(len(disks))
    return Request(
        low=np.array([space.get("size", space.get("min", 0)) for space in spaces], dtype=np.int64),
        high=np.array([space.get("size", space.get("max", NO_MAXIMUM)) for space in spaces], dtype=np.int64),
        weight=np.array([float(space.get("weight", 1)) for space in spaces]),
        allowed=np.array([[disk in space.get("disks", everything) for disk in everything] for space in spaces]),
        tier=np.array([[tier(space, disk) for disk in everything] for space in spaces], dtype=np.int64),
        capacity=np.array(disks, dtype=np.int64),
    )


def totals(spaces: list[dict], disks: list[int]) -> list[int]:
    return share(make(spaces, disks)).sum(axis=1).tolist()


@pytest.mark.parametrize(
    ("spaces", "disks", "expected"),
    [
        pytest.param([{"min": 50}, {"size": 10}], [100], [90, 10], id="root takes what swap leaves"),
        pytest.param([{"min": 10}, {"min": 10}], [100], [50, 50], id="equal shares"),
        pytest.param([{"min": 10}, {"min": 10, "weight": 0.5}], [90], [60, 30], id="half the weight, half the size"),
        pytest.param([{}, {}, {}], [100], [34, 33, 33], id="thirds, the first takes what is over"),
        pytest.param([{"weight": 0.5}, {"weight": 1}], [100], [33, 67], id="the largest remainder takes what is over"),
        pytest.param([{"weight": 1}, {"weight": 2}, {"weight": 3}], [600], [100, 200, 300], id="weights"),
        pytest.param([{"min": 10}, {"min": 11}], [100], [50, 50], id="a minimum that does not bind changes nothing"),
        pytest.param([{"min": 70}, {}, {}], [100], [70, 15, 15], id="a minimum that binds"),
        pytest.param([{"max": 10}, {}, {}], [100], [10, 45, 45], id="a maximum that binds"),
        pytest.param(
            [{"min": 20, "max": 30}, {"min": 20, "max": 30, "weight": 0.5}], [100], [30, 30], id="bounds beat weights where there is room"
        ),
        pytest.param(
            [{"min": 20, "max": 30}, {"min": 20, "max": 30, "weight": 0.5}], [50], [30, 20], id="bounds beat weights where there is none"
        ),
        pytest.param([{"min": 10, "weight": 0}, {}], [100], [10, 90], id="weight 0 never grows"),
        pytest.param([{"weight": 0}, {"max": 5}], [100], [0, 5], id="nobody to take the rest"),
        pytest.param([{"size": 15}, {"size": 10}], [100], [15, 10], id="exact sizes leave the rest free"),
        pytest.param([{"disks": [0]}, {"disks": [0]}, {}], [10, 90], [5, 5, 90], id="poor by their disks"),
        pytest.param([{"disks": [0]}, {"disks": [0, 1]}, {"disks": [1]}], [10, 100], [10, 50, 50], id="who can goes elsewhere"),
        pytest.param([{"weight": 0.1}, {"weight": 0.2}], [30], [10, 20], id="decimal weights are exact"),
        pytest.param([{"weight": 1e-9}, {"weight": 1}], [100], [0, 100], id="a tiny weight"),
    ],
)
def test_sizes(spaces: list[dict], disks: list[int], expected: list[int]) -> None:
    assert totals(spaces, disks) == expected


def test_sizes_beyond_32_bits() -> None:
    disks = [20_000_000] * 600
    sizes = share(make([{"min": 3_000_000_000}, {}, {}], disks))
    assert sizes.sum(axis=1).tolist() == [4_000_000_000] * 3
    assert (sizes.sum(axis=0) == 20_000_000).all()


class TestPreferences:
    def test_journal_on_the_ssd_root_elsewhere(self) -> None:
        assert share(make([{"best": [[1]]}, {"min": 10240}], [102400, 10240])).tolist() == [[0, 10240], [102400, 0]]

    def test_too_small_an_ssd_takes_what_it_can_and_no_more_than_the_minimum_is_off_it(self) -> None:
        request = make([{"min": 20480, "max": 30720, "best": [[1]]}, {"min": 10240}], [102400, 10240])
        sizes = share(request)
        assert sizes.tolist() == [[10240, 10240], [92160, 0]]
        assert off_preferred(request, sizes).tolist() == [10240, 0]

    def test_the_rest_of_the_ssd_is_not_idle(self) -> None:
        sizes = share(make([{"min": 10, "max": 20, "best": [[1]]}, {"min": 10}], [900, 1000]))
        assert sizes.tolist() == [[0, 20], [900, 980]]

    def test_an_ssd_for_all_is_no_preference(self) -> None:
        assert totals([{"best": [[0, 1]]}, {}], [100, 100]) == [100, 100]

    def test_two_that_prefer_the_same_share_it_by_weight(self) -> None:
        assert totals([{"best": [[1]]}, {"best": [[1]], "weight": 3}, {}], [50, 100]) == [25, 75, 50]

    def test_a_minimum_of_another_is_only_displaced_when_there_is_room(self) -> None:
        # Root fits nowhere but on the ssd, so the journal has to leave some of it.
        request = make([{"min": 50, "best": [[1]]}, {"min": 80, "disks": [1]}], [100, 100])
        sizes = share(request)
        assert sizes.tolist() == [[30, 20], [0, 80]]
        assert off_preferred(request, sizes).tolist() == [30, 0]

    def test_no_more_than_must_be_is_off_it(self) -> None:
        request = make([{"min": 10, "best": [[1]]}, {"min": 10, "best": [[1]]}], [100, 15])
        assert off_preferred(request, share(request)).sum() == 5

    def test_tiers_in_their_order(self) -> None:
        request = make([{"size": 50, "best": [[2], [1]]}], [100, 20, 10])
        assert share(request).tolist() == [[20, 20, 10]]

    def test_growth_keeps_to_the_tiers(self) -> None:
        assert share(make([{"min": 5, "best": [[2], [1]]}, {}], [100, 20, 10])).tolist() == [[0, 20, 10], [100, 0, 0]]

    def test_a_full_ranking_places_but_does_not_favour(self) -> None:
        sizes = share(make([{"best": [[1], [0]]}, {}], [100, 40]))
        assert sizes.sum(axis=1).tolist() == [70, 70]
        assert sizes.tolist()[0] == [30, 40]

    def test_disks_that_are_allowed_count_alone(self) -> None:
        assert totals([{"best": [[1]], "disks": [0]}, {}], [100, 50]) == [75, 75]


class TestLayout:
    def test_order_of_spaces_is_order_of_disks(self) -> None:
        assert share(make([{"size": 100}, {"size": 100}], [100, 100])).tolist() == [[100, 0], [0, 100]]

    def test_no_needless_split(self) -> None:
        sizes = share(make([{"size": 61440}, {"size": 61440}], [102400, 102400]))
        assert sizes.tolist() == [[61440, 0], [0, 61440]]

    def test_bin_packing_that_first_fit_misses(self) -> None:
        sizes = share(make([{"size": 40}, {"size": 30}, {"size": 60}, {"size": 70}], [100, 100]))
        assert (sizes > 0).sum() == 4

    def test_whole_pieces_leave_room_for_who_has_no_choice(self) -> None:
        sizes = share(make([{"size": 60}, {"size": 60, "disks": [0]}], [100, 100]))
        assert sizes.tolist() == [[0, 60], [60, 0]]


@pytest.mark.parametrize(
    ("spaces", "disks", "short"),
    [
        pytest.param(
            [{"min": 60, "disks": [0]}, {"min": 50, "disks": [0, 1]}, {"min": 5, "disks": [2]}], [50, 40, 100], 20, id="on two of three"
        ),
        pytest.param([{"min": 5000, "max": 10000}, {"size": 2000}], [5000], 2000, id="too much for all"),
        pytest.param([{"min": 1, "disks": []}], [5000], None, id="no disk allowed"),
    ],
)
def test_what_is_short_is_exact(spaces: list[dict], disks: list[int], short: int) -> None:
    with pytest.raises(NoSolution) as caught:
        share(make(spaces, disks))
    assert caught.value.conflict["short"] == short


def test_a_space_without_a_disk_and_without_a_minimum_gets_nothing() -> None:
    assert totals([{"disks": []}, {}], [10]) == [0, 10]
