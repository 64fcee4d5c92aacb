# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Takes the share of the slow tests that the run asked for, and notes the CPU time of each test where that was asked for."""

from __future__ import annotations

import os
import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.house.share import is_its_turn, rooms_of, share, slow_tests, touched_rooms
from hypothesis import is_hypothesis_test, settings

# How long an example takes is a matter of what else the machine does.
settings.register_profile("untimed", settings(), deadline=None)
settings.load_profile("untimed")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if share() == 1:
        return
    slow, touched, seed = slow_tests(), touched_rooms(), os.environ.get("TEST_SEED", "1")

    def is_taken(item: pytest.Item) -> bool:
        name = item.nodeid.partition("[")[0]
        return name not in slow or bool(rooms_of(name) & touched) or is_its_turn(item.nodeid, seed, share())

    left_out = [item for item in items if not is_taken(item)]
    items[:] = [item for item in items if is_taken(item)]
    config.hook.pytest_deselected(items=left_out)


def pytest_report_header() -> str | None:
    return None if share() == 1 else f"one of {share()} slow tests, TEST_SEED={os.environ.get('TEST_SEED', '1')}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[t.Any]:
    """Append the CPU seconds of a test and its children to TEST_COSTS, from which `make slow` takes them.

    Property tests are left out: their share is one of examples.
    """
    before = _spent()
    result = yield
    folder = os.environ.get("TEST_COSTS")
    if folder and not is_hypothesis_test(getattr(item, "obj", None)):
        with Path(folder, f"{os.getpid()}.txt").open("a", encoding="utf-8") as file:
            file.write(f"{_spent() - before:.3f}\t{item.nodeid}\n")
    return result


def _spent() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
