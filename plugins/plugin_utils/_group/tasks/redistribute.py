# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What group_redistribute answers: names in, plain data by name out; the work is in redistribution.py and load_balancing.py."""

from __future__ import annotations

import time
import typing as t
from collections.abc import Mapping, Sequence
from enum import StrEnum

from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import refuse_less
from ..cluster.loads import read_loads, with_loads
from ..cluster.model import Cluster
from ..cluster.state import ClusterState
from ..metrics.health import Health, group_health, peer_groups
from ..metrics.score import ScoreMode
from ..place.refusal import Reason, Refusal
from ..plan.order import Guard, reserves_left
from ..plan.plain import plan_to_plain
from ..plan.stages import stages
from ..redistribute.load_balancing import KINDS, GroupLoads, LoadOptions, balance_load
from ..redistribute.redistribution import Missing, Repair, Run, moved_out, redistribute
from ..sources.loaded import Loaded
from .left_out import left_out_of_moves, with_left_out, with_notes
from .place import find_group, reason_to_plain
from .summaries import load_summary, redistribution_summary

Plain = dict[str, t.Any]


class By(StrEnum):
    """What is redistributed for: the health of each group, or the same load in all of them."""

    HEALTH = "health"
    LOAD = "load"


def run_redistribute(loaded: Loaded, arguments: Mapping[str, t.Any], run: Run = map) -> Plain:
    """Return what the action group_redistribute documents. Raises InputError with all mistakes."""
    state = ClusterState.from_cluster(_measured(loaded.cluster, arguments))
    groups = chosen_groups(state, arguments.get("groups"))
    mistakes = Mistakes()
    refuse_less(arguments, {"tolerance": 0, "min_gain": 0, "max_moves": 0, "workers": 0, "time_limit": 0}, mistakes)
    mistakes.check()
    given = {name: arguments[name] for name in ("tolerance", "min_gain", "max_moves", "disk_moves") if arguments.get(name) is not None}
    options = LoadOptions(sources=tuple(groups), **given)
    mode = ScoreMode(arguments.get("score", ScoreMode.HTOOLS))
    if By(arguments.get("by", By.HEALTH)) == By.LOAD:
        return _balanced(state, options, mode)
    seconds = arguments.get("time_limit")
    until = None if seconds is None else time.time() + seconds
    repairs, after = redistribute(state, groups, arguments.get("across_groups", True), mode, run, until)
    by_group = {repair.group: _repair_to_plain(state, repair) for repair in repairs}
    moves = [move for repair in repairs for move in repair.moves]
    guard = Guard.at_every_step(state, reserves_left(state, [move.instance for move in moves]))
    plan = stages(state, moves, guard)
    healthy = all(repair.after.healthy for repair in repairs)
    answer = {
        "healthy": healthy,
        "groups": [by_group.get(group) or _healthy_to_plain(state, group) for group in groups],
        "plan": plan_to_plain(state, plan, mode),
    }
    return with_left_out(
        with_notes(loaded.cluster, answer | {"summary": redistribution_summary(answer)}), left_out_of_moves(loaded.cluster)
    )


def _measured(cluster: Cluster, arguments: Mapping[str, t.Any]) -> Cluster:
    """Return the cluster with the loads that were measured."""
    mistakes = Mistakes()
    loads = read_loads(arguments, "load", [instance.name for instance in cluster.instances], "instance", mistakes)
    nodes = read_loads(arguments, "node_load", [node.name for node in cluster.nodes], "node", mistakes)
    mistakes.check()
    return with_loads(cluster, loads, nodes)


def chosen_groups(state: ClusterState, names: Sequence[str] | None) -> list[int]:
    """Return the positions of named groups, by default of all; raise InputError for unknown ones."""
    cluster = state.facts.cluster
    if names is None:
        return list(range(len(cluster.groups)))
    mistakes = Mistakes()
    found = [find_group(cluster, name, f"groups[{position}]", mistakes) for position, name in enumerate(names)]
    mistakes.check()
    return list(dict.fromkeys(group for group in found if group is not None))


def _healthy_to_plain(state: ClusterState, group: int) -> Plain:
    return _group_to_plain(state, group_health(state, group)) | {
        "healed": True,
        "causes": [],
        "moved_inside": [],
        "moved_out": [],
        "fewest": True,
        "complete": True,
        "missing": [],
        "remains": _illness_to_plain(state, Health(group, (), {}, {})),
    }


def _repair_to_plain(state: ClusterState, repair: Repair) -> Plain:
    names = state.facts.instances.names
    out = moved_out(state, repair)
    return _group_to_plain(state, repair.before) | {
        "healed": repair.after.healthy,
        "causes": [{"instance": names[instance], "cause": str(cause)} for instance, cause in repair.causes.items()],
        "moved_inside": [names[move.instance] for move in repair.moves if move.instance not in out],
        "moved_out": [names[instance] for instance in out],
        "fewest": repair.proven,
        "complete": repair.in_time,
        "missing": [missing_to_plain(state, missing) for missing in repair.missing],
        "remains": _illness_to_plain(state, repair.after),
    }


def _group_to_plain(state: ClusterState, health: Health) -> Plain:
    groups = state.facts.cluster.groups
    return {
        "group": groups[health.group].name,
        "healthy": health.healthy,
        "peers": [groups[peer].name for peer in peer_groups(state, health.group)],
        **_illness_to_plain(state, health),
    }


def _illness_to_plain(state: ClusterState, health: Health) -> Plain:
    facts = state.facts

    def by_node(short: Mapping[int, int]) -> list[Plain]:
        return [{"node": facts.nodes.names[node], "short": missing} for node, missing in short.items()]

    return {
        "on_offline_nodes": [facts.instances.names[instance] for instance in health.offline],
        "n1_failing": by_node(health.short),
        "shared_n1_failing": by_node(health.stranded),
    }


def missing_to_plain(state: ClusterState, missing: Missing) -> Plain:
    """Return an instance that finds no place as plain data, with what each group lacks for it."""
    facts = state.facts
    return {
        "instance": facts.instances.names[missing.instance],
        "says": missing.says,
        "groups": [
            {
                "group": facts.cluster.groups[refusal.group].name,
                "nearest": reason_to_plain(facts.cluster, nearest(state, missing.instance, refusal)),
                "reasons": [reason_to_plain(facts.cluster, reason) for reason in refusal.reasons],
            }
            for refusal in missing.refusals
        ],
    }


def nearest(state: ClusterState, instance: int, refusal: Refusal) -> Reason:
    """Return the reason that least would have to change for, in proportion to what the instance needs."""
    model = state.facts.instances.models[instance]
    needs = {"disk": model.disk, "pool": model.disk, "cpus": model.vcpus, "spindle_use": model.spindle_use, "spindles": model.spindles or 1}
    memory = {"memory", "redundancy", "shared_redundancy"}

    def part(reason: Reason) -> float:
        if reason.limit in memory or reason.limit in needs:
            return reason.short / max(model.memory if reason.limit in memory else needs[reason.limit], 1)
        return float("inf")

    return min(refusal.reasons, key=part)


def _balanced(state: ClusterState, options: LoadOptions, mode: ScoreMode) -> Plain:
    found = balance_load(state, options, mode)
    names = [group.name for group in state.facts.cluster.groups]
    words = {1: "high", -1: "low", 0: None}
    before, after = found.before.outliers(options.tolerance), found.after.outliers(options.tolerance)
    plan = stages(state, found.moves, Guard.at_every_step(state))
    answer = {
        "load_score_before": found.before.score,
        "load_score_after": found.after.score,
        "groups": [
            {
                "group": name,
                "load": _kinds(found.before.load[:, group]),
                "capacity": _kinds(found.before.capacity[:, group]),
                "pressure": _pressure(found.before, group),
                "outlier": words[int(before[group])],
                "pressure_after": _pressure(found.after, group),
                "outlier_after": words[int(after[group])],
            }
            for group, name in enumerate(names)
        ],
        "plan": plan_to_plain(state, plan, mode),
    }
    cluster = state.facts.cluster
    return with_left_out(with_notes(cluster, answer | {"summary": load_summary(answer)}), left_out_of_moves(cluster))


def _pressure(loads: GroupLoads, group: int) -> Plain:
    return _kinds(loads.pressure[:, group])


def _kinds(values: t.Any) -> Plain:
    return {kind: float(value) for kind, value in zip(KINDS, values)}
