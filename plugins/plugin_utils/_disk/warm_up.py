# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan once before Ansible forks a worker per host, so that no worker has the costs of a first time.

What a process does first is dear: files are read, expressions parsed, caches of classes and patterns filled, Python's bytecode
adapted to its operands. Workers are copies of the process that has imported the action, so they begin warm.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from ...module_utils._data.errors import InputError, NoSolution
from .._common.libraries import MissingLibraries, refuse_missing
from .._common.plain import plain
from .planner import Planner
from .render.text import summary
from .schema.profiles import load_profile

_MACHINE = {
    "ram": 4096,
    "firmware": "uefi",
    "disks": [
        {"id": "fast", "path": "port-1", "dev": "/dev/sda", "type": "ssd", "size": 65536},
        {"id": "slow", "path": "port-2", "dev": "/dev/sdb", "type": "hdd", "size": 131072},
    ],
}


def warm_up(folder: Path) -> None:
    """Plan a small machine by the profile `general` of a folder; whatever fails is left to the task that needs it."""
    with contextlib.suppress(MissingLibraries, InputError, NoSolution):
        refuse_missing("disks")
        plan = Planner(load_profile(folder / "general.yml")).plan(_MACHINE)
        plain({"plan": plan, "summary": summary(plan, _MACHINE)})
