# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Independent solves side by side, through the interface of concurrent.futures: in processes, or on a Dask cluster.

    def job(task, seconds): ...                    # a function of a module, which stops by itself after `seconds`
    solved = solve_each(job, {"group-1": task1, "group-2": task2}, Resources(workers=4, seconds=60), progress)
    solved["group-1"].result, solved["group-1"].finished

Time that is left is shared out when a job begins: each gets as much as it may use if all that wait are to get the same.
What takes no notice of its limit is ended some time after it. A Dask cluster gets the collection's code with the jobs;
its workers need the libraries of requirements.txt, and a Python that runs it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import typing as t
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess

from ...module_utils._data.errors import InputError, Mistake, Unavailable
from ...module_utils._data.kinds import shown
from .dask_cluster import cluster_executor

Task = t.TypeVar("Task")
Result = t.TypeVar("Result")
Job = Callable[[Task, t.Union[float, None]], Result]

HEARTBEAT = 10.0
"""Seconds after which progress is reported although nothing has happened."""
_ENCRYPTED = ("tls://", "wss://")
_GRACE = 0.2
_LEAST_GRACE = 5.0


@dataclass(frozen=True)
class Resources:
    """What solves may use: a Dask `scheduler` by its address, or as many processes as `workers` (0: as there are cores).

    `seconds` is the time for all of them together; None is without limit.
    """

    scheduler: str = ""
    workers: int = 0
    seconds: float | None = None

    @classmethod
    def of(cls, arguments: Mapping[str, t.Any], seconds: float | None = None) -> Resources:
        """Return what the options `scheduler`, `insecure` and `workers` say. Raises InputError for a scheduler without TLS.

        A client that can write to such a connection runs any code on the workers, and answers in their place.
        """
        scheduler = arguments.get("scheduler") or ""
        if scheduler and not scheduler.startswith(_ENCRYPTED) and not arguments.get("insecure"):
            says = "which is neither encrypted nor authenticated; use tls://, or, in a network of your own, insecure: true"
            raise InputError([Mistake("scheduler", f"is {shown(scheduler)}, {says}")])
        return cls(scheduler, arguments.get("workers") or 0, seconds)


@dataclass(frozen=True)
class Solved(t.Generic[Result]):
    """The result of a job; None when time was over before it gave one."""

    result: Result | None
    seconds: float

    @property
    def finished(self) -> bool:
        """Return whether there is a result."""
        return self.result is not None


@dataclass(frozen=True)
class Progress:
    """How far the jobs are: names of those that have ended, in that order, and of those that run; how many there are."""

    ended: tuple[str, ...]
    running: tuple[str, ...]
    total: int
    seconds: float

    def __str__(self) -> str:
        at_work = f", at work on {', '.join(self.running[:3])}{' ...' if len(self.running) > 3 else ''}" if self.running else ""
        return f"{len(self.ended)} of {self.total} done after {self.seconds:.0f} s{at_work}"


def solve_each(
    job: Job[Task, Result],
    tasks: Mapping[str, Task],
    resources: Resources,
    progress: Callable[[Progress], None] = lambda _progress: None,
) -> dict[str, Solved[Result]]:
    """Return what `job` makes of each task, by name and in the order of `tasks`.

    What a job raises is raised here. Raises Unavailable when the Dask cluster cannot be used.
    """
    clock = _Clock(resources.seconds)
    processes = min(resources.workers or _cores(), len(tasks))
    if processes <= 1 and not resources.scheduler:
        solved: dict[str, Solved[Result]] = {}
        for number, (name, task) in enumerate(tasks.items()):
            progress(Progress(tuple(solved), (name,), len(tasks), clock.passed()))
            begun = clock.passed()
            result = None if clock.over() else job(task, clock.share(len(tasks) - number, 1))
            solved[name] = Solved(result, clock.passed() - begun)
        progress(Progress(tuple(solved), (), len(tasks), clock.passed()))
        return solved
    with executor(resources.scheduler, processes) as (pool, workers):
        return _Round(job, tasks, workers, clock, progress).solve(pool)


@contextmanager
def executor(scheduler: str, processes: int) -> Iterator[tuple[Executor, int]]:
    """Yield an executor, of processes or of the Dask cluster at the address `scheduler`, and how much it does at a time.

    Processes are forked, as Ansible forks its own, so that what is loaded need not be loaded again. They are gone when
    the context is left, also those that are still at work.
    """
    if scheduler:
        with cluster_executor(scheduler) as cluster:
            yield cluster
        return
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("fork"), initializer=_die_of_signals)
    try:
        yield pool, processes
    finally:
        _end(pool, set(multiprocessing.active_children()) - others)


def _die_of_signals() -> None:
    """Undo what Ansible's processes do about signals, which the processes that they fork inherit and must not do."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def _end(pool: Executor, processes: Iterable[BaseProcess]) -> None:
    """End the processes of `pool`, at work or not, and return when they have ended.

    They are killed all at once: one that ends by itself may do so with the lock of a queue that another waits for. The pool
    is waited for: its thread must not be closing what the end of this process wants to use.
    """
    for process in processes:
        process.kill()
    pool.shutdown(wait=True, cancel_futures=True)


def _cores() -> int:
    """Return how many cores this process may use; not every system says so of a process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Clock:
    """Measures how much time has passed and how much a job may use."""

    def __init__(self, seconds: float | None) -> None:
        self._start = time.monotonic()
        self._seconds = seconds

    def passed(self) -> float:
        return time.monotonic() - self._start

    def left(self) -> float | None:
        return None if self._seconds is None else self._seconds - self.passed()

    def over(self) -> bool:
        left = self.left()
        return left is not None and left <= 0

    def share(self, waiting: int, workers: int) -> float | None:
        """Return the seconds for one of `waiting` jobs."""
        left = self.left()
        return None if left is None else left * min(1.0, workers / waiting)

    def patience(self) -> float | None:
        """Return the seconds after which jobs that run are given up."""
        left = self.left()
        return None if left is None or self._seconds is None else left + max(_LEAST_GRACE, _GRACE * self._seconds)


class _Round(t.Generic[Task, Result]):
    """Keeps as many jobs at work as there are workers, until all have ended or time is over."""

    def __init__(
        self,
        job: Job[Task, Result],
        tasks: Mapping[str, Task],
        workers: int,
        clock: _Clock,
        report: Callable[[Progress], None],
    ) -> None:
        self._job, self._tasks, self._workers, self._clock, self._report = job, tasks, workers, clock, report
        self._waiting = list(tasks)
        self._running: dict[Future[Result], tuple[str, float]] = {}
        self._solved: dict[str, Solved[Result]] = {}

    def solve(self, pool: Executor) -> dict[str, Solved[Result]]:
        """Return what became of each task."""
        while self._running or (self._waiting and not self._clock.over()):
            self._begin(pool)
            patience = self._clock.patience()
            if patience is not None and patience <= 0:
                break
            ended, _others = wait(self._running, min(HEARTBEAT, patience or HEARTBEAT), FIRST_COMPLETED)
            for future in ended:
                self._end(future)
            self._report(
                Progress(
                    tuple(self._solved), tuple(name for name, _begun in self._running.values()), len(self._tasks), self._clock.passed()
                )
            )
        for future, (_name, _begun) in self._running.items():
            future.cancel()
        return {name: self._solved.get(name, Solved(None, self._spent(name))) for name in self._tasks}

    def _begin(self, pool: Executor) -> None:
        while self._waiting and len(self._running) < self._workers and not self._clock.over():
            share = self._clock.share(len(self._waiting) + len(self._running), self._workers)
            name = self._waiting.pop(0)
            self._running[pool.submit(self._job, self._tasks[name], share)] = name, self._clock.passed()

    def _end(self, future: Future[Result]) -> None:
        name, begun = self._running.pop(future)
        try:
            self._solved[name] = Solved(future.result(), self._clock.passed() - begun)
        except BrokenExecutor as error:
            raise Unavailable(f"a process that worked on {name} was killed, perhaps because memory ran out") from error

    def _spent(self, name: str) -> float:
        return next((self._clock.passed() - begun for running, begun in self._running.values() if running == name), 0.0)
