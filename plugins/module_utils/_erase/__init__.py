# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks to erase -> ways to erase them -> erased, read back, and recorded.

In reading order: ways.py (how a disk can be erased, as it and its tools report), plan.py (steps, or every reason why there are none),
medium.py (a disk's bytes), record.py (what is kept of each erasure, also of one that was cut off), samples.py (what a disk reads like
before and after), carry_out.py (one disk from the first byte to its record), run.py (a whole run, and its result).
"""
