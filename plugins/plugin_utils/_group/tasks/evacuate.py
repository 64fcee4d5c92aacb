# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What group_evacuate answers: names in, plain data by name out; the work is in evacuation.py and plan/stages.py."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ....module_utils._data.errors import InputError, Mistake, Mistakes
from ..cluster.model import Cluster
from ..cluster.moves import Move
from ..cluster.state import ClusterState
from ..evacuate.evacuation import Evacuation, Unplaced, evacuate
from ..evacuate.task import AcrossGroups, EvacuationMode, Task, tasks_of_instances, tasks_of_nodes
from ..metrics.score import ScoreMode
from ..plan.order import Guard
from ..plan.plain import move_to_plain, node_names, plan_to_plain, restarted
from ..plan.stages import stages
from ..sources.loaded import Loaded
from .place import positions_of, reason_to_plain

Plain = dict[str, t.Any]


def run_evacuate(loaded: Loaded, arguments: Mapping[str, t.Any]) -> Plain:
    """Return what the action group_evacuate documents, for the arguments of group_evacuate.

    With neither nodes nor instances, the instances are those of a request to evacuate in an IAllocator message, or else
    those on nodes that are not up. Raises InputError with all mistakes.
    """
    cluster = loaded.cluster
    state = ClusterState.from_cluster(cluster)
    result = evacuate(
        state,
        _tasks(state, loaded, arguments),
        AcrossGroups(arguments.get("across_groups", AcrossGroups.NO)),
        ScoreMode(arguments.get("score", ScoreMode.HTOOLS)),
    )
    return evacuation_to_plain(state, result, ScoreMode(arguments.get("score", ScoreMode.HTOOLS)))


def evacuation_to_plain(state: ClusterState, result: Evacuation, mode: ScoreMode) -> Plain:
    """Return an evacuation as plain data."""
    cluster = state.facts.cluster
    moves_of: dict[int, list[Move]] = {}
    for move in result.moves:
        moves_of.setdefault(move.instance, []).append(move)
    return {
        "placed": [
            {
                "instance": state.facts.instances.names[instance],
                "group": cluster.groups[state.facts.nodes.group[moves[-1].target[0]]].name,
                "nodes": node_names(state, moves[-1].target),
                "moves": [move_to_plain(state, move) for move in moves],
                "relaxed": instance in result.relaxed,
            }
            for instance, moves in moves_of.items()
        ],
        "unplaced": [_unplaced(cluster, unplaced) for unplaced in result.unplaced],
        "plan": plan_to_plain(state, stages(state, result.moves, Guard.at_every_step(state)), mode),
        "restarts": [state.facts.instances.names[instance] for instance in restarted(state, result.moves)],
    }


def _unplaced(cluster: Cluster, unplaced: Unplaced) -> Plain:
    name = cluster.instances[unplaced.instance].name
    return {"instance": name, "reasons": [reason_to_plain(cluster, reason) for reason in unplaced.reasons]}


def _tasks(state: ClusterState, loaded: Loaded, arguments: Mapping[str, t.Any]) -> list[Task]:
    cluster = loaded.cluster
    mistakes = Mistakes()
    mode = EvacuationMode(arguments.get("mode", EvacuationMode.ALL))
    names, place = arguments.get("instances"), "instances"
    if names is None and arguments.get("nodes") is None and loaded.request.get("type") == "node-evacuate":
        names, place = loaded.request.get("instances"), "request.instances"
    if names is not None:
        instances = positions_of(names, cluster.instance_positions(), "instance", place, mistakes)
        mistakes.check()
        return tasks_of_instances(state, instances, mode)
    if arguments.get("nodes") is None:
        return tasks_of_nodes(state, [node for node in range(len(cluster.nodes)) if state.offline[node]], mode)
    nodes = positions_of(arguments["nodes"], cluster.node_positions(), "node", "nodes", mistakes)
    mistakes.check()
    if not nodes:
        raise InputError([Mistake("nodes", "is empty; name the nodes to empty, or leave it out for all that are offline")])
    return tasks_of_nodes(state, nodes, mode)
