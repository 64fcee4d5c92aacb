# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that writes a plan for Kickstart."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_to_kickstart
short_description: Write a plan as commands of Kickstart
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns the commands of storage for a kickstart file, for RHEL and its rebuilds, and Fedora.
  - Sizes are those of the plan. Disks are named by their durable links.
  - All disks of the plan are cleared. Others are not touched, for C(ignoredisk) hides them from the installer.
  - Kickstart makes nothing without a mount point, and f2fs not at all. Anaconda orders partitions itself.
positional: _input
extends_documentation_fragment:
  - bareon.allocator.installer
options:
  version:
    description:
      - Whose grammar is written.
    type: str
    choices: [RHEL7, RHEL8, RHEL9, RHEL10, Fedora]
    default: RHEL9
  passphrase:
    description:
      - The passphrase of encrypted devices. It stands in the text that is returned, in clear.
      - Without it Anaconda asks for one during the installation.
    type: str
seealso:
  - module: bareon.allocator.disk_plan
"""

EXAMPLES = r"""
---
- name: Plan the disks
  bareon.allocator.disk_plan:
    profile: software-raid-boot
  register: planned

- name: Write what a kickstart file includes
  ansible.builtin.copy:
    content: "{{ planned.plan | bareon.allocator.plan_to_kickstart(version='RHEL9') }}"
    dest: "{{ playbook_dir }}/{{ inventory_hostname }}.ks"
    mode: "0600"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description:
    - Lines of a kickstart file.
  type: str
  returned: always
  sample: |
    zerombr
    ignoredisk --only-use=disk/by-id/wwn-0x5000c500a1b2c3d4
    clearpart --all --initlabel --disklabel=gpt --drives=disk/by-id/wwn-0x5000c500a1b2c3d4
    part /srv --size=51200 --ondisk=disk/by-id/wwn-0x5000c500a1b2c3d4 --fstype=xfs
"""

import typing as t

from ..module_utils._data.containers import read_all
from ..module_utils._data.kinds import Word
from ..plugin_utils._common.filters import Answer, plain_filter
from ..plugin_utils._disk.installer import kickstart
from ..plugin_utils._disk.installer.write import write_plan


@plain_filter
def plan_to_kickstart(
    plan: t.Any, version: str = "RHEL9", passphrase: str | None = None, lossy: bool = False, hardware: t.Any = None
) -> Answer:
    """Return the plan in the words of Kickstart; AnsibleFilterError with all that is wrong with it, or that cannot be expressed."""
    chosen = read_all(Word(kickstart.VERSIONS), version, "version")
    return write_plan(kickstart.TARGET, plan, hardware, lossy=lossy, version=chosen, passphrase=passphrase)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"plan_to_kickstart": plan_to_kickstart}
