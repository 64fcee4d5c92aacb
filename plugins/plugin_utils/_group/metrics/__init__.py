# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How good a state is and what it may not be: scores, limits, redundancy, health.

In comes a `ClusterState`; out go numbers and truths about it, as arrays over nodes and places. Nothing is moved here.

In reading order: skew (how unequally a rule's instances are divided among domains), score (the score of Ganeti's htools by its
metrics, for all places of an instance at once), limits (the limits
of nodes as one table of rows, [R, N]: the source for what a node may carry), verdicts (which places take one instance,
and the first limit that fails), policy (whether an instance lies within a group's policy), redundancy (what a node's failure
costs), shared_redundancy (N+1 on shared storage while instances move), together (instances that move only with others), health (what is
wrong with a cluster, and with a group). After the cluster score and the N+1 rules of htools, and "N+1 status" of its design for
2.3.
"""
