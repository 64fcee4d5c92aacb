# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which words may be given to the programs that make file systems, to mount and to zfs, and how each value is checked.

In come texts of a schema; out come the words of a command, or a sentence for each that is refused. Nothing here names a device or a file:
only the schema does. In reading order: values.py (what may stand behind an option), programs.py (how command lines are read), then a table
for each file system (ext.py, xfs.py, btrfs.py, f2fs.py, vfat.py, swap.py), mounts.py (options of mounts), datasets.py (properties of ZFS).
words.py has how options that are asked for come to those that a line has.
"""
