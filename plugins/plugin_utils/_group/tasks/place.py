# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What group_place answers: requests in, plain data by name out; placement itself is in placement.py and batch.py."""

from __future__ import annotations

import itertools
import math
import typing as t
from collections.abc import Collection, Mapping, Sequence

from ....module_utils._data.errors import InputError, Mistake, Mistakes, suggest
from ....module_utils._data.units import format_mib
from ....module_utils._data.words import listed
from ..._common.table import table
from ..cluster.arrays import NOWHERE
from ..cluster.model import Cluster, Instance
from ..cluster.state import ClusterState
from ..metrics.score import ScoreMode
from ..place.batch import place_instances
from ..place.placement import PlacementRequest, PlacementResult, Strategy
from ..place.refusal import Reason
from ..place.room import Room, make_room
from ..plan.order import Guard, reserves_left
from ..plan.plain import plan_to_plain, restarted
from ..plan.stages import stages
from ..sources.iallocator import requested_instances
from ..sources.inline import parse_new_instances
from ..sources.loaded import Loaded

Plain = dict[str, t.Any]


def place(loaded: Loaded, arguments: Mapping[str, t.Any]) -> Plain:
    """Return `solutions` and `unplaced` for the arguments of group_place.

    Instances are those of the arguments, or those that an IAllocator message asks for. Raises InputError with all mistakes.
    """
    cluster = loaded.cluster
    given = arguments.get("instances")
    instances = (
        (requested_instances(loaded) if loaded.request else ())
        if given is None
        else parse_new_instances([_without_group(item) for item in given], cluster)
    )
    if not instances:
        raise InputError([Mistake("instances", "there is nothing to place; list instances, or use a source with a request to allocate")])
    state = ClusterState.from_cluster(cluster, instances)
    requests = _requests(cluster, arguments, _nodes_of(loaded, arguments), _groups_of(loaded, given, len(instances)))
    first = len(cluster.instances)
    asked = [(first + position, request) for position, request in enumerate(requests)]
    room = make_room(state, asked) if arguments.get("make_room") else None
    results = place_instances(state, asked)[0] if room is None else room.results
    answer: Plain = {
        "solutions": [_solution(cluster, instance, result) for instance, result in zip(instances, results)],
        "unplaced": [instance.name for instance, result in zip(instances, results) if not result.placements],
    }
    return answer if room is None else answer | _room_to_plain(state, room, requests[0].score)


def _room_to_plain(state: ClusterState, room: Room, mode: ScoreMode) -> Plain:
    """Return the moves that make room as plain data, and as a plan that can be carried out."""
    guard = Guard.at_every_step(state, reserves_left(state, [move.instance for move in room.moves]))
    plan = plan_to_plain(state, stages(state, room.moves, guard), mode)
    restarts = [state.facts.instances.names[instance] for instance in restarted(state, room.moves)]
    return {"moves": list(plan["moves"]), "plan": plan, "fewest": room.fewest, "restarts": restarts}


def reason_to_plain(cluster: Cluster, reason: Reason) -> Plain:
    """Return a reason as plain data; `node` is None when it is the group that is in the way."""
    node = None if reason.node == NOWHERE else cluster.nodes[reason.node].name
    short = int(reason.short) if reason.short == int(reason.short) else reason.short
    plain_reason = {"node": node, "limit": reason.limit, "short": short}
    return plain_reason | {"says": reason.says} if reason.says else plain_reason


def find_group(cluster: Cluster, name: t.Any, place: str, mistakes: Mistakes) -> int | None:
    """Return the position of the group with this name or UUID; add a mistake when there is none."""
    known = {group.uuid: position for position, group in enumerate(cluster.groups)} | cluster.group_positions()
    if not isinstance(name, (str, int)) or isinstance(name, bool):
        mistakes.add(place, f"is {name!r}; must be the name or UUID of a group")
        return None
    if str(name) not in known:
        mistakes.add(place, f"unknown group {name!r}{suggest(str(name), known)}")
    return known.get(str(name))


def positions_of(names: t.Any, known: Mapping[str, int], kind: str, place: str, mistakes: Mistakes) -> list[int]:
    """Return the positions of a list of things by name, each once; add a mistake for what is no list, and for every unknown name."""
    if not isinstance(names, Sequence) or isinstance(names, str):
        mistakes.add(place, f"is {'missing' if names is None else repr(names)}; must be a list of names")
        return []
    for position, name in enumerate(names):
        if not isinstance(name, str):
            mistakes.add(f"{place}[{position}]", f"is {name!r}; must be the name of a known {kind}")
        elif name not in known:
            mistakes.add(f"{place}[{position}]", f"unknown {kind} {name!r}{suggest(name, known)}")
    return list(dict.fromkeys(known[name] for name in names if isinstance(name, str) and name in known))


def _without_group(item: t.Any) -> t.Any:
    return {key: value for key, value in item.items() if key != "group"} if isinstance(item, Mapping) else item


def _groups_of(loaded: Loaded, given: Sequence[t.Any] | None, count: int) -> list[tuple[str, t.Any]]:
    """Return for each instance where its own group is named, and that group."""
    if given is not None:
        return [(f"instances[{position}].group", item.get("group")) for position, item in enumerate(given)]
    request = loaded.request
    if request.get("type") != "multi-allocate":
        return [("request.group_name", request.get("group_name"))] * count
    return [
        (f"request.instances[{position}].group_name", item.get("group_name", request.get("group_name")))
        for position, item in enumerate(request["instances"])
    ]


def _nodes_of(loaded: Loaded, arguments: Mapping[str, t.Any]) -> tuple[str, t.Any]:
    """Return where nodes are named to which the choice is restricted, and those nodes; None for all."""
    if arguments.get("nodes") is None and arguments.get("instances") is None:
        return "request.restrict-to-nodes", loaded.request.get("restrict-to-nodes")
    return "nodes", arguments.get("nodes")


def _requests(
    cluster: Cluster,
    arguments: Mapping[str, t.Any],
    restricted: tuple[str, t.Any],
    own: Sequence[tuple[str, t.Any]],
) -> list[PlacementRequest]:
    mistakes = Mistakes()
    common = arguments.get("group")
    where, names = restricted
    nodes = None if names is None else tuple(positions_of(names, cluster.node_positions(), "node", where, mistakes))
    base = None if common is None else find_group(cluster, common, "group", mistakes)
    requests = [
        PlacementRequest(
            strategy=Strategy(arguments.get("strategy", Strategy.AUTO)),
            score=ScoreMode(arguments.get("score", ScoreMode.HTOOLS)),
            group=base if name is None else find_group(cluster, name, where, mistakes),
            nodes=nodes,
        )
        for where, name in own
    ]
    mistakes.check()
    return requests


def _solution(cluster: Cluster, instance: Instance, result: PlacementResult) -> Plain:
    return {
        "instance": instance.name,
        "groups": [
            {
                "group": cluster.groups[placement.group].name,
                "alloc_policy": str(cluster.groups[placement.group].alloc_policy),
                "nodes": [cluster.nodes[node].name for node in placement.nodes],
                "score": placement.score,
                "lost": None if placement.lost is None else list(placement.lost),
                "free_after": placement.disk_left,
            }
            for placement in result.placements
        ],
        "rejected": [
            {"group": cluster.groups[refusal.group].name, "reasons": [reason_to_plain(cluster, reason) for reason in refusal.reasons]}
            for refusal in result.refusals
        ],
    }


_IN_MIB = frozenset({"memory", "redundancy", "shared_redundancy", "disk", "pool"})
"""Limits whose amounts are MiB."""
_MOST_REASONS = 5
"""How many reasons a line has at most; all of them are in the data."""


def place_summary(answer: Plain) -> str:
    """Return the answer of place_report.place as text: a table for each instance, and why other groups do not take it."""
    parts = [_solution_lines(solution) for solution in answer["solutions"]]
    if answer.get("moves"):
        copied = format_mib(sum(move["data"] for move in answer["moves"]))
        head = f"To make room, these move first ({copied} copied{'' if answer['fewest'] else '; fewer may be enough'}):"
        restarts = [f"{name} is stopped and started again, because it cannot move while it runs" for name in answer["restarts"]]
        parts = ["\n".join([head, moves_table(answer["plan"]), *restarts]), *parts]
    return "\n\n".join(parts)


def evacuation_summary(answer: Plain) -> str:
    """Return the answer of evacuate_report.run_evacuate as text: moves by stage, and why others stay."""
    plan, moved, left = answer["plan"], len(answer["placed"]), len(answer["unplaced"])
    copied = format_mib(sum(move["data"] for move in plan["moves"]))
    stages = f"{len(plan['stages'])} stage{'' if len(plan['stages']) == 1 else 's'}"
    head = f"{moved} of {moved + left} instances move in {stages}, {copied} are copied"
    scores = f"score {plan['score_before']:.8f} before, {plan['score_after']:.8f} after"
    moves = moves_table(plan) if plan["moves"] else ""
    relaxed = [f"{placed['instance']}: N+1, CPUs or tags are violated where it goes" for placed in answer["placed"] if placed["relaxed"]]
    restarts = [f"{name} is stopped and started again, because it cannot move while it runs" for name in answer["restarts"]]
    stays = [f"{unplaced['instance']} stays: {reasons_line(unplaced['reasons'])}" for unplaced in answer["unplaced"]]
    return "\n\n".join(part for part in (f"{head}; {scores}", moves, "\n".join([*relaxed, *restarts, *stays])) if part)


def moves_table(plan: Plain) -> str:
    """Return the moves of a plan that plan.plan_to_plain made, by stage, with MiB that are copied; names are as short as they can be.

    Where the plan has an estimate of its time, a line with it follows.
    """
    shown = table(("stage", "instance", "move", "group", "copied", "from -> to"), _moves(plan), right=("stage", "copied"))
    return f"{shown}\n\n{_duration_line(plan['seconds'])}" if plan.get("seconds") else shown


def _duration_line(seconds: Plain) -> str:
    """Return how long a plan takes, and its first stages."""
    each = listed([_duration(one) for one in seconds["stages"]], _MOST_REASONS)
    rounds = seconds["rounds"]
    measured = f" ({seconds['rate']:g} MiB a second, seen in {rounds} round{'' if rounds == 1 else 's'} of earlier plans)" if rounds else ""
    return f"At the rate of the links{measured} this takes {_duration(seconds['total'])} or more; stage by stage: {each}."


def _duration(seconds: float) -> str:
    """Return seconds as a person reads them: `40 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    return f"{math.ceil(seconds / 60)} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def reasons_line(reasons: Sequence[Plain]) -> str:
    """Return the first reasons in one line."""
    sentences = [(f"{reason['node']}: " if reason["node"] else "") + _reason(reason) for reason in reasons[:_MOST_REASONS]]
    return "; ".join([*sentences, f"{len(reasons) - _MOST_REASONS} more"] if len(reasons) > _MOST_REASONS else sentences)


def _reason(reason: Plain) -> str:
    """Return a reason in words: what is short, as people write it, or merely what is in the way."""
    if reason.get("says") or not reason["short"]:
        return str(reason.get("says") or reason["limit"])
    short = format_mib(reason["short"]) if reason["limit"] in _IN_MIB else f"{reason['short']:g}"
    return f"{reason['limit']} short by {short}"


def _solution_lines(solution: Plain) -> str:
    taken, refused = solution["groups"], solution["rejected"]
    head = f"{solution['instance']}: {len(taken)} of {len(taken) + len(refused)} groups can take it"
    columns = ("group", "policy", "nodes", "score", "lost", "disk left")
    names = _aliases({node for group in taken for node in group["nodes"]})
    rows = [
        (
            group["group"],
            group["alloc_policy"],
            ":".join(names[node] for node in group["nodes"]),
            f"{group['score']:.8f}",
            "-" if group["lost"] is None else ",".join(map(str, group["lost"])),
            format_mib(group["free_after"]),
        )
        for group in taken
    ]
    lines = [f"{refusal['group']} cannot: {reasons_line(refusal['reasons'])}" for refusal in refused]
    return "\n".join([head, *([table(columns, rows, right=("score", "disk left"))] if rows else []), *lines])


def _moves(plan: Plain) -> list[tuple[str, ...]]:
    nodes = _aliases({node for move in plan["moves"] for node in (*move["from"], *move["to"])})
    instances = _aliases({move["instance"] for move in plan["moves"]})
    return [
        (
            str(number),
            instances[move["instance"]],
            move["kind"],
            move["group"],
            format_mib(move["data"]),
            " -> ".join(":".join(nodes[node] for node in move[side]) for side in ("from", "to")),
        )
        for number, stage in enumerate(plan["stages"], start=1)
        for move in (plan["moves"][position] for position in stage)
    ]


def _aliases(names: Collection[str]) -> dict[str, str]:
    """Return names without the part that all of them end with, from a dot on, as htools shows them."""
    parts = [name.split(".")[::-1] for name in names]
    common = sum(1 for _same in itertools.takewhile(lambda level: len(set(level)) == 1, zip(*parts)))
    kept = min([common, *(len(part) - 1 for part in parts)])
    return {name: ".".join(part[kept:][::-1]) for name, part in zip(names, parts)}
