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
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import shown
from .steps import MovePlan, Nodes, Round, node_list

JOB = re.compile(r"[A-Za-z0-9][!-~]{0,254}")
"""The number of a job, or what Proxmox VE calls a task: it becomes an argument of commands and a part of URLs, and is no option."""

MOST_ROUNDS = 1000
"""Of how many rounds a journal keeps the time: a plan that is undone and made again each night does not make it grow for ever."""


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
    """How many steps of each move are done; jobs that run for the next step of a move; failures by move; rounds that took their time."""

    done: tuple[int, ...]
    jobs: Mapping[int, str] = field(default_factory=dict)
    failures: Mapping[int, str] = field(default_factory=dict)
    rounds: tuple[Round, ...] = ()

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
            elif outcome.job and not JOB.fullmatch(outcome.job):
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
        return dataclasses.replace(self, done=tuple(done), jobs=jobs, failures=failures)

    def timed(self, taken: Round) -> Progress:
        """Return the progress with how long a round took, if all its steps are done; of very many rounds the last are kept."""
        if not taken.seconds or any(self.done[move] <= step for move, step in taken.steps):
            return self
        return dataclasses.replace(self, rounds=(*self.rounds, taken)[-MOST_ROUNDS:])

    def begun_again(self) -> Progress:
        """Return the progress with nothing done, as for a plan that is wanted once more."""
        return Progress((0,) * len(self.done), rounds=self.rounds)

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
            steps = [plan.moves[move].steps[step] for move, step in left]
            places = [steps[0].before, *(step.after for step in steps)]
            if here not in places:
                ways = " or ".join(dict.fromkeys(map(node_list, places)))
                mistakes.add(name, f"is on {node_list(here)}; the plan expects it on {ways}, so make a new plan")
                continue
            for move, step in left[: places.index(here)]:
                done[move] = step + 1
                jobs.pop(move, None)
        mistakes.check()
        failures = {move: says for move, says in self.failures.items() if done[move] == self.done[move]}
        return dataclasses.replace(self, done=tuple(done), jobs=jobs, failures=failures)

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
