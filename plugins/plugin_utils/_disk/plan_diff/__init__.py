# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a change of schemas does to plans: two plans of each host of a fleet, and what of the second is worse.

In come plans by host, made before and after a change, as plain data; out go for each host its changes, worst first.
In reading order: redundancy (how many disks a space can lose), changes (one host), report (a fleet: counts and a table).
"""
