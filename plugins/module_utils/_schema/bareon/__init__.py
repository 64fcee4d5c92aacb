# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bareon's hand-written schema (`partitions`) turned into the explicit one for the disks of one host.

In come the list and the facts of disk_facts; out comes the explicit schema with warnings, or every mistake.
In reading order: parse.py (entries, checked), disks.py (partition tables and arrays), convert.py (groups, and the schema as a whole).
"""
