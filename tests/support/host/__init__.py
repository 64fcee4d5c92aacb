# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts in tests: what is read from one, and what is done to one, without touching the machine that the tests run on.

Reading: `recorded_host` (a host's files and answers, as recorded), `hardware_facts`.
Writing: `recording_machine` and `mounting_machine` (commands are written down), `bareon_lists` (hand-written schemas).
`simulated`: a host in memory, which can be cut off at any moment.
Real ones: `loop_devices`, and `layout_checks` for what make_layout.py reports of a layout.
"""
