# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that writes a plan for Ignition."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_to_ignition
short_description: Write a plan as an Ignition configuration
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns an Ignition configuration of version 3.3.0, for Fedora CoreOS and Flatcar.
  - Disks are found by their durable links, partitions by their UUIDs. What is mounted has a unit of systemd.
  - Ignition cannot make LVM. Systems that start with it bring their own boot partitions, so plan other disks, or leave those out.
positional: _input
extends_documentation_fragment:
  - bareon.allocator.installer
  - bareon.allocator.installer.ignition
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

- name: Write the configuration that the machine starts with
  ansible.builtin.copy:
    content: "{{ planned.plan | bareon.allocator.plan_to_ignition | to_nice_json }}"
    dest: "{{ playbook_dir }}/{{ inventory_hostname }}.ign"
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
    ignition:
      version: 3.3.0
    storage:
      disks:
        - device: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4
          wipeTable: true
          partitions:
            - number: 1
              label: data
              startMiB: 1
              sizeMiB: 457860
              typeGuid: 0fc63daf-8483-4772-8e79-3d69d8477de4
              wipePartitionEntry: true
"""

import typing as t

from ..module_utils._data.containers import read_all
from ..module_utils._data.kinds import Truth
from ..plugin_utils._common.filters import Answer, plain_filter
from ..plugin_utils._disk.installer import ignition
from ..plugin_utils._disk.installer.write import write_plan


@plain_filter
def plan_to_ignition(plan: t.Any, key_file: str | None = None, tpm2: bool = False, lossy: bool = False, hardware: t.Any = None) -> Answer:
    """Return the plan in the words of Ignition; AnsibleFilterError with all that is wrong with it, or that cannot be expressed."""
    opened = read_all(Truth(words=True), tpm2, "tpm2")
    return write_plan(ignition.TARGET, plan, hardware, lossy=lossy, key_file=key_file, tpm2=opened)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"plan_to_ignition": plan_to_ignition}
