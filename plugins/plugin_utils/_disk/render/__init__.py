# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan to look at: text for a terminal, a drawing for a document, a page for a fleet.

In comes a plan as plain data, and the hardware where present contents matter; out goes text. Nothing is decided here. In reading order:
shapes, reasons, spaces and picture (a plan in these shapes), words (their texts), text, geometry and svg (drawn to scale), html.
"""
