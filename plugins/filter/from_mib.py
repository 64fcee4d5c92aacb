# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that writes a size."""

from __future__ import annotations

DOCUMENTATION = r"""
name: from_mib
short_description: Write MiB as a person reads them
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Turns MiB into a text with a fitting unit and three significant digits, such as V(512 MiB), V(50 GiB) or V(1.82 TiB).
positional: _input
options:
  _input:
    description:
      - MiB.
    type: float
    required: true
seealso:
  - plugin: bareon.allocator.to_mib
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Say how large the disks are
  ansible.builtin.debug:
    msg: "{{ ansible_facts.bareon_hardware.disks | map(attribute='size') | sum | bareon.allocator.from_mib }}"
"""

RETURN = r"""
_value:
  description:
    - The size with its unit.
  type: str
  sample: "8 GiB"
  returned: always
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ..module_utils._data.units import format_mib


def from_mib(mib: t.Any) -> str:
    """Return MiB as text; AnsibleFilterError when it is no number."""
    try:
        return format_mib(float(mib))
    except (OverflowError, TypeError, ValueError) as error:
        raise AnsibleFilterError(f"from_mib: {mib!r} is not a number of MiB") from error


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"from_mib": from_mib}
