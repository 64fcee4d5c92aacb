# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that finds lines of a host's tables that a layout may not replace."""

from __future__ import annotations

DOCUMENTATION = r"""
name: static_to_foreign_lines
short_description: Find lines of fstab, crypttab and mdadm.conf that conflict with a static schema
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.static
  - bareon.allocator.static.hardware
  - bareon.allocator.static.root
description:
  - Returns the lines that use a mount point, a container or an array of a static schema for something else.
  - A line belongs to the layout where it names something that is on the schema's disks, or will be, or a UUID that follows from a plan and
    that nothing on other disks has.
  - An empty list means that the role P(bareon.allocator.disk_layout#role) can write the tables without replacing what others wrote.
positional: _input, hardware
options:
  present:
    description:
      - The texts of C(/etc/fstab), C(/etc/crypttab), and C(/etc/mdadm/mdadm.conf) or C(/etc/mdadm.conf), by their paths.
    type: dict
    default: {}
seealso:
  - module: bareon.allocator.disk_layout
  - plugin: bareon.allocator.static_to_conflicts
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Show that another disk has the mount point already
  ansible.builtin.debug:
    msg: "{{ schema | bareon.allocator.static_to_foreign_lines({'disks': []}, present=present) }}"
  vars:
    schema: {fss: [{device: /dev/sda1, mount: /srv}]}
    present: {/etc/fstab: "LABEL=olddata /srv ext4 noauto 0 0"}
"""

RETURN = r"""
_value:
  description:
    - The lines, each with its file before it.
  type: list
  elements: str
  returned: always
  sample: ["/etc/fstab: LABEL=olddata /srv ext4 noauto 0 0"]
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ..plugin_utils._common.filters import MISREAD, texts_of
from ..plugin_utils._common.plain import plain
from ..plugin_utils._disk.static.foreign_lines import foreign_lines


def static_to_foreign_lines(schema: t.Any, hardware: t.Any, present: t.Any = None, root: str = "/") -> list[str]:
    """Return the lines that are somebody else's; AnsibleFilterError when schema or hardware are none."""
    try:
        return foreign_lines(plain(schema), plain(hardware), str(root), texts_of(present))
    except MISREAD as error:
        raise AnsibleFilterError(f"static_to_foreign_lines: this is not a static schema with its hardware: {error}") from error


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"static_to_foreign_lines": static_to_foreign_lines}
