# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From an allocation to what is made on a host: the static schema, in the seed's form and in Bareon's explicit one.

In come an `Allocation` and the hardware; out goes plain data that disk_layout takes (module_utils/_schema reads it). In reading order:
explicit (every object to be made), partitions (where each begins and ends), fingerprint (a disk's identity), boot_settings (what a line
keeps, and what a host remembers), host_files (mounts, swap, crypttab and mdadm.conf of a layout), foreign_lines (what of others stands
where those belong). After "Solution convertor" (seed 000).
"""
