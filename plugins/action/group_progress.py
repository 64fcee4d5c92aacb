# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep the journal of a plan on the controller: arguments to one call of plugin_utils._group, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..plugin_utils._bridge.states import JOURNAL, STATE_ARGUMENTS, check_state, is_in_ledger, kept_in_ledger
from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._common.lasting import loss_warnings
from ..plugin_utils._group.plan.journal import follow, journal_of


class ActionModule(PlanningAction):
    """group_progress: how far a plan of moves has been carried out, and what may be done next."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        **STATE_ARGUMENTS,
        "plan": {"type": "dict"},
        "directory": {"type": "path"},
        "journal": {"type": "path"},
        "kinds": {"type": "list", "elements": "str"},
        "where": {"type": "dict"},
        "storages": {"type": "dict"},
        "outcomes": {
            "type": "list",
            "elements": "dict",
            "options": {
                "move": {"type": "int", "required": True},
                "step": {"type": "int", "required": True},
                "failed": {"type": "bool", "default": False},
                "message": {"type": "str", "default": ""},
                "job": {"type": "str", "default": ""},
            },
        },
        "round": {
            "type": "dict",
            "options": {
                "steps": {"type": "list", "elements": "dict", "required": True},
                "seconds": {"type": "float", "required": True},
            },
        },
        "at_once": {"type": "int", "default": 1},
        "per_node": {"type": "int", "default": 0},
    }
    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = {
        "mutually_exclusive": [("plan", "journal")],
        "required_one_of": [("plan", "journal")],
        "required_by": {"directory": ["plan"]},
    }

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Note what was reported and return the next steps."""
        check_state(arguments, ["directory"])
        writes = not self._task.check_mode
        if is_in_ledger(arguments):
            with kept_in_ledger(arguments, f"{JOURNAL}{journal_of(arguments, in_files=False)}", writes=writes) as kept:
                result = follow(arguments, write=writes, kept=kept)
                kept.hold = arguments["hold"]
            return {**result, "warnings": kept.warnings}
        for name in ("directory", "journal"):
            if arguments[name] is not None:
                arguments[name] = self._loader.path_dwim(arguments[name])
        result = follow(arguments, write=writes)
        return {**result, "warnings": loss_warnings(result["journal"], "directory, in the role group_moves_journals")}
