# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Is there a placement for demands of these sizes?

In come a `Problem` and units of every demand; out comes a `Placement`, a proof that there is none, or that a limit came first. Read
search first, which asks the others in turn: bounds (quick proofs that there is none), heuristic (rules that find one), patterns (what can
share a disk) with prices (what a proof says of other sizes) and cutting_stock (the program of how many disks have which pattern), merge
(pieces of one size as one, for the program of single disks, where patterns are too many). Also: flow (maximum flow in whole numbers)
and lay_out (pools on disks in few pieces). The seed leaves it to its solver (seed 000).
"""
