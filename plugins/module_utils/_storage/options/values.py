# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may stand behind an option: kinds of values, each of which says what is wrong with a text."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

_SHOWN = 60
_FEW = 40


def shown(text: str) -> str:
    """Return how a message calls a text."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."


@dataclass(frozen=True)
class Value:
    """A value: text that matches `pattern` as a whole, a number from `least` to `most` where these are given; `wanted` says so.

    `optional`: its option may also stand alone.
    """

    wanted: str
    pattern: str
    least: t.Optional[float] = None
    most: t.Optional[float] = None
    optional: bool = False

    def or_none(self) -> t.Any:
        """Return the same value for an option that may also stand alone."""
        return replace(self, optional=True)

    def why_not(self, text: str) -> t.Optional[str]:
        """Return what is wrong with a text, and what would be right; None for nothing."""
        right = re.fullmatch(self.pattern, text, re.ASCII) is not None
        if right and self.least is not None and self.most is not None:
            right = self.least <= float(text) <= self.most
        return None if right else f"is {shown(text)}; must be {self.wanted}"


@dataclass(frozen=True)
class Listed:
    """A list of some of `choices` with a separator between them; behind one of `off` a choice is switched off.

    `refused` are further words that the program knows, with what to do instead.
    """

    choices: tuple[str, ...]
    separator: str = ","
    off: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False

    @property
    def wanted(self) -> str:
        """What it is, in words."""
        return f"some of {', '.join(self.choices)}{f', each with {self.off} in front to leave it out' if self.off else ''}"

    def why_not(self, text: str) -> t.Optional[str]:
        """Return what is wrong with a text, and what would be right; None for nothing."""
        for word in text.split(self.separator):
            name = word[1:] if self.off and word[:1] == self.off else word
            if name in self.refused:
                return f"has {name}: {self.refused[name]}"
            if name not in self.choices:
                return f"has {shown(word)}; must be {self.wanted}"
        return None


@dataclass(frozen=True)
class Keys:
    """Options of an option, with commas between them: `su=64k,sw=4,noalign`. None: a key that takes no value.

    `refused` are further keys that the program knows, with what to do instead.
    """

    keys: Mapping[str, t.Optional[Kind]]
    refused: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False

    @property
    def wanted(self) -> str:
        """What it is, in words."""
        return f"some of {', '.join(self.keys)}, with commas between them"

    def why_not(self, text: str) -> t.Optional[str]:
        """Return what is wrong with a text, and what would be right; None for nothing."""
        seen: list[str] = []
        for word in text.split(","):
            key, equals, value = word.partition("=")
            says = why_no_option(self.keys, self.refused, key, value if equals else None)
            if says is not None:
                return says
            if key in seen:
                return f"has {key} twice"
            seen.append(key)
        return None


Kind = t.Union[Value, Listed, Keys]


def why_no_option(known: Mapping[str, t.Optional[Kind]], refused: Mapping[str, str], key: str, value: t.Optional[str]) -> t.Optional[str]:
    """Return what is wrong with `key` or `key=value` where these keys are known; None for nothing."""
    if key in refused:
        return f"has {key}: {refused[key]}"
    if key not in known:
        return f"has {shown(key)}, {not_among(key, known)}"
    kind = known[key]
    if value is None:
        return None if kind is None or kind.optional else f"has {key} without a value; it must be {kind.wanted}"
    if kind is None:
        return f"has {key} with a value, which it does not take"
    says = kind.why_not(value)
    return f"has {key}, which {says}" if says is not None else None


def not_among(word: str, known: Iterable[str]) -> str:
    """Return what to say of a word that is not among these: all of them where they are few, else those that are like it."""
    known = tuple(known)
    if len(known) <= _FEW:
        return f"which is not one of {', '.join(known)}"
    # Hosts import it only where it is used.
    import difflib

    close = difflib.get_close_matches(word[:_SHOWN], known, n=3)
    return f"which is not allowed here{f'; did you mean {close[0]}?' if close else ''}"


def whole(least: int, most: int) -> Value:
    """A whole number within bounds."""
    return Value(f"a whole number from {least} to {most}", r"[0-9]{1,20}", least, most)


def decimal(least: float, most: float) -> Value:
    """A number within bounds that may have a decimal point."""
    return Value(f"a number from {least:g} to {most:g}", r"[0-9]{1,10}(\.[0-9]{1,10})?", least, most)


def size(suffixes: str, example: str) -> Value:
    """A size: a whole number with one of these letters behind it, or none."""
    return Value(f"a size such as {example}", rf"[1-9][0-9]{{0,19}}[{suffixes}]?")


def one_of(*words: str) -> Value:
    """One of some words."""
    return Value(words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}", "|".join(map(re.escape, words)))


def alike(kind: t.Optional[Kind], *names: str) -> dict[str, t.Optional[Kind]]:
    """Return options that take the same kind of value, None for those that take none."""
    return dict.fromkeys(names, kind)


def with_opposites(names: Iterable[str]) -> dict[str, t.Optional[Kind]]:
    """Return options without values, and those with `no` in front that switch them off."""
    return {option: None for name in names for option in (name, f"no{name}")}


TRUTH = one_of("0", "1")
POWER_SIZE = size("kKmMgGtT", "4096 or 64k")
OWNER = Value("a user and a group as numbers, such as 0:0", r"[0-9]{1,10}:[0-9]{1,10}")
