# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan of moves to look at.

In comes a plan as actions return it (plain data); out goes a page of HTML, which loads nothing and runs nothing.

In reading order: draw (rows, arrows between them, and how they fan out), nodes (instances that move between nodes), storages (disks
that move between storages), page (the pictures as HTML, with what is said around them).
"""
