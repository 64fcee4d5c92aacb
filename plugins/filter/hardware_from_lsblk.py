# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that makes hardware from the output of lsblk."""

from __future__ import annotations

DOCUMENTATION = r"""
name: hardware_from_lsblk
short_description: Convert the output of lsblk to hardware
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns hardware in the form of M(bareon.allocator.disk_facts), as far as it is known, to plan a machine before it has a system.
  - Uses all disks with their partitions, mount points and file systems.
  - What lsblk says about contents comes from udev, or needs root.
  - Missing values are reported as warnings.
positional: _input
extends_documentation_fragment:
  - bareon.allocator.recorded
options:
  _input:
    description:
      - What C(lsblk -OJb) prints. Without C(-b) sizes are rounded, and the least that they can stand for is taken.
      - A string is parsed as JSON.
    type: raw
    required: true
"""

EXAMPLES = r"""
---
# `devices` is what `lsblk -OJb` printed.
- name: Plan a machine that has no system yet
  bareon.allocator.disk_plan:
    schema:
      - id: data
        type: partitions
        min_size: 1 GiB
        mount: /srv
    hardware: "{{ devices | bareon.allocator.hardware_from_lsblk(firmware='uefi') }}"
  register: planned
"""

RETURN = r"""
_value:
  description:
    - The hardware, as RV(bareon.allocator.disk_facts#module:ansible_facts.bareon_hardware). Unknown values are left out.
  type: dict
  sample: {"disks": [{"id": "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4", "size": 457862, "type": "ssd"}]}
  returned: always
"""

import typing as t

from ..plugin_utils._common.filters import Answer, plain_filter
from ..plugin_utils._disk.recorded.lsblk import read
from ..plugin_utils._disk.recorded.machine import hardware_from


@plain_filter
def hardware_from_lsblk(devices: t.Any, ram: t.Any = None, firmware: t.Any = None) -> Answer:
    """Return the hardware; AnsibleFilterError with all that is wrong with the data."""
    return hardware_from(read, devices, ram, firmware)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"hardware_from_lsblk": hardware_from_lsblk}
