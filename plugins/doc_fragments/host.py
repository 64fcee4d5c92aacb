# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What holds for modules that run on a managed host."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragment `host` for modules that change it, `host.facts` for those that only read."""

    DOCUMENTATION = r"""
options: {}
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
  platform:
    description: The platforms that the module works on.
    platforms: posix
    support: full
    details:
      - Linux only.
"""

    FACTS = r"""
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
  facts:
    description: Returns an C(ansible_facts) dictionary that becomes facts of the host.
    support: full
  idempotent:
    description: A second run changes nothing.
    support: full
    details:
      - Nothing is ever changed.
  platform:
    description: The platforms that the module works on.
    platforms: posix
    support: full
    details:
      - Linux only.
"""
