# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The journal of a plan that is carried out: a JSON file that holds the plan and how far it has come.

It is named by the plan's digest, so that a further run of the same plan finds it, and is replaced as a whole, so that a
run that is cut off leaves either the state before or the one after.
"""

from __future__ import annotations

import json
import os
import typing as t
from collections.abc import Mapping
from pathlib import Path

from ...common.errors import InputError, Mistake, Mistakes
from .progress import MovePlan, Outcome, PlannedMove, Progress, Step, read_plan, read_where, schedule

Plain = dict[str, t.Any]


def follow(arguments: Mapping[str, t.Any], *, write: bool) -> Plain:
    """Return how far a plan is and what to do next, for the arguments of group_progress; keep it in the journal if `write`.

    Raises InputError when the plan, the journal or what was reported is not as it must be.
    """
    at_once, per_node = _limits(arguments)
    if arguments.get("plan") is not None:
        plan = read_plan(arguments["plan"], arguments.get("kinds") or ())
        path = Path(arguments["directory"]) / f"{plan.digest()}.json"
        before = read_journal(path)[1] if path.exists() else Progress.start(plan)
        progress = before.tried_again()
    else:
        path = Path(arguments["journal"])
        plan, before = read_journal(path)
        progress = before
    progress = progress.noted(plan, [_outcome(told) for told in arguments.get("outcomes") or ()])
    if arguments.get("where") is not None:
        progress = progress.seen(plan, read_where(arguments["where"]))
    changed = progress != before
    if write and (changed or not path.exists()):
        write_journal(path, plan, progress)
    return {"changed": changed, "journal": str(path), **told_progress(plan, progress, at_once, per_node)}


def _limits(arguments: Mapping[str, t.Any]) -> tuple[int, int]:
    """Return how many moves may be under way, in all and on a node (0: as many as there are)."""
    mistakes = Mistakes()
    limits = arguments.get("at_once", 1), arguments.get("per_node", 0)
    for name, least, limit in (("at_once", 1, limits[0]), ("per_node", 0, limits[1])):
        if limit < least:
            mistakes.add(name, f"is {limit}; must be {least} or more")
    mistakes.check()
    return limits


def read_journal(path: Path) -> tuple[MovePlan, Progress]:
    """Return the plan and the progress that a journal holds; raise InputError when it cannot be read."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        plan = read_plan(told["plan"])
        jobs = {int(move): str(job) for move, job in told["jobs"].items()}
        failures = {int(move): str(says) for move, says in told["failures"].items()}
        return plan, Progress(tuple(int(done) for done in told["done"]), jobs, failures)
    except OSError as error:
        says = f"cannot read {path}: {error.strerror or error}"
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        says = f"{path} is no journal of a plan ({type(error).__name__}: {error}); move it away to begin anew"
    raise InputError([Mistake("journal", says)])


def write_journal(path: Path, plan: MovePlan, progress: Progress) -> None:
    """Write a journal; what was there before stays until the new one is complete."""
    told = {
        "plan": {"moves": [_told_move(move) for move in plan.moves], "stages": [list(stage) for stage in plan.stages]},
        "done": list(progress.done),
        "jobs": dict(progress.jobs),
        "failures": dict(progress.failures),
    }
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w", encoding="utf-8") as file:
            json.dump(told, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise InputError([Mistake("journal", f"cannot write {path}: {error.strerror or error}")]) from error


def told_progress(plan: MovePlan, progress: Progress, at_once: int, per_node: int) -> Plain:
    """Return the progress as plain data: complete, done, failures, remaining, rounds, summary."""
    moves = [_told_state(plan, progress, move) for move in range(len(plan.moves))]
    failed = [move for move in moves if move["move"] in progress.failures]
    remaining = [move for move in moves if move["steps_done"] < move["steps"]]
    return {
        "complete": progress.complete(plan),
        "done": [move for move in moves if move["steps_done"] == move["steps"]],
        "failures": failed,
        "remaining": remaining,
        "rounds": [[_told_step(plan, progress, *step) for step in steps] for steps in schedule(plan, progress, at_once, per_node)],
        "summary": _summary(plan, failed, remaining),
    }


def _told_state(plan: MovePlan, progress: Progress, move: int) -> Plain:
    return {
        "move": move,
        "instance": plan.moves[move].instance,
        "steps": len(plan.moves[move].steps),
        "steps_done": progress.done[move],
        "message": progress.failures.get(move, ""),
    }


def _told_step(plan: MovePlan, progress: Progress, move: int, step: int) -> Plain:
    job = progress.jobs.get(move, "") if step == progress.done[move] else ""
    return {"move": move, "step": step, "instance": plan.moves[move].instance, **_plain_step(plan.moves[move].steps[step]), "job": job}


def _told_move(move: PlannedMove) -> Plain:
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
    }


def _summary(plan: MovePlan, failed: list[Plain], remaining: list[Plain]) -> str:
    lines = [f"{len(plan.moves) - len(remaining)} of {len(plan.moves)} moves are done."]
    for move in failed:
        step = plan.moves[move["move"]].steps[move["steps_done"]]
        lines.append(f"{move['instance']}: {step.kind} to {step.node} failed: {move['message']}")
    if remaining:
        names = (f"{move['instance']} ({move['steps_done']} of {move['steps']} steps done)" for move in remaining)
        lines.append(f"What remains: {', '.join(names)}.")
    return "\n".join(lines)


def _outcome(told: Mapping[str, t.Any]) -> Outcome:
    return Outcome(told["move"], told["step"], bool(told.get("failed")), str(told.get("message") or ""), str(told.get("job") or ""))
