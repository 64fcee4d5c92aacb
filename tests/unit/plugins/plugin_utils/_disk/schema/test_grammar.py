# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""YAQL's engine with ready tables parses what YAQL's own parses, and says the same of what neither can."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema import grammar
from ansible_collections.bareon.allocator.tests.support.disk.grammar import computed
from yaql import YaqlFactory
from yaql.language import factory as yaql_factory
from yaql.language.exceptions import YaqlException

EXPRESSIONS = [
    "$.disks.where($.type = ssd and not $.removable).orderBy($.size).limit(2)",
    "-1 + 2 * 3 mod 4 - $.ram / 2 >= 7 or not 1 in [1, 2] and true",
    "{a => 1, 'b' => [$, null]}[a]?.x.y($1, , z => $.len() -> $ + 1)",
    "f(, 1)(2)",
    "$.disks.where($.model =~ 'a' and $.id !~ \"b\" and $.size != 3)[0].id",
    "let(x => 1) -> $x <= +$x",
    "1 +",
    "(1",
    "a b",
    "",
]


@pytest.fixture(scope="module")
def fresh() -> dict:
    """What the installed YAQL computes."""
    tables, known = computed(), json.loads(grammar.TABLES.read_text())
    if tables["grammar"] != known["grammar"]:
        assert tables["yaql"] != known["yaql"], "grammar.json was computed from this very YAQL, and is not recognised"
        pytest.skip("the installed YAQL has another grammar than grammar.json, and computes its own tables; `make grammar` for its sake")
    return tables


def parsed(engine: grammar.Engine, expression: str) -> str:
    try:
        return str(engine(expression))
    except YaqlException as error:
        return f"{type(error).__name__}: {error}"


def test_the_tables_are_those_that_yaql_computes(fresh: dict) -> None:
    known = json.loads(grammar.TABLES.read_text())
    assert known == json.loads(json.dumps(fresh)) | {"yaql": known["yaql"]}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_is_parsed_as_yaql_parses_it(expression: str) -> None:
    assert parsed(grammar.create_engine({}), expression) == parsed(YaqlFactory().create({}), expression)


def test_no_table_is_computed_for_a_known_grammar(fresh: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    def computes(**_options: object) -> None:
        pytest.fail("PLY computed tables")

    monkeypatch.setattr(yaql_factory.yacc, "yacc", computes)
    assert parsed(grammar.create_engine({}), "$.a + 1") == "#operator_+(#operator_.($, 'a'), 1)"


@pytest.mark.parametrize("change", [{"tokens": []}, {"precedence": []}, {"productions": []}])
def test_a_yaql_of_another_grammar_computes_its_own_tables(change: dict, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tables = json.loads(grammar.TABLES.read_text())
    other = tmp_path / "grammar.json"
    other.write_text(json.dumps({"grammar": tables["grammar"] | change, "productions": [], "actions": [], "gotos": []}))
    monkeypatch.setattr(grammar, "TABLES", other)
    assert parsed(grammar.create_engine({}), EXPRESSIONS[0]) == parsed(YaqlFactory().create({}), EXPRESSIONS[0])


@pytest.mark.parametrize("error", [AttributeError("_build_operator_table"), TypeError("_create_parser() takes 2 arguments")])
def test_a_yaql_that_is_built_otherwise_makes_its_engine_itself(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(_factory: object) -> None:
        raise error

    monkeypatch.setattr(grammar, "rules_of", other)
    assert parsed(grammar.create_engine({}), EXPRESSIONS[0]) == parsed(YaqlFactory().create({}), EXPRESSIONS[0])
