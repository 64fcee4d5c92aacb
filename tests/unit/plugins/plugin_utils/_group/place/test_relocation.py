# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instances are offered exactly the places that moves lead to, and as few leave and move as can be."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.arrays import NOWHERE
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.moves import can_move, possible_moves
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.place.relocation import Offer, relocate
from ansible_collections.bareon.allocator.tests.support.group.policies import open_group

TAGS = ("htools:migration:k", "htools:allowmigration:k:a::k:b")


@pytest.mark.parametrize("kernels", list(itertools.product(["k:a", "k:b", ""], repeat=4)))
@pytest.mark.parametrize("dark", ["", "a1", "a2"])
def test_a_place_is_offered_when_moves_lead_there(bench, kernels, dark):
    names = ("a1", "a2", "b1", "b2")
    groups = [open_group(name) for name in "ab"]
    members = [bench.node(n, n[0], offline=n == dark, tags=tuple(filter(None, [tag]))) for n, tag in zip(names, kernels)]
    state = bench.state(members, [bench.instance("i", "a1", "a2")], groups=groups, tags=TAGS)
    online = [node for node, name in enumerate(names) if name != dark]
    pairs = [pair for pair in itertools.permutations(online, 2) if {names[node][0] for node in pair} in ({"a"}, {"b"})]
    reached = {pair for pair in pairs if possible_moves(state, 0, pair)}
    offered = set()
    not_at: frozenset = frozenset()
    while (found := relocate(state, [Offer(0, (0, 1), not_at=not_at)]).targets.get(0)) is not None:
        offered.add(found)
        not_at |= {found}
    assert offered == reached


def test_what_cannot_move_is_not_offered_anything(bench):
    state = bench.state(
        [bench.node(name) for name in "abc"], [bench.instance("plain", "a"), bench.instance("shared", "a", disk_template=DiskTemplate.RBD)]
    )
    assert not can_move(state, 0)
    assert can_move(state, 1)
    found = relocate(state, [Offer(0, (0,)), Offer(1, (0,))])
    assert found.unplaced == (0,)
    assert list(found.targets) == [1]


def test_staying_costs_less_than_moving_and_moving_less_than_leaving(bench):
    groups = [open_group(name) for name in "ab"]
    state = bench.state(
        [bench.node(n, n[0]) for n in ("a1", "a2", "b1")], [bench.instance("i", "a1", disk_template=DiskTemplate.RBD)], groups=groups
    )
    assert relocate(state, [Offer(0, (0, 1), may_stay=True)]).targets == {}
    assert relocate(state, [Offer(0, (0, 1))]).targets == {0: (1, NOWHERE)}
    assert relocate(state, [Offer(0, (0, 1), avoid=frozenset({1}))]).targets == {0: (2, NOWHERE)}
