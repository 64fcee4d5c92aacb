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

Inputs have thousands of entries, and hardly ever a mistake. So entries are read by columns, `read_column`: all values of one key at
once, without a thought of places. Only what has a mistake is read again, one value after the other, to say what is wrong and where.

From the same tables come JSON Schemas: `json_schema` of each kind, put together by json_schema.py.
"""

from __future__ import annotations

import itertools
import math
import typing as t
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
_LISTS = (list, tuple, set, frozenset)
_NONE = type(None)


class Kind:
    """What a value may be."""

    wanted = "anything"
    """The kind in words."""
    blank: t.Any = None
    """What a required value of this kind reads as when it is missing or wrong."""
    exact: type | None = None
    """Values of exactly this type are used as they are."""
    within: tuple[float, float] = (math.inf, -math.inf)
    """So are integers (of exactly this type) that lie within these bounds; by default none do."""
    nested = False
    """Whether values hold others: they are read by `read_nested`, not by `read`."""

    def read(self, value: t.Any) -> t.Any:
        """Return the value as it is used. Raises ValueError with a sentence."""
        return value

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> t.Any:
        """Return a value that holds others; all that is wrong in it is collected, with its place. Only for kinds that are `nested`."""
        raise TypeError(f"{type(self).__name__} holds no other values")

    def read_column(self, values: Sequence[t.Any]) -> Sequence[t.Any] | None:
        """Return every one of some values as it is used, or None when any is wrong."""
        if self.nested:
            mistakes = Mistakes()
            found = [self.read_nested(value, "", mistakes) for value in values]
            return None if mistakes else found
        if self._are_usual(values):
            return values
        try:
            return list(map(self.read, values))
        except ValueError:
            return None

    def _are_usual(self, values: Sequence[t.Any]) -> bool:
        """Return whether values are used as they are, by their types and bounds alone."""
        types = set(map(type, values))
        least, most = self.within
        if types == {int} and least <= min(values) and max(values) <= most:
            return True
        return types == {self.exact}

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

    def read(self, value: t.Any) -> str:
        """Return the text."""
        if self._digits and is_whole(value) and abs(value) <= LARGEST_SIZE:
            return str(value)
        if not isinstance(value, str) or not _is_unicode(value):
            self.refuse(value)
        if not self._filled:
            return str(value)
        return str(value).strip() or self.refuse(value)

    def read_column(self, values: Sequence[t.Any]) -> Sequence[str] | None:
        """Return the texts."""
        usual = not self._filled and set(map(type, values)) == {str} and "".join(values).isascii()
        return values if usual else super().read_column(values)

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

    def read_column(self, values: Sequence[t.Any]) -> Sequence[float] | None:
        """Return the numbers."""
        if set(map(type, values)) <= {int, float} and all(self._least <= value <= self._most for value in values):
            return list(map(float, values))
        return super().read_column(values)

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

    def read_column(self, values: Sequence[t.Any]) -> Sequence[str] | None:
        """Return the words."""
        if self._folded or set(map(type, values)) != {str}:
            return super().read_column(values)
        found = list(map(self._words.get, values))
        return None if None in found else t.cast("list[str]", found)

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        return {"enum": [str(word) for word in self._words]}


class _Container(Kind):
    """A kind whose values hold many others: these are read by columns, or one by one where there is a mistake to tell."""

    nested = True

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> t.Any:
        """Return the value, wrong parts as their kind's blank or their row's default."""
        sound = self.read_column((value,))
        return self._read_parts(value, place, mistakes) if sound is None else sound[0]

    def _read_parts(self, value: t.Any, place: Place, mistakes: Mistakes) -> t.Any:
        """Return a value that has a mistake."""
        raise NotImplementedError


@t.final
class ListOf(_Container):
    """A list of values of one kind; `of` is what they are called together. With `single` a value alone stands for a list of it."""

    blank: t.Any = ()

    def __init__(self, kind: Kind, of: str = "", *, least: int = 0, single: bool = False) -> None:
        self._kind, self._least, self._single = kind, least, single
        self.wanted = f"a list{f' of {of}' if of else ''}{f', {least} or more' if least else ''}"

    def read_column(self, values: Sequence[t.Any]) -> Sequence[tuple[t.Any, ...]] | None:
        """Return each list as a tuple."""
        if self._single:
            values = [value if isinstance(value, _LISTS) else (value,) for value in values]
        if not _are_all(_LISTS, values) or (self._least and any(len(value) < self._least for value in values)):
            return None
        given = list(itertools.chain.from_iterable(values))
        parts = self._kind.read_column(given) if given else given
        if parts is None:
            return None
        if parts is given:
            return list(map(tuple, values))
        if len(parts) == len(values) and all(values):
            return list(zip(parts))
        following = iter(parts)
        return [tuple(itertools.islice(following, len(value))) for value in values]

    def _read_parts(self, value: t.Any, place: Place, mistakes: Mistakes) -> tuple[t.Any, ...]:
        if not isinstance(value, _LISTS):
            if self._single:
                return (_read(self._kind, value, place, mistakes, self._kind.blank),)
            mistakes.add(place, f"is {shown(value)}; must be {self.wanted}")
            return ()
        if len(value) < self._least:
            mistakes.add(place, f"is {shown(value)}; must be {self.wanted}")
        return tuple([_read(self._kind, item, (place, "[", position), mistakes, self._kind.blank) for position, item in enumerate(value)])

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        items = self._kind.json_schema()
        listed = {"type": "array", "items": items} | ({"minItems": self._least} if self._least else {})
        return {"anyOf": [listed, items]} if self._single else listed


@t.final
class MappingOf(_Container):
    """A mapping of names to values of one kind; `of` is what its keys are called. Keys are checked by a kind of text."""

    blank: t.Any = {}

    def __init__(self, kind: Kind, of: str = "names", key: Kind | None = None, *, least: int = 0) -> None:
        self._kind, self._key, self._least = kind, key, least
        self.wanted = f"a mapping of {of}{' that is not empty' if least else ''}"

    def read_column(self, values: Sequence[t.Any]) -> Sequence[dict[str, t.Any]] | None:
        """Return each mapping, with its keys as they are used."""
        if not _are_all((dict, Mapping), values) or (self._least and any(len(value) < self._least for value in values)):
            return None
        names = list(itertools.chain.from_iterable(values))
        keys = list(map(str, names)) if self._key is None else self._key.read_column(names)
        parts = self._kind.read_column([part for value in values for part in value.values()])
        if keys is None or parts is None:
            return None
        following = zip(keys, parts)
        return [dict(itertools.islice(following, len(value))) for value in values]

    def _read_parts(self, value: t.Any, place: Place, mistakes: Mistakes) -> dict[str, t.Any]:
        """Return the values by key; what has a wrong key is read and left out."""
        if not isinstance(value, Mapping) or len(value) < self._least:
            mistakes.add(place, f"is {shown(value)}; must be {self.wanted}")
            return {}
        found = {}
        for key, item in value.items():
            read = _read(self._kind, item, (place, ".", str(key)), mistakes, self._kind.blank)
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

    def read_column(self, values: Sequence[t.Any]) -> Sequence[t.Any] | None:
        """Return the values."""
        return self._kind.read_column(list(map(self._longer, values)))

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


@t.final
class Table(Kind):
    """A mapping with known keys. `name` says what it describes, with its article.

    With `others` it may have other keys, too, which are ignored. With `dashes` `_` may stand for `-` in keys. `separator` stands
    between a place and a key. `schema` is added to the JSON Schema; `alternative` is what may stand for any value there. `make` makes
    something of the values, which it gets in the rows' order; without it they are a dictionary by name.
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
        make: Callable[..., t.Any] | None = None,
    ) -> None:
        self.name, self.rows = name, tuple(rows)
        self._others, self._dashes, self._separator, self._schema = others, dashes, separator, dict(schema or {})
        self._alternative = dict(alternative or {})
        self.keys = tuple(row.name for row in self.rows)
        self._known = frozenset(self.keys)
        self._turn = {name: turn for turn, name in enumerate(self.keys)}
        self._required = tuple(row for row in self.rows if row.required)
        needed = [row.name for row in self._required]
        self.wanted = f"a mapping with {listed(needed)}" if needed else "a mapping"
        self._blank = {row.name: row.kind.blank if row.required else row.default for row in self.rows}
        self._make = make
        self.blank = self._made(self._blank)

    def read_column(self, values: Sequence[t.Any]) -> Sequence[t.Any] | None:
        """Return what is made of each mapping, by default the value of every key of the table."""
        columns = self.read_columns(values)
        if columns is None:
            return None
        if self._make is not None:
            return list(map(self._make, *columns))
        return [dict(zip(self.keys, entry)) for entry in zip(*columns)]

    def read_columns(self, values: Sequence[t.Any]) -> list[Sequence[t.Any]] | None:
        """Return the values of each row, for all of some mappings, or None when any is wrong."""
        if not _are_all((dict, Mapping), values):
            return None
        if self._dashes:
            values = list(map(_with_dashes, values))
        if not self._others and not all(value.keys() <= self._known for value in values):
            return None
        columns = []
        for row in self.rows:
            column = _column(row, [value.get(row.name) for value in values])
            if column is None:
                return None
            columns.append(column)
        return columns

    def _made(self, values: Values) -> t.Any:
        return dict(values) if self._make is None else self._make(*values.values())

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> t.Any:
        """Return what is made of one mapping; a wrong value reads as its row's default or its kind's blank."""
        if not isinstance(value, Mapping):
            mistakes.add(place, f"is {shown(value)}; must be {self.wanted}")
            return self._made(self._blank)
        data = _with_dashes(value) if self._dashes else value
        if not self._others:
            self._refuse_unknown(data, place, mistakes)
        values = dict(self._blank)
        # Most mappings have few of many keys.
        for turn in sorted(self._turn[name] for name in self._known.intersection(data)):
            name, kind, given = self.keys[turn], self.rows[turn].kind, data[self.keys[turn]]
            if given.__class__ is kind.exact:
                values[name] = given
            elif given is not None:
                values[name] = _read(kind, given, (place, self._separator, name), mistakes, self._blank[name])
        for row in self._required:
            if data.get(row.name) is None:
                self._add_missing(row, data, (place, self._separator, row.name), mistakes)
        return self._made(values)

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

    def _add_missing(self, row: Row, data: Mapping[t.Any, t.Any], where: Place, mistakes: Mistakes) -> None:
        others = [str(key)[:_LONGEST_SHOWN] for key in data if key not in self._known] if self._others else []
        mistakes.add(where, f"is missing{suggest(row.name, others)}; must be {row.kind.wanted}")


def _with_dashes(data: Mapping[t.Any, t.Any]) -> Values:
    return {str(key).replace("_", "-"): value for key, value in data.items()}


def _are_all(types: tuple[type, ...], values: Iterable[t.Any]) -> bool:
    return all(issubclass(kind, types) for kind in set(map(type, values)))


def _column(row: Row, given: Sequence[t.Any]) -> Sequence[t.Any] | None:
    """Return the values of a row, its default where none is given; None when any is wrong."""
    if None not in given:
        return row.kind.read_column(given)
    if row.required:
        return None
    there = [value for value in given if value is not None]
    read = row.kind.read_column(there) if there else ()
    if read is None:
        return None
    following = iter(read)
    return [row.default if value is None else next(following) for value in given]


@t.final
class ByName(_Container):
    """Entries of a table by their names; `make` makes something of a name and the values of each row. `of` is what they are called."""

    blank: t.Any = ()

    def __init__(self, table: Table, make: Callable[..., t.Any], of: str) -> None:
        self._table, self._make = table, make
        self.wanted = f"a mapping of {of}"

    def read_column(self, values: Sequence[t.Any]) -> Sequence[tuple[t.Any, ...]] | None:
        """Return what is made of the entries of each mapping."""
        if not _are_all((dict, Mapping), values):
            return None
        columns = self._table.read_columns([entry for value in values for entry in value.values()])
        if columns is None:
            return None
        made = map(self._make, map(str, itertools.chain.from_iterable(values)), *columns)
        return [tuple(itertools.islice(made, len(value))) for value in values]

    def _read_parts(self, value: t.Any, place: Place, mistakes: Mistakes) -> tuple[t.Any, ...]:
        if not isinstance(value, Mapping):
            mistakes.add(place, f"is {shown(value)}; must be {self.wanted}")
            return ()
        read = [(str(name), self._table.read_nested(entry, (place, ".", str(name)), mistakes)) for name, entry in value.items()]
        return tuple([self._make(name, *values.values()) for name, values in read])

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        return {"type": "object", "additionalProperties": self._table.json_schema()}


def read_all(kind: Kind, value: t.Any, place: Place) -> t.Any:
    """Return a value of a kind; raises InputError with all that is wrong with it."""
    mistakes = Mistakes()
    found = _read(kind, value, place, mistakes, kind.blank)
    mistakes.check()
    return found


def read_each(kind: Kind, values: Sequence[t.Any], places: Iterable[str], mistakes: Mistakes) -> Iterator[t.Any]:
    """Yield values of one kind that stand in places of their own; mistakes of each are known when it is yielded."""
    sound = kind.read_column(values)
    if sound is None:
        yield from (_read(kind, value, place, mistakes, kind.blank) for value, place in zip(values, places))
    else:
        yield from sound


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


def _read(kind: Kind, value: t.Any, place: Place, mistakes: Mistakes, blank: t.Any) -> t.Any:
    """Return a value, or what stands for it when it is wrong, unless it holds others, which say that themselves."""
    if kind.nested:
        return kind.read_nested(value, place, mistakes)
    try:
        return kind.read(value)
    except ValueError as error:
        mistakes.add(place, str(error))
        return blank


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
