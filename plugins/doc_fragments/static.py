# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What filters on a static schema take."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragment `static`; `static.hardware` and `static.root` describe the host."""

    DOCUMENTATION = r"""
options:
  _input:
    description:
      - The explicit static schema, as RV(bareon.allocator.disk_plan#module:plan.schema).
    type: dict
    required: true
"""

    HARDWARE = r"""
options:
  hardware:
    description:
      - The hardware of the host, as M(bareon.allocator.disk_facts) returns it.
    type: dict
    required: true
"""

    ROOT = r"""
options:
  root:
    description:
      - The directory that the mount points are below.
    type: path
    default: /
"""
