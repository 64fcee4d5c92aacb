# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that writes a plan for FAI."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_to_fai
short_description: Write a plan as FAI's disk_config
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns a disk_config, which setup-storage of FAI carries out.
  - Sizes are those of the plan. Disks are named by their durable links.
  - What setup-storage makes begins where it begins in the plan. Identities of partitions are its own.
  - It takes 1 % of each volume group for overhead, and refuses volumes that need it. Leave so much room in the groups of the plan.
positional: _input
extends_documentation_fragment:
  - bareon.allocator.installer
options:
  passphrase:
    description:
      - The passphrase of LUKS containers. It stands in the text that is returned, in clear.
      - Without it setup-storage makes key files.
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

- name: Write the disk_config of the host
  ansible.builtin.copy:
    # The profile fills its volume group, of which setup-storage gives away 99 %: the largest volume gets less, and a warning says so.
    content: "{{ planned.plan | bareon.allocator.plan_to_fai(lossy=true) }}"
    dest: "{{ playbook_dir }}/{{ inventory_hostname }}"
    mode: "0600"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description:
    - The text of a file of C(disk_config/).
  type: str
  returned: always
  sample: |
    disk_config /dev/disk/by-id/wwn-0x5000c500a1b2c3d4 disklabel:gpt fstabkey:uuid align-at:1M
    p=data /srv 457860 xfs defaults
"""

import typing as t

from ..plugin_utils._common.filters import Answer, plain_filter
from ..plugin_utils._disk.installer import fai
from ..plugin_utils._disk.installer.write import write_plan


@plain_filter
def plan_to_fai(plan: t.Any, passphrase: str | None = None, lossy: bool = False, hardware: t.Any = None) -> Answer:
    """Return the plan in the words of FAI; AnsibleFilterError with all that is wrong with it, or that cannot be expressed."""
    return write_plan(fai.TARGET, plan, hardware, lossy=lossy, passphrase=passphrase)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"plan_to_fai": plan_to_fai}
