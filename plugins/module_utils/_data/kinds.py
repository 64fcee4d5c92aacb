# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a value of untrusted data may be: kinds, each of which reads one value or says what is wrong with it.

Those that hold others, such as lists and tables, are in containers.py. `json_schema` of each kind is the JSON Schema of what it accepts.
"""

from __future__ import annotations

import math
import re
import typing as t
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from .errors import Mistakes, Place, suggest
from .units import NO_SIZE_PATTERN, SIZE_PATTERN, parse_mib

if t.TYPE_CHECKING:
    from enum import StrEnum

Json = dict[str, t.Any]

HUGE = 1e300
"""No number of an input comes near; whole numbers beyond it have no equal among floating point numbers."""
LARGEST_SIZE = 2**53
"""In MiB; beyond it floating point numbers are no longer exact."""
LONGEST_SHOWN = 60
"""Letters of a text that a message repeats."""
_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


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
    """Return whether a text can be written as UTF-8, which half of a surrogate pair cannot."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


class Name(Kind):
    """What a node, an instance, a group, a pool, a network or a disk is called; a whole number is read as its digits.

    Names reach command lines, URLs and `delegate_to`, so that none begins with a dash or holds anything that is read there. With
    `blank_too` the name may be empty, for what is in no place yet.
    """

    wanted, blank = "a name: letters, digits, '.', '_' and '-', the first a letter or a digit, 255 at most", ""
    _PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}"
    _fullmatch = re.compile(_PATTERN).fullmatch

    def __init__(self, *, blank_too: bool = False) -> None:
        self._blank_too = blank_too

    def read(self, value: t.Any) -> str:
        """Return the name."""
        if is_whole(value) and 0 <= value <= LARGEST_SIZE:
            return str(value)
        if not isinstance(value, str) or not (self._fullmatch(value) or (self._blank_too and not value)):
            self.refuse(value)
        return str(value)

    def read_column(self, values: Sequence[t.Any]) -> Sequence[str] | None:
        """Return the names."""
        usual = set(map(type, values)) == {str} and all(map(self._fullmatch, values))
        return values if usual else super().read_column(values)

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        return {"type": ["string", "integer"], "pattern": f"^({self._PATTERN}){'?' if self._blank_too else ''}$"}


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
    """A size in MiB, without `zero` more than 0: a number, or text such as `50 GiB`. Requested sizes are rounded up, existing ones down."""

    wanted, blank = "a size in MiB, or text such as '50 GiB'", 0

    def __init__(self, rounded: Callable[[t.Any], t.Any] = math.ceil, *, zero: bool = True) -> None:
        self._rounded, self._least = rounded, 0 if zero else 1

    def read(self, value: t.Any) -> t.Any:
        """Return the size in MiB, whole unless it is not to be rounded."""
        if value.__class__ is int and self._least <= value <= LARGEST_SIZE:
            return value
        amount = parse_mib(value) if isinstance(value, str) else value
        if not isinstance(value, str) and not is_number(value):
            self.refuse(value)
        if not 0 <= amount <= LARGEST_SIZE:
            raise ValueError(f"is {shown(value)}; {'must be 0 or more' if amount < 0 else 'that is not a usable size'}")
        if not amount and self._least:
            raise ValueError("is 0; leave it out if there is to be none")
        return self._rounded(amount)

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        least = "exclusiveMinimum" if self._least else "minimum"
        number: Json = {"type": "number", least: 0, "maximum": LARGEST_SIZE}
        text: Json = {"type": "string", "pattern": SIZE_PATTERN} | ({"not": {"pattern": NO_SIZE_PATTERN}} if self._least else {})
        return {"anyOf": [number, text]}


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
    """One of fixed words; those of an enumeration become its members. `refused` are others that are meant, with why they are not taken."""

    def __init__(
        self, words: type[StrEnum] | Iterable[str], *, folded: bool = False, refused: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._refused = refused
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
            why = next((says for word, says in self._refused.items() if word == value.lower()), "")
            hint = f"; {why}" if why else suggest(value[:LONGEST_SHOWN], self._words)
            raise ValueError(f"is {shown(value)}; must be {self.wanted}{hint}")
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


class Anything(Kind):
    """A value that its user looks at."""

    def __init__(self, schema: Mapping[str, t.Any] | None = None) -> None:
        self._schema = dict(schema or {})

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        return dict(self._schema)


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
        return repr(value) if len(value) <= LONGEST_SHOWN else "a long text"
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


def _from_digits(value: t.Any) -> t.Any:
    """Return what is a whole number but for how it is written as an integer, anything else as it is."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) <= LONGEST_SHOWN:
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
