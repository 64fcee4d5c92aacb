# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objective `ordered`: the linear program of the seed, to the letter, where the order of spaces and disks decides.

In come `Schema` and `Hardware`; out goes an `Allocation`. In reading order: program (variables, rows, coefficients), levels (shares by
weight within bounds), allocate (made whole), convert (from our types to the seed's and back). After "Solver description" and "Ordering"
(seed 000).
"""
