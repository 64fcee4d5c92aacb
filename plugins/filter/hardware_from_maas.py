# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that makes hardware of a machine of MAAS."""

from __future__ import annotations

DOCUMENTATION = r"""
name: hardware_from_maas
short_description: Convert a machine of MAAS to hardware
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns hardware in the form of M(bareon.allocator.disk_facts), as far as it is known, to plan a machine before it has a system.
  - Uses names, sizes, serial numbers, models and tags of physical block devices, the memory and C(bios_boot_method).
  - MAAS says neither whether disks are in use nor what is on them.
  - Disks are named by C(id_path), which need not be the most durable link.
  - Missing values are reported as warnings.
positional: _input
extends_documentation_fragment:
  - bareon.allocator.recorded
options:
  _input:
    description:
      - A machine as the API of MAAS returns it, with C(physicalblockdevice_set) or C(blockdevice_set), or the list of
        its block devices.
      - A string is parsed as JSON.
    type: raw
    required: true
"""

EXAMPLES = r"""
---
# `machine` is what `maas admin machine read ID` printed.
- name: Plan a machine that has no system yet
  bareon.allocator.disk_plan:
    profile: general
    hardware: "{{ machine | bareon.allocator.hardware_from_maas(firmware='uefi') }}"
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
from ..plugin_utils._disk.recorded.maas import read
from ..plugin_utils._disk.recorded.machine import hardware_from


@plain_filter
def hardware_from_maas(machine: t.Any, ram: t.Any = None, firmware: t.Any = None) -> Answer:
    """Return the hardware; AnsibleFilterError with all that is wrong with the data."""
    return hardware_from(read, machine, ram, firmware)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"hardware_from_maas": hardware_from_maas}
