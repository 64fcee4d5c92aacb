# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What group_balance answers: plain data by name; the work is in group_plan.py and super_cluster.py."""

from __future__ import annotations

import dataclasses
import functools
import time
import typing as t
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ....module_utils._data.errors import Mistakes, Unavailable
from ....module_utils._data.kinds import refuse_less
from ....module_utils._data.units import format_mib, parse_mib
from ....module_utils._data.words import listed
from ..._common.libraries import np
from ..._common.parallel import Resources, Solved
from ..._common.table import table
from ..balance.group import Assignment, GroupPlan, plan_group
from ..balance.hbal import HbalOptions
from ..balance.model import BalanceOptions, Redundancy, Refused
from ..balance.super_cluster import PRICES, Choice, joined_plan, not_beaten, preferred, rank_groups, worst_groups
from ..balance.verify import InvalidPlan, verified
from ..balance.watch import SearchProgress, Watch
from ..cluster.changes import after_moves
from ..cluster.loads import read_loads, with_loads
from ..cluster.model import Cluster
from ..cluster.state import ClusterState
from ..evacuate.evacuation import reasons_to_stay
from ..evacuate.task import AcrossGroups, Scorers, Task
from ..metrics.health import instances_down, instances_left_behind
from ..metrics.score import ScoreMode
from ..metrics.shared_redundancy import SharedReserve
from ..metrics.verdicts import EXACT
from ..neighbourhood.excess import excess_of
from ..neighbourhood.moves import MoveOptions
from ..neighbourhood.price import Prices
from ..place.refusal import Reason, stranding
from ..plan.plain import plan_to_plain, restarted
from ..sources.inline import write_inline
from ..sources.loaded import Loaded
from ..sources.text import write_text
from .left_out import left_out_of_balance, with_left_out, with_notes
from .place import find_group, moves_table, reason_to_plain, reasons_line

Plain = dict[str, t.Any]
Job = Callable[[Assignment, t.Union[float, None]], GroupPlan]
Solve = Callable[[Job, Mapping[str, Assignment], Resources], Mapping[str, Solved[GroupPlan]]]
"""common.parallel.solve_each, or what takes its place."""

_LEAST = {
    **{"max_moves": 0, "max_moves_at_node": 1, "max_groups": 1, "min_gain": 0, "data_price": 0, "move_price": 0, "restart_price": 0},
    **{"time_limit": 0, "workers": 0},
}
_WORSE_FOR = {
    "down": "to start instances whose node is marked offline",
    "limits": "to repair broken limits",
    "score": "for the score",
}
_CHOICES = ("", "group", "price", "score", "data", "moves")
_MOST_NAMES = 6
"""How many names a line has at most; all of them are in the data."""
_WRITERS: Mapping[str, Callable[[Cluster], t.Any]] = {"cluster": write_inline, "ganeti_text": write_text}
_ONLY_WITH_SCORE = ("max_data", "data_price", "move_price", "restart_price", "redundancy", "pareto")


class Mode(StrEnum):
    """Whose way of balancing: the collection's own, or hbal's."""

    SCORE = "score"
    HTOOLS = "htools"


@dataclass(frozen=True)
class Request:
    """What is wanted; `groups` None is the worst ones that can be improved, `most_groups` of them."""

    cluster: Cluster
    groups: tuple[int, ...] | None
    most_groups: int
    options: BalanceOptions | HbalOptions
    score: ScoreMode
    most_at_node: int | None
    seconds: float | None
    pareto: bool


def read_request(cluster: Cluster, arguments: Mapping[str, t.Any]) -> Request:
    """Return the request that arguments of group_balance make of a cluster. Raises InputError with all mistakes."""
    mistakes = Mistakes()
    mode = Mode(arguments.get("mode", Mode.SCORE))
    refuse_less(arguments, _LEAST, mistakes)
    for name in _ONLY_WITH_SCORE:
        if mode == Mode.HTOOLS and arguments.get(name):
            mistakes.add(name, "is unknown to hbal; it needs mode: score")
    if mode == Mode.HTOOLS and arguments.get("score") == ScoreMode.CAPACITY:
        mistakes.add("score", "is capacity, which hbal does not know; it needs mode: score")
    if arguments.get("tolerance") is not None:
        mistakes.add("tolerance", "is the imbalance that storages may keep; it needs of: storage")
    groups = _groups(cluster, arguments.get("groups"), mistakes)
    cluster = with_loads(
        cluster,
        read_loads(arguments, "load", [instance.name for instance in cluster.instances], "instance", mistakes),
        read_loads(arguments, "node_load", [node.name for node in cluster.nodes], "node", mistakes),
    )
    most_data = _mib(arguments, mistakes)
    mistakes.check()
    cluster = dataclasses.replace(cluster, more_cpus_than_node=mode == Mode.HTOOLS)
    return Request(
        cluster=cluster,
        groups=groups,
        most_groups=arguments.get("max_groups") or 1,
        options=_hbal_options(arguments) if mode == Mode.HTOOLS else _balance_options(arguments, most_data),
        score=ScoreMode(arguments.get("score") or ScoreMode.HTOOLS),
        most_at_node=arguments.get("max_moves_at_node"),
        seconds=arguments.get("time_limit"),
        pareto=bool(arguments.get("pareto")),
    )


def _balance_options(arguments: Mapping[str, t.Any], most_data: int | None) -> BalanceOptions:
    usual = BalanceOptions()
    return BalanceOptions(
        score=ScoreMode(arguments.get("score") or ScoreMode.HTOOLS),
        prices=Prices(
            data=_or_else(arguments.get("data_price"), usual.prices.data),
            primary=_or_else(arguments.get("move_price"), usual.prices.primary),
            restart=_or_else(arguments.get("restart_price"), usual.prices.restart),
            most_data=most_data,
            most_moves=arguments.get("max_moves"),
        ),
        min_gain=_or_else(arguments.get("min_gain"), usual.min_gain),
        moves=_moves(arguments),
        evacuation_only=bool(arguments.get("evacuation")),
        redundancy=Redundancy(arguments.get("redundancy") or usual.redundancy),
    )


def _hbal_options(arguments: Mapping[str, t.Any]) -> HbalOptions:
    """Return hbal's options; a least gain that is asked for holds at every score, as it was meant to."""
    given = arguments.get("min_gain")
    gain = {} if given is None else {"min_gain": given, "min_gain_limit": float("inf")}
    return HbalOptions(
        moves=_moves(arguments),
        evacuation_only=bool(arguments.get("evacuation")),
        max_moves=arguments.get("max_moves"),
        **gain,
    )


def _moves(arguments: Mapping[str, t.Any]) -> MoveOptions:
    return MoveOptions(disk_moves=arguments.get("disk_moves", True), instance_moves=arguments.get("instance_moves", True))


def _or_else(value: float | None, usual: float) -> float:
    return usual if value is None else value


def _groups(cluster: Cluster, names: Sequence[t.Any] | None, mistakes: Mistakes) -> tuple[int, ...] | None:
    if names is None:
        return None
    found = [find_group(cluster, name, f"groups[{position}]", mistakes) for position, name in enumerate(names)]
    if not found:
        mistakes.add("groups", "is empty; name groups, or leave it out for the worst that can be improved")
    return tuple(dict.fromkeys(group for group in found if group is not None))


def _mib(arguments: Mapping[str, t.Any], mistakes: Mistakes) -> int | None:
    given = arguments.get("max_data")
    if given is None:
        return None
    try:
        return int(parse_mib(str(given)))
    except ValueError as error:
        mistakes.add("max_data", str(error))
        return None


def run_balance(
    loaded: Loaded, arguments: Mapping[str, t.Any], solve: Solve, show: Callable[[SearchProgress], None] | None = None
) -> Plain:
    """Return the result of group_balance; `show` receives the progress of a lone search. Raises InputError with all mistakes."""
    request = read_request(loaded.cluster, arguments)
    resources = Resources.of(arguments, request.seconds)
    solver = GroupSolver(request, solve, resources, show)
    if request.groups is None:
        plans = worst_groups(request.cluster, request.score, request.most_groups, solver.plans)
    else:
        plans = solver.plans(request.groups)
    choices = solver.choices(plans) if request.pareto else []
    plans = [preferred(found, group_choices) for found, group_choices in zip(plans, choices)] or plans
    state = ClusterState.from_cluster(request.cluster)
    plan = joined_plan(plans)
    answer: Plain = {
        "scores": [
            {"group": _name(request.cluster, group), "score": score} for group, score in rank_groups(request.cluster, request.score)
        ],
        "groups": [group_to_plain(state, found) for found in plans],
        "plan": plan_to_plain(state, plan, request.score),
        "unfinished": [_name(request.cluster, group) for group in solver.unfinished],
    }
    if request.pareto:
        answer["pareto"] = [
            _choice_to_plain(request.cluster, choice, found) for found, choices_of in zip(plans, choices) for choice in choices_of
        ]
    after = after_moves(state, plan.moves).to_cluster() if arguments.get("export") else request.cluster
    exported = {name: _WRITERS[name](after) for name in arguments.get("export") or ()}
    answer = with_notes(request.cluster, answer | {"summary": summary(plans, answer)})
    return with_left_out(answer, left_out_of_balance(request.cluster)) | exported


class GroupSolver:
    """Plans groups within the time that is left; `unfinished` are those for which it was not enough."""

    def __init__(self, request: Request, solve: Solve, resources: Resources, show: Callable[[SearchProgress], None] | None = None) -> None:
        self._show = show
        self.unfinished: list[int] = []
        self._request, self._solve, self._resources = request, solve, resources
        self._begun = time.monotonic()

    def plans(self, groups: Sequence[int]) -> list[GroupPlan]:
        """Return the plans of groups; those without one become unfinished."""
        request = self._request
        tasks = {
            _name(request.cluster, group): Assignment(request.cluster, group, request.options, request.most_at_node) for group in groups
        }
        solved = self._run(tasks)
        self.unfinished += [group for group in groups if solved[_name(request.cluster, group)].result is None]
        found = [solved[_name(request.cluster, group)].result for group in groups]
        return [plan for plan in found if plan is not None]

    def choices(self, plans: Sequence[GroupPlan]) -> list[list[Choice]]:
        """Return for each group the plans that are worth a choice, with the plan that is made already; the others are made side by side."""
        request, options = self._request, self._request.options
        if not isinstance(options, BalanceOptions):
            return [[] for _found in plans]
        others = [(found.group, price) for found in plans for price in PRICES if price != options.prices.data]
        tasks = {}
        for group, price in others:
            priced = dataclasses.replace(options, prices=dataclasses.replace(options.prices, data=price))
            name = f"{_name(request.cluster, group)} at a price of {price:g}"
            tasks[name] = Assignment(request.cluster, group, priced, request.most_at_node)
        choices_of = {found.group: [Choice(options.prices.data, found)] for found in plans}
        for (group, price), solved in zip(others, self._run(tasks).values()):
            choices_of[group] += [] if solved.result is None else [Choice(price, solved.result)]
        return [not_beaten(choices_of[found.group]) for found in plans]

    def _run(self, tasks: Mapping[str, Assignment]) -> Mapping[str, Solved[GroupPlan]]:
        seconds = self._resources.seconds
        left = None if seconds is None else max(0.0, seconds - (time.monotonic() - self._begun))
        # A single group is planned in this process, where the search can be watched.
        alone = self._show is not None and len(tasks) == 1 and not self._resources.scheduler
        watch = Watch(next(iter(tasks)), self._show) if alone and self._show is not None else None
        job = plan_group if watch is None else functools.partial(plan_group, watch=watch)
        solved = self._solve(job, tasks, dataclasses.replace(self._resources, seconds=left))
        return self._verified(tasks, solved) if self._resources.scheduler else solved

    def _verified(self, tasks: Mapping[str, Assignment], solved: Mapping[str, Solved[GroupPlan]]) -> Mapping[str, Solved[GroupPlan]]:
        """Return what workers of a Dask cluster have answered. Raises Unavailable for what is no plan."""
        found = {}
        for name, one in solved.items():
            try:
                found[name] = one if one.result is None else dataclasses.replace(one, result=verified(tasks[name], one.result))
            except InvalidPlan as error:
                raise Unavailable(f"a worker of the Dask cluster answers for {name} with a plan that {error}") from None
        return found


def _name(cluster: Cluster, group: int) -> str:
    return cluster.groups[group].name


def group_to_plain(state: ClusterState, found: GroupPlan) -> Plain:
    cluster = state.facts.cluster
    names = state.facts.instances.names
    after = after_moves(state, found.plan.moves)
    staying = instances_left_behind(after, found.group)
    return {
        "group": _name(cluster, found.group),
        "score_before": found.score_before,
        "score_after": found.score_after,
        "moves": len(found.plan.moves),
        "data": found.data,
        "blocked": [names[instance] for instance in found.blocked],
        "restarts": [names[instance] for instance in restarted(state, found.plan.moves)],
        "offline": [names[instance] for instance in staying],
        "down": [names[instance] for instance in instances_down(after, found.group)],
        "redundancy": _redundancy(state, after, found),
        "refused": [
            *(_refused(cluster, instance, _why_it_stays(state, after, instance)) for instance in staying),
            *(_refused(cluster, one, [_stranding(state, why)]) for one, why in sorted(found.refused.items()) if one not in staying),
        ],
        "complete": found.in_time,
    }


def _redundancy(state: ClusterState, after: ClusterState, found: GroupPlan) -> Plain:
    """Return what failures of nodes strand on shared storage before and after the plan, and the reason for any increase."""
    before, later = (SharedReserve.of(one, found.group).allowed for one in (state, after))
    worse = [
        {"node": state.facts.nodes.names[node], "before": int(before[node]), "after": int(later[node])}
        for node in np.flatnonzero((later > before) & np.isfinite(later)).tolist()
    ]
    reasons = []
    if worse:
        members = state.group_nodes(found.group)
        reasons += ["down"] if len(instances_down(after, found.group)) < len(instances_down(state, found.group)) else []
        reasons += ["limits"] if excess_of(after, members) < excess_of(state, members) else []
    return {
        "before": int(before[np.isfinite(before)].sum()),
        "after": int(later[np.isfinite(later)].sum()),
        "worse": worse,
        "for": reasons or (["score"] if worse else []),
    }


def _why_it_stays(state: ClusterState, after: ClusterState, instance: int) -> list[Reason]:
    """Return which limits keep an instance from each other node, but for soft ones if its own does not answer."""
    offline_nodes = frozenset(np.flatnonzero(after.offline).tolist())
    rules = EXACT if after.answers(int(after.primary[instance])) else EXACT.hard()
    task = Task(instance, offline_nodes, offline_nodes)
    group = after.group_of(instance)
    reserves = {group: SharedReserve.of(state, group)}
    return list(reasons_to_stay(after, task, AcrossGroups.NO, Scorers(after, ScoreMode.HTOOLS), rules, reserves))


def _stranding(state: ClusterState, why: Refused) -> Reason:
    answer = stranding(state, why.failing, why.more)
    return dataclasses.replace(answer, node=why.target)


def _refused(cluster: Cluster, instance: int, reasons: Sequence[Reason]) -> Plain:
    return {"instance": cluster.instances[instance].name, "reasons": [reason_to_plain(cluster, reason) for reason in reasons]}


def _choice_to_plain(cluster: Cluster, choice: Choice, chosen: GroupPlan) -> Plain:
    return {
        "group": _name(cluster, choice.plan.group),
        "price": choice.price,
        "score": choice.plan.score_after,
        "data": choice.plan.data,
        "moves": len(choice.plan.plan.moves),
        "chosen": choice.plan is chosen,
    }


def summary(plans: Sequence[GroupPlan], answer: Plain) -> str:
    """Return an answer as text to read: the groups, what is left undone, what could be had for which data, and the stages."""
    if not plans:
        return "\n".join(_remarks(answer)) or "There is nothing to improve."
    head = ("group", "score", "after", "moves", "data", "stages")
    parts = [table(head, [_group_row(*pair) for pair in zip(answer["groups"], plans)], right=head[1:])]
    parts += ["\n".join(remarks) for remarks in [_remarks(answer)] if remarks]
    if answer.get("pareto"):
        parts.append(table(_CHOICES, [_choice_row(choice) for choice in answer["pareto"]], right=_CHOICES[2:]))
    if answer["plan"]["moves"]:
        parts.append(moves_table(answer["plan"]))
    return "\n\n".join(parts)


def _remarks(answer: Plain) -> list[str]:
    """Return remarks that the scores do not show, a line each."""
    late = [f"no time was left for {listed(answer['unfinished'], _MOST_NAMES)}"] if answer["unfinished"] else []
    return [remark for one in answer["groups"] for remark in _group_remarks(one)] + late


def _group_remarks(one: Plain) -> list[str]:
    left = (
        (one["down"], "still down, because their node is marked offline"),
        (one["offline"], "still on a node that is offline or drained"),
        (one["blocked"], "not moved, because no order of moves keeps all limits"),
        (one["restarts"], "stopped and started again, because they cannot be moved while they run"),
    )
    remarks = [f"{one['group']}: {says}: {listed(names, _MOST_NAMES)}" for names, says in left if names]
    remarks += [f"{one['group']}: {name} cannot go where it should: {reasons_line(why)}" for name, why in _refusals(one)]
    remarks += [f"{one['group']}: {remark}" for remark in _redundancy_remarks(one["redundancy"])]
    return remarks if one["complete"] else [*remarks, f"{one['group']}: the time limit ended the search; more time may find more"]


def _refusals(one: Plain) -> list[tuple[str, Sequence[Plain]]]:
    """Return the first instances that may not go where they should, with the reasons."""
    return [(refused["instance"], refused["reasons"]) for refused in one["refused"][:_MOST_NAMES]]


def _redundancy_remarks(redundancy: Plain) -> list[str]:
    """Return the nodes whose failure strands more than before, with the reason."""
    nodes = [f"{node['node']} ({format_mib(node['before'])} before, {format_mib(node['after'])} after)" for node in redundancy["worse"]]
    if not nodes:
        return []
    purpose = " and ".join(_WORSE_FOR[reason] for reason in redundancy["for"])
    return [f"N+1 on shared storage gets worse, {purpose}: more would be stranded if {listed(nodes, _MOST_NAMES)} failed"]


def _group_row(one: Plain, found: GroupPlan) -> tuple[str, ...]:
    scores = f"{one['score_before']:.8f}", f"{one['score_after']:.8f}"
    return one["group"], *scores, str(one["moves"]), format_mib(one["data"]), str(len(found.plan.stages))


def _choice_row(one: Plain) -> tuple[str, ...]:
    mark = "*" if one["chosen"] else ""
    return mark, one["group"], f"{one['price']:g}", f"{one['score']:.8f}", format_mib(one["data"]), str(one["moves"])
