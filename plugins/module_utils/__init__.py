# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What runs on hosts, with Python's standard library alone: reading a host's disks, and making a layout on them.

In comes the host itself, and a static schema; out go facts, and the steps that were done. From the bottom up: data (one reader of
untrusted data) and storage (facts of the field), which the controller uses as well, facts (a host's disks), schema (what is asked for, and
read by the controller too), steps (one change, carried out), layout (compares the host with the schema, and runs the steps). `mounting.py`
mounts what the run made. After "High level architecture" (seed 000).
"""
