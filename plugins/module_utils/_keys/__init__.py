# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Unlock methods of LUKS containers: wanted methods and the present header -> changes of keys -> carried out -> report.

In the order of reading: header.py (key slots and tokens), material.py (keys that are tried and made), changes.py (what is lacking, and what
may go), enrol.py (carries out one change so that a run that is cut off is completed), run.py (one run on all containers), report.py (its
result).
"""
