# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bridges between the rooms, which do not import one another.

From disks to providers: planned_groups.py and plan_inventory.py make providers of a host's facts and of the plan of its disks. From
providers to groups: ledger_cluster.py makes a cluster of what a ledger holds, and cluster_source.py is the one door by which the
actions on groups load a cluster, wherever it comes from. ledger_state.py keeps in a ledger what they keep between runs, and states.py is
the door to it.
"""
