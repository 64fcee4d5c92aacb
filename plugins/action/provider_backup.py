# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write a ledger of providers into a file: arguments to one call of plugin_utils._provider, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._common.lasting import loss_warnings
from ..plugin_utils._provider.arguments import BACKUP_ARGUMENTS
from ..plugin_utils._provider.tasks.backup import run_provider_backup


class ActionModule(PlanningAction):
    """provider_backup: a whole ledger, as it is at one moment, in a file."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = BACKUP_ARGUMENTS

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Do it; in check mode, look whether it could be done."""
        result = run_provider_backup(arguments, dry_run=self._task.check_mode)
        return {**result, "warnings": loss_warnings(result["path"], "path")}
