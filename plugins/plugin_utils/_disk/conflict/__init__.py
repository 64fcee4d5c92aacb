# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why there is no plan: constraints by name that contradict each other, what is short, and what would help.

In comes a `Problem` without a solution; out goes a `Reason`: a sentence, and data. In reading order: explain (the words), contradiction
(which constraints conflict, none of them needlessly), shortage (what merely adds up to too much, by a minimum cut), least (what to give
up, which disks to grow) with squeeze (rules that make everything fit), remedies (what that means for schema and machine) with legs (too few
drives), refusal (how solvers ask for reasons). The seed has no word on it: its
solver says "not possible with specified constraints" (seed 000).
"""
