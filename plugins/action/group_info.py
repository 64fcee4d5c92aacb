# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Report the state of a cluster on the controller: arguments to one call of plugin_utils._group, and its answer to a result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..plugin_utils._bridge.cluster_source import load_any_cluster
from ..plugin_utils._common.action import PlanningAction
from ..plugin_utils._group.arguments import CLUSTER_ARGUMENTS, CLUSTER_CONSTRAINTS, TOLERANCE_ARGUMENTS
from ..plugin_utils._group.metrics.score import ScoreMode
from ..plugin_utils._group.sources.inline import write_inline
from ..plugin_utils._group.sources.text import write_text
from ..plugin_utils._group.tasks.info import report, summary


class ActionModule(PlanningAction):
    """group_info: scores, capacity and problems of a cluster and its groups."""

    ARGUMENTS: t.ClassVar[Mapping[str, t.Any]] = {
        **CLUSTER_ARGUMENTS,
        **TOLERANCE_ARGUMENTS,
        "export": {"type": "list", "elements": "str", "choices": ["cluster", "ganeti_text"], "default": []},
        "score": {"type": "str", "choices": ["htools", "capacity"], "default": "htools"},
    }
    CONSTRAINTS: t.ClassVar[Mapping[str, t.Any]] = CLUSTER_CONSTRAINTS

    def plan(self, arguments: dict[str, t.Any], task_vars: Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Report on the cluster."""
        loaded = load_any_cluster(arguments, self._loader.path_dwim)
        answer = report(loaded.cluster, ScoreMode(arguments["score"]))
        writers = {"cluster": write_inline, "ganeti_text": write_text}
        exported = {name: writers[name](loaded.cluster) for name in arguments["export"]}
        return answer | {"summary": summary(answer)} | exported
