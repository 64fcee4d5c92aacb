# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan rolling maintenance on the controller: arguments to one call of plugin_utils._group, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..plugin_utils._bridge.cluster_source import load_any_cluster
from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._group.arguments import CLUSTER_ARGUMENTS, CLUSTER_CONSTRAINTS, LINK_ARGUMENTS
from ..plugin_utils._group.tasks.maintenance import run_maintenance


class ActionModule(PlanningAction):
    """group_maintenance: sets of nodes that may be down together, and what leaves them before."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        **CLUSTER_ARGUMENTS,
        **LINK_ARGUMENTS,
        "nodes": {"type": "list", "elements": "str"},
        "groups": {"type": "list", "elements": "str"},
        "node_tags": {"type": "list", "elements": "str"},
        "offline_maintenance": {"type": "bool", "default": False},
        "full_evacuation": {"type": "bool", "default": False},
        "non_redundant": {"type": "str", "choices": ["move", "skip", "ignore"], "default": "move"},
        "max_nodes": {"type": "int"},
    }
    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = CLUSTER_CONSTRAINTS

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Plan the moves."""
        return run_maintenance(load_any_cluster(arguments, self._loader.path_dwim), arguments)
