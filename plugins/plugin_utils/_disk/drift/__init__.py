# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has become of a plan: a fleet's facts against the plans that were made for it.

In come plans by host and the facts of now, both as plain data; out goes for each host whether it is as planned, and what is not, where.
In reading order: files (plans and facts by host, in folders too), findings, compare (one host; zpools for its ZFS pools), report (a fleet:
counts, a table, and what a page shows).
"""
