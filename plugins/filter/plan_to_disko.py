# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that writes a plan for disko."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_to_disko
short_description: Write a plan as a NixOS module for disko
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns a Nix expression that sets C(disko.devices).
  - Sizes, positions and types of partitions are those of the plan.
  - disko makes no spares of arrays.
positional: _input
extends_documentation_fragment:
  - bareon.allocator.installer
options:
  password_file:
    description:
      - The path of a file with the passphrase of LUKS containers, where disko runs. Without it disko asks.
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

- name: Write the module
  ansible.builtin.copy:
    content: "{{ planned.plan | bareon.allocator.plan_to_disko }}"
    dest: "{{ playbook_dir }}/{{ inventory_hostname }}.nix"
    mode: "0644"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description:
    - A Nix expression.
  type: str
  sample: "{ disko.devices.disk = { ... }; }"
  returned: always
"""

import typing as t

from ..plugin_utils._common.filters import Answer, plain_filter
from ..plugin_utils._disk.installer import disko
from ..plugin_utils._disk.installer.write import write_plan


@plain_filter
def plan_to_disko(plan: t.Any, password_file: str | None = None, lossy: bool = False, hardware: t.Any = None) -> Answer:
    """Return the plan in the words of disko; AnsibleFilterError with all that is wrong with it, or that cannot be expressed."""
    return write_plan(disko.TARGET, plan, hardware, lossy=lossy, password_file=password_file)


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"plan_to_disko": plan_to_disko}
