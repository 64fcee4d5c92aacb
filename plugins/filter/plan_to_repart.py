# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that writes a plan for systemd-repart."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_to_repart
short_description: Write the partitions of one disk for systemd-repart
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns the files of C(repart.d) for one disk. Sizes and UUIDs of partitions are those of the plan.
  - systemd-repart makes neither arrays nor LVM. Where the plan has these, their partitions are made without content.
  - C(MountPoint) is understood by systemd 254 and later, which others ignore with a warning.
positional: _input
extends_documentation_fragment:
  - bareon.allocator.installer
options:
  disk:
    description:
      - The id of the disk. Required if the plan makes anything on more than one.
    type: str
  encrypt:
    description:
      - How encrypted partitions are opened, as C(Encrypt) of systemd-repart.
    type: str
    choices: [key-file, tpm2, key-file+tpm2]
    default: key-file
seealso:
  - module: bareon.allocator.disk_plan
"""

EXAMPLES = r"""
---
- name: Plan a disk
  bareon.allocator.disk_plan:
    schema:
      - id: data
        type: partition
        fs_type: ext4
        mount: /srv
  register: planned

- name: Write the files
  ansible.builtin.copy:
    content: "{{ item.value }}"
    dest: "{{ playbook_dir }}/{{ item.key }}"
    mode: "0644"
  loop: "{{ planned.plan | bareon.allocator.plan_to_repart | dict2items }}"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description:
    - The text of each file by its name.
  type: dict
  returned: always
  sample:
    010-data.conf: |
      [Partition]
      Type=0fc63daf-8483-4772-8e79-3d69d8477de4
      Label=data
      SizeMinBytes=480101007360
      SizeMaxBytes=480101007360
      Format=ext4
      MountPoint=/srv
"""

import typing as t

from ..module_utils._data.containers import read_all
from ..module_utils._data.kinds import Word
from ..plugin_utils._common.filters import Answer, plain_filter
from ..plugin_utils._disk.installer import repart
from ..plugin_utils._disk.installer.write import write_plan


@plain_filter
def plan_to_repart(plan: t.Any, disk: str | None = None, encrypt: str = "key-file", lossy: bool = False, hardware: t.Any = None) -> Answer:
    """Return the plan in the words of systemd-repart; AnsibleFilterError with all that is wrong with it, or that cannot be expressed."""
    chosen = read_all(Word(repart.ENCRYPTIONS), encrypt, "encrypt")
    return write_plan(repart.TARGET, plan, hardware, lossy=lossy, disk=disk, encrypt=chosen)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"plan_to_repart": plan_to_repart}
