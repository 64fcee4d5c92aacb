# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What group_follow answers: what is done for each group and why, the moves, and the record for the next run."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ....module_utils._data.errors import InputError, Mistakes
from ....module_utils._data.words import listed
from ..._common.parallel import Resources
from ..balance.group import GroupPlan, group_plan
from ..balance.model import BalanceOptions, Redundancy
from ..balance.super_cluster import joined_plan
from ..balance.watch import SearchProgress
from ..cluster.arrays import NOWHERE
from ..cluster.changes import after_moves, with_places
from ..cluster.loads import node_loads
from ..cluster.model import USUAL_LOAD, Cluster, Rule, RuleKind
from ..cluster.moves import Move, Place, possible_moves
from ..cluster.state import ClusterState
from ..follow.arguments import read_above, read_rules
from ..follow.condition import Condition, Gauge, Measure, Resource, Urgent
from ..follow.decide import Action, Decision, Rules, Why, decide, polled, uneven
from ..follow.least import guard_of, least, prefixes
from ..follow.pending import Settled, dropped, settle
from ..follow.record import GroupRecord, Pending, Purpose, Record, moment_to_plain
from ..follow.searched import mark
from ..metrics.health import instances_down
from ..plan.journal import moves_to_plain
from ..plan.order import Guard, order, reserves_left
from ..plan.plain import plan_to_plain, with_seconds
from ..plan.progress import Progress
from ..plan.stages import Plan, stages
from ..sources.loaded import Loaded
from .balance import GroupSolver, Plain, Request, Solve, group_to_plain, read_request
from .left_out import left_out_of_balance, with_left_out, with_notes
from .place import moves_table

_RESTING = "moved a short while ago"
_NO_MOVES = Plan((), (), ())
_MOST_NAMES = 6


@dataclass(frozen=True)
class Followed:
    """What the action returns, and what it keeps."""

    answer: Plain
    record: Record


@dataclass(frozen=True)
class _Wanted:
    """The arguments, read."""

    request: Request
    rules: Rules
    gauge: Gauge
    act: bool


@dataclass(frozen=True)
class _Chosen:
    """What is done: for each group a decision, and the plans of those that are changed, or one of an earlier run."""

    decisions: Mapping[int, Decision]
    record: Record
    plans: tuple[GroupPlan, ...] = ()
    resumed: Pending | None = None


@dataclass(frozen=True)
class _Search:
    """A search for moves: `marks` are of what each group was searched for, `plans` what was found by those that were searched."""

    purpose: Purpose
    marks: Mapping[int, str]
    plans: Mapping[int, GroupPlan]

    def remembered(self, record: Record, group: int, name: str) -> Record:
        """Return the record with it that nothing was found for a group, unless its search was cut off."""
        known = record.group(name)
        if group not in self.plans or not self.plans[group].in_time:
            return record
        return record.with_group(name, dataclasses.replace(known, fruitless={**known.fruitless, self.purpose: self.marks[group]}))


def run_follow(
    loaded: Loaded,
    arguments: Mapping[str, t.Any],
    record: Record,
    now: datetime,
    solve: Solve,
    show: Callable[[SearchProgress], None] | None = None,
) -> Followed:
    """Return what the action group_follow documents, and the record from now on. Raises InputError with all mistakes."""
    wanted = _read(loaded.cluster, arguments)
    resources = Resources.of(arguments, wanted.request.seconds)
    run = _Run(wanted, now, lambda request: GroupSolver(request, solve, resources, show))
    chosen = run.choose(settle(record.not_after(now), run.where, now))
    return Followed(run.answer(chosen), chosen.record)


def _read(cluster: Cluster, arguments: Mapping[str, t.Any]) -> _Wanted:
    mistakes = Mistakes()
    rules = read_rules(arguments, mistakes)
    measured = bool(arguments.get("load")) or any(instance.load is not USUAL_LOAD for instance in cluster.instances)
    above = read_above(arguments.get("above"), measured=measured, mistakes=mistakes)
    try:
        request = read_request(cluster, arguments)
    except InputError as error:
        mistakes.extend(error.mistakes)
        mistakes.check()
        raise
    mistakes.check()
    gauge = Gauge(
        measure=Measure(arguments.get("measure") or Measure.IMBALANCE),
        resources=tuple(map(Resource, arguments.get("resources") or (Resource.MEMORY, Resource.CPUS))),
        urgent=tuple(Urgent) if arguments.get("urgent") is None else tuple(map(Urgent, arguments["urgent"])),
        score=request.score,
        shared_n1=arguments.get("redundancy") != Redundancy.OFF,
        above=above,
    )
    act = arguments.get("act")
    return _Wanted(request, rules, gauge, act is None or bool(act))


class _Run:
    """One look at the cluster."""

    def __init__(self, wanted: _Wanted, now: datetime, solver: Callable[[Request], GroupSolver]) -> None:
        self._wanted, self._now, self._solver = wanted, now, solver
        self._cluster = wanted.request.cluster
        self._state = ClusterState.from_cluster(self._cluster)
        groups = range(len(self._cluster.groups)) if wanted.request.groups is None else wanted.request.groups
        self._groups = [group for group in groups if len(self._state.group_nodes(group))]
        self._conditions = {group: wanted.gauge.read(self._state, group) for group in self._groups}
        self.where = {
            instance.name: tuple(node for node in (instance.primary, instance.secondary) if node) for instance in self._cluster.instances
        }

    def choose(self, settled: Settled) -> _Chosen:
        """Return what is done about the groups, first about moves that are left of an earlier run."""
        decisions = self._decisions(self._polled(settled.record) if self._wanted.act else settled.record)
        record = self._noted(settled.record, decisions)
        if not self._wanted.act:
            return _Chosen(self._waiting(decisions, Why.LOOK), record)
        if settled.left and record.pending is not None:
            if self._still_wanted(record.pending, settled.left, decisions):
                return self._resumed(record, record.pending, decisions)
            record = dropped(record, self.where, self._now)
            decisions = self._decisions(record)
        return self._repaired(record, decisions)

    def _polled(self, record: Record) -> Record:
        """Return the record after one more look at what is wrong with each group."""
        for group in self._groups:
            known = polled(self._conditions[group], record.group(self._name(group)), self._wanted.rules)
            record = record.with_group(self._name(group), known)
        return record

    def _noted(self, record: Record, decisions: Mapping[int, Decision]) -> Record:
        """Return the record with what is known of groups from now on."""
        for group, decision in decisions.items():
            record = record.with_group(self._name(group), decision.known)
        return record

    def _decisions(self, record: Record) -> dict[int, Decision]:
        found = {}
        for group in self._groups:
            found[group] = decide(self._conditions[group], record.group(self._name(group)), self._wanted.rules, self._now)
        return found

    def _still_wanted(self, pending: Pending, left: Mapping[str, Sequence[str]], decisions: Mapping[int, Decision]) -> bool:
        """Return whether the rest of a plan is still possible and still an improvement; repairs come before it."""
        repairs = any(decision.action == Action.REPAIR for decision in decisions.values())
        if repairs and pending.purpose == Purpose.BALANCE:
            return False
        instances, nodes = self._cluster.instance_positions(), self._cluster.node_positions()
        targets: dict[int, Place] = {}
        for name, place in left.items():
            if name not in instances or not all(node in nodes for node in place):
                return False
            targets[instances[name]] = (nodes[place[0]], nodes[place[1]] if len(place) > 1 else NOWHERE)
        if not self._can_go_on(pending):
            return False
        after = with_places(self._state, targets)
        guard = Guard.at_every_step(self._state, reserves_left(self._state, targets)).or_as_in(after)
        if pending.purpose == Purpose.BALANCE and order(self._state, targets, guard).blocked:
            return False
        known = self._cluster.group_positions()
        return any(self._is_better(after, known[group]) for group in pending.groups if group in known)

    def _can_go_on(self, pending: Pending) -> bool:
        """Return whether each step that is left can be made as nodes and rules are now.

        Meanwhile a node may have fallen silent, or one that was marked offline may run again, and a rule may keep an instance.
        """
        plan, nodes, instances = pending.moves(), self._cluster.node_positions(), self._cluster.instance_positions()
        now, done = self._state.copy(), Progress.start(plan).seen(plan, self.where).done
        for number in (move for stage in plan.stages for move in stage):
            instance = instances[plan.moves[number].instance]
            for step in plan.moves[number].steps[done[number] :]:
                if not all(node in nodes for node in (*step.source, *step.target)):
                    return False
                target = (nodes[step.target[0]], nodes[step.target[1]] if len(step.target) > 1 else NOWHERE)
                is_online = not now.marked_offline[nodes[step.source[0]]]
                if step.online != is_online or not possible_moves(now, instance, target):
                    return False
                now.place(instance, *target)
        return True

    def _is_better(self, after: ClusterState, group: int) -> bool:
        """Return whether less is wrong with a group in another state, or as much with a better score."""
        now, gauge = self._conditions.get(group) or self._wanted.gauge.read(self._state, group), self._wanted.gauge
        later = gauge.read(after, group)
        return (later.problems, later.score) < (now.problems, now.score)

    def _resumed(self, record: Record, pending: Pending, decisions: Mapping[int, Decision]) -> _Chosen:
        """Return that the moves that are left are made, or, for the sake of balance, wait for a window."""
        rules = self._wanted.rules
        if pending.purpose == Purpose.BALANCE and not rules.windows.open_at(self._now):
            until = rules.windows.next_after(self._now)
            waiting = {
                group: dataclasses.replace(decision, action=Action.WAIT, why=Why.WINDOW, until=until)
                if self._name(group) in pending.groups
                else decision
                for group, decision in decisions.items()
            }
            return _Chosen(self._waiting(waiting, Why.MOVES), record)
        answer = {
            group: dataclasses.replace(decision, action=Action.RESUME, why=None, until=None)
            if self._name(group) in pending.groups
            else decision
            for group, decision in decisions.items()
        }
        return _Chosen(self._waiting(answer, Why.MOVES), record, resumed=pending)

    def _repaired(self, record: Record, decisions: Mapping[int, Decision]) -> _Chosen:
        """Return the repairs of groups that need any, with no regard to how many moves they take; without any, see to balance."""
        ill = [group for group, decision in decisions.items() if decision.action == Action.REPAIR]
        search = self._search(record, Purpose.REPAIR, ill, self._cluster, None, None)
        plans = {group: self._repair(found) for group, found in search.plans.items()}
        made = [found for found in plans.values() if found.plan.moves]
        now = {**decisions}
        for group in ill:
            if group not in plans or not plans[group].plan.moves:
                record = search.remembered(record, group, self._name(group))
                now[group] = self._not_repaired(record.group(self._name(group)))
        if made:
            return _Chosen(self._waiting(now, Why.REPAIRS), self._with_plan(record, Purpose.REPAIR, made), tuple(made))
        if any(decision.why == Why.CONFIRM and self._conditions[group].is_urgent for group, decision in now.items()):
            return _Chosen(self._waiting(now, Why.REPAIRS), record)
        return self._balanced(record, now)

    def _not_repaired(self, known: GroupRecord) -> Decision:
        """Return what is done for a group of which something is wrong that no move helps."""
        decision = uneven(known, self._wanted.rules, self._now)
        return dataclasses.replace(decision, action=Action.STUCK) if decision.action == Action.CALM else decision

    def _balanced(self, record: Record, decisions: Mapping[int, Decision]) -> _Chosen:
        """Return the plans of groups that are due, the most uneven first, with as many moves as a run may have in all."""
        due = sorted((group for group in decisions if decisions[group].action == Action.BALANCE), key=lambda g: -self._conditions[g].value)
        most = left = self._options().prices.most_moves
        # The cluster with a rule that instances stay which were moved a short while ago.
        since = self._now - self._wanted.rules.rest
        names = tuple(instance.name for instance in self._cluster.instances if since < record.moved.get(instance.name, since))
        rule = Rule(_RESTING, RuleKind.IGNORE, instances=names, reason="resting")
        search = self._search(
            record,
            Purpose.BALANCE,
            due,
            (dataclasses.replace(self._cluster, rules=(*self._cluster.rules, rule)) if names else self._cluster),
            left,
            self._options().prices.most_data,
        )
        made: list[GroupPlan] = []
        now = {**decisions}
        for group in due:
            if left is not None and left <= 0:
                now[group] = dataclasses.replace(now[group], action=Action.WAIT, why=Why.MOVES)
                continue
            found = self._part(search.plans[group], left) if group in search.plans else None
            moves = bool(found and found.plan.moves)
            # A group without a move is not on the way to the target any more, or it would look for one below the threshold for ever.
            record = record.with_group(self._name(group), dataclasses.replace(record.group(self._name(group)), balancing=moves))
            if found is None or not moves:
                record = search.remembered(record, group, self._name(group)) if left == most else record
                now[group] = dataclasses.replace(now[group], action=Action.STUCK)
                continue
            made.append(found)
            left = None if left is None else left - len(found.plan.moves)
        return _Chosen(now, self._with_plan(record, Purpose.BALANCE, made) if made else record, tuple(made))

    def _options(self) -> BalanceOptions:
        return t.cast("BalanceOptions", self._wanted.request.options)

    def _search(
        self, record: Record, purpose: Purpose, groups: Sequence[int], cluster: Cluster, moves: int | None, data: int | None
    ) -> _Search:
        """Return plans of groups, without those for which the same search found no move before."""
        prices = dataclasses.replace(self._options().prices, most_moves=moves, most_data=data)
        options = dataclasses.replace(self._options(), prices=prices)
        request = dataclasses.replace(self._wanted.request, cluster=cluster, options=options)
        asked = (self._wanted.gauge, options, request.most_at_node, self._wanted.rules.target)
        marks = {group: mark(cluster, group, *asked) for group in groups}
        fresh = [group for group in groups if record.group(self._name(group)).fruitless.get(purpose) != marks[group]]
        plans = self._solver(request).plans(fresh) if fresh else []
        return _Search(purpose, marks, {found.group: found for found in plans})

    def _repair(self, found: GroupPlan) -> GroupPlan:
        """Return as few moves of a plan as make as little wrong as all of them would."""
        gauge, moves = self._wanted.gauge, found.plan.moves
        best = gauge.problems(after_moves(self._state, moves), found.group)
        if best >= self._conditions[found.group].problems:
            return self._with_moves(found, ())
        return self._with_moves(
            found, least(self._state, moves, guard_of(self._state, moves), lambda after: gauge.problems(after, found.group) <= best)
        )

    def _part(self, found: GroupPlan, most: int | None) -> GroupPlan:
        """Return as few moves of a plan as reach the target, or, where that is too far, those of the first ones that gain most."""
        gauge, now = self._wanted.gauge, self._conditions[found.group]
        moves = found.plan.moves if most is None else found.plan.moves[:most]
        gains = [
            (one.score, number, one.value)
            for number, one in enumerate(gauge.read(after, found.group) for after in prefixes(self._state, moves))
            if one.problems <= now.problems and one.score < now.score
        ]
        if not gains:
            return self._with_moves(found, ())

        def is_enough(condition: Condition) -> bool:
            return condition.value <= self._wanted.rules.target and condition.problems <= now.problems and condition.score < now.score

        there = [number for _score, number, value in gains if value <= self._wanted.rules.target]
        if not there:
            return self._with_moves(found, moves[: min(gains)[1]])
        moves = moves[: there[0]]
        guard = guard_of(self._state, moves)
        return self._with_moves(found, least(self._state, moves, guard, lambda after: is_enough(gauge.read(after, found.group))))

    def _with_moves(self, found: GroupPlan, moves: Sequence[Move]) -> GroupPlan:
        """Return a plan of a group with a part of its moves."""
        if not moves:
            return dataclasses.replace(found, plan=_NO_MOVES, score_after=found.score_before, data=0)
        plan = stages(self._state, moves, guard_of(self._state, moves), self._wanted.request.most_at_node)
        return group_plan(self._state, found.group, plan, self._options().score, found.blocked, found.in_time, found.refused)

    def _with_plan(self, record: Record, purpose: Purpose, made: Sequence[GroupPlan]) -> Record:
        """Return the record with a plan that is pending; of moves that are long past nothing is kept."""
        plan = plan_to_plain(self._state, joined_plan(made), self._wanted.request.score)
        kept = {key: plan[key] for key in ("moves", "stages")}
        since = self._now - self._wanted.rules.rest
        moved = {name: moment for name, moment in record.moved.items() if moment > since}
        pending = Pending(self._now, purpose, tuple(self._name(found.group) for found in made), kept)
        return dataclasses.replace(record, moved=moved, pending=pending)

    @staticmethod
    def _waiting(decisions: Mapping[int, Decision], why: Why) -> dict[int, Decision]:
        """Return the decisions without new moves for the sake of balance."""
        late = (Action.BALANCE,) if why != Why.LOOK else (Action.BALANCE, Action.REPAIR)
        return {
            group: dataclasses.replace(decision, action=Action.WAIT, why=why, until=None) if decision.action in late else decision
            for group, decision in decisions.items()
        }

    def _name(self, group: int) -> str:
        return self._cluster.groups[group].name

    def answer(self, chosen: _Chosen) -> Plain:
        """Return what is done as plain data."""
        plan = plan_to_plain(self._state, joined_plan(chosen.plans), self._wanted.request.score)
        if chosen.resumed is not None:
            plan = self._resumed_plan(chosen.resumed)
        planned = {found.group: found for found in chosen.plans}
        groups = [self._group(group, decision, planned.get(group)) for group, decision in chosen.decisions.items()]
        waits = [decision.until for decision in chosen.decisions.values() if decision.until is not None]
        answer = {
            "now": moment_to_plain(self._now),
            "groups": groups,
            "plan": plan,
            "resumed": chosen.resumed is not None,
            "next": moment_to_plain(min(waits, default=None)),
        }
        return with_left_out(with_notes(self._cluster, answer | {"summary": _summary(answer)}), left_out_of_balance(self._cluster))

    def _resumed_plan(self, pending: Pending) -> Plain:
        """Return a plan of an earlier run as it was made, with the nodes as they are now and as they will be."""
        instances, nodes = self._cluster.instance_positions(), self._cluster.node_positions()
        planned, moves = pending.moves(), []
        for move in planned.moves:
            instance = instances[move.instance]
            target = tuple(nodes[node] for node in move.steps[-1].target)
            place = (target[0], target[1] if len(target) > 1 else NOWHERE)
            moves.append((instance, place))
        after = with_places(self._state, dict(moves))
        answer = plan_to_plain(self._state, _NO_MOVES, self._wanted.request.score)
        ends = plan_to_plain(after, _NO_MOVES, self._wanted.request.score)
        commands = [step.command for move in planned.moves for step in move.steps if step.command]
        groups = {self._cluster.group_positions()[group] for group in pending.groups}
        # A plan that an earlier version kept has moves without memory, unless they are read first.
        left = {"moves": moves_to_plain(planned), "stages": pending.plan["stages"]}
        return {
            **answer,
            **with_seconds(self._cluster, left, Progress.start(planned).seen(planned, self.where).done),
            "score_after": ends["score_after"],
            "moves": list(pending.plan["moves"]),
            "stages": list(pending.plan["stages"]),
            "commands": commands,
            "nodes": node_loads(self._state, after, groups),
        }

    def _group(self, group: int, decision: Decision, found: GroupPlan | None) -> Plain:
        condition, gauge = self._conditions[group], self._wanted.gauge
        answer: Plain = {
            "group": self._name(group),
            "action": str(decision.action),
            "why": None if decision.why is None else str(decision.why),
            "until": moment_to_plain(decision.until),
            "measure": condition.value,
            "score": condition.score,
            "urgent": list(condition.wrong),
            "polls": [decision.known.urgent.get(condition.worst, 0), self._wanted.rules.urgent_polls] if condition.worst else None,
            "moves": 0,
            "data": 0,
            "down": [],
        }
        if found is not None:
            after = gauge.read(after_moves(self._state, found.plan.moves), group)
            answer |= group_to_plain(self._state, found) | {"measure_after": after.value}
        elif decision.action != Action.RESUME:
            names = self._state.facts.instances.names
            answer["down"] = [names[instance] for instance in instances_down(self._state, group)]
        return answer | {"says": _message(answer, self._wanted.rules, gauge)}


def _message(answer: Plain, rules: Rules, gauge: Gauge) -> str:
    """Return a sentence on what is done for a group, and why."""
    level = _level(answer["measure"], rules, gauge)
    if answer["action"] == Action.REPAIR:
        return f"repairs what is wrong ({', '.join(answer['urgent'])}) with {_many(answer['moves'])}"
    if answer["action"] == Action.BALANCE:
        after, moves = answer["measure_after"], _many(answer["moves"])
        return (
            f"{level}; {_level(after, rules, gauge)} after {moves}"
            if gauge.above
            else f"at {answer['measure']:.3g}, goes to {after:.3g} with {moves}"
        )
    if answer["action"] == Action.RESUME:
        return "goes on with the moves of an earlier run"
    if answer["action"] == Action.STUCK:
        return f"{level}; {', '.join(answer['urgent']) + ' are wrong, and ' if answer['urgent'] else ''}no move helps"
    if answer["action"] == Action.WAIT and answer["why"] == Why.CONFIRM and answer["urgent"]:
        seen, needed = answer["polls"]
        return f"{', '.join(answer['urgent'])} wrong, seen in {seen} of {needed} runs in a row; waits whether it stays so"
    if answer["action"] == Action.WAIT:
        until = f" until {answer['until']}" if answer["until"] else ""
        return f"{level}; {_WAITS[Why(answer['why'])]}{until}"
    return f"{level}; nothing to do"


def _level(value: float, rules: Rules, gauge: Gauge) -> str:
    if gauge.above:
        return f"a node is {value:.1%} above its limit" if value else "no node is above its limit"
    return f"at {value:.3g}, {'above' if value > rules.threshold else 'within'} the threshold of {rules.threshold:g}"


_WAITS = {
    Why.CONFIRM: "waits whether it stays so",
    Why.COOLDOWN: "rests after the last moves",
    Why.WINDOW: "waits for a window",
    Why.REPAIRS: "waits, as others are repaired first",
    Why.MOVES: "waits, as this run makes other moves",
    Why.LOOK: "would be changed, but check mode changes nothing",
}


def _many(moves: int) -> str:
    return "1 move" if moves == 1 else f"{moves} moves"


def _helpless(one: Plain) -> list[str]:
    """Return what stays down whatever else is done for a group."""
    return [f"{one['group']}: still down: {listed(one['down'], _MOST_NAMES)}"] if one["down"] else []


def _summary(answer: Plain) -> str:
    """Return the answer as text to read."""
    lines = "\n".join(line for one in answer["groups"] for line in (f"{one['group']}: {one['says']}", *_helpless(one)))
    return f"{lines}\n\n{moves_table(answer['plan'])}" if answer["plan"]["moves"] else lines
