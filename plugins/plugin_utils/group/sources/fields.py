# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading fields of untrusted nested data: every mistake is collected with its path, and reading goes on."""

from __future__ import annotations

import math
import typing as t
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from ...common.errors import Mistakes, suggest
from ...common.units import parse_mib

_Word = t.TypeVar("_Word", bound=StrEnum)
_HUGE = 1e300
"""No number of a source comes near; whole numbers beyond it have no equal among floating point numbers."""
_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


class Fields:
    """A mapping of the input at a known place. A field without a default is required; wrong ones read as 0, "" or empty."""

    def __init__(self, data: t.Any, place: str, mistakes: Mistakes) -> None:
        self.place = place
        self.mistakes = mistakes
        self._data: Mapping[str, t.Any] = {}
        if isinstance(data, Mapping):
            self._data = data
        else:
            mistakes.add(place, f"is {_kind(data)}; must be a mapping")

    def __contains__(self, name: str) -> bool:
        return self._data.get(name) is not None

    def names(self) -> tuple[str, ...]:
        """Return the names of all fields."""
        return tuple(self._data)

    def raw(self, name: str) -> t.Any:
        """Return a field as it is, None where it is missing."""
        return self._data.get(name)

    def wrong(self, name: str, says: str) -> None:
        """Remember a mistake of a field."""
        self.mistakes.add(f"{self.place}.{name}" if self.place else name, says)

    def only(self, known: Iterable[str]) -> None:
        """Add a mistake for every field that is not known."""
        names = tuple(known)
        for name in self._data:
            if name not in names:
                self.wrong(str(name), f"is not known here{suggest(str(name), names)}")

    def text(self, name: str, default: str | None = None) -> str:
        """Return a string; numbers are taken as their digits, for names that look like numbers."""
        value = self._present(name, default)
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            return str(value)
        return self._refuse(name, value, "a string", default or "")

    def integer(self, name: str, default: int | None = None) -> int:
        """Return a whole number."""
        value = self._present(name, default)
        if isinstance(value, str) and value.strip().isdecimal():
            return int(value)
        if _is_number(value) and value == int(value):
            return int(value)
        return self._refuse(name, value, "a whole number", default or 0)

    def number(self, name: str, default: float | None = None) -> float:
        """Return a finite number."""
        value = self._present(name, default)
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                return self._refuse(name, value, "a number", default or 0.0)
        if _is_number(value):
            return float(value)
        return self._refuse(name, value, "a number", default or 0.0)

    def size(self, name: str, default: int | None = None) -> int:
        """Return what is needed, in MiB, rounded up: a number, or text such as `50 GiB`."""
        return self._mib(name, default, math.ceil)

    def capacity(self, name: str, default: int | None = None) -> int:
        """Return what is there, in MiB, rounded down."""
        return self._mib(name, default, math.floor)

    def truth(self, name: str, default: bool | None = None) -> bool:
        """Return a boolean."""
        value = self._present(name, default)
        if isinstance(value, str) and value.lower() in _TRUTHS:
            return _TRUTHS[value.lower()]
        if isinstance(value, (bool, int)) and value in (True, False):
            return bool(value)
        return self._refuse(name, value, "true or false", bool(default))

    def word(self, name: str, words: type[_Word], default: _Word | None = None) -> _Word:
        """Return one of fixed words."""
        value = self._present(name, default)
        known = [str(word) for word in words]
        if isinstance(value, str) and value in known:
            return words(value)
        says = suggest(value, known) if isinstance(value, str) else ""
        return self._refuse(name, value, f"one of {', '.join(known)}{says}", next(iter(words)))

    def strings(self, name: str, default: Sequence[str] | None = ()) -> tuple[str, ...]:
        """Return a list of strings."""
        value = self._present(name, default)
        if isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(item, str) for item in value):
            return tuple(value)
        return self._refuse(name, value, "a list of strings", ())

    def items(self, name: str, required: bool = False) -> Sequence[t.Any]:
        """Return a list of anything."""
        value = self._present(name, None if required else ())
        if isinstance(value, Sequence) and not isinstance(value, str):
            return value
        return self._refuse(name, value, "a list", ())

    def child(self, name: str) -> Fields:
        """Return a mapping inside this one; an empty one where it is missing."""
        value = self._data.get(name)
        return Fields({} if value is None else value, self._path(name), self.mistakes)

    def children(self, name: str, required: bool = False) -> list[Fields]:
        """Return the mappings of a list."""
        items = self.items(name, required)
        return [Fields(item, f"{self._path(name)}[{position}]", self.mistakes) for position, item in enumerate(items)]

    def named(self, name: str) -> Iterator[tuple[str, Fields]]:
        """Yield the mappings of a mapping with their keys."""
        for key, item in self.pairs(name):
            yield key, self.member(name, key, item)

    def pairs(self, name: str) -> Iterator[tuple[str, t.Any]]:
        """Yield the items of a mapping with their keys, whatever they are; `member` makes Fields of one."""
        value = self._present(name, None)
        if not isinstance(value, Mapping):
            self._refuse(name, value, "a mapping of names", None)
            return
        for key, item in value.items():
            yield str(key), item

    def member(self, name: str, key: str, item: t.Any) -> Fields:
        """Return the item of that key in the mapping of that name."""
        return Fields(item, f"{self._path(name)}.{key}", self.mistakes)

    def _path(self, name: str) -> str:
        return f"{self.place}.{name}" if self.place else name

    def _present(self, name: str, default: t.Any) -> t.Any:
        value = self._data.get(name)
        return default if value is None else value

    def _refuse(self, name: str, value: t.Any, wanted: str, instead: t.Any) -> t.Any:
        self.wrong(name, f"is missing; must be {wanted}" if value is None else f"is {_kind(value)}; must be {wanted}")
        return instead

    def _mib(self, name: str, default: int | None, rounded: t.Callable[[t.Any], int]) -> int:
        value = self._present(name, default)
        if isinstance(value, str):
            try:
                return rounded(parse_mib(value))
            except ValueError as error:
                self.wrong(name, str(error))
                return 0
        if _is_number(value):
            return rounded(value)
        return t.cast(int, self._refuse(name, value, "a size in MiB, or text such as '50 GiB'", default or 0))


def _is_number(value: t.Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _HUGE


def _kind(value: t.Any) -> str:
    """Return how to call a wrong value: short ones as they are, others by their type."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"a {type(value).__name__}"
