# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Balancing: from a cluster to a plan that improves its groups' scores for the data that it copies.

In comes a `Cluster` with options; out goes a `GroupPlan` for each group: moves in stages, scores before and after, MiB
copied, instances that find no turn.

In reading order: hbal (the decisions of Ganeti's hbal, one best move after the other), model (request and result), walk
(from placement to placement by single moves; queue says which come next, watch shows how far it is), first_things (what is down, what
is broken), sets (what is to be together), chains (exchanges and chains), beam (more chains, in small groups), search (a walk through all
of these at one price after the other), group (from the placement that was found to a plan), super_cluster (which groups are
balanced, one plan for all, plans at several prices), verify (whether a plan that a worker of a Dask cluster has made is one).
After hbal and "Balancing changes" of the design for htools 2.3.
"""
