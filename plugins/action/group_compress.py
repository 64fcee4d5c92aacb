# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find groups to empty on the controller: arguments to one call of plugin_utils._group, and its answer to a result."""

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
from ..plugin_utils._group.tasks.compress import run_compress
from ..plugin_utils._group.tasks.parallel import in_parallel


class ActionModule(PlanningAction):
    """group_compress: which groups can be emptied, and the moves that empty one."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        **CLUSTER_ARGUMENTS,
        **TOLERANCE_ARGUMENTS,
        **TURN_ARGUMENTS,
        **ONLY_ARGUMENTS,
        **LINK_ARGUMENTS,
        **SCORE_ARGUMENTS,
        **PARALLEL_ARGUMENTS,
        "groups": {"type": "list", "elements": "str"},
        "group": {"type": "str"},
    }
    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = {
        "mutually_exclusive": [*CLUSTER_CONSTRAINTS["mutually_exclusive"], ("group", "groups")],
        "required_one_of": CLUSTER_CONSTRAINTS["required_one_of"],
    }

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Plan the moves."""
        loaded = load_any_cluster(arguments, self._loader.path_dwim)
        resources = Resources.of(arguments)
        run = in_parallel(resources, self.show_progress, [group.name for group in loaded.cluster.groups])
        return run_compress(loaded, arguments, run)
