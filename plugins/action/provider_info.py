# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Report inventories of resource providers and their use: arguments to one call of plugin_utils._provider, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._provider.arguments import DATABASE_ARGUMENTS, DATABASE_EXCLUSIVE
from ..plugin_utils._provider.tasks.info import run_provider_info


class ActionModule(PlanningAction):
    """provider_info: trees, inventories, usages and allocations of the ledger."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        **DATABASE_ARGUMENTS,
        "providers": {"type": "list", "elements": "str"},
        "matching": {"type": "dict"},
        "consumers": {"type": "list", "elements": "str"},
        "projects": {"type": "list", "elements": "str"},
        "users": {"type": "list", "elements": "str"},
        "consumer_types": {"type": "list", "elements": "str"},
        "audit": {"type": "bool", "default": False},
    }
    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = {"mutually_exclusive": [*DATABASE_EXCLUSIVE]}

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Read the ledger."""
        return run_provider_info(arguments, rehearsal=self.rehearsal)
