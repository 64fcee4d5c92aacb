# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is on a host's disks, read without changing anything.

In come the kernel's sysfs and the output of lsblk, blkid, wipefs, sfdisk, mdadm, cryptsetup and LVM, through a `Host`; out goes a tree of
devices, the disks among them, and from these the plain facts that disk_facts returns. What cannot be read is noted, never guessed.
In reading order: host.py (what a reader may ask), lsblk.py, sysfs.py, udev.py, mounts.py, signatures.py, stacks.py, luks_header.py,
blank.py, torn.py, untouched.py (one source each), tree.py (the devices), reader.py and assembled.py (the sources put together), select.py
(which devices are disks, and by which durable names), hardware.py (the facts), lvm.py and present.py (the state that a layout is compared
with, also of LVM and ZFS).
After "High level architecture" (seed 000).
"""
