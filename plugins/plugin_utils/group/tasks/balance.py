# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What group_balance answers: plain data by name; the work is in group_plan.py and super_cluster.py."""

from __future__ import annotations

import dataclasses
import time
import typing as t
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ...common.parallel import Resources, Solved
from ...common.units import format_mib
from ..balance.group import Assignment, GroupPlan, apply_moves, plan_group
from ..balance.pareto import PRICES, Choice, not_beaten, preferred
from ..balance.search import Aims
from ..balance.super_cluster import joined_plan, rank_groups, worst_groups
from ..cluster.arrays import NOWHERE
from ..cluster.model import Cluster
from ..cluster.state import ClusterState
from ..plan.stages import plan_told
from ..sources.iallocator import Message
from ..sources.inline_output import write_inline
from ..sources.text_output import write_text
from .balance_request import Request, read_request
from .place_table import moves_table
from .report_table import table

Plain = dict[str, t.Any]
Job = Callable[[Assignment, t.Union[float, None]], GroupPlan]
Solve = Callable[[Job, Mapping[str, Assignment], Resources], Mapping[str, Solved[GroupPlan]]]
"""common.parallel.solve_each, or what takes its place."""
_MOST_NAMES = 6
"""How many names a line has at most; all of them are in the data."""
_WRITERS: Mapping[str, Callable[[Cluster], t.Any]] = {"cluster": write_inline, "ganeti_text": write_text}


def balance_named(message: Message, arguments: Mapping[str, t.Any], solve: Solve) -> Plain:
    """Return what the action group_balance documents. Raises InputError with all mistakes."""
    request = read_request(message.cluster, arguments)
    resources = Resources(arguments.get("scheduler") or "", arguments.get("workers") or 0, request.seconds)
    solver = _Solver(request, solve, resources)
    if request.groups is None:
        plans = worst_groups(request.cluster, request.score, request.most_groups, solver.plans)
    else:
        plans = solver.plans(request.groups)
    choices = [solver.choices(found) for found in plans] if request.pareto else []
    plans = [preferred(found, beside) for found, beside in zip(plans, choices)] or plans
    state = ClusterState.from_cluster(request.cluster)
    plan = joined_plan(plans)
    told: Plain = {
        "scores": [
            {"group": _name(request.cluster, group), "score": score} for group, score in rank_groups(request.cluster, request.score)
        ],
        "groups": [_group_told(state, found) for found in plans],
        "plan": plan_told(state, plan, request.score),
        "unfinished": [_name(request.cluster, group) for group in solver.unfinished],
    }
    if request.pareto:
        told["pareto"] = [_choice_told(request.cluster, choice, found) for found, beside in zip(plans, choices) for choice in beside]
    after = apply_moves(state, plan.moves).to_cluster() if arguments.get("export") else request.cluster
    exported = {name: _WRITERS[name](after) for name in arguments.get("export") or ()}
    return told | {"summary": summary(plans, told)} | exported


class _Solver:
    """Plans groups within the time that is left; `unfinished` are those for which it was not enough."""

    def __init__(self, request: Request, solve: Solve, resources: Resources) -> None:
        self.unfinished: list[int] = []
        self._request, self._solve, self._resources = request, solve, resources
        self._begun = time.monotonic()

    def plans(self, groups: Sequence[int]) -> list[GroupPlan]:
        """Return the plans of groups; those without one become unfinished."""
        request = self._request
        tasks = {_name(request.cluster, group): Assignment(request.cluster, group, request.aims, request.most_at_node) for group in groups}
        solved = self._run(tasks)
        self.unfinished += [group for group in groups if solved[_name(request.cluster, group)].result is None]
        found = [solved[_name(request.cluster, group)].result for group in groups]
        return [plan for plan in found if plan is not None]

    def choices(self, found: GroupPlan) -> list[Choice]:
        """Return the plans of a group that are worth a choice, with the one that was made."""
        aims = self._request.aims
        if not isinstance(aims, Aims):
            return []
        tasks = {}
        for price in PRICES:
            priced = dataclasses.replace(aims, tariff=dataclasses.replace(aims.tariff, data=price))
            tasks[str(price)] = Assignment(self._request.cluster, found.group, priced, self._request.most_at_node)
        made = [Choice(float(price), solved.result) for price, solved in self._run(tasks).items() if solved.result is not None]
        return not_beaten([Choice(aims.tariff.data, found), *(choice for choice in made if choice.price != aims.tariff.data)])

    def _run(self, tasks: Mapping[str, Assignment]) -> Mapping[str, Solved[GroupPlan]]:
        seconds = self._resources.seconds
        left = None if seconds is None else max(0.0, seconds - (time.monotonic() - self._begun))
        return self._solve(plan_group, tasks, dataclasses.replace(self._resources, seconds=left))


def _name(cluster: Cluster, group: int) -> str:
    return cluster.groups[group].name


def _group_told(state: ClusterState, found: GroupPlan) -> Plain:
    cluster = state.facts.cluster
    names = state.facts.instances.names
    return {
        "group": _name(cluster, found.group),
        "score_before": found.score_before,
        "score_after": found.score_after,
        "moves": len(found.plan.moves),
        "data": found.data,
        "blocked": [names[instance] for instance in found.blocked],
        "offline": [names[instance] for instance in _on_offline_nodes(state, found)],
        "complete": found.in_time,
    }


def _on_offline_nodes(state: ClusterState, found: GroupPlan) -> list[int]:
    """Return the instances of a group that still have a node that is offline after its plan."""
    after = apply_moves(state, found.plan.moves)
    dark = np.append(after.offline & (after.facts.nodes.group == found.group), False)
    result: list[int] = np.flatnonzero(dark[after.primary] | dark[after.secondary]).tolist()
    return [instance for instance in result if after.primary[instance] != NOWHERE]


def _choice_told(cluster: Cluster, choice: Choice, chosen: GroupPlan) -> Plain:
    return {
        "group": _name(cluster, choice.plan.group),
        "price": choice.price,
        "score": choice.plan.score_after,
        "data": choice.plan.data,
        "moves": len(choice.plan.plan.moves),
        "chosen": choice.plan is chosen,
    }


def summary(plans: Sequence[GroupPlan], told: Plain) -> str:
    """Return an answer as text to read: the groups, what is left undone, what could be had for which data, and the stages."""
    if not plans:
        return "\n".join(_remarks(told)) or "There is nothing to improve."
    parts = [table(("group", "score", "after", "moves", "data", "stages"), [_group_row(*pair) for pair in zip(told["groups"], plans)])]
    parts += ["\n".join(remarks) for remarks in [_remarks(told)] if remarks]
    if told.get("pareto"):
        parts.append(table(("", "group", "price", "score", "data", "moves"), [_choice_row(choice) for choice in told["pareto"]]))
    if told["plan"]["moves"]:
        parts.append(moves_table(told["plan"]))
    return "\n\n".join(parts)


def _remarks(told: Plain) -> list[str]:
    """Return what a reader has to know beside the scores, a line each."""
    late = [f"there was no time for {_few(told['unfinished'])}"] if told["unfinished"] else []
    return [remark for one in told["groups"] for remark in _group_remarks(one)] + late


def _group_remarks(one: Plain) -> list[str]:
    left = (
        (one["offline"], "a node of theirs stays one that is offline"),
        (one["blocked"], "there is a better place for them, but no way to it that keeps all limits"),
    )
    remarks = [f"{one['group']}: {says}: {_few(names)}" for names, says in left if names]
    return remarks if one["complete"] else [*remarks, f"{one['group']}: time was up before the search was; a longer one may find more"]


def _few(names: Sequence[str]) -> str:
    """Return names as text; of many the first, and how many more there are."""
    return ", ".join(names[:_MOST_NAMES]) + (f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else "")


def _group_row(one: Plain, found: GroupPlan) -> tuple[str, ...]:
    scores = f"{one['score_before']:.8f}", f"{one['score_after']:.8f}"
    return one["group"], *scores, str(one["moves"]), format_mib(one["data"]), str(len(found.plan.stages))


def _choice_row(one: Plain) -> tuple[str, ...]:
    mark = "*" if one["chosen"] else ""
    return mark, one["group"], f"{one['price']:g}", f"{one['score']:.8f}", format_mib(one["data"]), str(one["moves"])
