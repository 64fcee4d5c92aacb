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
"""

from __future__ import annotations

import itertools
import typing as t
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from .errors import Mistakes, Place, suggest
from .kinds import LONGEST_SHOWN, Json, Kind, shown
from .words import listed

Values = dict[str, t.Any]

_FEW_KEYS = 12
_LISTS = (list, tuple, set, frozenset)


class _Container(Kind):
    """A kind whose values hold many others: these are read by columns, or one by one to describe a mistake."""

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
    """A list of values of one kind; `of` is what they are called together. With `single` a value alone stands for a list of one."""

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
                where = (place, self._separator, row.name)
                others = [str(key)[:LONGEST_SHOWN] for key in data if key not in self._known] if self._others else []
                mistakes.add(where, f"is missing{suggest(row.name, others)}; must be {row.kind.wanted}")
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
            if accepted and not row.required:
                # The JSON Schema of a value that may be null, which stands for a key that is not given.
                null: Json = {"type": "null"}
                accepted = {"anyOf": [*accepted["anyOf"], null]} if accepted.keys() == {"anyOf"} else {"anyOf": [accepted, null]}
            properties[row.name] = described | accepted | default
        required = [row.name for row in self.rows if row.required]
        closed = {} if self._others else {"additionalProperties": False}
        return {"type": "object", "properties": properties} | ({"required": required} if required else {}) | closed | self._schema

    def _refuse_unknown(self, data: Mapping[t.Any, t.Any], place: Place, mistakes: Mistakes) -> None:
        for key in data:
            if key not in self._known:
                hint = suggest(str(key)[:LONGEST_SHOWN], self.keys)
                if not hint and len(self.keys) <= _FEW_KEYS:
                    hint = f"; there are {listed(self.keys)}"
                mistakes.add((place, self._separator, str(key)), f"is not a key of {self.name}{hint}")


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


def _read(kind: Kind, value: t.Any, place: Place, mistakes: Mistakes, blank: t.Any) -> t.Any:
    """Return a value, or what stands for it when it is wrong, unless it holds others, which say that themselves."""
    if kind.nested:
        return kind.read_nested(value, place, mistakes)
    try:
        return kind.read(value)
    except ValueError as error:
        mistakes.add(place, str(error))
        return blank
