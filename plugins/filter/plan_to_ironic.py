# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that writes a plan for Ironic."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_to_ironic
short_description: Write the disk of the system and its arrays for Ironic
version_added: 1.1.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns where Ironic writes the image, and the arrays (software RAID) that it makes before.
positional: _input, hardware
extends_documentation_fragment:
  - bareon.allocator.installer
  - bareon.allocator.installer.image
seealso:
  - module: bareon.allocator.disk_plan
"""

EXAMPLES = r"""
---
- name: Plan a mirror for the image
  bareon.allocator.disk_plan:
    schema:
      - {id: root, type: raid, level: raid1, fs_type: ext4, mount: /}
  register: planned

- name: Write the properties of the node for Ironic
  ansible.builtin.copy:
    content: "{{ planned.plan | bareon.allocator.plan_to_ironic | to_nice_json }}"
    dest: "{{ playbook_dir }}/{{ inventory_hostname }}-ironic.json"
    mode: "0644"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description:
    - Parts of a node, which are C(properties) with C(root_device), and C(target_raid_config) if the plan has arrays.
  type: dict
  returned: always
  sample:
    properties: {}
    target_raid_config:
      logical_disks:
        - controller: software
          raid_level: "1"
          size_gb: MAX
          is_root_volume: true
          volume_name: root
          physical_disks: [{wwn: "0x5000c500a1b2c3d4"}, {wwn: "0x5000c500a1b2c3d5"}]
"""

import typing as t

from ..plugin_utils._common.filters import Answer, plain_filter
from ..plugin_utils._disk.installer import bare_metal
from ..plugin_utils._disk.installer.write import write_plan


@plain_filter
def plan_to_ironic(plan: t.Any, hardware: t.Any = None, lossy: bool = False) -> Answer:
    """Return the plan in the words of Ironic; AnsibleFilterError with all that is wrong with it, or that cannot be expressed."""
    return write_plan(bare_metal.IRONIC, plan, hardware, lossy=lossy)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"plan_to_ironic": plan_to_ironic}
