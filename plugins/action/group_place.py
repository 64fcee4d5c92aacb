# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find places for instances on the controller: arguments to one call of plugin_utils._group, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..plugin_utils._bridge.cluster_source import load_any_cluster
from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._group.arguments import CLUSTER_ARGUMENTS, CLUSTER_CONSTRAINTS, LINK_ARGUMENTS, SCORE_ARGUMENTS, TOLERANCE_ARGUMENTS
from ..plugin_utils._group.tasks.left_out import with_notes
from ..plugin_utils._group.tasks.place import place, place_summary


class ActionModule(PlanningAction):
    """group_place: every group that can take an instance, best first, and why the others cannot."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        **CLUSTER_ARGUMENTS,
        **TOLERANCE_ARGUMENTS,
        **LINK_ARGUMENTS,
        **SCORE_ARGUMENTS,
        "instances": {"type": "list", "elements": "dict"},
        "group": {"type": "str"},
        "nodes": {"type": "list", "elements": "str"},
        "strategy": {"type": "str", "choices": ["auto", "balanced", "partitioned"], "default": "auto"},
        "make_room": {"type": "bool", "default": False},
    }
    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = CLUSTER_CONSTRAINTS

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Place the instances."""
        loaded = load_any_cluster(arguments, self._loader.path_dwim)
        answer = place(loaded, arguments)
        return with_notes(loaded.cluster, answer | {"summary": place_summary(answer)})
