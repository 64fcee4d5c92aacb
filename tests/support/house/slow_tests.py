# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the list of the slow tests from what a run of all tests cost: slow_tests.py FOLDER, where TEST_COSTS was FOLDER."""

from __future__ import annotations

import collections
import sys
from collections.abc import Iterable
from pathlib import Path

from ansible_collections.bareon.allocator.tests.support.house.share import SLOW_TESTS

SLOW = 1.0
"""Seconds of CPU that make a test slow, with all its parameters together."""
# REUSE-IgnoreStart
HEAD = f"""# SPDX-License-Identifier: GPL-3.0-or-later
# Tests that take {SLOW:g} s of CPU or more, with all their parameters together. Written by `make slow`; a change by hand is lost.
"""
# REUSE-IgnoreEnd


def slow_tests(lines: Iterable[str]) -> list[str]:
    """Return the slow ones of the tests that lines of seconds and names tell of."""
    seconds: collections.Counter[str] = collections.Counter()
    for line in lines:
        cost, _tab, name = line.partition("\t")
        seconds[name.partition("[")[0].strip()] += float(cost)
    return sorted(name for name, cost in seconds.items() if cost >= SLOW)


def main() -> None:
    lines = [line for path in Path(sys.argv[1]).glob("*.txt") for line in path.read_text(encoding="utf-8").splitlines()]
    SLOW_TESTS.write_text(HEAD + "".join(f"{name}\n" for name in slow_tests(lines)), encoding="utf-8")


if __name__ == "__main__":
    main()
