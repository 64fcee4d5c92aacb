# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Clusters in tests: made of every kind, and judged without the arrays of the code under test.

`clusters` and `super_clusters` draw small ones, `gencluster` makes large ones by a seed, `policies` opens groups to every size.
`oracle` counts a node anew, `limits` says by how much it breaks what. `replay_server` answers as Ganeti's remote API did.
"""
