# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the CPUs, memory and devices of the host, and check the facts of its answer."""

from __future__ import annotations

import typing as t

from ..plugin_utils._common.host_action import HostAction


class ActionModule(HostAction):
    """node_facts: the module on the host."""

    FACTS: t.ClassVar[tuple[str, ...]] = ("bareon_node",)
