# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that reads a size."""

from __future__ import annotations

DOCUMENTATION = r"""
name: to_mib
short_description: Read a size as whole MiB
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Turns a size such as V(50 GiB) or V(2 TB) into whole MiB, rounded down. A number without a unit is MiB.
positional: _input
options:
  _input:
    description:
      - The size. Units are B, KB, MB, GB, TB, PB, EB (powers of 1000) and KiB, MiB, GiB, TiB, PiB, EiB (powers of 1024).
    type: raw
    required: true
seealso:
  - plugin: bareon.allocator.from_mib
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Compare the room of a disk with what is wanted
  ansible.builtin.assert:
    that:
      - ansible_facts.bareon_hardware.disks[0].size >= '50 GiB' | bareon.allocator.to_mib
"""

RETURN = r"""
_value:
  description:
    - Whole MiB.
  type: int
  returned: always
  sample: 2
"""

import math
import typing as t

from ansible.errors import AnsibleFilterError

from ..module_utils._data.units import parse_mib


def to_mib(size: t.Any) -> int:
    """Return a size in whole MiB, rounded down; AnsibleFilterError when it is no size."""
    try:
        return math.floor(parse_mib(str(size)))
    except ValueError as error:
        raise AnsibleFilterError(f"to_mib: {error}") from error


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"to_mib": to_mib}
