# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where instances can go: new ones, one by one or many at once, and those that come from other nodes.

In comes a `ClusterState` and which instances want a place; out go places by group, the best first, or what is in the way.

In reading order: refusal (why a node or a group does not take an instance), places (every place on some nodes, whether it
keeps the limits, what it costs: the one enumeration that all others use), lost_allocations (what a place costs where nodes
are given away in large parts; seed 004), placement (the best place of each group for one instance; seed 001), assignment
(many instances at once as an integer program), batch (several new instances that share one state), relocation (instances
that stay, move inside their group, or leave it). Limits are those of metrics.
"""
