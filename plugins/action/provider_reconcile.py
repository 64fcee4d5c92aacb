# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the ledger with what exists: arguments to one call of plugin_utils._provider, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._provider.arguments import KEPT_ARGUMENTS
from ..plugin_utils._provider.tasks.reconcile import run_provider_reconcile


class ActionModule(PlanningAction):
    """provider_reconcile: what is claimed by nothing that exists."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        **KEPT_ARGUMENTS,
        "existing": {"type": "list", "elements": "raw", "required": True},
        "project": {"type": "str"},
        "user": {"type": "str"},
        "consumer_type": {"type": "str"},
        "providers": {"type": "list", "elements": "str"},
        "older_than": {"type": "str"},
        "release": {"type": "bool", "default": False},
    }

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Compare, and release what is stale if that is wanted; in check mode, take it back."""
        return run_provider_reconcile(arguments, dry_run=self._task.check_mode, rehearsal=self.rehearsal)
