# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that writes a plan for Butane."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_to_butane
short_description: Write a plan as a Butane configuration
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns a Butane configuration. From it C(butane) makes the Ignition configuration of P(bareon.allocator.plan_to_ignition#filter).
  - It can be merged with the rest of a configuration that people write.
positional: _input
extends_documentation_fragment:
  - bareon.allocator.installer
  - bareon.allocator.installer.ignition
options:
  variant:
    description:
      - For which system it is.
    type: str
    choices: [fcos, flatcar]
    default: fcos
seealso:
  - module: bareon.allocator.disk_plan
"""

EXAMPLES = r"""
---
- name: Plan the disks for data
  bareon.allocator.disk_plan:
    schema:
      - id: data
        type: partition
        mount: /var/lib/data
        fs_type: xfs
  register: planned

- name: Write the part of the configuration that is about disks
  ansible.builtin.copy:
    content: "{{ planned.plan | bareon.allocator.plan_to_butane(variant='flatcar') | to_nice_yaml }}"
    dest: "{{ playbook_dir }}/{{ inventory_hostname }}.bu"
    mode: "0644"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description:
    - The configuration.
  type: dict
  returned: always
  sample:
    variant: fcos
    version: 1.4.0
    storage:
      disks:
        - device: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4
          wipe_table: true
          partitions:
            - number: 1
              label: data
              start_mib: 1
              size_mib: 457860
"""

import typing as t

from ..module_utils._data.containers import read_all
from ..module_utils._data.kinds import Truth, Word
from ..plugin_utils._common.filters import Answer, plain_filter
from ..plugin_utils._disk.installer import ignition
from ..plugin_utils._disk.installer.write import write_plan


@plain_filter
def plan_to_butane(
    plan: t.Any, variant: str = "fcos", key_file: str | None = None, tpm2: bool = False, lossy: bool = False, hardware: t.Any = None
) -> Answer:
    """Return the plan in the words of Butane; AnsibleFilterError with all that is wrong with it, or that cannot be expressed."""
    chosen = read_all(Word(ignition.BUTANE), variant, "variant")
    opened = read_all(Truth(words=True), tpm2, "tpm2")
    return write_plan(ignition.BUTANE_TARGET, plan, hardware, lossy=lossy, variant=chosen, key_file=key_file, tpm2=opened)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"plan_to_butane": plan_to_butane}
