# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that writes a plan for curtin."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_to_curtin
short_description: Write a plan as curtin's storage configuration
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns curtin's storage configuration, as MAAS and Ubuntu's autoinstall take it.
  - Sizes are bytes, and those of the plan. Disks are found by their durable links.
  - Spaces with C(keep_data) are preserved.
positional: _input
extends_documentation_fragment:
  - bareon.allocator.installer
options:
  version:
    description:
      - The version of the storage configuration.
      - With V(1) curtin puts each partition right behind the one before it, and gives it a UUID of its own. With V(2), which curtin
        knows since 22.1, partitions begin where they do in the plan, and have its UUIDs and types.
    type: str
    choices: ['1', '2']
    default: '1'
  key_file:
    description:
      - The path of the key of LUKS containers, where curtin runs. Required if the plan encrypts anything.
    type: str
seealso:
  - module: bareon.allocator.disk_plan
"""

EXAMPLES = r"""
---
- name: Plan the disks
  bareon.allocator.disk_plan:
    profile: general
  register: planned

- name: Write the part of autoinstall that is about disks
  ansible.builtin.copy:
    content: "{{ {'storage': planned.plan | bareon.allocator.plan_to_curtin} | to_nice_yaml }}"
    dest: "{{ playbook_dir }}/{{ inventory_hostname }}.yml"
    mode: "0644"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description:
    - C(version) and C(config), the list of actions.
  type: dict
  returned: always
  sample:
    version: 1
    config:
      - id: disk-wwn-0x5000c500a1b2c3d4
        type: disk
        path: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4
        ptable: gpt
        preserve: false
        grub_device: false
        wipe: superblock-recursive
"""

import typing as t

from ..module_utils._data.containers import read_all
from ..module_utils._data.kinds import Word
from ..plugin_utils._common.filters import Answer, plain_filter
from ..plugin_utils._disk.installer import curtin
from ..plugin_utils._disk.installer.write import write_plan


@plain_filter
def plan_to_curtin(plan: t.Any, version: t.Any = "1", key_file: str | None = None, lossy: bool = False, hardware: t.Any = None) -> Answer:
    """Return the plan in the words of curtin; AnsibleFilterError with all that is wrong with it, or that cannot be expressed."""
    chosen = read_all(Word(curtin.VERSIONS), str(version), "version")
    return write_plan(curtin.TARGET, plan, hardware, lossy=lossy, version=chosen, key_file=key_file)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"plan_to_curtin": plan_to_curtin}
