# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading by columns gives what reading one by one gives, and says of every value whether it is wrong."""

from __future__ import annotations

import itertools
import math
from enum import StrEnum

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.containers import (
    Also,
    ByName,
    ListOf,
    MappingOf,
    Row,
    Table,
    read_all,
    read_each,
)
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Mistakes
from ansible_collections.bareon.allocator.plugins.module_utils._data.kinds import (
    Anything,
    Checked,
    Number,
    Size,
    Text,
    Truth,
    Whole,
    Word,
    is_whole,
)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


POINT = Table("a point", [Row("x", Whole(0), required=True), Row("y", Number(), default=0.5), Row("tags", ListOf(Text()), default=())])
ROWS = [Row("name", Text(filled=True), required=True), Row("size", Size()), Row("point", POINT), Row("colour", Word(Colour), default="red")]
KINDS = {
    "text": Text(),
    "text, digits": Text(digits=True),
    "text, filled": Text(filled=True),
    "checked": Checked(lambda value: "" if value == "a" else "must be a", "a", convert=str.upper),
    "whole": Whole(),
    "whole, 0 to 5": Whole(0, 5),
    "whole, digits": Whole(0, digits=True),
    "number": Number(),
    "number, 0 to 5": Number(0, 5),
    "number, digits": Number(0, digits=True),
    "size": Size(),
    "truth": Truth(),
    "truth, words": Truth(words=True),
    "word": Word(Colour),
    "word, folded": Word(Colour, folded=True),
    "anything": Anything(),
    "list": ListOf(Whole(0)),
    "list, single": ListOf(Text(), single=True),
    "list, one or more": ListOf(Word(Colour), least=1),
    "list of tables": ListOf(POINT),
    "mapping": MappingOf(Whole(0)),
    "mapping, keys": MappingOf(Number(), key=Word(Colour)),
    "mapping, one or more": MappingOf(Text(), least=1),
    "table": Table("a thing", ROWS),
    "table, others": Table("a thing", ROWS, others=True),
    "table, dashes": Table("a thing", [Row("a-b", Whole())], dashes=True, others=True),
    "table, made": Table("a thing", ROWS, others=True, make=lambda *values: values),
    "by name": ByName(POINT, lambda *values: values, "points"),
    "also": Also(POINT, lambda value: {"x": value} if is_whole(value) else value, Whole(0)),
}
VALUES = [
    *(None, True, False, 0, 1, 5, 6, -1, 2**53, 2**60, 10**400),
    *(1.0, 1.5, math.inf, math.nan, "", " ", "a", "red", "Red", "7", "yes", "50 GiB", "\ud800"),
    *([], ["a"], [1, 2], [None], ["red"], (1,), {"x"}, [{"x": 1}], [{"x": 1, "z": 2}]),
    *({}, {"x": 1}, {"x": None}, {"x": 1, "y": 2, "tags": ["a"]}, {"red": 1}, {"red": "a", 7: 1}, {"a_b": 1}, {"a_b": None}),
    *({"name": "n"}, {"name": "n", "size": "1 GiB", "point": {"x": 1}, "colour": "blue"}, {"name": "n", "point": {"x": -1}}, {"name": " "}),
    *({"p": {"x": 1}}, {"p": {"x": "1"}}),
]


def alone(kind, value):
    """Return what a value reads as, and whether it is sound."""
    try:
        return read_all(kind, value, "here"), True
    except InputError:
        return None, False


@pytest.mark.parametrize("name", KINDS)
def test_columns_are_read_as_each_of_their_values_is(name):
    kind = KINDS[name]
    for values in itertools.product(VALUES, repeat=2):
        each = [alone(kind, value) for value in values]
        column = kind.read_column(values)
        if all(sound for _value, sound in each):
            assert repr(list(column)) == repr([value for value, _sound in each]), values
        else:
            assert column is None, values


def test_a_mistake_among_many_is_told_with_its_place_and_the_others_are_read():
    mistakes = Mistakes()
    entries = {"a": {"x": 1}, "b": {"x": -1, "y": "z"}, "c": {"x": 3, "y": 2, "tags": ["t"]}}
    assert KINDS["by name"].read_nested(entries, "points", mistakes) == (("a", 1, 0.5, ()), ("b", 0, 0.5, ()), ("c", 3, 2.0, ("t",)))
    assert [str(mistake) for mistake in mistakes.found()] == [
        "points.b.x: is -1; must be a whole number, 0 or more",
        "points.b.y: is 'z'; must be a number",
    ]


def test_mistakes_of_a_table_come_in_the_order_of_its_rows_and_then_what_is_missing():
    table = Table("a thing", [Row("first", Whole(), required=True), Row("second", Whole(0)), Row("third", Text())])
    mistakes = Mistakes()
    assert table.read_nested({"third": 3, "second": -2}, "it", mistakes) == {"first": 0, "second": None, "third": None}
    assert [mistake.place for mistake in mistakes.found()] == ["it.second", "it.third", "it.first"]


def test_values_in_places_of_their_own_are_read_when_they_are_asked_for():
    mistakes = Mistakes()
    read = read_each(Whole(0), [1, -1, -2], ["one", "two", "three"], mistakes)
    assert (next(read), next(read)) == (1, 0)
    assert [mistake.place for mistake in mistakes.found()] == ["two"]
    assert list(read) == [0]
    assert [mistake.place for mistake in mistakes.found()] == ["two", "three"]
