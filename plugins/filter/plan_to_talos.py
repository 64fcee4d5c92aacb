# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that writes a plan for Talos."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_to_talos
short_description: Write a plan as documents of the machine configuration of Talos Linux
version_added: 1.1.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns the disk to install on, the volume C(EPHEMERAL), and a volume for each further partition, for Talos 1.13.
  - The disk to install on is that of C(/). Talos brings the system itself, and its own partitions take the place of C(/),
    C(/boot) and the ESP; the rest of the disk is C(EPHEMERAL), unless the plan has C(/var).
  - File systems of the plan are C(UserVolumeConfig), mounted below C(/var/mnt); swap is C(SwapVolumeConfig), and partitions with nothing on
    them are C(RawVolumeConfig). Talos makes no md arrays, no LVM and no ZFS pools of a plan.
positional: _input, hardware
extends_documentation_fragment:
  - bareon.allocator.installer
options:
  passphrase:
    description:
      - The passphrase of encrypted volumes. It stands in the documents that are returned, in clear.
      - Without it the plan has to say that a TPM opens them.
    type: str
seealso:
  - module: bareon.allocator.disk_plan
"""

EXAMPLES = r"""
---
- name: Plan the disks
  bareon.allocator.disk_plan:
    schema:
      - {id: root, type: partition, size: 20 GiB, fs_type: ext4, mount: /, disks: 'yaql=$.disks.take(1)'}
      - {id: data, type: partition, fs_type: xfs, mount: /var/mnt/data}
  register: planned

- name: Write the patch of the machine configuration
  ansible.builtin.copy:
    content: "{{ planned.plan | bareon.allocator.plan_to_talos | map('to_nice_yaml') | join('---\n') }}"
    dest: "{{ playbook_dir }}/{{ inventory_hostname }}-talos.yml"
    mode: "0644"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description:
    - The documents, which C(talosctl) takes as a patch.
  type: list
  elements: dict
  returned: always
  sample:
    - machine:
        install:
          diskSelector: {wwid: naa.5000c500a1b2c3d4}
    - apiVersion: v1alpha1
      kind: UserVolumeConfig
      name: data
      provisioning:
        diskSelector: {match: '"/dev/disk/by-id/wwn-0x5000c500a1b2c3d4" in disk.symlinks'}
        minSize: 40960MiB
        maxSize: 40960MiB
      filesystem: {type: xfs}
"""

import typing as t

from ..plugin_utils._common.filters import Answer, plain_filter
from ..plugin_utils._disk.installer import talos
from ..plugin_utils._disk.installer.write import write_plan


@plain_filter
def plan_to_talos(plan: t.Any, hardware: t.Any = None, passphrase: str | None = None, lossy: bool = False) -> Answer:
    """Return the plan in the words of Talos; AnsibleFilterError with all that is wrong with it, or that cannot be expressed."""
    return write_plan(talos.TARGET, plan, hardware, lossy=lossy, passphrase=passphrase)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"plan_to_talos": plan_to_talos}
