# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instances that can only leave together."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.arrays import NOWHERE
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.evacuate import evacuation as module
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.evacuate.evacuation import evacuate, most_that_hold
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.evacuate.task import AcrossGroups, EvacuationMode, tasks_of_nodes
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.place.places import Choices
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline


@pytest.fixture
def state() -> ClusterState:
    """Three nodes of 12 MiB; of those on n0 only the two without a tag can leave, and only both: room to restart on n1 and n2 needs it."""
    homes = [
        ("i0", "n0", 2, 0),
        ("i1", "n1", 1, 1),
        ("i2", "n0", 2, 1),
        ("i3", "n1", 6, 0),
        ("i4", "n0", 3, 1),
        ("i5", "n0", 2, 0),
        ("i6", "n1", 5, 1),
    ]
    used = {node: sum(memory for _name, home, memory, _tagged in homes if home == node) for node in ("n0", "n1", "n2")}
    return ClusterState.from_cluster(
        parse_inline(
            {
                "tags": ["htools:iextags:service"],
                "groups": [{"name": "g"}],
                "nodes": [
                    {
                        "name": node,
                        "group": "g",
                        "total_memory": 12,
                        "node_memory": 0,
                        "free_memory": 12 - taken,
                        "total_disk": 100,
                        "free_disk": 100,
                        "total_cpus": 64,
                    }
                    for node, taken in used.items()
                ],
                "instances": [
                    {"name": name, "memory": memory, "disk": 1, "vcpus": 1, "status": "running", "primary": home, "disk_template": "rbd"}
                    | ({"tags": ["service:a"]} if tagged else {})
                    for name, home, memory, tagged in homes
                ],
            },
            "cluster",
        )
    )


def test_those_that_can_only_leave_together_do(state: ClusterState) -> None:
    found = evacuate(state, tasks_of_nodes(state, [0], EvacuationMode.ALL), AcrossGroups.NO, ScoreMode.HTOOLS)
    names = state.facts.instances.names
    assert {names[move.instance] for move in found.moves} == {"i0", "i5"}
    assert {move.target for move in found.moves} == {(2, NOWHERE)}


def choices(instance: int, nodes: list[int], importance: int) -> Choices:
    places = np.array(nodes), np.full(len(nodes), NOWHERE)
    return Choices(instance, *places, np.arange(len(nodes)) / 10, importance)


def test_limits_are_kept_and_importance_decides(state: ClusterState) -> None:
    offers = [choices(0, [1, 2], 1), choices(2, [1, 2], 3), choices(4, [2], 4)]
    # n1 is full, and two with the tag exclude each other on n2.
    assert most_that_hold(state, offers, {}, 0, 8) == {0: (2, NOWHERE), 4: (2, NOWHERE)}
    assert most_that_hold(state, offers, {}, 5, 8) == {}
    assert most_that_hold(state, offers, {}, 0, 4) in ({4: (2, NOWHERE)}, {0: (2, NOWHERE), 2: (2, NOWHERE)})
    assert most_that_hold(state, [], {}, 0, 8) == {}


def test_no_more_combinations_are_tried_than_are_allowed(state: ClusterState, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    monkeypatch.setattr(module.Bounds, "holds", lambda *_args: tried.append(1))
    assert most_that_hold(state, [choices(instance, [1, 2] * 50, 1) for instance in (0, 2, 4)], {}, 0, 9) == {}
    assert 0 < len(tried) <= module.MOST_COMBINATIONS
    tried.clear()
    assert most_that_hold(state, [choices(0, [1], 1)] * int(math.log2(module.MOST_COMBINATIONS) + 2), {}, 0, 99) == {}
    assert not tried
