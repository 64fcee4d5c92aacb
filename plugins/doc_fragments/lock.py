# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lock that keeps runs on one host apart."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragment `lock` for modules that change disks."""

    DOCUMENTATION = r"""
options:
  lock_timeout:
    description:
      - How many seconds to wait while another run of M(bareon.allocator.disk_layout) or M(bareon.allocator.disk_keys) is active on the
        host. With V(0) the task fails at once.
      - The message of the failure names the other run with its process, since when it runs, and the address that it was started from.
      - Check mode takes no lock and does not wait.
    type: int
    default: 0
"""
