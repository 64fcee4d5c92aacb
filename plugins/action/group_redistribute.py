# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Heal or level groups on the controller: arguments to one call of plugin_utils._group, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..plugin_utils._bridge.cluster_source import load_any_cluster
from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._common.parallel import Resources
from ..plugin_utils._group.arguments import (
    CLUSTER_ARGUMENTS,
    CLUSTER_CONSTRAINTS,
    LINK_ARGUMENTS,
    ONLY_ARGUMENTS,
    PARALLEL_ARGUMENTS,
    SCORE_ARGUMENTS,
    TOLERANCE_ARGUMENTS,
    TURN_ARGUMENTS,
)
from ..plugin_utils._group.tasks.parallel import in_parallel
from ..plugin_utils._group.tasks.redistribute import run_redistribute


class ActionModule(PlanningAction):
    """group_redistribute: moves inside and between groups that make ill ones healthy, or level their load."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        **CLUSTER_ARGUMENTS,
        **TOLERANCE_ARGUMENTS,
        **TURN_ARGUMENTS,
        **ONLY_ARGUMENTS,
        **LINK_ARGUMENTS,
        **SCORE_ARGUMENTS,
        **PARALLEL_ARGUMENTS,
        "by": {"type": "str", "choices": ["health", "load"], "default": "health"},
        "groups": {"type": "list", "elements": "str"},
        "across_groups": {"type": "bool", "default": True},
        "tolerance": {"type": "float", "default": 0.2},
        "min_gain": {"type": "float", "default": 0.001},
        "max_moves": {"type": "int"},
        "disk_moves": {"type": "bool", "default": False},
        "load": {"type": "dict"},
        "node_load": {"type": "dict"},
        "time_limit": {"type": "float"},
    }
    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = CLUSTER_CONSTRAINTS

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Plan the moves."""
        loaded = load_any_cluster(arguments, self._loader.path_dwim)
        resources = Resources.of(arguments)
        run = in_parallel(resources, self.show_progress, [group.name for group in loaded.cluster.groups])
        return run_redistribute(loaded, arguments, run)
