# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Report past allocations, with their begin and end: arguments to one call of plugin_utils._provider, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._provider.arguments import KEPT_ARGUMENTS
from ..plugin_utils._provider.tasks.history import run_provider_history_info


class ActionModule(PlanningAction):
    """provider_history_info: what consumers had, in the ledger."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        **KEPT_ARGUMENTS,
        "since": {"type": "str"},
        "until": {"type": "str"},
        "project": {"type": "str"},
        "provider": {"type": "str"},
        "limit": {"type": "int", "default": 10000},
    }

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Read the ledger."""
        return run_provider_history_info(arguments, rehearsal=self.rehearsal)
