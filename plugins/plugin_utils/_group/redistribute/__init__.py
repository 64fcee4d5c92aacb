# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instances that go to other groups: because theirs is ill, too loaded, or to be emptied (seed 001).

In come groups; out go moves between groups, and for what stays ill what each group lacks.

In reading order: shared_storage (arrangements of one group under which all could restart, found by trying), redistribution
(ill groups healed by moves inside, then by the fewest members moved out), load_balancing (groups as loaded as the whole), compression
(groups that could be emptied). No limit of a group that takes somebody gets worse.
"""
