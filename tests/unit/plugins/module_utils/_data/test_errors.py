# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mistakes are collected and told together, each with its place."""

from __future__ import annotations

import pickle

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Mistake, Mistakes, NoSolution, suggest


def test_all_mistakes_are_told_at_once() -> None:
    mistakes = Mistakes()
    mistakes.add("schema[0].size", "is 0")
    mistakes.extend([Mistake("schema[1]", "has no id")])
    with pytest.raises(InputError) as caught:
        mistakes.check()
    assert str(caught.value) == "2 mistakes in the input:\n- schema[0].size: is 0\n- schema[1]: has no id"
    assert [mistake.place for mistake in caught.value.mistakes] == ["schema[0].size", "schema[1]"]


def test_a_single_mistake_is_one_sentence() -> None:
    mistakes = Mistakes()
    mistakes.add("", "there is no disk")
    with pytest.raises(InputError, match="^there is no disk$"):
        mistakes.check()


def test_nothing_found_raises_nothing() -> None:
    mistakes = Mistakes()
    mistakes.check()
    assert not mistakes
    assert len(mistakes) == 0


def test_no_solution_keeps_a_copy_of_its_conflict() -> None:
    conflict = {"short": 3}
    error = NoSolution("too small", conflict)
    conflict["short"] = 4
    assert error.conflict == {"short": 3}


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ("min_sise", " (did you mean min_size?)"),
        ("size", " (did you mean min_size or max_size?)"),
        ("max", " (did you mean max_size?)"),
        ("colour", ""),
    ],
)
def test_suggest(word: str, answer: str) -> None:
    assert suggest(word, ["min_size", "max_size", "weight"]) == answer


@pytest.mark.parametrize("error", [InputError([Mistake("a", "is wrong"), Mistake("b", "too")]), NoSolution("too small", {"short": 3})])
def test_errors_come_whole_from_other_processes(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
