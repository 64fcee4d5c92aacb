# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objective `fair`: what lies where by a mixed-integer program, then how large it is, weighted max-min fair.

In comes a `Problem`; out goes an `Allocation` in whole MiB that breaks no constraint, or nothing when there is none. Read solve first,
which calls the others: heuristic (a quick placement, and how good any can be), search (the program that places), sizes and filling (sizes
for a placement), rounding (whole steps). After "Weight" and "Best with disks" (seed 000), and max-min fairness by progressive filling.
"""
