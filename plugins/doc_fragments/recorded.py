# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of all filters that make hardware of what others have recorded."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragment `recorded`."""

    DOCUMENTATION = r"""
options:
  ram:
    description:
      - The memory in MiB, in place of the recorded value.
    type: int
  firmware:
    description:
      - How the machine boots, in place of the recorded value.
    type: str
    choices: [uefi, bios]
seealso:
  - module: bareon.allocator.disk_plan
  - module: bareon.allocator.disk_facts
"""
