# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One change of a host at a time: a file for each technology holds its kinds of steps.

A kind is a frozen dataclass that states its data, its words, the tools and abilities of the kernel it needs, the bytes it reaches, where
it writes, the picture after it, and how it runs on a `Machine` and is verified: out comes a changed host, or StepFailed. Only `run`
needs a machine. Nothing here decides what is to be done.
In reading order: key.py and machine.py, needs.py, reach.py and picture.py (what a kind is stated in), step.py (what it has to state), one
file for each technology (partitions.py, signatures.py, md.py, luks.py, filesystem.py, btrfs.py, lvm.py, thin.py, cache.py, zfs.py),
requirements.py (what a host lacks for steps), whole_file.py and below.py (files of a system, replaced whole).
"""
