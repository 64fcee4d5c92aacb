# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of all filters that write a plan for an installer."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragment `installer`; `installer.ignition` has what those of Ignition and Butane take in addition, `installer.image` what
    those say that make disks and arrays for an image.
    """

    DOCUMENTATION = r"""
options:
  _input:
    description:
      - The plan of one host, as RV(bareon.allocator.disk_plan#module:plan), or its C(schema) alone.
    type: dict
    required: true
  lossy:
    description:
      - What to do with what the installer cannot express. With V(false) the filter fails and names each space and the reason.
      - With V(true) it leaves that out, and each loss is a warning. What would destroy data that are to be kept is an error even then.
    type: bool
    default: false
  hardware:
    description:
      - The hardware, as M(bareon.allocator.disk_facts) returns it. It gives durable names to disks whose name in the plan is none.
    type: dict
"""

    IMAGE = r"""
options: {}
notes:
  - The image goes to the disk or the array that C(/) lies on. An array that C(/) lies on is a mirror.
  - No partitions, no volumes and no file systems are made. What the plan has of these is lost, but for ESPs and BIOS boot partitions,
    which come with the image. M(bareon.allocator.disk_layout) makes the rest once the machine runs.
  - Disks are named by WWN or by path.
"""

    IGNITION = r"""
options:
  key_file:
    description:
      - The URL of the key of LUKS containers. With neither this nor O(tpm2) Ignition makes a key and keeps it in the root file system.
    type: str
  tpm2:
    description:
      - Whether LUKS containers are opened by the TPM of the machine.
    type: bool
    default: false
"""
