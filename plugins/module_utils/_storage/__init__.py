# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts of the field, stated once for the planner and the host: file systems, partition tables, LVM, md, and what each keeps for itself.

Nothing comes in: these are tables, and arithmetic on them. A new file system is a row of filesystems.py.
In reading order: units.py, identity.py (which disk it is), derived.py (UUIDs that follow from the plan), gpt.py, gpt_bytes.py, lvm.py,
raid.py, filesystems.py, ext4.py (superblocks), overhead.py. The files that a start reads have one reader and one writer each: fstab.py,
crypttab.py, mdadm_conf.py, unit_file.py; boot_tables.py has all of a host.
"""
