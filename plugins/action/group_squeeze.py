# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find nodes to power off on the controller: arguments to one call of plugin_utils._group, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..plugin_utils._bridge.cluster_source import load_any_cluster
from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._group.arguments import CLUSTER_ARGUMENTS, CLUSTER_CONSTRAINTS, LINK_ARGUMENTS, TOLERANCE_ARGUMENTS
from ..plugin_utils._group.tasks.maintenance import run_squeeze


class ActionModule(PlanningAction):
    """group_squeeze: nodes that can be powered off, or must be powered on again, and the moves."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        **CLUSTER_ARGUMENTS,
        **LINK_ARGUMENTS,
        **TOLERANCE_ARGUMENTS,
        "target_resources": {"type": "float", "default": 2.0},
        "minimal_resources": {"type": "float", "default": 2.0},
        "redundant": {"type": "bool", "default": True},
    }
    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = CLUSTER_CONSTRAINTS

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Plan the moves."""
        return run_squeeze(load_any_cluster(arguments, self._loader.path_dwim), arguments)
