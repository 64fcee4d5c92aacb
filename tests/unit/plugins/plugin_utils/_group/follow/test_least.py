# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Of the moves of a plan only those are kept that it takes, in their order."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.arrays import NOWHERE
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.moves import possible_moves
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.follow.least import guard_of, least


def planned(bench, *targets, memory=100):
    """Return a state with an instance on `a` for each target, and the moves there."""
    instances = [bench.instance(f"i{at}", "a", disk_template=DiskTemplate.EXT, memory=memory) for at in range(len(targets))]
    state = bench.state([bench.node(name) for name in "abc"], instances)
    moves = [possible_moves(state, at, (target, NOWHERE))[0] for at, target in enumerate(targets)]
    return state, moves


def test_what_comes_after_it_is_enough_is_left_out(bench):
    state, moves = planned(bench, 1, 2, 1)
    found = least(state, moves, guard_of(state, moves), lambda after: len(after.primaries(1)) > 0)
    assert found == (moves[0],)


def test_what_comes_before_and_is_not_needed_is_left_out(bench):
    state, moves = planned(bench, 1, 1, 2)
    found = least(state, moves, guard_of(state, moves), lambda after: len(after.primaries(2)) > 0)
    assert found == (moves[2],)


def test_what_makes_room_is_kept(bench):
    """On `b` there is room for the second instance only once the one that is there has left."""
    instances = [
        bench.instance("big", "a", disk_template=DiskTemplate.EXT, memory=800),
        bench.instance("other", "b", disk_template=DiskTemplate.EXT, memory=300),
    ]
    state = bench.state([bench.node(name) for name in "abc"], instances)
    moves = [possible_moves(state, 1, (2, NOWHERE))[0]]
    later = state.copy()
    later.place(1, 2)
    moves += possible_moves(later, 0, (1, NOWHERE))[:1]
    found = least(state, moves, guard_of(state, moves), lambda after: int(after.primary[0]) == 1)
    assert list(found) == moves
