# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plain data drawn from a JSON Schema: what it allows, at and near its bounds, or nearly so; validate what must be valid."""

from __future__ import annotations

import random
import re
import typing as t

Json = t.Any

_BLANKS, _LETTERS = " \t\n\r\x0b\x85\u00a0\u2003", "ab9./é"
_OF_CATEGORY = {"SPACE": _BLANKS, "NOT_SPACE": _LETTERS, "DIGIT": "0123456789٣", "WORD": "ab_9é", "NOT_WORD": "./ -", "NOT_DIGIT": "ab"}
_TEXTS = ("", " ", "a", "x y", "é", "1", "/dev/sda", "a\u00a0")
_ANYTHING: tuple[Json, ...] = (None, True, 0, 1, -1, 1.5, *_TEXTS, "50 %", [], {}, ["a"], {"id": "a"}, [None], 1e300, 2**70)
_MOST_MEMBERS, _DEEPEST = 5, 5


def drawn(schema: Json, draw: random.Random, depth: int = 0) -> Json:
    """Return what a JSON Schema allows, but for its `not`, `if` and look-aheads."""
    for key in ("const", "enum", "anyOf"):
        if key in schema:
            rest = {name: value for name, value in schema.items() if name != key}
            return (
                schema[key]
                if key == "const"
                else draw.choice(schema[key])
                if key == "enum"
                else drawn(rest | draw.choice(schema[key]), draw, depth)
            )
    kinds = schema.get("type", "object" if "properties" in schema else "string" if "pattern" in schema else None)
    kind = draw.choice(kinds) if isinstance(kinds, list) else kinds
    if kind in _BY_KIND:
        return _BY_KIND[kind](schema, draw, depth)
    return draw.choice(_ANYTHING)


def _text(schema: Json, draw: random.Random, _depth: int) -> str:
    if "pattern" not in schema:
        return draw.choice(_TEXTS)
    found = _matching(re._parser.parse(schema["pattern"]), draw)  # type: ignore[attr-defined]
    return found if schema["pattern"].endswith("$") else found + draw.choice(_TEXTS)


def _matching(tokens: t.Any, draw: random.Random) -> str:
    """Return text that a regular expression matches, as `re` parsed it."""
    found = ""
    for name, value in tokens:
        kind = str(name)
        if kind == "LITERAL":
            found += chr(value)
        elif kind == "IN":
            found += _of_class(value, draw)
        elif kind == "CATEGORY":
            found += draw.choice(_OF_CATEGORY[str(value).removeprefix("CATEGORY_")])
        elif kind == "MAX_REPEAT":
            least, most, part = value
            found += "".join(
                _matching(part, draw) for _each in range(draw.choice([least, least, min(most, least + draw.randrange(4)), min(most, 40)]))
            )
        elif kind == "SUBPATTERN":
            found += _matching(value[-1], draw)
        elif kind == "BRANCH":
            found += _matching(draw.choice(value[1]), draw)
        else:
            assert kind in ("AT", "ASSERT_NOT"), kind
    return found


def _of_class(members: t.Any, draw: random.Random) -> str:
    if str(members[0][0]) == "NEGATE":
        return draw.choice(_LETTERS)
    name, value = draw.choice(members)
    return chr(draw.randint(*value)) if str(name) == "RANGE" else _matching([(name, value)], draw)


def _number(schema: Json, draw: random.Random, _depth: int) -> float:
    low = schema.get("minimum", schema.get("exclusiveMinimum", min(-3, schema.get("maximum", -3))))
    high = schema.get("maximum", max(low, 0) + draw.choice([1, 10, 1000, 2**40, 2**70]))
    return draw.choice([low, high, low + 1, low + 0.5, high - 1, draw.uniform(low, high), draw.choice([2, 8, 512, 1000])])


def _whole(schema: Json, draw: random.Random, depth: int) -> int:
    return int(_number(schema, draw, depth))


def _list(schema: Json, draw: random.Random, depth: int) -> list[Json]:
    count = max(schema.get("minItems", 0), draw.choice([0, 1, 1, 2]))
    return [drawn(schema.get("items", {}), draw, depth + 1) for _each in range(count)]


def _mapping(schema: Json, draw: random.Random, depth: int) -> dict[str, Json]:
    members, required = schema.get("properties", {}), schema.get("required", [])
    others = [name for name in members if name not in required]
    most = min(_MOST_MEMBERS, schema.get("maxProperties", _MOST_MEMBERS), len(others)) if depth < _DEEPEST else 0
    more = draw.sample(others, draw.randint(min(most, schema.get("minProperties", 0)), most))
    found = {name: drawn(members.get(name, {}), draw, depth + 1) for name in (*required, *more)}
    if isinstance(schema.get("additionalProperties"), dict):
        name = str(drawn({"type": "string"} | schema.get("propertyNames", {}), draw, depth))
        found[name] = drawn(schema["additionalProperties"], draw, depth + 1)
    return found


_BY_KIND: dict[t.Any, t.Callable[[Json, random.Random, int], Json]] = {
    "null": lambda _schema, _draw, _depth: None,
    "boolean": lambda _schema, draw, _depth: draw.choice([True, False]),
    "integer": _whole,
    "number": _number,
    "string": _text,
    "array": _list,
    "object": _mapping,
}
