# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that writes a plan for Metal3."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_to_metal3
short_description: Write the disk of the system and its arrays for Metal3
version_added: 1.1.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns where Metal3 writes the image, and the arrays (software RAID) that it makes before.
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

- name: Write the fields of the host for Metal3
  ansible.builtin.copy:
    content: "{{ planned.plan | bareon.allocator.plan_to_metal3 | to_nice_yaml }}"
    dest: "{{ playbook_dir }}/{{ inventory_hostname }}-metal3.yml"
    mode: "0644"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description:
    - Parts of the C(spec) of a C(BareMetalHost), C(rootDeviceHints) or C(raid) if the plan has arrays.
  type: dict
  returned: always
  sample:
    raid:
      softwareRAIDVolumes:
        - level: "1"
          physicalDisks: [{wwn: "0x5000c500a1b2c3d4"}, {wwn: "0x5000c500a1b2c3d5"}]
"""

import typing as t

from ..plugin_utils._common.filters import Answer, plain_filter
from ..plugin_utils._disk.installer import bare_metal
from ..plugin_utils._disk.installer.write import write_plan


@plain_filter
def plan_to_metal3(plan: t.Any, hardware: t.Any = None, lossy: bool = False) -> Answer:
    """Return the plan in the words of Metal3; AnsibleFilterError with all that is wrong with it, or that cannot be expressed."""
    return write_plan(bare_metal.METAL3, plan, hardware, lossy=lossy)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"plan_to_metal3": plan_to_metal3}
