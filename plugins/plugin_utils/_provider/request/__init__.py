# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A request for allocation candidates: groups of resources with constraints, and how their providers lie to one another.

In come groups as YAML writes them, or Placement's query string; out comes a frozen Request whose names exist. Read model.py, groups.py,
query.py. After spec "Getting On The Nested Magic Train 1" (seed 003).
"""
