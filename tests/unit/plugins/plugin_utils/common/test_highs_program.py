# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs and their solver."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils.common.highs import Limits, Program, maximise, maximise_with_prices


def knapsack() -> tuple[Program, list[int]]:
    program = Program()
    columns = [program.column(0, 1, integral=True) for _unused in range(3)]
    program.row(zip(columns, (5.0, 4.0, 3.0)), high=7.0)
    return program, columns


def test_integers_are_integers() -> None:
    program, columns = knapsack()
    solved = maximise(program, dict(zip(columns, (5.0, 4.0, 3.0))))
    assert solved is not None
    assert solved.proven
    assert solved.objective == pytest.approx(7)
    assert [round(solved.values[column]) for column in columns] == [0, 1, 1]


def test_what_contradicts_itself_has_no_solution() -> None:
    program, columns = knapsack()
    program.row([(column, 1.0) for column in columns], low=3)
    assert maximise(program, {}) is None
    assert maximise(program, {}, Limits(gap=0.5)) is None


def test_prices_tell_what_binds() -> None:
    program = Program()
    first, second = program.column(), program.column()
    binding = program.row([(first, 1.0), (second, 2.0)], high=10)
    idle = program.row([(first, 1.0)], low=-5, high=50)
    equal = program.row([(second, 1.0)], low=1, high=1)
    answer = maximise_with_prices(program, {first: 1.0, second: 1.0})
    assert answer is not None
    solved, prices = answer
    assert solved.objective == pytest.approx(9)
    assert prices[binding] == pytest.approx(1)
    assert prices[idle] == 0
    assert prices[equal] > 0
    program.row([(second, 1.0)], low=2)
    assert maximise_with_prices(program, {}) is None
