# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Following a cluster with few moves: what is wrong is repaired at once, what is uneven only beyond a threshold, and seldom.

In come a cluster as it is now, the time, and the record of what earlier runs decided; out come what to do for each group and the new
record. Nothing here reads a clock.

In reading order: record (what is kept between runs, as a file), lock (one run at a time has it), condition (how uneven a group is, and
what is wrong with it), windows (when moves are welcome), decide (threshold, hysteresis, cooldown: pure), searched (what a search looked
at, so that one that found nothing is not repeated), least (as few of the moves of a plan as do), pending (what has become of the moves
that an earlier run decided on).
"""
