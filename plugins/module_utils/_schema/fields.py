# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Takes values out of an item of a schema, checks their kind and remembers every mistake with its place."""

from __future__ import annotations

import difflib
import typing as t
from collections.abc import Iterable, Mapping

from .._storage.names import why_no_text

Mistakes = list[str]
WhyNot = t.Callable[[str], t.Optional[str]]
"""Returns what is wrong with a text, and what would be right; None for nothing."""
_LARGEST = 2**53


class Item:
    """A mapping of the schema and its place (`parteds[1].partitions[0]`)."""

    def __init__(self, value: t.Any, place: str, known: Iterable[str], mistakes: Mistakes) -> None:
        self.place = place
        self._mistakes = mistakes
        self._wrong: set[str] = set()
        self._values: Mapping[str, t.Any] = value if isinstance(value, Mapping) else {}
        known = tuple(known)
        if not isinstance(value, Mapping):
            self.mistake("", f"must be a mapping with {', '.join(known[:3])} ..., not {_kind(value)}")
        for key in self._values:
            if key not in known:
                close = difflib.get_close_matches(str(key), known, n=1)
                self.mistake(str(key), f"is not a key here{f' (did you mean {close[0]}?)' if close else ''}; there are {', '.join(known)}")

    def mistake(self, key: str, says: str) -> None:
        """Remember a mistake."""
        self._wrong.add(key)
        place = ".".join(part for part in (self.place, key) if part)
        self._mistakes.append(f"{place or 'schema'}: {says}")

    def is_right(self, *keys: str) -> bool:
        """Return whether no mistake was found in these keys so far."""
        return self._wrong.isdisjoint(keys)

    def has(self, key: str) -> bool:
        """Return whether there is a value."""
        return self._values.get(key) is not None

    def text(self, key: str, default: t.Optional[str] = None) -> str:
        """Return a text; without a default it must be there."""
        value = self._values.get(key)
        if value is None:
            return self._absent(key, "a text", default)
        if not isinstance(value, str) or (default is None and not value):
            self.mistake(key, f"must be a string{' that is not empty' if default is None else ''}, not {value!r}")
            return default or ""
        return value

    def named(self, key: str, why_not: WhyNot, default: t.Optional[str] = None) -> str:
        """Return a text that `why_not` finds nothing wrong with, or that is the default; without a default it must be there."""
        value = self.text(key, default)
        if value != default:
            self.check(key, value, why_not)
        return value

    def check(self, key: str, value: str, why_not: t.Optional[WhyNot]) -> None:
        """Remember what is wrong with a text that is not empty."""
        says = why_not(value) if why_not is not None and value and self.is_right(key) else None
        if says is not None:
            self.mistake(key, says)

    def space(self) -> str:
        """Return the id of the space that it is of, empty where there is none."""
        return self.named("space_id", why_no_text, "")

    def names(self, key: str, why_not: WhyNot) -> tuple[str, ...]:
        """Return a list of texts that `why_not` finds nothing wrong with, none when it is absent."""
        found = self.texts(key)
        for text in found:
            self.check(key, text, why_not)
        return found

    def whole(self, key: str, least: int, default: t.Optional[int] = None) -> int:
        """Return an integer of at least `least`."""
        value = self._values.get(key)
        if value is None:
            return self._absent(key, f"a whole number of at least {least}", default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _LARGEST:
            self.mistake(key, f"must be a whole number of at least {least}, not {_shown(value)}")
            return least
        return value

    def flag(self, key: str) -> bool:
        """Return a truth, false when it is absent."""
        value = self._values.get(key)
        if value is not None and not isinstance(value, bool):
            self.mistake(key, f"must be true or false, not {value!r}")
        return value is True

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, none when it is absent."""
        value = self._values.get(key)
        if value is None:
            return ()
        if not isinstance(value, (list, tuple)) or not all(isinstance(part, str) and part for part in value):
            self.mistake(key, f"must be a list of strings, not {value!r}")
            return ()
        return tuple(value)

    def wholes(self, key: str) -> tuple[int, ...]:
        """Return a list of whole numbers, none when it is absent."""
        value = self._values.get(key)
        if value is None:
            return ()
        if not isinstance(value, (list, tuple)) or not all(isinstance(part, int) and not isinstance(part, bool) for part in value):
            self.mistake(key, f"must be a list of whole numbers, not {value!r}")
            return ()
        return tuple(value)

    def chosen(self, key: str, choices: Iterable[str], default: t.Optional[str] = None) -> str:
        """Return one of the choices."""
        choices = tuple(choices)
        value = self.text(key, default)
        if value not in choices and value != default and (value or self.is_right(key)):
            self.mistake(key, f"must be one of {', '.join(choices)}, not {value!r}")
        return value

    def items(self, key: str, known: Iterable[str]) -> tuple[Item, ...]:
        """Return a list of mappings, none when it is absent; their place is under `key`."""
        value = self._values.get(key)
        place = f"{self.place}.{key}" if self.place else key
        if value is None:
            return ()
        if not isinstance(value, (list, tuple)):
            self.mistake(key, f"must be a list, not {_kind(value)}")
            return ()
        return tuple(Item(part, f"{place}[{number}]", known, self._mistakes) for number, part in enumerate(value))

    def words(self, key: str) -> dict[str, str]:
        """Return a mapping of names to words or numbers, none when it is absent, without wrong ones; truths are on and off."""
        value = self._values.get(key)
        given = value if isinstance(value, Mapping) else {}
        if value is not None and not isinstance(value, Mapping):
            self.mistake(key, f"must be a mapping of names to words, not {_kind(value)}")
        wrong = {name for name, word in given.items() if not isinstance(name, str) or not isinstance(word, (str, int))}
        for name in wrong:
            self.mistake(key, f"the value of {name} must be a word or a number, not {_kind(given[name])}")
        truths = {True: "on", False: "off"}
        return {name: truths[word] if isinstance(word, bool) else str(word) for name, word in given.items() if name not in wrong}

    def _absent(self, key: str, what: str, default: t.Any) -> t.Any:
        if default is None:
            self.mistake(key, f"is missing; {what} is needed")
            return 0 if "number" in what else ""
        return default


def _shown(value: t.Any) -> str:
    return "a huge number" if isinstance(value, int) and abs(value) > _LARGEST else repr(value)


def _kind(value: t.Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
