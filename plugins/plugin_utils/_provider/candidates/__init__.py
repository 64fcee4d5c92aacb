# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Allocation candidates: every way in which a world can satisfy a request, lazily and in a stable order.

In come a World and a Request; out come candidates as plain data, or the reasons why there are none. In reading order: index.py (a world
as arrays), requirements.py (what is asked of one provider, as a mask and in SQL), columns.py (a request as choices of one provider
each), constraints.py and levels.py (what those choices forbid one another,
and in which order they are made), can_split.py, search.py (the search in one tree), order.py (which tree comes first), write.py, find.py
(the whole search), preferred.py (alternatives and preferences), held.py (whether a consumer has what is asked for already),
exclusion.py (groups that exclude each other), why.py and reasons.py.

A *column* is one choice of a provider, a *level* its place in the order of choosing. After spec "Getting On The Nested Magic Train 1"
(seed 003) and OpenStack Placement's GET /allocation_candidates.
"""
