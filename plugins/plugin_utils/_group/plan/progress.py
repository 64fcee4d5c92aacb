# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How far a plan of moves has been carried out, and what may be done next.

    plan = read_plan(document)                    # a plan as data; every mistake at once
    progress = Progress.start(plan)
    progress = progress.seen(where)               # nodes of the instances as they are now
    rounds = schedule(plan, progress, at_once=4)  # steps that may run side by side, round after round
    progress = progress.noted(outcomes)           # what became of steps

A round holds at most one step of a move. Moves of a stage may be done in any order, so that their steps may also take
turns; no move starts before its stage.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import typing as t
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ....module_utils._data.errors import InputError, Mistake, Mistakes
from ....module_utils._data.kinds import Name, is_number, is_whole, refuse_less, shown
from ....module_utils._data.words import listed
from ..._common.files import replace_json
from ..cluster.commands import StepKind, ganeti_command

Nodes = tuple[str, ...]
_NAME = Name()
_JOB = re.compile(r"[A-Za-z0-9][!-~]{0,254}")
"""The number of a job, or what Proxmox VE calls a task: it becomes an argument of commands and a part of URLs, and is no option."""


@dataclass(frozen=True)
class Step:
    """One thing to do with an instance; `node` is where it goes, `command` Ganeti's for it, for people (empty if the plan has none).

    With a `disk` only that goes somewhere, from a storage to another one.
    """

    kind: str
    source: Nodes
    target: Nodes
    node: str
    online: bool = True
    command: str = ""
    disk: str = ""
    from_storage: str = ""
    to_storage: str = ""

    @property
    def before(self) -> Nodes:
        """The place that it begins at: nodes, and of a disk its storage."""
        return (*self.source, self.from_storage) if self.disk else self.source

    @property
    def after(self) -> Nodes:
        """The place that it leads to."""
        return (*self.target, self.to_storage) if self.disk else self.target


@dataclass(frozen=True)
class PlannedMove:
    """An instance goes through `steps`; `data` MiB are copied on the way."""

    instance: str
    steps: tuple[Step, ...]
    data: float = 0.0

    @property
    def nodes(self) -> frozenset[str]:
        """Return every node that takes part."""
        return frozenset(node for step in self.steps for node in (*step.source, *step.target))


@dataclass(frozen=True)
class MovePlan:
    """Moves and the stages that they are done in, as positions."""

    moves: tuple[PlannedMove, ...]
    stages: tuple[tuple[int, ...], ...]

    def digest(self) -> str:
        """Return 16 hexadecimal digits that identify this plan, computed from its moves and stages."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def paths(self) -> dict[tuple[str, str], list[tuple[int, int]]]:
        """Return the steps of each instance, and of each disk that goes by itself, as (move, step), in the order of the stages."""
        paths: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for move in (move for stage in self.stages for move in stage):
            for number, step in enumerate(self.moves[move].steps):
                paths.setdefault((self.moves[move].instance, step.disk), []).append((move, number))
        return paths


@dataclass(frozen=True)
class Outcome:
    """What became of a step: it is done, it failed, or, with a `job`, it goes on in the background."""

    move: int
    step: int
    failed: bool = False
    message: str = ""
    job: str = ""


@dataclass(frozen=True)
class Progress:
    """How many steps of each move are done; jobs that run for the next step of a move; failures by move."""

    done: tuple[int, ...]
    jobs: Mapping[int, str] = field(default_factory=dict)
    failures: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def start(cls, plan: MovePlan) -> Progress:
        """Return the progress of a plan of which nothing is done."""
        return cls((0,) * len(plan.moves))

    def noted(self, plan: MovePlan, outcomes: Iterable[Outcome]) -> Progress:
        """Return the progress after what became of steps; raise InputError for steps that the plan does not have."""
        done, jobs, failures = list(self.done), dict(self.jobs), dict(self.failures)
        mistakes = Mistakes()
        for position, outcome in enumerate(outcomes):
            if not (0 <= outcome.move < len(plan.moves) and 0 <= outcome.step < len(plan.moves[outcome.move].steps)):
                mistakes.add(f"outcomes[{position}]", f"the plan has no step {outcome.step} of move {outcome.move}")
            elif outcome.step < done[outcome.move]:
                continue
            elif outcome.job and not _JOB.fullmatch(outcome.job):
                mistakes.add(
                    f"outcomes[{position}].job",
                    f"is {shown(outcome.job)}; must be the name of a job, which begins with a letter or a digit",
                )
            elif outcome.job:
                jobs[outcome.move] = outcome.job
            else:
                jobs.pop(outcome.move, None)
                failures.pop(outcome.move, None)
                if outcome.failed:
                    failures[outcome.move] = outcome.message
                else:
                    done[outcome.move] = outcome.step + 1
        mistakes.check()
        return Progress(tuple(done), jobs, failures)

    def tried_again(self) -> Progress:
        """Return the progress with failures forgotten, as at the start of a further run."""
        return dataclasses.replace(self, failures={})

    def seen(self, plan: MovePlan, where: Mapping[str, Nodes], storages: Mapping[str, Mapping[str, str]] | None = None) -> Progress:
        """Return the progress with steps counted as done whose result is there already; `storages` are those of disks by name.

        Steps that were done before stay done. Raises InputError for every instance or disk with steps left that is somewhere
        the rest of its way does not touch, or nowhere: the cluster has changed since it was planned.
        """
        done, jobs, disks = list(self.done), dict(self.jobs), storages or {}
        mistakes = Mistakes()
        for (instance, disk), path in plan.paths().items():
            left = [(move, step) for move, step in path if step >= done[move]]
            if not left:
                continue
            name = f"{instance} {disk}" if disk else instance
            if instance not in where or (disk and disk not in disks.get(instance, {})):
                mistakes.add(name, "is not in the cluster any more")
                continue
            here = (*where[instance], disks[instance][disk]) if disk else where[instance]
            passed = _passed(plan, left, here)
            if passed is None:
                ways = " or ".join(dict.fromkeys(_node_list(nodes) for nodes in _places(plan, left)))
                mistakes.add(name, f"is on {_node_list(here)}; the plan expects it on {ways}, so make a new plan")
                continue
            for move, step in left[:passed]:
                done[move] = step + 1
                jobs.pop(move, None)
        mistakes.check()
        return Progress(tuple(done), jobs, {move: says for move, says in self.failures.items() if done[move] == self.done[move]})

    def undone(self, plan: MovePlan, where: Mapping[str, Nodes], storages: Mapping[str, Mapping[str, str]] | None = None) -> bool:
        """Return whether every step was done and every instance is back where it began: the plan is wanted once more."""
        begun, disks = list[bool](), storages or {}
        for (instance, disk), path in plan.paths().items():
            first, last = (plan.moves[move].steps[step] for move, step in (path[0], path[-1]))
            here = (*where.get(instance, ()), disks.get(instance, {}).get(disk, "")) if disk else where.get(instance, ())
            begun.append(here == first.before != last.after)
        return self.complete(plan) and bool(begun) and all(begun)

    def complete(self, plan: MovePlan) -> bool:
        """Return whether nothing is left to do."""
        return all(done == len(move.steps) for done, move in zip(self.done, plan.moves))


def schedule(plan: MovePlan, progress: Progress, at_once: int, per_node: int = 0) -> list[list[tuple[int, int]]]:
    """Return rounds of steps (move, step) that finish the plan: at most `at_once` moves are under way at a time.

    With `per_node` no node takes part in more of them than that, if it can be helped. Moves that copy most come first,
    so that those that run side by side take about as long.
    """
    rounds: list[list[tuple[int, int]]] = []
    for stage in plan.stages:
        left = {move: progress.done[move] for move in stage if progress.done[move] < len(plan.moves[move].steps)}
        begun = [move for move in left if left[move]]
        waiting = sorted((move for move in left if not left[move]), key=lambda move: -plan.moves[move].data)
        active: list[int] = []
        while begun or waiting or active:
            for queue in (begun, waiting):
                _admit(plan, queue, active, at_once, per_node)
            rounds.append([(move, left[move]) for move in active])
            for move in active:
                left[move] += 1
            active = [move for move in active if left[move] < len(plan.moves[move].steps)]
    return rounds


def _admit(plan: MovePlan, queue: list[int], active: list[int], at_once: int, per_node: int) -> None:
    """Take moves from a queue to those under way, as many as the limits allow."""
    for move in list(queue):
        busy = [node for other in active for node in plan.moves[other].nodes]
        crowded = per_node and any(busy.count(node) >= per_node for node in plan.moves[move].nodes)
        if len(active) < at_once and not crowded:
            queue.remove(move)
            active.append(move)


def _passed(plan: MovePlan, left: Sequence[tuple[int, int]], nodes: Nodes) -> int | None:
    """Return how many of the steps that are left have been done when an instance is on `nodes`; None when it is astray."""
    places = _places(plan, left)
    return places.index(nodes) if nodes in places else None


def _places(plan: MovePlan, left: Sequence[tuple[int, int]]) -> list[Nodes]:
    steps = [plan.moves[move].steps[step] for move, step in left]
    return [steps[0].before, *(step.after for step in steps)]


def _node_list(nodes: Nodes) -> str:
    return ", ".join(nodes) or "no node"


def read_where(document: Mapping[str, t.Any]) -> dict[str, Nodes]:
    """Return nodes by instance; they may be lists, or text that separates them by `|`, commas or blanks, with `-` for none.

    Raises InputError with all that is neither.
    """
    mistakes = Mistakes()
    found = {}
    for instance, nodes in document.items():
        names = re.split(r"[|,\s]+", nodes) if isinstance(nodes, str) else nodes
        if isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names):
            found[instance] = tuple(name for name in names if name not in ("", "-"))
        else:
            mistakes.add(f"where[{instance}]", f"is {shown(nodes)}; must be a list of nodes, or text that names them")
    mistakes.check()
    return found


def _read_storages(document: Mapping[str, t.Any]) -> dict[str, dict[str, str]]:
    """Return storages by instance and disk; raise InputError with all that is no mapping."""
    mistakes = Mistakes()
    found: dict[str, dict[str, str]] = {}
    for instance, disks in document.items():
        if isinstance(disks, Mapping):
            found[instance] = {str(disk): str(storage) for disk, storage in disks.items()}
        else:
            mistakes.add(f"storages[{instance}]", "must be a mapping of storages by disk")
    mistakes.check()
    return found


def read_plan(document: Mapping[str, t.Any], kinds: Collection[str] = ()) -> MovePlan:
    """Return a plan from data as the group actions return it; `kinds` are the steps that can be carried out (default: any).

    A plan may come from a file that anybody wrote: names are checked, and of texts such as commands nothing is used. Raises InputError
    with every mistake: fields that are missing, names that are none, steps that do not follow from each other or that no step of
    their kind can be, stages that leave a move out or come before what it depends on.
    """
    mistakes = Mistakes()
    listed = enumerate(_listed(document, "moves", mistakes))
    moves = [_read_move(move, f"plan.moves[{position}]", kinds, mistakes) for position, move in listed]
    stages = tuple(tuple(stage) if isinstance(stage, list) else (stage,) for stage in _listed(document, "stages", mistakes))
    mistakes.check()
    _check_stages(document["moves"], stages, mistakes)
    mistakes.check()
    return MovePlan(tuple(move for move in moves if move is not None), stages)


def _listed(document: Mapping[str, t.Any], name: str, mistakes: Mistakes) -> list[t.Any]:
    found = document.get(name)
    if isinstance(found, list):
        return found
    mistakes.add(f"plan.{name}", "is not a list; give the plan that a group action has returned")
    return []


def _read_move(document: t.Any, place: str, kinds: Collection[str], mistakes: Mistakes) -> PlannedMove | None:
    source = _names(document.get("from"), f"{place}.from", mistakes) if isinstance(document, dict) else None
    if source is None or not isinstance(document.get("instance"), str):
        mistakes.add(place, "must have an instance and, in `from`, its nodes")
        return None
    instance = _name(document["instance"], f"{place}.instance", mistakes)
    data = document.get("data", 0)
    if not is_number(data):
        mistakes.add(f"{place}.data", f"is {shown(data)}; must be MiB as a number")
        return None
    if not isinstance(document.get("steps"), list) or not document["steps"]:
        mistakes.add(f"{place}.steps", "must list at least one step")
        return None
    steps: list[Step] = []
    for number, step in enumerate(document["steps"]):
        read = _read_step(step, f"{place}.steps[{number}]", instance, steps[-1].target if steps else source, kinds, mistakes)
        if read is None:
            return None
        steps.append(read)
    return PlannedMove(instance, tuple(steps), float(data))


def _read_step(document: t.Any, place: str, instance: str, here: Nodes, kinds: Collection[str], mistakes: Mistakes) -> Step | None:
    there = _names(document.get("to"), f"{place}.to", mistakes) if isinstance(document, dict) else None
    if not there or not isinstance(document.get("kind"), str):
        mistakes.add(place, "must have a kind and, in `to`, the nodes afterwards")
        return None
    kind = _name(document["kind"], f"{place}.kind", mistakes)
    online = document.get("online", True)
    if not isinstance(online, bool):
        mistakes.add(f"{place}.online", f"is {shown(online)}; must be true or false")
    if _names(document.get("from", list(here)), f"{place}.from", mistakes) != here:
        mistakes.add(f"{place}.from", f"is {shown(document['from'])}, but the moves before it lead to {_node_list(here)}")
    if kinds and kind not in kinds:
        mistakes.add(f"{place}.kind", f"is {kind}, which the driver cannot do; it knows {', '.join(kinds)}")
    # Of a disk by itself any kind says that it moves.
    disk = {name: _name(document[name], f"{place}.{name}", mistakes) for name in _OF_DISK if document.get(name) not in (None, "")}
    if disk and len(disk) < len(_OF_DISK):
        mistakes.add(place, f"must have all of {listed(_OF_DISK)}, or none of them")
    elif not disk and not _is_possible(kind, here, there):
        mistakes.add(f"{place}.to", f"is {_node_list(there)}; {kind} does not lead there from {_node_list(here)}")
    arrives = there[1] if kind == StepKind.REPLACE_DISKS and len(there) > 1 else there[0]
    node = _name(document.get("node", arrives), f"{place}.node", mistakes)
    if node not in there if kind not in tuple(StepKind) else node != arrives:
        mistakes.add(f"{place}.node", f"is {shown(node)}, but the step leads to {_node_list(there)}")
    command = ""
    if document.get("command") and not str(document["command"]).startswith(_OTHERS) and kind in tuple(StepKind) and not disk:
        command = ganeti_command(StepKind(kind), instance, node, mirrored=len(there) > 1, online=bool(online))
    return Step(kind, here, there, node, bool(online), command, **disk)


_OF_DISK = ("disk", "from_storage", "to_storage")
_OTHERS = ("qm ", "pct ", "ha-manager ", "virsh ")
"""How commands begin that are not Ganeti's, and not made again."""


def _is_possible(kind: str, here: Nodes, there: Nodes) -> bool:
    """Return whether a step of a kind that all plans have can lead from nodes to others; what other kinds mean their driver knows."""
    if kind == StepKind.REPLACE_DISKS:
        return len(here) == len(there) == 2 and here[0] == there[0] and len({*here, *there}) == 3
    if kind in (StepKind.MIGRATE, StepKind.FAILOVER):
        return there == here[::-1] if len(here) == 2 else len(there) == len(here) == 1 and there != here
    return True


def _names(document: t.Any, place: str, mistakes: Mistakes) -> Nodes | None:
    if not isinstance(document, list) or not all(isinstance(name, str) for name in document):
        return None
    return tuple(_name(name, f"{place}[{number}]", mistakes) for number, name in enumerate(document))


def _name(document: t.Any, place: str, mistakes: Mistakes) -> str:
    """Return a name as it is, valid or not, so that mistakes that follow from it are reported as well."""
    try:
        return _NAME.read(document)
    except ValueError as error:
        mistakes.add(place, str(error))
        return str(document)


def _check_stages(moves: Sequence[Mapping[str, t.Any]], stages: Sequence[Sequence[t.Any]], mistakes: Mistakes) -> None:
    stage_of: dict[int, int] = {}
    for number, stage in enumerate(stages):
        for move in stage:
            if isinstance(move, bool) or not isinstance(move, int) or not 0 <= move < len(moves):
                mistakes.add(f"plan.stages[{number}]", f"names move {move!r}; there are {len(moves)}, counted from 0")
            elif move in stage_of:
                mistakes.add(f"plan.stages[{number}]", f"repeats move {move} of stage {stage_of[move]}")
            else:
                stage_of[move] = number
    for position, move in enumerate(moves):
        if position not in stage_of:
            mistakes.add(f"plan.moves[{position}]", "is in no stage")
            continue
        after = move.get("after", [])
        if not isinstance(after, list):
            mistakes.add(f"plan.moves[{position}].after", "is not a list of positions of moves")
            continue
        for earlier in after:
            if not isinstance(earlier, int) or stage_of.get(earlier, len(stages)) >= stage_of[position]:
                mistakes.add(f"plan.moves[{position}].after", f"names move {earlier}, which is not in an earlier stage")


Plain = dict[str, t.Any]


def follow(arguments: Mapping[str, t.Any], *, write: bool) -> Plain:
    """Return how far a plan is and what to do next, for the arguments of group_progress; keep it in the journal if `write`.

    Raises InputError when the plan, the journal or what was reported is not as it must be.
    """
    at_once, per_node = _limits(arguments)
    needed = "journal" if arguments.get("plan") is None else "directory"
    if arguments.get(needed) is None:
        # Ansible takes an option for given whose value is none.
        raise InputError([Mistake(needed, "is missing; must be a path")])
    if needed == "directory":
        plan = read_plan(arguments["plan"], arguments.get("kinds") or ())
        path = Path(arguments["directory"]) / f"{plan.digest()}.json"
        before = read_journal(path)[1] if path.exists() else Progress.start(plan)
        progress = before.tried_again()
    else:
        path = Path(arguments["journal"])
        plan, before = read_journal(path)
        progress = before
    progress = progress.noted(plan, [_outcome(document) for document in arguments.get("outcomes") or ()])
    if arguments.get("where") is not None:
        where, storages = read_where(arguments["where"]), _read_storages(arguments.get("storages") or {})
        progress = (Progress.start(plan) if progress.undone(plan, where, storages) else progress).seen(plan, where, storages)
    changed = progress != before
    if write and (changed or not path.exists()):
        write_journal(path, plan, progress)
    return {"changed": changed, "journal": str(path), **progress_to_plain(plan, progress, at_once, per_node)}


def _limits(arguments: Mapping[str, t.Any]) -> tuple[int, int]:
    """Return how many moves may be under way, in all and on a node (0: as many as there are)."""
    mistakes = Mistakes()
    refuse_less(arguments, {"at_once": 1, "per_node": 0}, mistakes)
    mistakes.check()
    return arguments.get("at_once", 1), arguments.get("per_node", 0)


def read_journal(path: Path) -> tuple[MovePlan, Progress]:
    """Return the plan and the progress that a journal holds; raise InputError when it cannot be read, or says what no run has written."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        plan = read_plan(document["plan"])
        jobs = {int(move): job for move, job in document["jobs"].items()}
        failures = {int(move): str(says) for move, says in document["failures"].items()}
        progress = Progress(tuple(document["done"]), jobs, failures)
        _check_progress(plan, progress)
        return plan, progress
    except OSError as error:
        says = f"cannot read {path}: {error.strerror or error}"
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        says = f"{path} is not the journal of a plan ({type(error).__name__}: {error}); move it away to start over"
    raise InputError([Mistake("journal", says)])


def _check_progress(plan: MovePlan, progress: Progress) -> None:
    """Raise ValueError for a progress that is none of the plan. Numbers of jobs become arguments of commands, and none is an option."""
    most = [len(move.steps) for move in plan.moves]
    counts = [number for number, steps in zip(progress.done, most) if is_whole(number) and 0 <= number <= steps]
    if len(counts) != len(progress.done) or len(counts) != len(most):
        raise ValueError(f"done must say for each of {len(most)} moves how many of its steps are done")
    if not {*progress.jobs, *progress.failures} <= {*range(len(most))}:
        raise ValueError("jobs and failures are of moves that the plan does not have")
    if not all(isinstance(job, str) and _JOB.fullmatch(job) for job in progress.jobs.values()):
        raise ValueError("a job is no text that begins with a letter or a digit")


def write_journal(path: Path, plan: MovePlan, progress: Progress) -> None:
    """Write a journal; what was there before stays until the new one is complete."""
    document = {
        "plan": {"moves": [_move_to_plain(move) for move in plan.moves], "stages": [list(stage) for stage in plan.stages]},
        "done": list(progress.done),
        "jobs": dict(progress.jobs),
        "failures": dict(progress.failures),
    }
    try:
        replace_json(path, document)
    except OSError as error:
        raise InputError([Mistake("journal", f"cannot write {path}: {error.strerror or error}")]) from error


def progress_to_plain(plan: MovePlan, progress: Progress, at_once: int, per_node: int) -> Plain:
    """Return the progress as plain data: complete, nodes, done, failures, remaining, rounds, summary."""
    moves = [_state_to_plain(plan, progress, move) for move in range(len(plan.moves))]
    failed = [move for move in moves if move["move"] in progress.failures]
    remaining = [move for move in moves if move["steps_done"] < move["steps"]]
    return {
        "complete": progress.complete(plan),
        "nodes": sorted(frozenset().union(*(move.nodes for move in plan.moves))),
        "done": [move for move in moves if move["steps_done"] == move["steps"]],
        "failures": failed,
        "remaining": remaining,
        "rounds": [[_step_to_plain(plan, progress, *step) for step in steps] for steps in schedule(plan, progress, at_once, per_node)],
        "summary": _summary(plan, failed, remaining),
    }


def _state_to_plain(plan: MovePlan, progress: Progress, move: int) -> Plain:
    return {
        "move": move,
        "instance": plan.moves[move].instance,
        "steps": len(plan.moves[move].steps),
        "steps_done": progress.done[move],
        "message": progress.failures.get(move, ""),
    }


def _step_to_plain(plan: MovePlan, progress: Progress, move: int, step: int) -> Plain:
    job = progress.jobs.get(move, "") if step == progress.done[move] else ""
    instance, taken = plan.moves[move].instance, plan.moves[move].steps[step]
    return {"move": move, "step": step, "instance": instance, **_plain_step(taken), "job": job, "says": f"{instance} {_message(taken)}"}


def _message(step: Step) -> str:
    return f"{step.kind} {step.disk} to {step.to_storage}" if step.disk else f"{step.kind} to {step.node}"


def _move_to_plain(move: PlannedMove) -> Plain:
    steps = [_plain_step(step) for step in move.steps]
    return {"instance": move.instance, "from": list(move.steps[0].source), "data": move.data, "steps": steps}


def _plain_step(step: Step) -> Plain:
    return {
        "kind": step.kind,
        "from": list(step.source),
        "to": list(step.target),
        "node": step.node,
        "online": step.online,
        "command": step.command,
        **({"disk": step.disk, "from_storage": step.from_storage, "to_storage": step.to_storage} if step.disk else {}),
    }


def _summary(plan: MovePlan, failed: list[Plain], remaining: list[Plain]) -> str:
    lines = [f"{len(plan.moves) - len(remaining)} of {len(plan.moves)} moves are done."]
    for move in failed:
        step = plan.moves[move["move"]].steps[move["steps_done"]]
        lines.append(f"{move['instance']}: {_message(step)} failed: {move['message']}")
    if remaining:
        names = (f"{move['instance']} ({move['steps_done']} of {move['steps']} steps done)" for move in remaining)
        lines.append(f"What remains: {', '.join(names)}.")
    return "\n".join(lines)


def _outcome(document: Mapping[str, t.Any]) -> Outcome:
    return Outcome(
        document["move"], document["step"], bool(document.get("failed")), str(document.get("message") or ""), str(document.get("job") or "")
    )
