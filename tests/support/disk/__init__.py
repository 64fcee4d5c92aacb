# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disk plans in tests: `build` makes models from plain data, `rules` judges any plan, `expectations` adds what a case of the corpus wants.

Sizes are in MiB.
"""
