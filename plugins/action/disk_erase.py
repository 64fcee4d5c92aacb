# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Erase disks on the host, and check the facts of its answer."""

from __future__ import annotations

from ..plugin_utils._common.host_action import HostAction


class ActionModule(HostAction):
    """disk_erase: the module on the host."""
