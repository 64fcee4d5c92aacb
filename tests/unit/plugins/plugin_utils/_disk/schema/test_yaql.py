# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Expressions in YAQL."""

from __future__ import annotations

import copy
import subprocess
import sys
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.memo import Memory
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.yaql import Evaluator, ExpressionError, is_expression


def evaluator(facts: dict[str, t.Any]) -> Evaluator:
    return Evaluator(facts, Memory())


SEED_SWAP = """
  yaql=let(ram => $.get(ram, 1024)) ->
  selectCase(
    $ram <= 2048,
    $ram > 2048 and $ram < 8192,
    $ram > 8192 and $ram < 65536).
  switchCase(
    $ram * 2,
    $ram,
    $ram / 2,
    4096)
"""


@pytest.mark.parametrize("text", ["yaql=$", "  yaql = $", "\n yaql=\n$.ram", "yaql="])
def test_the_prefix_marks_an_expression(text: str) -> None:
    assert is_expression(text)


@pytest.mark.parametrize("value", ["$.ram", "xyaql=$", "", 5, None, ["yaql=$"]])
def test_nothing_else_is_an_expression(value: object) -> None:
    assert not is_expression(value)


@pytest.mark.parametrize(
    ("ram", "swap"),
    [
        (512, 1024),
        (1024, 2048),
        (2048, 4096),
        (2049, 2049),
        (4096, 4096),
        (8191, 8191),
        (8192, 4096),
        (8193, 4096),
        (16384, 8192),
        (65535, 32767),
        (65536, 4096),
        (131072, 4096),
    ],
)
def test_swap_as_the_seed_writes_it(ram: int, swap: int) -> None:
    """Exactly 8192 and 65536 fall through its conditions to the last value; the expression says so."""
    assert evaluator({"ram": ram})(SEED_SWAP) == swap


def test_swap_of_unknown_memory_takes_the_default() -> None:
    assert evaluator({})(SEED_SWAP) == 2048


def test_results_come_as_they_are() -> None:
    evaluate = evaluator({"ram": 3, "disks": [{"id": "a", "type": "ssd"}, {"id": "b", "type": "hdd"}]})
    assert evaluate('yaql=$.disks.where($.type = "ssd")') == [{"id": "a", "type": "ssd"}]
    assert evaluate("yaql=$.disks.where($.type = ssd).id") == ["a"]
    assert evaluate("yaql=$.ram / 2.0") == 1.5
    assert evaluate("yaql=str($.ram) + ' GiB'") == "3 GiB"
    assert evaluate("yaql=null") is None
    assert evaluate("yaql=$.disks.len() > 1") is True


def test_nothing_given_is_changed() -> None:
    facts = {"disks": [{"id": "b", "partitions": [{"size": 1}]}, {"id": "a"}]}
    before = copy.deepcopy(facts)
    result = evaluator(facts)("yaql=$.disks.orderBy($.id)")
    with pytest.raises(TypeError):
        result[0]["id"] = "changed"
    assert [disk["id"] for disk in result] == ["a", "b"]
    assert facts == before


def test_any_number_of_disks() -> None:
    disks = [{"id": f"d{number}", "type": "hdd", "links": [f"l{link}" for link in range(20)]} for number in range(2000)]
    evaluate = evaluator({"disks": disks})
    assert len(evaluate('yaql=$.disks.where($.type = "hdd")')) == 2000
    assert evaluate("yaql=$.disks.id.len()") == 2000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("yaql=", "it is empty"),
        ("yaql=$.disks.where(", "Parse error"),
        ("yaql=$.disks ยง", "Parse error"),
        ("yaql=$.nope", "the facts have no 'nope'"),
        ("yaql=$.ram / 0", "division"),
        ("yaql=frobnicate($)", "frobnicate"),
        ('yaql=$.ram + "a"', "operator +"),
        ("yaql=range(0, 100000000)", "more than 10000 values"),
        ("yaql=$.ram.no.such.thing", "property no"),
    ],
)
def test_what_fails_quotes_itself(text: str, reason: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluator({"ram": 1, "disks": []})(text)
    assert str(caught.value).startswith("expression ")
    assert reason in str(caught.value)


def test_long_expressions_are_cut_in_messages() -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluator({})("yaql=" + "1 + " * 200 + "$.nope")
    assert len(str(caught.value)) < 200


def test_the_room_can_be_imported_before_anything_else() -> None:
    """YAQL uses collections.abc without importing it."""
    room = "ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.yaql"
    code = f"import {room} as room; print(room.Evaluator({{'a': 1}}, room.Memory())('yaql=$.a'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env={"PYTHONPATH": ":".join(sys.path)})
    assert done.stdout == "1\n", done.stderr


@pytest.mark.parametrize("source", ["random()", "random(1, 6)", "now()", "$.ram + random(1, 2)"])
def test_what_differs_from_run_to_run_is_refused(source: str) -> None:
    with pytest.raises(ExpressionError, match="a plan must follow from its inputs"):
        Evaluator({"ram": 1024}, Memory())(f"yaql={source}")


@pytest.mark.parametrize("pattern", ["[", "(?P<", "*", "(?<=a+)b"])
def test_a_bad_regular_expression_is_a_mistake_of_the_expression(pattern: str) -> None:
    with pytest.raises(ExpressionError, match="bad regular expression"):
        evaluator({"disks": [{"id": "a"}]})(f"yaql=$.disks.where(regex('{pattern}').matches($.id))")
