# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The problem: what the solvers see of a machine and its schema, with no types of the schema left in it.

In come `Schema` and `Hardware`; out goes a `Problem`: areas with room, demands with bounds, weights and preferences, pools of areas.
In reading order: model, relations (spaces that share no disk), boot_partition (what a machine that boots needs), kept (what stays),
formulate (which demand may lie where), program (the problem as columns and named rows, for HiGHS; callers fix sizes or the placement).
After "Allocation solver" (seed 000).
"""
