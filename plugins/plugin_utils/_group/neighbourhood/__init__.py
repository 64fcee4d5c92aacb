# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The neighbourhood of a placement: all single moves and exchanges of instances, evaluated at once as arrays.

In comes a state with a scorer, the bounds of limits and the prices of moves; out goes the cost of every move, infinite
where a limit is in the way, and the best one of each instance. What is done with them is the search's affair
(group/balance).

Arrays over a block of R instances and T targets are [R, T]; p, s and t are an instance's primary, its secondary and the target.

In reading order: effects (what kinds of moves do to nodes), targets (blocks and targets), spreads, reserves, penalties (the parts of the
score after each move), limits (which moves keep all limits), moves (the evaluator that adds this up), exchanges (two instances that
change places), price (data copied and primaries moved). After the neighbourhood of Ganeti's hbal.
"""
