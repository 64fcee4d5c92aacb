# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that says how a host makes its initramfs."""

from __future__ import annotations

DOCUMENTATION = r"""
name: tools_to_initramfs_command
short_description: Find out how a host makes its initramfs
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns the command that rebuilds the initramfs of all kernels, for the programs that a host has. Of C(update-initramfs), C(dracut) and
    C(mkinitcpio) the first one counts.
  - The list is empty where the host has none of them.
positional: _input
options:
  _input:
    description:
      - Names of programs that the host has.
    type: list
    elements: str
    required: true
seealso:
  - module: bareon.allocator.disk_boot
"""

EXAMPLES = r"""
---
- name: Show how the initramfs is made where there is dracut
  ansible.builtin.debug:
    msg: "{{ ['lvm', 'dracut'] | bareon.allocator.tools_to_initramfs_command }}"
"""

RETURN = r"""
_value:
  description:
    - The command, word by word.
  type: list
  elements: str
  returned: always
  sample: [dracut, --regenerate-all, --force]
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ..module_utils._storage.initramfs import command_of
from ..plugin_utils._common.plain import plain


def tools_to_initramfs_command(names: t.Any) -> list[str]:
    """Return the command; AnsibleFilterError when the names are no list."""
    given = plain(names)
    if not isinstance(given, list):
        raise AnsibleFilterError("tools_to_initramfs_command: a list of the names of programs is needed")
    return list(command_of(map(str, given)) or ())


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"tools_to_initramfs_command": tools_to_initramfs_command}
