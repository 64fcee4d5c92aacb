# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which share of the slow tests a run takes: all of them, or one of TEST_SHARE.

`make test` takes a tenth: a tenth of the examples of each property test, and each slow test whose turn it is by TEST_SEED. Slow tests of
the rooms that were touched since the last commit of the main branch are always taken. `slow_tests.txt` lists the slow ones; `make slow`
writes it.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Set as AbstractSet
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SLOW_TESTS = Path(__file__).with_name("slow_tests.txt")
MAIN = "origin/main"
MIN_EXAMPLES = 5


def share() -> int:
    return int(os.environ.get("TEST_SHARE", "1"))


def examples(all_of_them: int) -> int:
    """Return how many examples a property test draws in this run."""
    return max(all_of_them // share(), min(all_of_them, MIN_EXAMPLES))


def slow_tests() -> frozenset[str]:
    """Return the slow tests as `path::name`, without parameters."""
    lines = SLOW_TESTS.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


def is_its_turn(test: str, seed: str, one_of: int) -> bool:
    """Tell whether a slow test, with its parameters, belongs to the share of this seed."""
    return zlib.crc32(f"{seed} {test}".encode()) % one_of == 0


def touched_rooms() -> frozenset[str]:
    """Return the rooms in which files of plugins or tests differ from the main branch; none where there is no git."""
    try:
        base = _git("merge-base", "HEAD", MAIN).strip()
        names = _git("diff", "--name-only", base).splitlines()
    except (OSError, subprocess.CalledProcessError):
        return frozenset()
    return frozenset().union(*(rooms_of(name) for name in names))


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def rooms_of(name: str) -> AbstractSet[str]:
    """Return the rooms that a path names, such as `_disk` of `plugins/plugin_utils/_disk/planner.py`; `host` is all of `module_utils`."""
    parts = Path(name).parts
    if "module_utils" in parts:
        return {"host"}
    if "plugin_utils" in parts or "property" in parts:
        top = "plugin_utils" if "plugin_utils" in parts else "property"
        return {part.removeprefix("_") for part in parts[parts.index(top) + 1 :][:1]}
    return set()
