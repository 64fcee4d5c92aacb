# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare plans of a fleet before and after a change: arguments to one call of plugin_utils._disk.plan_diff, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..module_utils._data.errors import InputError, Mistake
from ..plugin_utils._common.action import PlanningAction, failure
from ..plugin_utils._disk.drift.files import by_host
from ..plugin_utils._disk.plan_diff.changes import ORDER
from ..plugin_utils._disk.plan_diff.report import plan_diff


class ActionModule(PlanningAction):
    """disk_plan_diff: what a change does to plans."""

    NEEDS_LIBRARIES = False
    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        "before": {"type": "raw", "required": True},
        "after": {"type": "raw", "required": True},
        "hosts": {"type": "list", "elements": "str"},
        "tolerance": {"type": "float", "default": 0},
        "fail_on": {"type": "list", "elements": "str", "choices": [str(kind) for kind in ORDER[1:]], "default": []},
    }

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Compare the plans of all hosts, or of those that are asked for."""
        tolerance = arguments["tolerance"]
        if not 0 <= tolerance <= 100:
            raise InputError([Mistake("tolerance", f"is {tolerance}; must be per cent, from 0 to 100")])
        both = (by_host(name, arguments[name]) for name in ("before", "after"))
        found = plan_diff(next(both), next(both), arguments["hosts"], tolerance)
        result = found.to_plain() | {"warnings": found.warnings()}
        wrong = found.with_kinds(arguments["fail_on"])
        says = f"plans of {len(wrong)} of {len(found.changes)} hosts have changes of kinds that fail_on names"
        return result | failure(f"{says}\n{result['summary']}") if wrong else result
