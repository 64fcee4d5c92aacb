# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which nodes cannot be down together."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.evacuate.downtime import conflicts, lost_copies


def test_two_nodes_are_in_conflict_where_they_hold_both_copies_of_something(bench):
    nodes = [bench.node(name) for name in "abcd"]
    guests = [bench.instance("i", "b", "a"), bench.instance("j", "c", "b"), bench.instance("k", "d", disk_template=DiskTemplate.PLAIN)]
    state = bench.state(nodes, guests, [bench.instance("new")])
    assert conflicts(state) == {(0, 1), (1, 2)}
    assert lost_copies(state, {0, 2, 3}) == []
    assert lost_copies(state, {1, 2}) == [1]
