# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Work on each group side by side, in the manner of the built-in `map`, by processes or a Dask cluster.

run = in_parallel(Resources(workers=4), progress, names)
answers = run(work, groups)             # work must be a function of a module, or a partial of one
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

from ..._common.parallel import Progress, Resources, solve_each
from ..redistribute.redistribution import Answer, Run


def in_parallel(resources: Resources, progress: Callable[[Progress], None], names: Sequence[str]) -> Run:
    """Return a function that calls another for each group, by position, and returns the answers in order."""

    def run(work: Callable[[int], Answer], groups: Iterable[int], /) -> list[Answer]:
        tasks = {names[group]: group for group in groups}
        solved = solve_each(functools.partial(_work_on, work), tasks, resources, progress)
        return [found.result for found in solved.values() if found.result is not None]

    return run


def _work_on(work: Callable[[int], Answer], group: int, _seconds: float | None) -> Answer:
    """Call `work` as a job; it takes the time it takes."""
    return work(group)
