# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that makes the URL of a server's resource."""

from __future__ import annotations

DOCUMENTATION = r"""
name: join_url
short_description: Make the URL of a resource of a server
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Appends parts to the URL of a server. Every part stays one part of the path, whatever it holds, since all but letters, digits and
    C(.), C(_), C(-) and C(~) is quoted, C(/) too. A part that is empty, C(.) or C(..) is refused.
  - Named arguments become the query.
positional: _input, parts
options:
  _input:
    description:
      - The URL of the server. Empty for a path alone.
    type: str
    required: true
  parts:
    description:
      - The parts of the path, in order. Numbers are written as text.
    type: list
    elements: raw
notes:
  - The role C(bareon.allocator.group_moves) asks Ganeti's remote API and Proxmox VE with it.
seealso:
  - plugin: bareon.allocator.to_mib
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Say where Ganeti's remote API has an instance
  ansible.builtin.debug:
    msg: "{{ 'https://cluster.example.com:5080' | bareon.allocator.join_url('2', 'instances', instance_name, bulk=1) }}"
"""

RETURN = r"""
_value:
  description:
    - The URL.
  type: str
  sample: https://pve1.example.com:8006/api2/json/nodes/pve1
  returned: always
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ..module_utils._data.kinds import shown
from ..plugin_utils._common import urls


def join_url(base: t.Any, *parts: t.Any, **query: t.Any) -> str:
    """Return the URL of a resource; AnsibleFilterError for what can be no part of one."""
    for part in (base, *parts, *query.values()):
        if isinstance(part, bool) or not isinstance(part, (str, int)):
            raise AnsibleFilterError(f"join_url: {shown(part)} is no part of a URL; give text or a whole number")
    try:
        return urls.join_url(str(base), *parts, **query)
    except ValueError as error:
        raise AnsibleFilterError(f"join_url: {error}") from error


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"join_url": join_url}
