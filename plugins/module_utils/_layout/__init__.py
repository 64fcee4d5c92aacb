# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host against the schema: the steps between them, the run that carries them out, and its report.

In come a `Layout` and a host's present state; out come steps, or every reason why there are none, and the module's result.
A match is a desired partition with the present one that it is; a stack is what carries one thing: a partition, or an array with its
members. In reading order: read_present.py (the state, with read_traces.py and read_missing.py), disks.py, partitions.py, unfinished.py,
stack.py, arrays.py, contents.py and volume_groups.py (what becomes of each, from the disk up; capacity.py counts room), teardown.py and
build.py (steps; those on partitions and volumes are in build_contents.py, those of LVM and ZFS in build_groups.py and build_zpools.py),
gate.py (what none of them may reach), plan.py (the plan), replacing.py, moving.py, moved_arrays.py, moved_groups.py, moved_contents.py,
moves.py, foreseen.py and emptied.py (what is moved off a disk before, and what follows), apply.py (the run), losses.py, table_names.py,
identified.py, preview.py and report.py (the result). adopt.py and boot_lines.py make a schema of an existing layout.
"""
