# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objective `fair`: what lies where, level after level, then how large it is, weighted max-min fair.

In comes a `Problem`; out goes an `Allocation` in whole MiB that breaks no constraint, or nothing when there is none. Read solve first,
which calls the others: levels (which demands rise next, and which are done), exchange (which stay poor where some must), sizes (sizes for a
placement) with newton and, for what that cannot say, filling, rounding (whole units), tidy (what turns out to be of no use), last_check
(what could be larger on idle room). Before all of them other_disks settles, with taken_disks, what is on every disk but those of others.
Whether there is a placement at all says the package `place`. After "Weight" and "Best with disks" (seed 000), and max-min fairness by
progressive filling.
"""
