# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The journal of a plan that is carried out: what is done, what failed, what comes next, kept between runs."""

from __future__ import annotations

import json
import re
import typing as t
from collections.abc import Mapping
from pathlib import Path

from ....module_utils._data.errors import InputError, Mistake, Mistakes
from ....module_utils._data.kinds import is_whole, refuse_less, shown
from .kept import Kept, KeptFile, ReadableText
from .progress import JOB, Outcome, Progress, schedule
from .read import read_plan, read_round, read_storages, read_where
from .steps import MovePlan, Step

Plain = dict[str, t.Any]
_OPTION = "journal"
_DIGEST = re.compile("[0-9a-f]{16}")


def journal_of(arguments: Mapping[str, t.Any], *, in_files: bool = True) -> str:
    """Return what the arguments of group_progress call the journal: a path, else the digest of the plan. Raises InputError."""
    needed = "journal" if arguments.get("plan") is None else "directory"
    if arguments.get(needed) is None and (in_files or needed == "journal"):
        # Ansible takes an option for given whose value is none.
        raise InputError([Mistake(needed, "is missing; must be a path" if in_files else "is missing")])
    if needed == "journal" and not in_files and not _DIGEST.fullmatch(str(arguments["journal"])):
        says = f"is {shown(arguments['journal'])}; must be the digest that group_progress returned as journal"
        raise InputError([Mistake(_OPTION, says)])
    if needed == "journal":
        return str(arguments["journal"])
    digest = read_plan(arguments["plan"], arguments.get("kinds") or ()).digest()
    return str(Path(arguments["directory"]) / f"{digest}.json") if in_files else digest


def follow(arguments: Mapping[str, t.Any], *, write: bool, kept: Kept | None = None) -> Plain:
    """Return how far a plan is and what to do next, for the arguments of group_progress; keep it in the journal if `write`.

    The journal is a file unless `kept` is another place. Raises InputError when the plan, the journal or what was reported is not as
    it must be.
    """
    mistakes = Mistakes()
    refuse_less(arguments, {"at_once": 1, "per_node": 0}, mistakes)
    mistakes.check()
    journal = journal_of(arguments, in_files=kept is None)
    kept = kept or KeptFile(Path(journal), _OPTION)
    text = kept.read()
    if arguments.get("plan") is not None:
        plan = read_plan(arguments["plan"], arguments.get("kinds") or ())
        before = Progress.start(plan) if text is None else _journal_from(text, kept)[1]
        progress = before.tried_again()
    else:
        plan, before = _journal_from(text, kept)
        progress = before
    outcomes = [
        Outcome(one["move"], one["step"], bool(one.get("failed")), str(one.get("message") or ""), str(one.get("job") or ""))
        for one in arguments.get("outcomes") or ()
    ]
    progress = progress.noted(plan, outcomes)
    taken = arguments.get("round")
    # Of what an earlier run has begun nobody knows since when it goes on.
    if taken is not None and not any(step.get("job") for step in taken["steps"]):
        progress = progress.timed(read_round(taken, plan, "round"))
    if arguments.get("where") is not None:
        where, storages = read_where(arguments["where"]), read_storages(arguments.get("storages") or {})
        progress = (progress.begun_again() if progress.undone(plan, where, storages) else progress).seen(plan, where, storages)
    changed = progress != before
    if write and (changed or text is None):
        kept.write(json.dumps(_journal_to_plain(plan, progress), indent=1))
    return {
        "changed": changed,
        "journal": journal,
        **progress_to_plain(plan, progress, arguments.get("at_once", 1), arguments.get("per_node", 0)),
    }


def read_journal(kept: ReadableText) -> tuple[MovePlan, Progress]:
    """Return the plan and the progress that a text holds; raise InputError when it cannot be read, or says what no run has written."""
    return _journal_from(kept.read(), kept)


def _journal_from(text: str | None, kept: ReadableText) -> tuple[MovePlan, Progress]:
    if text is None:
        raise InputError([Mistake(kept.option, f"cannot read {kept}: it is not there")])
    try:
        document = json.loads(text)
        plan = read_plan(document["plan"])
        jobs = {int(move): job for move, job in document["jobs"].items()}
        failures = {int(move): str(says) for move, says in document["failures"].items()}
        # Journals of earlier versions have no times.
        rounds = tuple(read_round(one, plan, f"rounds[{number}]") for number, one in enumerate(document.get("rounds", ())))
        progress = Progress(tuple(document["done"]), jobs, failures, rounds)
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
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        says = f"{kept} is not the journal of a plan ({type(error).__name__}: {error}); move it away to start over"
    raise InputError([Mistake(kept.option, says)])


def _journal_to_plain(plan: MovePlan, progress: Progress) -> Plain:
    rounds = [
        {"steps": [{"move": move, "step": step} for move, step in taken.steps], "seconds": taken.seconds} for taken in progress.rounds
    ]
    return {
        "plan": {"moves": moves_to_plain(plan), "stages": [list(stage) for stage in plan.stages]},
        "done": list(progress.done),
        "jobs": dict(progress.jobs),
        "failures": dict(progress.failures),
        "rounds": rounds,
    }


def moves_to_plain(plan: MovePlan) -> list[Plain]:
    """Return the moves of a plan as plain data, with what read_plan takes and times.py measures."""
    return [
        {
            "instance": move.instance,
            "from": list(move.steps[0].source),
            "data": move.data,
            "memory": move.memory,
            "steps": [_plain_step(step) for step in move.steps],
        }
        for move in plan.moves
    ]


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
