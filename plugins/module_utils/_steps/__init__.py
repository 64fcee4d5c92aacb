# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One change of a host at a time: what kinds there are, what each needs, and how it is carried out and read back.

In comes a step, which is data only, and a `Machine`; out comes a changed host, or StepFailed. Nothing here decides what is to be done.
In reading order: kinds.py, machine.py, whole_file.py and below.py (files of a system, replaced whole),
requirements.py (tools, packages, the kernel), one file for each subsystem (partition_table.py,
signatures.py, md.py, luks.py, lvm.py, filesystem.py), carry_out.py.
"""
