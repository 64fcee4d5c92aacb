# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Follow a cluster on the controller: arguments, a record and the time to one call of plugin_utils._group, and its answer to a result."""

from __future__ import annotations

import functools
import json
import typing as t
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

from ..module_utils._data.containers import read_all
from ..module_utils._data.errors import InputError, Mistake
from ..plugin_utils._bridge.cluster_source import load_any_cluster
from ..plugin_utils._bridge.states import STATE_ARGUMENTS, check_state, is_in_ledger, kept_in_ledger
from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._common.lasting import loss_warnings
from ..plugin_utils._common.parallel import solve_each
from ..plugin_utils._group.arguments import (
    BALANCING_ARGUMENTS,
    CLUSTER_ARGUMENTS,
    CLUSTER_CONSTRAINTS,
    LINK_ARGUMENTS,
    ONLY_ARGUMENTS,
    PARALLEL_ARGUMENTS,
    SCORE_ARGUMENTS,
    TOLERANCE_ARGUMENTS,
    TURN_ARGUMENTS,
)
from ..plugin_utils._group.follow.lock import take, this_run
from ..plugin_utils._group.follow.record import Moment, read_record, record_to_plain, write_record
from ..plugin_utils._group.plan.kept import Kept, KeptFile
from ..plugin_utils._group.tasks.follow import run_follow


class ActionModule(PlanningAction):
    """group_follow: few moves, when groups have become uneven or something is wrong with them."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        **CLUSTER_ARGUMENTS,
        **TOLERANCE_ARGUMENTS,
        **TURN_ARGUMENTS,
        **ONLY_ARGUMENTS,
        **LINK_ARGUMENTS,
        **SCORE_ARGUMENTS,
        **BALANCING_ARGUMENTS,
        **PARALLEL_ARGUMENTS,
        **STATE_ARGUMENTS,
        "state_file": {"type": "path"},
        "groups": {"type": "list", "elements": "str"},
        "measure": {"type": "str", "choices": ["imbalance", "score"], "default": "imbalance"},
        "resources": {"type": "list", "elements": "str", "choices": ["memory", "disk", "cpus", "cpu_load"], "default": ["memory", "cpus"]},
        "above": {"type": "dict", "options": {name: {"type": "float"} for name in ("memory", "disk", "cpu")}},
        "threshold": {"type": "float"},
        "target": {"type": "float"},
        "confirm": {"type": "float", "default": 0.0},
        "cooldown": {"type": "float", "default": 3600.0},
        "rest": {"type": "float", "default": 21600.0},
        "urgent": {
            "type": "list",
            "elements": "str",
            "choices": ["down", "drained", "limits", "n1"],
            "default": ["down", "drained", "limits", "n1"],
        },
        "urgent_polls": {"type": "int", "default": 2},
        "windows": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "days": {"type": "list", "elements": "str", "choices": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]},
                "from": {"type": "str", "required": True},
                "to": {"type": "str", "required": True},
            },
        },
        "timezone": {"type": "str"},
        "act": {"type": "bool", "default": True},
        "now": {"type": "str"},
        "max_moves": {"type": "int", "default": 10},
    }
    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = CLUSTER_CONSTRAINTS

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Say what is done now, and keep what the next run has to know."""
        check_state(arguments, ["state_file"])
        if is_in_ledger(arguments):
            with kept_in_ledger(arguments, "follow", writes=not self._task.check_mode) as kept:
                result = self._followed(arguments, kept)
                # Without moves nobody has anything to carry out.
                kept.hold = arguments["hold"] if result["plan"]["moves"] else 0
            return {**result, "warnings": [*result["warnings"], *kept.warnings]}
        if arguments["state_file"] is None:
            raise InputError([Mistake("state_file", "is missing; must be a path")])
        path = Path(self._loader.path_dwim(arguments["state_file"]))
        if not self._task.check_mode:
            take(path, this_run())
        result = self._followed(arguments, KeptFile(path, "state_file"))
        return {**result, "warnings": [*result["warnings"], *loss_warnings(path, "state_file, in the playbook follow_folder")]}

    def _followed(self, arguments: dict[str, t.Any], kept: Kept) -> dict[str, t.Any]:
        now = datetime.now(timezone.utc) if arguments["now"] is None else read_all(Moment(), arguments["now"], "now")
        before = read_record(kept)
        loaded = load_any_cluster(arguments, self._loader.path_dwim)
        solve = functools.partial(solve_each, progress=self.show_progress)
        followed = run_follow(loaded, arguments, before, now.replace(microsecond=0), solve, self.renew_progress)
        changed = followed.record != before
        if changed and not self._task.check_mode:
            write_record(kept, followed.record)
        texts = [f"{json.dumps(record_to_plain(record), indent=1)}\n" if changed else "" for record in (before, followed.record)]
        diff = {"before_header": str(kept), "after_header": str(kept), "before": texts[0], "after": texts[1]}
        return {**followed.answer, "warnings": [*followed.answer.get("warnings", ())], "changed": changed, "diff": diff}
