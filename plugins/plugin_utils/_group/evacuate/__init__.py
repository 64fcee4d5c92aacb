# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes that are to carry nothing: for good, for a maintenance, or to save power.

In come nodes or instances; out go moves in an order in which they can be made, and for all that stays the reasons.

In reading order: task (what is asked for one instance, and the places where that may be done), evacuation (new places for all
of them, together where one by one does not do), downtime (what must leave for some nodes to be down for a while),
rolling_maintenance (the fewest sets of nodes that may be down together, one set after the other), squeezing (nodes to power off
or on). After Ganeti's hail, hroller and hsqueeze.
"""
