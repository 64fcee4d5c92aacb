# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that finds mount points which a layout cannot have."""

from __future__ import annotations

DOCUMENTATION = r"""
name: static_to_conflicts
short_description: Find mount points of a static schema where something else is mounted
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.static
  - bareon.allocator.static.hardware
  - bareon.allocator.static.root
description:
  - Returns the mount points of a static schema that are in use by what lies on none of its disks, such as the C(/) of the running system.
  - An empty list means that all can be mounted.
positional: _input, hardware
options:
  present:
    description:
      - The text of C(/proc/self/mountinfo), by that path.
    type: dict
    default: {}
seealso:
  - module: bareon.allocator.disk_layout
"""

EXAMPLES = r"""
---
- name: Read what is mounted
  ansible.builtin.slurp:
    src: /proc/self/mountinfo
  register: mounts

- name: Show that the root of another system cannot be mounted over this one's
  ansible.builtin.debug:
    msg: "{{ schema | bareon.allocator.static_to_conflicts({'disks': []}, present=present) }}"
  vars:
    schema: {fss: [{device: /dev/sda1, mount: /}]}
    present: {/proc/self/mountinfo: "{{ mounts.content | b64decode }}"}
"""

RETURN = r"""
_value:
  description:
    - The mount points, with O(root) before them.
  type: list
  elements: str
  returned: always
  sample: [/]
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ..plugin_utils._common.filters import MISREAD, texts_of
from ..plugin_utils._common.plain import plain
from ..plugin_utils._disk.static.host_files import MOUNTINFO, conflicting_mounts


def static_to_conflicts(schema: t.Any, hardware: t.Any, present: t.Any = None, root: str = "/") -> list[str]:
    """Return the mount points that are in use by others; AnsibleFilterError when schema or hardware are none."""
    try:
        return conflicting_mounts(plain(schema), plain(hardware), str(root), texts_of(present).get(MOUNTINFO, ""))
    except MISREAD as error:
        raise AnsibleFilterError(f"static_to_conflicts: this is not a static schema with its hardware: {error}") from error


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"static_to_conflicts": static_to_conflicts}
