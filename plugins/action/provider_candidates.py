# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find allocation candidates: arguments to one call of plugin_utils._provider, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._provider.arguments import DATABASE_ARGUMENTS, DATABASE_EXCLUSIVE, REQUEST_ARGUMENTS, REQUEST_EXCLUSIVE, REQUEST_NEEDS
from ..plugin_utils._provider.tasks.candidates import run_provider_candidates


class ActionModule(PlanningAction):
    """provider_candidates: which providers could satisfy a request."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        **DATABASE_ARGUMENTS,
        **REQUEST_ARGUMENTS,
        "summaries": {"type": "bool", "default": False},
    }
    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = {
        "mutually_exclusive": [*DATABASE_EXCLUSIVE, *REQUEST_EXCLUSIVE],
        "required_one_of": [REQUEST_NEEDS],
    }

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Look for candidates; nothing is changed, whether in check mode or not."""
        return run_provider_candidates(arguments, rehearsal=self.rehearsal)
