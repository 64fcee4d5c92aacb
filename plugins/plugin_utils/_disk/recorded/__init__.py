# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hardware from what others have recorded of a machine, so that it can be planned before it has a system.

In comes data of an inventory as it is: Ironic's inspection, a machine of MAAS, Redfish's drives, lshw, lsblk, Ansible's devices. Out goes
hardware as disk_facts returns it, as far as the source has it, and warnings that name the rest. Names of disks are those that
disk_facts will find. In reading order: machine (what all sources become), then a file for each source.
"""
