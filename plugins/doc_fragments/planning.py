# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What holds for every module that only plans, on the controller."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragment `planning`."""

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in check mode and return what it would return otherwise.
    support: full
    details:
      - Nothing is ever changed.
  diff_mode:
    description: Returns what has changed, or would, when in diff mode.
    support: N/A
    details:
      - Nothing is ever changed.
  idempotent:
    description: A second run changes nothing.
    support: full
    details:
      - Nothing is ever changed.
  action:
    description: Has an action plugin, so that it runs on the controller.
    support: full
  async:
    description: Supports the C(async) keyword.
    support: none
  platform:
    description: The platforms that the module works on.
    platforms: all
    support: full
"""
