# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One reader of untrusted data, for hosts and controller: tables say what a mapping may hold.

In comes plain data; out go values, or every mistake with its place. The standard library and Python 3.9 suffice. In reading order: errors
(mistakes with their places, conflicts, what is unavailable), kinds (what a value may be), containers (lists, mappings and tables of
them), units (sizes as people write them), words (names in a sentence).
"""
