# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a solver says that a problem has no plan: with the reason and what helps, or without, where nobody will see it."""

from __future__ import annotations

from collections.abc import Callable

from ....module_utils._data.errors import NoSolution
from ..problem.model import Problem
from .remedies import Trial, Untried

Why = Callable[[Problem], NoSolution]
"""Says why a problem has no plan."""


def unsaid(_problem: Problem) -> NoSolution:
    """Return that there is no plan, without a reason: nobody will see it."""
    return NoSolution("No plan", {"short": None, "constraints": [], "remedies": []})


def why(problem: Problem, trial: Trial | None = None) -> NoSolution:
    """Return why a problem has no plan, with the remedies that help."""
    # Loaded here: most machines have a plan, and Ansible compiles what it loads in every run.
    from .explain import explain

    reason = explain(problem, trial or Untried())
    return NoSolution(reason.message, reason.data)
