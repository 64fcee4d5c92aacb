# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that names the commands that a layout takes."""

from __future__ import annotations

DOCUMENTATION = r"""
name: static_to_tools
short_description: Name the commands that a static schema needs
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.static
description:
  - Returns the commands beyond util-linux that M(bareon.allocator.disk_layout) runs on a host for a static schema.
  - They are C(sfdisk), C(mdadm), C(cryptsetup), C(lvm), C(thin_check) for thin pools, C(cache_check) for caches, C(zpool) for ZFS, and
    C(mkfs.TYPE) for each kind of file system.
positional: _input
seealso:
  - module: bareon.allocator.disk_layout
"""

EXAMPLES = r"""
---
- name: Show what a mirror with XFS takes
  ansible.builtin.debug:
    msg: "{{ schema | bareon.allocator.static_to_tools }}"
  vars:
    schema:
      mds: [{name: /dev/md/data, level: raid1, devices: [/dev/sda1, /dev/sdb1]}]
      fss: [{device: /dev/md/data, fs_type: xfs}]
"""

RETURN = r"""
_value:
  description:
    - The names of the commands.
  type: list
  elements: str
  returned: always
  sample: [sfdisk, lvm, mkfs.ext4]
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ..plugin_utils._common.filters import MISREAD
from ..plugin_utils._common.plain import plain
from ..plugin_utils._disk.static.host_files import needed_tools


def static_to_tools(schema: t.Any) -> list[str]:
    """Return the commands that a schema takes; AnsibleFilterError when it is none."""
    try:
        return needed_tools(plain(schema))
    except MISREAD as error:
        raise AnsibleFilterError(f"static_to_tools: this is not an explicit static schema: {error}") from error


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"static_to_tools": static_to_tools}
