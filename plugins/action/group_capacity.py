# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Count what still fits on the controller: arguments to one call of plugin_utils._group, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..plugin_utils._bridge.cluster_source import load_any_cluster
from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._common.parallel import Resources
from ..plugin_utils._group.arguments import CLUSTER_ARGUMENTS, CLUSTER_CONSTRAINTS, PARALLEL_ARGUMENTS, TOLERANCE_ARGUMENTS
from ..plugin_utils._group.tasks.capacity import run_capacity
from ..plugin_utils._group.tasks.parallel import in_parallel


class ActionModule(PlanningAction):
    """group_capacity: how many more instances of a size fit, and what to add for more."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        **CLUSTER_ARGUMENTS,
        **TOLERANCE_ARGUMENTS,
        **PARALLEL_ARGUMENTS,
        "spec": {"type": "dict"},
        "tiered": {"type": "bool", "default": False},
        "want": {"type": "int"},
        "groups": {"type": "list", "elements": "str"},
        "strategy": {"type": "str", "choices": ["auto", "balanced", "partitioned"], "default": "auto"},
        "score": {"type": "str", "choices": ["htools", "capacity"], "default": "capacity"},
    }
    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = CLUSTER_CONSTRAINTS

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Count."""
        loaded = load_any_cluster(arguments, self._loader.path_dwim)
        resources = Resources.of(arguments)
        run = in_parallel(resources, self.show_progress, [group.name for group in loaded.cluster.groups])
        return run_capacity(loaded, arguments, run)
