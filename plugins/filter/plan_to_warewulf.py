# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that writes a plan for Warewulf."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_to_warewulf
short_description: Write a plan as disks and file systems of a node of Warewulf
version_added: 1.1.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns C(disks) and C(filesystems) of a node or a profile of Warewulf 4, from which it makes a configuration of Ignition.
  - Warewulf has no arrays, no LUKS and no LVM there. P(bareon.allocator.plan_to_ignition#filter) writes arrays and LUKS, and Warewulf takes
    that as the resource C(ignition).
  - Partitions follow one another from 1 MiB on.
positional: _input, hardware
extends_documentation_fragment:
  - bareon.allocator.installer
options:
  wipe:
    description:
      - Whether each start of the node replaces the partition tables and file systems. Ignition runs at each start of a node.
      - With V(false) it keeps those that are as the plan has them.
    type: bool
    default: false
seealso:
  - module: bareon.allocator.disk_plan
"""

EXAMPLES = r"""
---
- name: Plan the disks for data
  bareon.allocator.disk_plan:
    schema:
      - {id: scratch, type: partition, fs_type: xfs, mount: /scratch}
  register: planned

- name: Write the part of the node
  ansible.builtin.copy:
    content: "{{ planned.plan | bareon.allocator.plan_to_warewulf | to_nice_yaml }}"
    dest: "{{ playbook_dir }}/{{ inventory_hostname }}-warewulf.yml"
    mode: "0644"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description:
    - The keys C(disks) and C(filesystems) of a node.
  type: dict
  returned: always
  sample:
    disks:
      /dev/disk/by-id/wwn-0x5000c500a1b2c3d4:
        partitions:
          scratch: {number: "1", size_mib: "457860", should_exist: true, wipe_partition_entry: true}
    filesystems:
      /dev/disk/by-partuuid/603baf1c-1ae0-541f-b2e1-b3d3fefceca8: {format: xfs, path: /scratch}
"""

import typing as t

from ..module_utils._data.containers import read_all
from ..module_utils._data.kinds import Truth
from ..plugin_utils._common.filters import Answer, plain_filter
from ..plugin_utils._disk.installer import warewulf
from ..plugin_utils._disk.installer.write import write_plan


@plain_filter
def plan_to_warewulf(plan: t.Any, hardware: t.Any = None, wipe: bool = False, lossy: bool = False) -> Answer:
    """Return the plan in the words of Warewulf; AnsibleFilterError with all that is wrong with it, or that cannot be expressed."""
    return write_plan(warewulf.TARGET, plan, hardware, lossy=lossy, wipe=read_all(Truth(words=True), wipe, "wipe"))


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"plan_to_warewulf": plan_to_warewulf}
