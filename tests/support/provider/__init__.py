# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Allocation candidates in tests: worlds and requests go in, the answers of two other readings of the rules come out.

`worlds` and `random_requests` make them, `oracle` answers slowly, `placement_peer` asks OpenStack Placement; `consumers` names claims, and
`servers` starts real databases.
"""
