# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Count how many consumers with a request fit: arguments to one call of plugin_utils._provider, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._provider.arguments import CAPACITY_ARGUMENTS, DATABASE_EXCLUSIVE, QUERY_EXCLUSIVE
from ..plugin_utils._provider.tasks.capacity import run_provider_capacity


class ActionModule(PlanningAction):
    """provider_capacity: how many more of a request fit, in the ledger."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = CAPACITY_ARGUMENTS
    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = {
        "mutually_exclusive": [*DATABASE_EXCLUSIVE, *QUERY_EXCLUSIVE],
        "required_one_of": [("groups", "query")],
    }

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Count; nothing is changed, whether in check mode or not."""
        return run_provider_capacity(arguments, rehearsal=self.rehearsal)
