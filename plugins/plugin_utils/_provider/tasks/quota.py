# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task `provider_quota`: from its arguments to its result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from ....module_utils._data.containers import MappingOf, Row, Table
from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import Whole
from ..ledger.open import Ledger
from ..ledger.parse import OWNER
from ..ledger.plain import Plain
from ..ledger.quotas import put_quota
from ..world.model import LARGEST_CAPACITY
from ..world.parse import CLASS
from .provider import kept_ledger
from .recovery import run_recoverably

_QUOTA = Table(
    "a quota",
    [
        Row("project", OWNER, required=True),
        Row("limits", MappingOf(Whole(0, LARGEST_CAPACITY), "resource classes to amounts", CLASS, least=1)),
    ],
    others=True,
)


def run_provider_quota(arguments: Mapping[str, t.Any], *, dry_run: bool, rehearsal: Path | None = None) -> Plain:
    """Limit what a project may have, or lift its limits. Raises InputError, NoSolution and Unavailable."""
    mistakes = Mistakes()
    values = _QUOTA.read_nested(arguments, "", mistakes)
    if arguments["state"] == "absent" and values["limits"] is not None:
        mistakes.add("limits", "only applies to state present; absent lifts all limits of the project")
    if arguments["state"] == "present" and arguments["limits"] is None:
        mistakes.add("limits", "is missing; to lift all limits of the project, use state absent")
    mistakes.check()
    with kept_ledger(arguments, dry_run=dry_run, rehearsal=rehearsal) as ledger:
        return run_recoverably(ledger, arguments, partial(_put, project=values["project"], limits=values["limits"] or {}))


def _put(ledger: Ledger, project: str, limits: Mapping[str, int]) -> Plain:
    done = ledger.write(partial(put_quota, project=project, limits=limits))
    shown = {
        side: {project: dict(sorted(found.items()))} if found else {} for side, found in (("before", done.before), ("after", done.after))
    }
    beyond = [name for name, used in done.used.items() if used > limits[name]]
    return {
        "changed": done.before != done.after,
        "project": project,
        "limits": dict(sorted(done.after.items())),
        "used": dict(done.used),
        "diff": shown,
        "warnings": [f"project {project} has {done.used[name]} {name}, more than {limits[name]}; it gets no more of it" for name in beyond],
    }
