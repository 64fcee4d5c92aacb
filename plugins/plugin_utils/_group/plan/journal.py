# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The journal of a plan that is carried out: what is done, what failed, what comes next, kept in a file between runs."""

from __future__ import annotations

import json
import typing as t
from collections.abc import Mapping
from pathlib import Path

from ....module_utils._data.errors import InputError, Mistake, Mistakes
from ....module_utils._data.kinds import is_whole, refuse_less
from ..._common.files import replace_json
from .progress import JOB, Outcome, Progress, schedule
from .read import read_plan, read_storages, read_where
from .steps import MovePlan, Step

Plain = dict[str, t.Any]


def follow(arguments: Mapping[str, t.Any], *, write: bool) -> Plain:
    """Return how far a plan is and what to do next, for the arguments of group_progress; keep it in the journal if `write`.

    Raises InputError when the plan, the journal or what was reported is not as it must be.
    """
    mistakes = Mistakes()
    refuse_less(arguments, {"at_once": 1, "per_node": 0}, mistakes)
    mistakes.check()
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
    outcomes = [
        Outcome(one["move"], one["step"], bool(one.get("failed")), str(one.get("message") or ""), str(one.get("job") or ""))
        for one in arguments.get("outcomes") or ()
    ]
    progress = progress.noted(plan, outcomes)
    if arguments.get("where") is not None:
        where, storages = read_where(arguments["where"]), read_storages(arguments.get("storages") or {})
        progress = (Progress.start(plan) if progress.undone(plan, where, storages) else progress).seen(plan, where, storages)
    changed = progress != before
    if write and (changed or not path.exists()):
        write_journal(path, plan, progress)
    return {
        "changed": changed,
        "journal": str(path),
        **progress_to_plain(plan, progress, arguments.get("at_once", 1), arguments.get("per_node", 0)),
    }


def read_journal(path: Path) -> tuple[MovePlan, Progress]:
    """Return the plan and the progress that a journal holds; raise InputError when it cannot be read, or says what no run has written."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        plan = read_plan(document["plan"])
        jobs = {int(move): job for move, job in document["jobs"].items()}
        failures = {int(move): str(says) for move, says in document["failures"].items()}
        progress = Progress(tuple(document["done"]), jobs, failures)
        # Raise ValueError for a progress that is none of the plan. Numbers of jobs become arguments of commands, and
        # none is an option.
        most = [len(move.steps) for move in plan.moves]
        counts = [number for number, steps in zip(progress.done, most) if is_whole(number) and 0 <= number <= steps]
        if len(counts) != len(progress.done) or len(counts) != len(most):
            raise ValueError(f"done must say for each of {len(most)} moves how many of its steps are done")
        if not {*progress.jobs, *progress.failures} <= {*range(len(most))}:
            raise ValueError("jobs and failures are of moves that the plan does not have")
        if not all(isinstance(job, str) and JOB.fullmatch(job) for job in progress.jobs.values()):
            raise ValueError("a job is no text that begins with a letter or a digit")
        return plan, progress
    except OSError as error:
        says = f"cannot read {path}: {error.strerror or error}"
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        says = f"{path} is not the journal of a plan ({type(error).__name__}: {error}); move it away to start over"
    raise InputError([Mistake("journal", says)])


def write_journal(path: Path, plan: MovePlan, progress: Progress) -> None:
    """Write a journal; what was there before stays until the new one is complete."""
    moves = [
        {
            "instance": move.instance,
            "from": list(move.steps[0].source),
            "data": move.data,
            "steps": [_plain_step(step) for step in move.steps],
        }
        for move in plan.moves
    ]
    document = {
        "plan": {"moves": moves, "stages": [list(stage) for stage in plan.stages]},
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
    moves: list[Plain] = [
        {
            "move": number,
            "instance": move.instance,
            "steps": len(move.steps),
            "steps_done": progress.done[number],
            "message": progress.failures.get(number, ""),
        }
        for number, move in enumerate(plan.moves)
    ]
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


def _step_to_plain(plan: MovePlan, progress: Progress, move: int, step: int) -> Plain:
    job = progress.jobs.get(move, "") if step == progress.done[move] else ""
    instance, taken = plan.moves[move].instance, plan.moves[move].steps[step]
    return {"move": move, "step": step, "instance": instance, **_plain_step(taken), "job": job, "says": f"{instance} {_message(taken)}"}


def _message(step: Step) -> str:
    return f"{step.kind} {step.disk} to {step.to_storage}" if step.disk else f"{step.kind} to {step.node}"


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
