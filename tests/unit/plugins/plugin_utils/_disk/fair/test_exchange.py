# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The choice of who stays poor."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.fair.exchange import Exchange, rising
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.place.search import Search
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.problem.formulate import formulate
from ansible_collections.bareon.allocator.tests.support.disk.build import hardware_of, schema_of


def exchange(*weights: int) -> Exchange:
    """Return the choice for partitions of these weights on as many disks of 9000 MiB, all at 2500 MiB by weight, but to reach 3500."""
    hardware = hardware_of(*(9002 for _weight in weights))
    spaces = ({"id": f"p{at}", "type": "partition", "min_size": 1, "weight": weight} for at, weight in enumerate(weights))
    problem = formulate(hardware, schema_of(hardware, *spaces))
    ranks = [rising(range(len(weights)), [2500.0] * len(weights), 2500.0, 3500.0, 3500.0)]
    return Exchange(problem, Search(problem), [1] * len(weights), ranks)


def test_that_what_is_not_offered_has_no_placement_says_nothing_of_the_rest() -> None:
    # Three times 3500 MiB are on no disk, so the first stays where it is; the second may rise for all that.
    choice = exchange(3, 1)
    assert choice.forbid([10_500, 3500], frozenset({0}))
    assert not choice.exhausted()


def test_nothing_is_left_when_what_has_no_choice_is_in_its_own_way() -> None:
    choice = exchange(3, 1)
    assert not choice.forbid([7400, 3500], frozenset({0}))


def test_a_choice_is_not_made_again_after_it_was_forbidden() -> None:
    choice = exchange(1, 2)
    assert choice.forbid([3500, 1], frozenset({0}))
    assert not choice.exhausted()
    assert choice.forbid([1, 7000], frozenset({1}))
    assert choice.exhausted()


def test_of_two_that_are_alike_what_is_forbidden_to_one_is_to_both() -> None:
    choice = exchange(1, 1)
    assert choice.forbid([3500, 1], frozenset({0}))
    assert choice.exhausted()
