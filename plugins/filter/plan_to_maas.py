# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that writes a plan for MAAS."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_to_maas
short_description: Write a plan as a custom storage layout of MAAS
version_added: 1.1.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns what a commissioning script of MAAS writes to C($MAAS_STORAGE_CONFIG_FILE), for the storage layout C(custom).
  - MAAS knows disks by their kernel names, which O(hardware) has. P(bareon.allocator.hardware_from_maas#filter) gives them as MAAS
    found them.
  - MAAS begins partitions at 4 MiB in steps of 4 MiB, so a plan that fills a disk loses a few MiB there. It makes no LUKS.
positional: _input, hardware
extends_documentation_fragment:
  - bareon.allocator.installer
seealso:
  - module: bareon.allocator.disk_plan
"""

EXAMPLES = r"""
---
- name: Plan the disks
  bareon.allocator.disk_plan:
    schema:
      - {id: esp, type: esp, size: 512, mount: /boot/efi}
      - {id: root, type: partition, size: 50 GiB, fs_type: ext4, mount: /}
  register: planned

- name: Write the storage layout
  ansible.builtin.copy:
    content: "{{ planned.plan | bareon.allocator.plan_to_maas(bareon_hardware) | to_nice_json }}"
    dest: "{{ playbook_dir }}/{{ inventory_hostname }}-maas.json"
    mode: "0644"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description:
    - The storage layout, as C(layout) and C(mounts).
  type: dict
  returned: always
  sample:
    layout:
      sda:
        type: disk
        ptable: gpt
        partitions:
          - {name: sda-part1, size: 53687.0912M, fs: ext4}
    mounts:
      /: {device: sda-part1}
"""

import typing as t

from ..plugin_utils._common.filters import Answer, plain_filter
from ..plugin_utils._disk.installer import maas
from ..plugin_utils._disk.installer.write import write_plan


@plain_filter
def plan_to_maas(plan: t.Any, hardware: t.Any = None, lossy: bool = False) -> Answer:
    """Return the plan in the words of MAAS; AnsibleFilterError with all that is wrong with it, or that cannot be expressed."""
    return write_plan(maas.TARGET, plan, hardware, lossy=lossy, known=hardware)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"plan_to_maas": plan_to_maas}
