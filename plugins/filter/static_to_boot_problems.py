# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that says what a layout lacks for its host to start from it."""

from __future__ import annotations

DOCUMENTATION = r"""
name: static_to_boot_problems
short_description: Find out whether a host could start from a static schema
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.static
description:
  - Returns why the firmware of a host would find nothing to start on the disks of a static schema. With UEFI an EFI system partition
    is missing, with a BIOS a BIOS boot partition.
  - An empty list means that a boot loader can be installed.
positional: _input, hardware
options:
  hardware:
    description:
      - The hardware of the host, as M(bareon.allocator.disk_facts) returns it. Only its firmware matters.
    type: dict
    required: true
seealso:
  - module: bareon.allocator.disk_boot
"""

EXAMPLES = r"""
---
- name: Show why a server with UEFI does not start from a root file system alone
  ansible.builtin.debug:
    msg: "{{ schema | bareon.allocator.static_to_boot_problems({'firmware': 'uefi'}) }}"
  vars:
    schema:
      fss:
        - {device: /dev/sda1, mount: /, fs_type: ext4, space_id: root}
"""

RETURN = r"""
_value:
  description:
    - The end of a sentence that begins with the host's name, with the line of a schema that would add what it lacks.
  type: list
  elements: str
  returned: always
  sample:
    - >-
      starts by BIOS, and the layout has no BIOS boot partition, which GRUB needs on disks with a GPT. This line of the profile or of its
      overrides adds what it lacks: - {id: root, boot: true} (of a static schema: a partition of 1 MiB with guid
      21686148-6449-6e6f-744e-656564454649)
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ..plugin_utils._common.filters import MISREAD
from ..plugin_utils._common.plain import plain
from ..plugin_utils._disk.static.bootable import why_not_bootable


def static_to_boot_problems(schema: t.Any, hardware: t.Any) -> list[str]:
    """Return what is in the way of a start; AnsibleFilterError when schema or hardware are none."""
    try:
        return why_not_bootable(plain(schema), plain(hardware))
    except MISREAD as error:
        raise AnsibleFilterError(f"static_to_boot_problems: this is not a static schema with its hardware: {error}") from error


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"static_to_boot_problems": static_to_boot_problems}
