# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A system that was unpacked into a folder, or an archive of one, and a static schema -> what makes it start from its disks, carried out.

In the order of reading: system.py (what is in the system), initramfs.py, grub.py and systemd_boot.py (the steps of each, and what they
lack), esp_sync.py (what keeps EFI system partitions alike later), firmware.py (boot entries), plan.py (all steps, or every reason why there
are none), carry_out.py. The programs that make an initramfs are a table in
storage/initramfs.py.
"""
