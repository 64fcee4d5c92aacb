# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""YAQL's engine, with the tables of its parser read from a file.

YAQL has PLY compute the LALR tables of its grammar whenever an engine is made, which takes several times as long as a small plan.
`grammar.json` holds them with the grammar that they were computed from (`make grammar` writes it). Where the installed YAQL
has another grammar, it computes its own tables, as ever.
"""

from __future__ import annotations

import json
import types
import typing as t
from collections.abc import Mapping
from pathlib import Path

from ..._common.libraries import yaql_factory

if t.TYPE_CHECKING:
    from ..._common.libraries import yaql_expressions

    Engine = t.Callable[[str], yaql_expressions.Statement]

TABLES = Path(__file__).with_name("grammar.json")


def create_engine(options: Mapping[str, t.Any]) -> Engine:
    """Return what parses expressions, as `YaqlFactory().create(options)` does."""
    factory = yaql_factory.YaqlFactory()
    tables = json.loads(TABLES.read_text(encoding="utf-8"))
    try:
        rules, lexer_rules = rules_of(factory)
        if describe(rules) != tables["grammar"]:
            return t.cast("Engine", factory.create(options))
        lexer = yaql_factory.lex.lex(object=lexer_rules, reflags=yaql_factory.re.UNICODE | yaql_factory.re.VERBOSE)
        # The tables as PLY's parser takes them, with the methods that carry productions out.
        productions = [
            types.SimpleNamespace(str=text, name=name, len=length, callable=method and getattr(rules, method))
            for text, name, length, method in tables["productions"]
        ]
        states = {"lr_action": dict(enumerate(tables["actions"])), "lr_goto": dict(enumerate(tables["gotos"]))}
        parser = yaql_factory.yacc.LRParser(types.SimpleNamespace(lr_productions=productions, **states), rules.p_error)
        return t.cast("Engine", yaql_factory.YaqlEngine(lexer, parser, options, factory))
    except (AttributeError, TypeError):
        # A YAQL that is built otherwise.
        return t.cast("Engine", factory.create(options))


def rules_of(factory: t.Any) -> tuple[t.Any, t.Any]:
    """Return what YAQL gives to PLY: the object whose methods are the grammar, and the one whose attributes are the words."""
    operators = factory._build_operator_table(factory._name_generator())
    lexer_rules = factory._create_lexer(operators)
    return factory._create_parser(lexer_rules, operators), lexer_rules


def describe(rules: t.Any) -> dict[str, t.Any]:
    """Return all that the tables follow from, as JSON has it: words, precedence, and the productions in PLY's order."""
    names = [name for name in dir(rules) if name.startswith("p_") and name != "p_error"]
    names.sort(key=lambda name: (getattr(rules, name).__code__.co_firstlineno, name))
    productions = [[name, " ".join((getattr(rules, name).__doc__ or "").split())] for name in names]
    return {"tokens": list(rules.tokens), "precedence": [list(row) for row in rules.precedence], "productions": productions}
