# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Errors that collect: every mistake of one input is reported at once, each with its place."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Place = t.Union[str, tuple["Place", str, t.Union[str, int]]]
"""Where something stands in an input: text, or what it lies in, what stands between, and its name or number.

Readers that go through thousands of entries write no text for places where all is well.
"""

_MOST_PARTS = 3


@dataclass(frozen=True)
class Mistake:
    """One mistake of the input: `place` as a path into it (`schema[3].min_size`), `says` what is wrong and what would be right."""

    place: str
    says: str

    def __str__(self) -> str:
        return f"{self.place}: {self.says}" if self.place else self.says


class InputError(ValueError):
    """The input cannot be used; `mistakes` holds all that was found wrong with it."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes: tuple[Mistake, ...] = tuple(mistakes)
        super().__init__(describe_mistakes(self.mistakes))

    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[Mistake, ...]]]:
        # Exceptions are made again of their message when they come from another process, unless they say otherwise.
        return type(self), (self.mistakes,)


class NoSolution(Exception):
    """The input is sound, but nothing satisfies it.

    `conflict` is plain data that explains why, in the shape the action documents.
    """

    def __init__(self, message: str, conflict: Mapping[str, t.Any]) -> None:
        super().__init__(message)
        self.conflict: dict[str, t.Any] = dict(conflict)

    def __reduce__(self) -> tuple[type[NoSolution], tuple[str, dict[str, t.Any]]]:
        return type(self), (str(self), self.conflict)


class Unavailable(Exception):
    """A service that the task needs (a database, a cluster's API) cannot be used; the message is one sentence that says why."""


class Mistakes:
    """Collects mistakes while an input is read; `check()` raises them all together."""

    def __init__(self) -> None:
        self._found: list[Mistake] = []

    def add(self, place: Place, says: str) -> None:
        """Remember one mistake."""
        self._found.append(Mistake(spelled(place), says))

    def extend(self, mistakes: Iterable[Mistake]) -> None:
        """Remember the mistakes of a part that was read on its own."""
        self._found.extend(mistakes)

    def has(self, place: str) -> bool:
        """Return whether something is known to be wrong with a place, or with what it lies in."""
        return any(place == mistake.place or place.startswith(f"{mistake.place}.") for mistake in self._found)

    def concern(self, place: str) -> bool:
        """Return whether something is known to be wrong with a place, with what it lies in, or with what lies in it."""
        inside = (f"{place}.", f"{place}[")
        return any(self.has(place) or mistake.place.startswith(inside) for mistake in self._found)

    def found(self) -> tuple[Mistake, ...]:
        """Return what was found so far."""
        return tuple(self._found)

    def __bool__(self) -> bool:
        return bool(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def check(self) -> None:
        """Raise InputError when anything was found."""
        if self._found:
            raise InputError(self._found)


def spelled(place: Place) -> str:
    """Return a place as text, such as `schema[3].min_size`."""
    if isinstance(place, str):
        return place
    above, between, name = place
    before = spelled(above)
    if between == "[":
        return f"{before}[{name}]"
    return f"{before}{between}{name}" if before else str(name)


def describe_mistakes(mistakes: Iterable[Mistake]) -> str:
    """Return one message that lists every mistake, one on a line when there are several."""
    lines = [str(mistake) for mistake in mistakes]
    if len(lines) == 1:
        return lines[0]
    return "\n".join([f"{len(lines)} mistakes in the input:", *(f"- {line}" for line in lines)])


def describe_unwritable(error: UnicodeEncodeError) -> str:
    """Return what is wrong with a text of the input that no encoding can write, such as one with half of a surrogate pair."""
    return f"{error.object!r} is no text: it cannot be written as UTF-8"


def suggest(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean X?)` for known words that `word` is a part of, else for one that is close to it, else an empty string."""
    # Loaded here because hardly any input has typing mistakes, and scripts that answer in milliseconds load this file.
    import difflib

    words = list(known)
    close = [other for other in words if word in other.split("_")][:_MOST_PARTS] or difflib.get_close_matches(word, words, n=1)
    return f" (did you mean {' or '.join(close)}?)" if close else ""
