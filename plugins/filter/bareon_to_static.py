# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that makes an explicit static schema of one that is written by hand."""

from __future__ import annotations

DOCUMENTATION = r"""
name: bareon_to_static
short_description: Convert a hand-written static schema to an explicit one
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Turns Bareon's hand-written schema, the list that its user guide calls C(partitions), into the explicit static schema
    that M(bareon.allocator.disk_plan) makes, for the disks of one host.
  - An explicit schema is returned as it is.
  - The module M(bareon.allocator.disk_layout) takes both. This filter shows what a hand-written schema comes to, without a host.
  - Every disk gets a BIOS boot partition of 24 MiB at its head, as in Bareon. Volumes lie in the order of the list without gaps.
  - All mistakes are reported at once, each with its place.
positional: _input, hardware
extends_documentation_fragment:
  - bareon.allocator.static.hardware
options:
  _input:
    description:
      - The list of disks and volume groups, or a deploy configuration of Bareon that has it under C(partitions).
    type: raw
    required: true
seealso:
  - module: bareon.allocator.disk_layout
"""

EXAMPLES = r"""
---
- name: Show what a hand-written schema comes to
  ansible.builtin.debug:
    msg: "{{ partitions | bareon.allocator.bareon_to_static(hardware) }}"
  vars:
    hardware:
      ram: 4096
      firmware: bios
      disks:
        - id: /dev/disk/by-id/ata-DISK_1
          dev: /dev/sda
          size: 20480
    partitions:
      - type: disk
        id:
          type: name
          value: sda
        size: 20 GiB
        volumes:
          - type: partition
            mount: /
            file_system: ext4
            size: 5 GiB
          - type: pv
            vg: data
            size: remaining
      - type: vg
        id: data
        volumes:
          - type: lv
            name: srv
            mount: /srv
            file_system: xfs
            size: 100%
"""

RETURN = r"""
_value:
  description:
    - The explicit static schema, as RV(bareon.allocator.disk_plan#module:plan.schema).
  type: dict
  sample: {"parteds": [], "vgs": [], "lvs": [], "fss": []}
  returned: always
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible.utils.display import Display

from ..module_utils._schema.bareon.convert import read_bareon_list
from ..module_utils._schema.bareon.form import is_bareon_list
from ..plugin_utils._common.filters import MISREAD
from ..plugin_utils._common.plain import plain


def bareon_to_static(schema: t.Any, hardware: t.Any) -> t.Any:
    """Return the explicit static schema; AnsibleFilterError with everything that is wrong with the input."""
    try:
        schema, hardware = plain(schema), plain(hardware)
        if not is_bareon_list(schema):
            return schema
        if not isinstance(hardware, dict):
            raise AnsibleFilterError("bareon_to_static: hardware must be a dictionary, as bareon.allocator.disk_facts returns it")
        reading = read_bareon_list(schema, hardware)
    except MISREAD as error:
        # Mistakes of the schema are reported with their places; the facts come from a module.
        said = f"{type(error).__name__}: {error}"
        raise AnsibleFilterError(f"bareon_to_static: hardware is not what bareon.allocator.disk_facts returns: {said}") from error
    if reading.mistakes:
        raise AnsibleFilterError("bareon_to_static: " + "\n- ".join(["mistakes in the schema:", *reading.mistakes]))
    for note in reading.notes:
        Display().warning(f"bareon_to_static: {note}")
    return reading.schema


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"bareon_to_static": bareon_to_static}
