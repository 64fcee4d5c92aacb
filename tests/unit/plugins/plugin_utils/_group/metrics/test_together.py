# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sets of instances that rules want on one node."""

from __future__ import annotations

import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.together import sets_together, torn
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline

POOL = {"type": "external", "pool": "ceph"}
A, B, C, D, E = range(5)


@pytest.fixture
def state():
    """Return a state in which a, b and c are to be together, by two rules that have b in common, and d and e."""
    nodes = [{"name": name, "total_memory": 8192, "total_cpus": 8, "storage": [POOL]} for name in ("n1", "n2")]
    common = {"memory": 64, "disk": 64, "vcpus": 1, "primary": "n1", "storage": POOL}
    instances = [{"name": name, **common} for name in "abcde"]
    rules = [{"type": "affinity", "instances": list(names)} for names in ("ab", "bc", "de")]
    return ClusterState.from_cluster(parse_inline({"nodes": nodes, "instances": instances, "rules": rules}))


@pytest.mark.parametrize(
    ("able", "expected"),
    [
        ([A, B, C, D, E], [[A, B, C], [D, E]]),
        ([A, B, D, E], [[D, E]]),
        ([A, B, C], [[A, B, C]]),
        ([A, B, D], []),
    ],
)
def test_a_set_moves_only_as_a_whole(state, able, expected):
    assert [members.tolist() for members in sets_together(state, np.array(able))] == expected


def test_those_are_torn_whose_companions_stay(state):
    assert torn(state, [A, D], [C]) == {A}
    assert torn(state, [A, B, D], [C, E]) == {A, B, D}
    assert torn(state, [A, B, C], []) == torn(state, [A, B, C], [D]) == frozenset()
