# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stand-in for a Proxmox VE cluster: no guest runs here. It answers by TLS, and refuses what the published API refuses.

    with serving(small_cluster()) as (url, ca_path): ...

In reading order: api (which calls there are, their parameters, permissions and results, as published), model (guests and nodes), tasks
(UPIDs that take time), moves (what is known of migrations, of moves of disks, and of HA, whose `migrate` is a task that ends at once,
while the guest moves later), cluster (the door: tokens and tickets, nodes that are away, and what is read), server (TLS).
"""
