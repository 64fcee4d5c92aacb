# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disk planning: from a dynamic schema and the facts of a machine to exact sizes and a static schema.

In comes plain data: a schema as people write it, and hardware as disk_facts returns it. Out goes a plan as plain data, or the
constraints that conflict and by how many MiB. The packages go from left to right: schema (parse), problem (what the solvers see),
fair and ordered (solve), static (convert), render (show). The others are recorded (hardware that other tools know), installer (plans
for other installers) and drift (plans compared with hosts). Read model.py (the words), then planner.py, which calls these in order, once
for all machines alike; plan_cache.py keeps what it learns of them, for other processes as well, and cautions.py warns of what a plan
brings with it. known_hardware.py has what is known of hosts, fleet.py summarises their plans, and plan_files.py writes them; warm_up.py
plans once before Ansible forks. After "High level architecture" (seed 000). Sizes are whole MiB.
"""
