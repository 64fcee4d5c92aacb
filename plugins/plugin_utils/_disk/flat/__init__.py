# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Divisible spaces over disks that all of them may use: no program is needed, a flow is exact and quick.

In comes a `Problem` of that kind; out go sizes and pieces in whole MiB: preferences first, then weighted max-min fair.
In reading order: flow (maximum flow in whole numbers), levels (progressive filling), share (who gets how much of which pool), lay_out (few
pieces, in order). After max-min fairness by progressive filling (Bertsekas and Gallager).
"""
