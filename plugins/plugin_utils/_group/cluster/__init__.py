# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cluster: groups, nodes and instances as a model, as arrays, and what moves make of them.

In comes a `Cluster` from group/sources; out goes a `ClusterState`, on which all other packages work, and, when they are
done, a `Cluster` again. Nothing here judges a placement: limits and scores are those of group/metrics.

In reading order: model (the words, frozen), tags (Ganeti's rules in tags), rules (instances together or apart), staying (what stays,
whatever is planned), check (what a cluster of any source must be like), arrays (facts that stay, as arrays by position), loads (measured
and carried loads), state (placements, and what they leave on each node), commands (steps in the words of what runs the cluster), moves
(kinds of moves as sequences of changes, ways), changes (a state after moves), tolerate and failures (which nodes may fail at
once). After the data model of Ganeti's htools and its design
"htools 2.3" (super clusters, shared storage).
"""
