# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the command line of a program that makes file systems is read: option by option, so that nothing else can stand on it."""

from __future__ import annotations

import shlex
import typing as t
from collections.abc import Mapping
from dataclasses import dataclass, field

from .values import Keys, Kind, Listed, shown

NOTHING_ELSE = "the program is run on the devices of the schema alone"
LABEL = "the label is fs_label"
UUID = "the identity follows from the plan; a static schema may give it as uuid"
FORCE = "what is on the device is cleared before, where wipe allows it, and the program is to refuse all else; leave it out"
DRY_RUN = "nothing would be made; check mode says what would be"
QUIET = "what the program prints is shown where it fails; leave it out"
WHOLE_DEVICE = "the file system takes the whole of its space; give the space its size by size"
NO_FILES = "nothing is read from files of the host; mount the file system, and copy them"
OTHER_DEVICE = (
    "a file system lies on the device of its space alone; a fast disk helps as a space of its own: cache_of an lv, or log_of or cache_of a"
    " zpool"
)


@dataclass(frozen=True)
class Refused:
    """An option that the program has and that is not given here: what to do instead, and whether a value stands behind it."""

    instead: str
    with_value: bool = False


@dataclass(frozen=True)
class Program:
    """The options of a program. `flags` are those that may be given, with the kinds of their values, None for those that take none.

    `spellings` are other names of them.
    """

    name: str
    flags: Mapping[str, t.Optional[Kind]]
    refused: Mapping[str, Refused]
    spellings: Mapping[str, str] = field(default_factory=dict)

    def read(self, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the words for the command line, each option apart from its value, and a sentence for each that is refused."""
        try:
            given = shlex.split(text)
        except ValueError as error:
            return (), (f"cannot be split into words: {error}",)
        words: list[str] = []
        mistakes: list[str] = []
        while given:
            word = given.pop(0)
            if word.startswith("--") and len(word) > len("--"):
                flag, equals, attached = word.partition("=")
                self._take(flag, attached if equals else None, given, words, mistakes)
            elif word.startswith("-") and len(word) > 1 and word != "--":
                rest = word[1:]
                while rest:
                    flag, rest = f"-{rest[0]}", rest[1:]
                    if self._takes_value(flag):
                        self._take(flag, rest or None, given, words, mistakes)
                        rest = ""
                    else:
                        self._take(flag, None, given, words, mistakes)
            else:
                mistakes.append(f"{shown(word)} is no option of {self.name}; {NOTHING_ELSE}")
        return tuple(words), tuple(mistakes)

    def _takes_value(self, flag: str) -> bool:
        name = self.spellings.get(flag, flag)
        if name in self.refused:
            return self.refused[name].with_value
        return self.flags.get(name) is not None or name not in self.flags

    def _take(self, flag: str, attached: t.Optional[str], given: list[str], words: list[str], mistakes: list[str]) -> None:
        """Add an option and its value, which is taken off `given` unless it is attached, to `words`, or what is wrong with it."""
        name = self.spellings.get(flag, flag)
        kind = self.flags.get(name)
        value = attached
        if value is None and self._takes_value(flag) and given and (name in self.flags or not given[0].startswith("-")):
            value = given.pop(0)
        if name in self.refused:
            mistakes.append(f"{flag} is not given to {self.name} here: {self.refused[name].instead}")
        elif name not in self.flags:
            mistakes.append(f"{shown(flag)} is not an option of {self.name} that can be given; there are {', '.join(self.flags)}")
        elif kind is None and value is not None:
            mistakes.append(f"{flag} of {self.name} takes no value, not {shown(value)}")
        elif kind is None:
            words.append(name)
        elif value is None:
            mistakes.append(f"{flag} of {self.name} has no value; it must be {kind.wanted}")
        else:
            says = kind.why_not(value)
            if says is None and name in words and not isinstance(kind, (Keys, Listed)):
                says = "is given twice"
            if says is not None:
                mistakes.append(f"{flag} of {self.name} {says}")
            else:
                words += [name, value]
