# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Balance groups on the controller: arguments to one call of plugin_utils._group, and its answer to a result."""

from __future__ import annotations

import functools
import typing as t
from collections.abc import Mapping

from ..plugin_utils._bridge.cluster_source import load_any_cluster
from ..plugin_utils._common.action import PlanningAction
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
from ..plugin_utils._group.tasks.balance import run_balance
from ..plugin_utils._group.tasks.storages import run_storages


class ActionModule(PlanningAction):
    """group_balance: moves after which the nodes of groups are used evenly."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        **CLUSTER_ARGUMENTS,
        **TOLERANCE_ARGUMENTS,
        **TURN_ARGUMENTS,
        **ONLY_ARGUMENTS,
        **LINK_ARGUMENTS,
        **SCORE_ARGUMENTS,
        **BALANCING_ARGUMENTS,
        **PARALLEL_ARGUMENTS,
        "of": {"type": "str", "choices": ["instances", "storage"], "default": "instances"},
        "tolerance": {"type": "float"},
        "groups": {"type": "list", "elements": "str"},
        "max_groups": {"type": "int", "default": 1},
        "mode": {"type": "str", "choices": ["score", "htools"], "default": "score"},
        "max_moves": {"type": "int"},
        "evacuation": {"type": "bool", "default": False},
        "pareto": {"type": "bool", "default": False},
        "export": {"type": "list", "elements": "str", "choices": ["cluster", "ganeti_text"], "default": []},
    }
    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = CLUSTER_CONSTRAINTS

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Balance the groups, or the storages."""
        loaded = load_any_cluster(arguments, self._loader.path_dwim)
        if arguments["of"] == "storage":
            return run_storages(loaded, arguments, {name: rule.get("default") for name, rule in self.ARGUMENTS.items()})
        solve = functools.partial(solve_each, progress=self.show_progress)
        return run_balance(loaded, arguments, solve, self.renew_progress)
