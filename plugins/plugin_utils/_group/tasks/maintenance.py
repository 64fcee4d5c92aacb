# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What group_maintenance and group_squeeze answer: names in, plain data by name out."""

from __future__ import annotations

import dataclasses
import shlex
import typing as t
from collections.abc import Mapping

from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import refuse_less
from ..cluster.changes import with_places
from ..cluster.commands import Command, StepKind, command_of
from ..cluster.model import Manager
from ..cluster.state import ClusterState
from ..evacuate.downtime import DowntimeOptions, NonRedundant, back, targets
from ..evacuate.rolling_maintenance import NodeSet, roll
from ..evacuate.squeezing import room_wanted, squeeze
from ..metrics.score import ScoreMode
from ..plan.order import Guard, reserves_left
from ..plan.plain import plan_to_plain
from ..plan.stages import stages
from ..sources.loaded import Loaded
from .evacuate import positions_of
from .left_out import left_out_of_moves, with_left_out, with_notes
from .redistribute import chosen_groups
from .summaries import maintenance_summary, squeeze_summary

Plain = dict[str, t.Any]


def run_maintenance(loaded: Loaded, arguments: Mapping[str, t.Any]) -> Plain:
    """Return what the action group_maintenance documents. Raises InputError with all mistakes."""
    state = ClusterState.from_cluster(loaded.cluster)
    names = state.facts.nodes.names
    options = DowntimeOptions(
        offline=arguments.get("offline_maintenance", False),
        full=arguments.get("full_evacuation", False),
        non_redundant=NonRedundant(arguments.get("non_redundant", NonRedundant.MOVE)),
    )
    mistakes = Mistakes()
    refuse_less(arguments, {"max_nodes": 1}, mistakes)
    mistakes.check()
    rollout = roll(state, _nodes(state, arguments), options, arguments.get("max_nodes"))
    answer = {
        "sets": [_set_to_plain(state, members) for members in rollout.sets],
        "left_out": [
            {"node": names[node], "instance": state.facts.instances.names[stuck.instance], "says": stuck.says}
            for node, stuck in rollout.skipped
        ],
    }
    return with_notes(loaded.cluster, answer | {"summary": maintenance_summary(answer)})


def _nodes(state: ClusterState, arguments: Mapping[str, t.Any]) -> list[int]:
    """Return the nodes that are to be maintained: of those that are named all that answer, else those that are neither down nor drained."""
    cluster = state.facts.cluster
    groups = chosen_groups(state, arguments.get("groups"))
    mistakes = Mistakes()
    named = arguments.get("nodes")
    chosen = range(len(cluster.nodes)) if named is None else positions_of(named, cluster.node_positions(), "node", "nodes", mistakes)
    mistakes.check()
    tags = arguments.get("node_tags")

    def is_meant(node: int) -> bool:
        tagged = tags is None or bool(set(tags) & set(cluster.nodes[node].tags))
        there = state.answers(node) if named is not None else not state.offline[node]
        return tagged and bool(there) and state.facts.nodes.group[node] in groups

    return [node for node in chosen if is_meant(node)]


def _set_to_plain(state: ClusterState, members: NodeSet) -> Plain:
    names, instances = state.facts.nodes.names, state.facts.instances
    away = stages(state, members.departure.moves, Guard.at_every_step(state))
    after = with_places(state, targets(members.departure))
    return {
        "nodes": [names[node] for node in members.nodes],
        "plan": plan_to_plain(state, away, ScoreMode.HTOOLS),
        "carried": [
            {
                "instance": instances.names[instance],
                "from": [names[state.primary[instance]]],
                "to": [names[node]],
                "data": int(instances.disk[instance]),
                "commands": [_carry(state, instance, names[node])],
            }
            for instance, node in members.departure.carried
        ],
        "back": plan_to_plain(
            after, stages(after, back(state, members.nodes, members.departure), Guard.at_every_step(after)), ScoreMode.HTOOLS
        ),
    }


def _carry(state: ClusterState, instance: int, node: str) -> str:
    """Return the command that carries an instance with the disks of its node to another one."""
    cluster, model = state.facts.cluster, state.facts.instances.models[instance]
    if cluster.manager == Manager.GANETI:
        return f"gnt-instance move -f -n {shlex.quote(node)} {shlex.quote(model.name)}"
    return command_of(cluster.manager, Command(StepKind.MIGRATE, model, node, mirrored=False, online=True))


def run_squeeze(loaded: Loaded, arguments: Mapping[str, t.Any]) -> Plain:
    """Return what the action group_squeeze documents. Raises InputError with all mistakes."""
    cluster = loaded.cluster
    mistakes = Mistakes()
    factors = {name: arguments.get(name, 2.0) for name in ("target_resources", "minimal_resources")}
    refuse_less(factors, dict.fromkeys(factors, 0), mistakes)
    mistakes.check()
    target, minimum = (room_wanted(cluster, factor) for factor in factors.values())
    found = squeeze(cluster, target, minimum, arguments.get("redundant", True))
    names = [node.name for node in cluster.nodes]
    # The cluster with these nodes online.
    members = tuple(
        dataclasses.replace(node, offline=node.offline and position not in found.power_on) for position, node in enumerate(cluster.nodes)
    )
    state = ClusterState.from_cluster(dataclasses.replace(cluster, nodes=members))
    guard = Guard.at_every_step(state, reserves_left(state, [move.instance for move in found.moves]))
    off, on = (nodes if cluster.manager == Manager.GANETI else () for nodes in (found.power_off, found.power_on))
    answer = {
        "power_off": [names[node] for node in found.power_off],
        "power_on": [names[node] for node in found.power_on],
        "lacking": [names[node] for node in found.lacking],
        "plan": plan_to_plain(state, stages(state, found.moves, guard), ScoreMode.HTOOLS),
        "commands_after": [f"gnt-node add-tags {shlex.quote(names[node])} htools:standby:auto" for node in off]
        + [f"gnt-node power -f off {shlex.quote(names[node])}" for node in off],
        "commands_before": [f"gnt-node power -f on {shlex.quote(names[node])}" for node in on]
        + [f"gnt-node modify --offline no {shlex.quote(names[node])}" for node in on],
    }
    return with_left_out(with_notes(cluster, answer | {"summary": squeeze_summary(answer)}), left_out_of_moves(cluster))
