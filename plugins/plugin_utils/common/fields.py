# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One reader of untrusted data: tables say what a mapping may hold; reading collects every mistake with its place, and goes on.

    NODE = Table("a node", [
        Row("name", Text(), "What it is called.", required=True),
        Row("memory", Size(), "Memory in MiB.", default=0),
        Row("pools", ListOf(POOL), "Its storage pools.", default=()),
    ])
    values = NODE.read(data, "cluster.nodes[3]", mistakes)      # {"name": "n1", "memory": 4096, "pools": ({...},)}

A value that is missing, None or wrong reads as its row's default; one that is required and wrong reads as its kind's blank (0,
"", empty), so that callers can go on and find the rest. What is wrong is said once, as `PLACE: is VALUE; must be KIND`.
From the same tables come JSON Schemas: `json_schema` of each kind, put together by json_schema.py.
"""

from __future__ import annotations

import math
import typing as t
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

from .errors import Mistakes, Place, suggest
from .units import SIZE_PATTERN, parse_mib
from .words import listed

Json = dict[str, t.Any]
Values = dict[str, t.Any]

HUGE = 1e300
"""No number of an input comes near; whole numbers beyond it have no equal among floating point numbers."""
LARGEST_SIZE = 2**53
"""In MiB; beyond it floating point numbers are no longer exact."""
_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}
_LONGEST_SHOWN = 60
_FEW_KEYS = 12
_MOST_PLANS = 64
_NONE = type(None)


class Kind:
    """What a value may be."""

    wanted = "anything"
    """The kind in words."""
    blank: t.Any = None
    """What a required value of this kind reads as when it is missing or wrong."""
    exact: type | None = None
    """A value of exactly this type needs no further look."""
    within: tuple[float, float] | None = None
    """Nor does an integer (of exactly this type) that lies within these bounds."""
    nested = False
    """Whether values hold others: they are read by `read_nested`, not by `read`."""

    def read(self, value: t.Any) -> t.Any:
        """Return the value as it is used. Raises ValueError with a sentence."""
        return value

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> t.Any:
        """Return a value that holds others; all that is wrong in it is collected, with its place. Only for kinds that are `nested`."""
        raise TypeError(f"{type(self).__name__} holds no other values")

    def json_schema(self) -> Json:
        """Return the JSON Schema of what is accepted."""
        return {}

    def refuse(self, value: t.Any) -> t.NoReturn:
        """Raise ValueError for a value that is not of this kind."""
        raise ValueError(f"is {shown(value)}; must be {self.wanted}")


class Text(Kind):
    """Text; with `digits` also a whole number, for names that look like one. With `filled` it is not blank, and stripped."""

    wanted, blank = "text", ""

    def __init__(self, *, digits: bool = False, filled: bool = False) -> None:
        self._digits, self._filled = digits, filled
        self.exact = None if filled else str

    def read(self, value: t.Any) -> str:
        """Return the text."""
        if self._digits and is_whole(value) and abs(value) <= LARGEST_SIZE:
            return str(value)
        if not isinstance(value, str) or not _is_unicode(value):
            self.refuse(value)
        if not self._filled:
            return str(value)
        return str(value).strip() or self.refuse(value)

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        return {"type": ["string", "integer"] if self._digits else "string"} | ({"pattern": r"\S"} if self._filled else {})


def _is_unicode(text: str) -> bool:
    """Tell whether a text can be written as UTF-8, which half of a surrogate pair cannot."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


class Checked(Kind):
    """Text that `why_not` finds nothing wrong with: it returns a sentence, or an empty string."""

    blank = ""

    def __init__(self, why_not: Callable[[t.Any], str], wanted: str, pattern: str = "", convert: Callable[[str], str] = str) -> None:
        self._why_not, self.wanted, self._pattern, self._convert = why_not, wanted, pattern, convert

    def read(self, value: t.Any) -> str:
        """Return the text."""
        says = self._why_not(value)
        if says:
            raise ValueError(says)
        return self._convert(value)

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        return {"type": "string"} | ({"pattern": self._pattern} if self._pattern else {})


class Whole(Kind):
    """A whole number within bounds. With `digits` it may be text or a floating point number, as other programs write them."""

    blank = 0

    def __init__(self, least: int | None = None, most: int | None = None, *, digits: bool = False) -> None:
        self._digits, self._bounds = digits, _bounds(least, most)
        self._least, self._most = self.within = -HUGE if least is None else least, HUGE if most is None else most
        self.wanted = "a whole number" + _range(least, most)

    def read(self, value: t.Any) -> int:
        """Return the number."""
        if value.__class__ is int and self._least <= value <= self._most:
            return int(value)
        number = _from_digits(value) if self._digits else value
        if not is_whole(number) or not self._least <= number <= self._most:
            self.refuse(value)
        return int(number)

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        number = {"type": "integer"} | self._bounds
        return {"anyOf": [number, {"type": "string", "pattern": r"^\s*[0-9]+\s*$"}]} if self._digits else number


class Number(Kind):
    """A finite number within bounds. With `digits` it may be text."""

    blank = 0.0

    def __init__(self, least: float | None = None, most: float | None = None, *, digits: bool = False) -> None:
        self._digits, self._bounds = digits, _bounds(least, most)
        self._least, self._most = -HUGE if least is None else least, HUGE if most is None else most
        self.wanted = "a number" + _range(least, most)

    def read(self, value: t.Any) -> float:
        """Return the number."""
        number = value
        if self._digits and isinstance(value, str):
            try:
                number = float(value)
            except ValueError:
                self.refuse(value)
        if not is_number(number) or not self._least <= number <= self._most:
            self.refuse(value)
        return float(number)

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        number = {"type": "number"} | self._bounds
        text = {"type": "string", "pattern": r"^\s*[-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?\s*$"}
        return {"anyOf": [number, text]} if self._digits else number


class Size(Kind):
    """A size in MiB, 0 or more: a number, or text such as `50 GiB`. What is needed is rounded up, what is there down."""

    wanted, blank = "a size in MiB, or text such as '50 GiB'", 0

    def __init__(self, rounded: Callable[[t.Any], t.Any] = math.ceil) -> None:
        self._rounded = rounded

    def read(self, value: t.Any) -> t.Any:
        """Return the size in MiB, whole unless it is not to be rounded."""
        if value.__class__ is int and 0 <= value <= LARGEST_SIZE:
            return value
        amount = parse_mib(value) if isinstance(value, str) else value
        if not isinstance(value, str) and not is_number(value):
            self.refuse(value)
        if not 0 <= amount <= LARGEST_SIZE:
            raise ValueError(f"is {shown(value)}; {'must be 0 or more' if amount < 0 else 'that is not a usable size'}")
        return self._rounded(amount)

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        return {"anyOf": [{"type": "number", "minimum": 0, "maximum": LARGEST_SIZE}, {"type": "string", "pattern": SIZE_PATTERN}]}


class Truth(Kind):
    """True or false. With `words` also yes and no, 1 and 0, as other programs write them."""

    wanted, blank, exact = "true or false", False, bool

    def __init__(self, *, words: bool = False) -> None:
        self._words = words

    def read(self, value: t.Any) -> bool:
        """Return the truth."""
        if self._words and isinstance(value, str) and value.lower() in _TRUTHS:
            return _TRUTHS[value.lower()]
        if self._words and isinstance(value, int) and value in (0, 1):
            return bool(value)
        if not isinstance(value, bool):
            self.refuse(value)
        return value

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        if not self._words:
            return {"type": "boolean"}
        return {"anyOf": [{"type": "boolean"}, {"enum": [0, 1]}, {"type": "string", "pattern": "^([Tt]rue|[Ff]alse|[Yy]es|[Nn]o)$"}]}


class Word(Kind):
    """One of fixed words; those of an enumeration become its members."""

    def __init__(self, words: type[StrEnum] | Iterable[str], *, folded: bool = False) -> None:
        self._words: dict[str, str] = {str(word): word for word in words}
        self._folded = folded
        self.wanted = " or ".join(self._words) if len(self._words) <= 2 else f"one of {', '.join(self._words)}"
        self.blank = next(iter(self._words.values()))

    def read(self, value: t.Any) -> str:
        """Return the word."""
        if value.__class__ is not str and not isinstance(value, str):
            self.refuse(value)
        found = self._words.get(value.lower() if self._folded else value)
        if found is None:
            raise ValueError(f"is {shown(value)}; must be {self.wanted}{suggest(value[:_LONGEST_SHOWN], self._words)}")
        return found

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        return {"enum": [str(word) for word in self._words]}


class ListOf(Kind):
    """A list of values of one kind; `of` is what they are called together. With `single` a value alone stands for a list of it."""

    blank: t.Any = ()
    nested = True

    def __init__(self, kind: Kind, of: str = "", *, least: int = 0, single: bool = False) -> None:
        self._kind, self._least, self._single = kind, least, single
        self.wanted = f"a list{f' of {of}' if of else ''}{f', {least} or more' if least else ''}"
        self._exact = set() if kind.exact is None else {kind.exact}

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> tuple[t.Any, ...]:
        """Return the values, wrong ones as their kind's blank."""
        if not isinstance(value, (list, tuple, set, frozenset)):
            if self._single:
                return (_read(self._kind, value, place, mistakes),)
            mistakes.add(place, f"is {shown(value)}; must be {self.wanted}")
            return ()
        if len(value) < self._least:
            mistakes.add(place, f"is {shown(value)}; must be {self.wanted}")
        if not value or set(map(type, value)) == self._exact:
            return tuple(value)
        kind = self._kind
        if kind.nested:
            return tuple([kind.read_nested(item, (place, "[", position), mistakes) for position, item in enumerate(value)])
        return tuple([_read(kind, item, (place, "[", position), mistakes) for position, item in enumerate(value)])

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        items = self._kind.json_schema()
        listed = {"type": "array", "items": items} | ({"minItems": self._least} if self._least else {})
        return {"anyOf": [listed, items]} if self._single else listed


class MappingOf(Kind):
    """A mapping of names to values of one kind; `of` is what its keys are called. Keys are checked by a kind of text."""

    blank: t.Any = {}
    nested = True

    def __init__(self, kind: Kind, of: str = "names", key: Kind | None = None, *, least: int = 0) -> None:
        self._kind, self._key, self._least = kind, key, least
        self.wanted = f"a mapping of {of}{' that is not empty' if least else ''}"

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> dict[str, t.Any]:
        """Return the values by key; what has a wrong key is read and left out."""
        if not isinstance(value, Mapping) or len(value) < self._least:
            mistakes.add(place, f"is {shown(value)}; must be {self.wanted}")
            return {}
        found = {}
        for key, item in value.items():
            read = _read(self._kind, item, (place, ".", str(key)), mistakes)
            try:
                found[str(key) if self._key is None else self._key.read(key)] = read
            except ValueError as error:
                mistakes.add(place, str(error))
        return found

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        keys = {} if self._key is None else {"propertyNames": self._key.json_schema()}
        least = {"minProperties": self._least} if self._least else {}
        return {"type": "object", "additionalProperties": self._kind.json_schema()} | keys | least


class Also(Kind):
    """A kind that is also written in a shorter way, which `longer` turns into the usual one; all else it returns as it is."""

    def __init__(self, kind: Kind, longer: Callable[[t.Any], t.Any], short: Kind) -> None:
        self._kind, self._longer, self._short = kind, longer, short
        self.wanted, self.blank, self.nested = kind.wanted, kind.blank, kind.nested

    def read(self, value: t.Any) -> t.Any:
        """Return the value."""
        return self._kind.read(self._longer(value))

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> t.Any:
        """Return the value."""
        return self._kind.read_nested(self._longer(value), place, mistakes)

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        return {"anyOf": [self._short.json_schema(), self._kind.json_schema()]}


class Anything(Kind):
    """A value that its user looks at."""

    def __init__(self, schema: Mapping[str, t.Any] | None = None) -> None:
        self._schema = dict(schema or {})

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        return dict(self._schema)


class Row(t.NamedTuple):
    """One key of a table: what its values are, what it means, and what stands for it where it is not given."""

    name: str
    kind: Kind
    doc: str = ""
    default: t.Any = None
    required: bool = False


class _Plan(t.NamedTuple):
    """How to read mappings whose values have certain types: what stands for those not given, and which are to be looked at."""

    instead: Values
    within: list[tuple[str, Kind, float, float]]
    given: list[tuple[str, Kind]]
    missing: list[tuple[str, Kind]]


class Table(Kind):
    """A mapping with known keys. `name` says what it describes, with its article.

    With `others` it may have other keys, too, which are ignored. With `dashes` `_` may stand for `-` in keys. `separator` stands
    between a place and a key. `schema` is added to the JSON Schema; `alternative` is what may stand for any value there.
    """

    nested = True

    def __init__(
        self,
        name: str,
        rows: Iterable[Row],
        *,
        others: bool = False,
        dashes: bool = False,
        separator: str = ".",
        schema: Mapping[str, t.Any] | None = None,
        alternative: Mapping[str, t.Any] | None = None,
    ) -> None:
        self.name, self.rows = name, tuple(rows)
        self._others, self._dashes, self._separator, self._schema = others, dashes, separator, dict(schema or {})
        self._alternative = dict(alternative or {})
        self.keys = tuple(row.name for row in self.rows)
        self._known = frozenset(self.keys)
        needed = [row.name for row in self.rows if row.required]
        self.wanted = f"a mapping with {listed(needed)}" if needed else "a mapping"
        self.blank = {row.name: row.kind.blank if row.required else row.default for row in self.rows}
        self._plans: dict[tuple[type, ...], _Plan] = {}

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> Values:
        """Return the value of every key of the table, of whatever is given."""
        data = value
        if data.__class__ is not dict and not isinstance(data, Mapping):
            mistakes.add(place, f"is {shown(data)}; must be {self.wanted}")
            return dict(self.blank)
        if self._dashes:
            data = {str(key).replace("_", "-"): value for key, value in data.items()}
        if not self._others and not data.keys() <= self._known:
            self._refuse_unknown(data, place, mistakes)
        picked = tuple(map(data.get, self.keys))
        plan = self._plan(tuple(map(type, picked)))
        values = dict(zip(self.keys, picked))
        values.update(plan.instead)
        separator = self._separator
        looked_at = plan.given
        for name, kind, least, most in plan.within:
            if not least <= values[name] <= most:
                looked_at = [*looked_at, (name, kind)]
        for name, kind in looked_at:
            if kind.nested:
                values[name] = kind.read_nested(values[name], (place, separator, name), mistakes)
                continue
            try:
                values[name] = kind.read(values[name])
            except ValueError as error:
                values[name] = self.blank[name]
                mistakes.add((place, separator, name), str(error))
        for name, kind in plan.missing:
            self._add_missing(name, kind, data, place, mistakes)
        return values

    def _plan(self, types: tuple[type, ...]) -> _Plan:
        """Return what is to be done with values of these types. Most mappings of an input are alike, and share a plan."""
        known = self._plans.get(types)
        if known is not None:
            return known
        bounded = [row for row, kind in zip(self.rows, types) if kind is int and row.kind.within]
        given = [row for row, kind in zip(self.rows, types) if kind is not _NONE and kind is not row.kind.exact and row not in bounded]
        absent = [row for row, kind in zip(self.rows, types) if kind is _NONE]
        plan = _Plan(
            instead={row.name: self.blank[row.name] for row in absent},
            within=[(row.name, row.kind, *row.kind.within) for row in bounded if row.kind.within],
            given=[(row.name, row.kind) for row in given],
            missing=[(row.name, row.kind) for row in absent if row.required],
        )
        if len(self._plans) < _MOST_PLANS:
            self._plans[types] = plan
        return plan

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        properties = {}
        for row in self.rows:
            described = {"description": row.doc} if row.doc else {}
            default: Json = {"default": row.default} if isinstance(row.default, (bool, int, float, str)) else {}
            accepted = row.kind.json_schema()
            if self._alternative:
                accepted = {"anyOf": [self._alternative, accepted]} if accepted else accepted
            properties[row.name] = described | accepted | default
        required = [row.name for row in self.rows if row.required]
        closed = {} if self._others else {"additionalProperties": False}
        return {"type": "object", "properties": properties} | ({"required": required} if required else {}) | closed | self._schema

    def _refuse_unknown(self, data: Mapping[t.Any, t.Any], place: Place, mistakes: Mistakes) -> None:
        for key in data:
            if key not in self._known:
                hint = suggest(str(key)[:_LONGEST_SHOWN], self.keys)
                if not hint and len(self.keys) <= _FEW_KEYS:
                    hint = f"; there are {listed(self.keys)}"
                mistakes.add((place, self._separator, str(key)), f"is not a key of {self.name}{hint}")

    def _add_missing(self, name: str, kind: Kind, data: Mapping[t.Any, t.Any], place: Place, mistakes: Mistakes) -> None:
        others = [str(key)[:_LONGEST_SHOWN] for key in data if key not in self._known] if self._others else []
        mistakes.add((place, self._separator, name), f"is missing{suggest(name, others)}; must be {kind.wanted}")


def read_all(kind: Kind, value: t.Any, place: Place) -> t.Any:
    """Return a value of a kind; raises InputError with all that is wrong with it."""
    mistakes = Mistakes()
    found = _read(kind, value, place, mistakes)
    mistakes.check()
    return found


def refuse_doubles(named: Iterable[tuple[str, t.Any]], key: str, mistakes: Mistakes) -> None:
    """Add a mistake for each entry whose `key` another has; `named` are places of entries and what they have, blank ones passed over."""
    first: dict[t.Any, str] = {}
    for place, name in named:
        if name and first.setdefault(name, place) != place:
            mistakes.add(f"{place}.{key}", f"{name!r} is already the {key} of {first[name]}; each needs its own")


def refuse_less(arguments: Mapping[str, t.Any], least: Mapping[str, float], mistakes: Mistakes) -> None:
    """Add a mistake for each option of a task that is less than it may be; what an option is at all the argument spec says."""
    for name, bound in least.items():
        value = arguments.get(name)
        if value is not None and not bound <= value < HUGE:
            mistakes.add(name, f"is {shown(value)}; must be {bound} or more")


def is_whole(value: t.Any) -> t.TypeGuard[int]:
    """Return whether a value is an integer; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: t.Any) -> t.TypeGuard[float]:
    """Return whether a value is a finite number of a size that can be computed with."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < HUGE


def shown(value: t.Any) -> str:
    """Return how a message calls a value: short ones as they are, others by what they are."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > HUGE:
        return "a huge number"
    if value is None or isinstance(value, (bool, int, float)) or (isinstance(value, (list, tuple, Mapping)) and not value):
        return repr(value)
    if isinstance(value, str):
        return repr(value) if len(value) <= _LONGEST_SHOWN else "a long text"
    return kind_of(value)


def kind_of(value: t.Any) -> str:
    """Return what a value is, in a reader's words."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple, set, frozenset)):
        return "a list"
    if value is None or isinstance(value, bool):
        return "nothing" if value is None else "a boolean"
    return "a number" if isinstance(value, (int, float)) else f"a {type(value).__name__}"


def _read(kind: Kind, value: t.Any, place: Place, mistakes: Mistakes) -> t.Any:
    """Return a value that is no table's, or what stands for it when it is wrong."""
    if kind.nested:
        return kind.read_nested(value, place, mistakes)
    try:
        return kind.read(value)
    except ValueError as error:
        mistakes.add(place, str(error))
        return kind.blank


def _from_digits(value: t.Any) -> t.Any:
    """Return what is a whole number but for how it is written as an integer, anything else as it is."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) <= _LONGEST_SHOWN:
        return int(value)
    if isinstance(value, float) and abs(value) < HUGE and value.is_integer():
        return int(value)
    return value


def _range(least: float | None, most: float | None) -> str:
    if most is None:
        return "" if least is None else f", {least} or more"
    return f" from {least or 0} to {most}"


def _bounds(least: float | None, most: float | None) -> Json:
    return ({} if least is None else {"minimum": least}) | ({} if most is None else {"maximum": most})
