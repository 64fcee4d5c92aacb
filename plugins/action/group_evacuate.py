# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Empty nodes on the controller: arguments to one call of plugin_utils._group, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..plugin_utils._bridge.cluster_source import load_any_cluster
from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._group.arguments import (
    CLUSTER_ARGUMENTS,
    CLUSTER_CONSTRAINTS,
    LINK_ARGUMENTS,
    SCORE_ARGUMENTS,
    TOLERANCE_ARGUMENTS,
    TURN_ARGUMENTS,
)
from ..plugin_utils._group.tasks.evacuate import run_evacuate
from ..plugin_utils._group.tasks.left_out import left_out_of_evacuation, with_left_out, with_notes
from ..plugin_utils._group.tasks.place import evacuation_summary


class ActionModule(PlanningAction):
    """group_evacuate: new places for the instances of nodes, and the moves that bring them there."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        **CLUSTER_ARGUMENTS,
        **TOLERANCE_ARGUMENTS,
        **TURN_ARGUMENTS,
        **LINK_ARGUMENTS,
        **SCORE_ARGUMENTS,
        "nodes": {"type": "list", "elements": "str"},
        "instances": {"type": "list", "elements": "str"},
        "mode": {"type": "str", "choices": ["primary", "secondary", "all"], "default": "all"},
        "across_groups": {"type": "str", "choices": ["false", "true", "only"], "default": "false"},
    }
    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = {
        "mutually_exclusive": [*CLUSTER_CONSTRAINTS["mutually_exclusive"], ("nodes", "instances")],
        "required_one_of": CLUSTER_CONSTRAINTS["required_one_of"],
    }

    def _validated_arguments(self) -> dict[str, t.Any]:
        # YAML reads `across_groups: true` as a boolean, which the list of choices would not know.
        across = self._task.args.get("across_groups")
        if isinstance(across, bool):
            self._task.args = {**self._task.args, "across_groups": str(across).lower()}
        return super()._validated_arguments()

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Plan the evacuation."""
        loaded = load_any_cluster(arguments, self._loader.path_dwim)
        answer = run_evacuate(loaded, arguments)
        noted = with_notes(loaded.cluster, answer | {"summary": evacuation_summary(answer)})
        return with_left_out(noted, left_out_of_evacuation(answer))
