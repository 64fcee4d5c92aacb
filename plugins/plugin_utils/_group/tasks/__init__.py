# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One file for each action on groups: arguments in, results as plain data by name out.

In reading order: place, evacuate, maintenance (also group_squeeze), balance, storages (group_balance of storages), redistribute,
compress, capacity, info, iallocator (answers to Ganeti's requests by the same code, in an envelope) and iallocator_moves (those about
instances that are there), parallel (work on each group side by side). Each has a `run_...` that the action calls, `..._to_plain` that
turn what was found into data, and a summary to read. Nothing is decided here.
"""
