# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger for others: what provider_info returns as a page, in reading order overview (what is shown) and page (the HTML), and placement
(the requests that fill OpenStack Placement).
"""
