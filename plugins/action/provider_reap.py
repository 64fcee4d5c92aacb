# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Release consumers whose lease has ended: arguments to one call of plugin_utils._provider, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._provider.arguments import KEPT_ARGUMENTS
from ..plugin_utils._provider.tasks.reap import run_provider_reap


class ActionModule(PlanningAction):
    """provider_reap: the end of leases, in the ledger."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {**KEPT_ARGUMENTS, "keep_history": {"type": "str"}}

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Release them; in check mode, take it back."""
        return run_provider_reap(arguments, dry_run=self._task.check_mode, rehearsal=self.rehearsal)
