# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The share of the slow tests that `make test` takes."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.house import share
from ansible_collections.bareon.allocator.tests.support.house.slow_tests import SLOW, slow_tests

ROOT = Path(__file__).resolve().parents[2]


def test_every_slow_test_exists() -> None:
    gone = []
    for test in share.slow_tests():
        path, _colons, name = test.partition("::")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8")) if (ROOT / path).exists() else ast.Module([], [])
        if name.rpartition("::")[2] not in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}:
            gone.append(test)
    assert gone == []


def test_a_seed_takes_its_share_and_all_seeds_take_everything() -> None:
    tests = [f"test_{number}" for number in range(2000)]
    taken = [{test for test in tests if share.is_its_turn(test, seed, 10)} for seed in map(str, range(200))]
    assert all(110 < len(some) < 300 for some in taken)
    assert set().union(*taken) == set(tests)
    assert taken[0] == {test for test in tests if share.is_its_turn(test, "0", 10)}


def test_a_share_of_one_is_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_SHARE", "1")
    assert share.examples(60) == 60
    assert all(share.is_its_turn(str(number), "1", 1) for number in range(50))


def test_a_property_test_keeps_some_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_SHARE", "10")
    assert [share.examples(most) for most in (3, 40, 600)] == [3, 5, 60]


@pytest.mark.parametrize(
    ("name", "rooms"),
    [
        ("plugins/plugin_utils/_disk/planner.py", {"disk"}),
        ("tests/unit/plugins/plugin_utils/_group/tasks/test_info.py", {"group"}),
        ("tests/property/provider/test_ledger.py", {"provider"}),
        ("plugins/module_utils/_layout/plan.py", {"host"}),
        ("tests/property/host/test_layout_cuts.py", {"host"}),
        ("docs/apply.md", set()),
    ],
)
def test_a_path_names_its_part(name: str, rooms: set[str]) -> None:
    assert share.rooms_of(name) == rooms


def test_slow_is_what_takes_long_with_all_parameters() -> None:
    lines = [
        f"{SLOW / 2}\ta.py::test_one[1]",
        f"{SLOW / 2}\ta.py::test_one[2]",
        f"{SLOW / 2}\ta.py::test_two",
        f"{SLOW}\tb.py::T::test_three",
    ]
    assert slow_tests(lines) == ["a.py::test_one", "b.py::T::test_three"]


def test_pytest_leaves_out_slow_tests_whose_turn_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = sorted(share.slow_tests())
    files = sorted({test.partition("::")[0] for test in slow})[:3]
    monkeypatch.setenv("TEST_SHARE", "1000000")
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 5}, done.stdout + done.stderr
    assert not [test for test in slow if f"{test}\n" in done.stdout or f"{test}[" in done.stdout]
    assert "deselected" in done.stdout
