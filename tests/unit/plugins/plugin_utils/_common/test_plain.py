# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nothing but plain data passes the door."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.plain import is_literal, plain, plain_input


class Text(str):
    """A string that carries more than its characters, as tagged data does."""


def test_subclasses_become_their_plain_types() -> None:
    value = plain({Text("a"): [Text("b"), True, None, 1.5]})
    assert value == {"a": ["b", True, None, 1.5]}
    assert {type(key) for key in value} == {str}
    assert value["a"][0].__class__ is str


def test_numpy_values_become_python_values() -> None:
    value = plain({"array": np.arange(3), "int": np.int64(7), "float": np.float64(0.5), "bool": np.bool_(True)})
    assert value == {"array": [0, 1, 2], "int": 7, "float": 0.5, "bool": True}
    assert value["int"].__class__ is int
    assert value["bool"].__class__ is bool


def test_sets_come_in_a_stable_order() -> None:
    assert plain({3, 1, 2}) == [1, 2, 3]


def test_integer_keys_become_text() -> None:
    assert plain({1: (2,)}) == {"1": [2]}


def test_what_is_not_data_is_refused() -> None:
    with pytest.raises(TypeError, match="object is not plain data"):
        plain({"a": object()})


def test_what_yaml_takes_for_a_date_is_told_with_its_place() -> None:
    given = {"tags": ["a", datetime.date(2026, 1, 2)], "free": {"at": datetime.datetime(2026, 1, 2, 3, 4)}, "key": b"x"}
    with pytest.raises(InputError) as caught:
        plain_input(given, "cluster")
    assert [str(mistake) for mistake in caught.value.mistakes] == [
        "cluster.tags[1]: is a date to YAML; put it in quotes ('2026-01-02') to have it as text",
        "cluster.free.at: is a date to YAML; put it in quotes ('2026-01-02 03:04:00') to have it as text",
        "cluster.key: has type bytes; use strings, numbers, lists or mappings",
    ]


@pytest.mark.parametrize("value", ["/dev/sda", 5, 0.5, True, None, {"a": ["b", {"c": 1}]}, [], {}])
def test_what_stands_for_itself(value: object) -> None:
    assert is_literal(value)


@pytest.mark.parametrize("value", ["{{ size }}", {"a": ["{% if x %}"]}, {"{{ key }}": 1}, object(), {"secret": object()}, [object()]])
def test_what_is_to_be_templated(value: object) -> None:
    assert not is_literal(value)
