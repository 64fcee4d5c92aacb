# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What every room of the controller needs, and no room of its own does: no disks, no providers, no clusters.

What hosts need as well, above all the reader of untrusted data, is in module_utils/_data. In reading order: lenient (values as other
programs write them), plain (data that may pass Ansible's door), table and html (how results are shown), libraries (third-party libraries,
imported nowhere else), highs (linear programs with integers), parallel, dask_cluster and dask_worker (independent solves side by side),
action (the base of all planning actions), facts (which names no fact of a host may have), host_action (the base of actions whose module
runs on the host), variables (those of a task without facts), filters (what filters share).
"""
