# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that makes hardware of Ironic's inspection data."""

from __future__ import annotations

DOCUMENTATION = r"""
name: hardware_from_ironic
short_description: Convert Ironic's inspection data to hardware
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns hardware in the form of M(bareon.allocator.disk_facts), as far as it is known, to plan a machine before it has a system.
  - Uses names, sizes, world wide names, serial numbers and models of disks, whether they rotate, the memory and the boot mode.
  - Ironic says neither whether disks are in use nor what is on them.
  - Missing values are reported as warnings.
positional: _input
extends_documentation_fragment:
  - bareon.allocator.recorded
options:
  _input:
    description:
      - The data that Ironic's inspection has collected, whole or its C(inventory) alone.
      - A string is parsed as JSON.
    type: raw
    required: true
"""

EXAMPLES = r"""
---
# `inspection` is what `openstack baremetal node inventory save` wrote.
- name: Plan a machine that has no system yet
  bareon.allocator.disk_plan:
    profile: general
    hardware: "{{ inspection | bareon.allocator.hardware_from_ironic }}"
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
from ..plugin_utils._disk.recorded.ironic import read
from ..plugin_utils._disk.recorded.machine import hardware_from


@plain_filter
def hardware_from_ironic(inspection: t.Any, ram: t.Any = None, firmware: t.Any = None) -> Answer:
    """Return the hardware; AnsibleFilterError with all that is wrong with the data."""
    return hardware_from(read, inspection, ram, firmware)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"hardware_from_ironic": hardware_from_ironic}
