# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Storages that are filled alike by moving disks between them, while instances stay where they are. Sizes are MiB.

In comes a `Cluster` with options; out goes a `StoragePlan`: disks that move, in stages, storages before and after, disks that stay and
why.

In reading order: levels (what storages are, and when they are even), disks (which may move), program (the least that must, by an
integer program), stages (an order in which there is room), even (the whole task).
"""
