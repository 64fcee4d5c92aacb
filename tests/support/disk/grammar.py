# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the tables of the parser of expressions, as the installed YAQL computes them.

Run with the collection on the path: PYTHONPATH=.venv/collections .venv/bin/python tests/support/disk/grammar.py
"""

from __future__ import annotations

import json
from importlib.metadata import version

from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.grammar import TABLES, describe, rules_of
from yaql import YaqlFactory


def computed():
    """Return what grammar.json should say."""
    factory = YaqlFactory()
    parser = factory.create().parser
    states = range(len(parser.action))
    return {
        "yaql": version("yaql"),
        "grammar": describe(rules_of(factory)[0]),
        "productions": [[made.str, made.name, made.len, made.func] for made in parser.productions],
        "actions": [parser.action[state] for state in states],
        "gotos": [parser.goto.get(state, {}) for state in states],
    }


def written(tables):
    """Return the tables as text, a production or a state a line."""
    rows = {key: ",\n".join(json.dumps(row) for row in tables[key]) for key in ("productions", "actions", "gotos")}
    facts = [f'"{key}": {json.dumps(tables[key])}' for key in ("yaql", "grammar")]
    lists = [f'"{key}": [\n{text}\n]' for key, text in rows.items()]
    return "{" + ",\n".join([*facts, *lists]) + "}\n"


if __name__ == "__main__":
    TABLES.write_text(written(computed()), encoding="utf-8")
