# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where modules run, and what they change."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragments `attributes.changes` or `attributes.reads`, and `attributes.controller` or `attributes.linux`; `attributes.facts`.

    A module adds special cases to its own attributes, such as `details`.
    """

    CHANGES = r"""
attributes:
  check_mode:
    description: Can run in check mode and return what it would return otherwise.
    support: full
  diff_mode:
    description: Returns what has changed, or would, when in diff mode.
    support: full
  idempotent:
    description: A second run changes nothing.
    support: full
"""

    READS = r"""
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
"""

    CONTROLLER = r"""
attributes:
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

    FACTS = r"""
attributes:
  facts:
    description: Returns an C(ansible_facts) dictionary that becomes facts of the host.
    support: full
"""

    LINUX = r"""
attributes:
  platform:
    description: The platforms that the module works on.
    platforms: posix
    support: full
    details:
      - Linux only.
"""
