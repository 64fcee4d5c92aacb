# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A wanted line of fstab or crypttab, from the present line, the host's record, and the options of this run.

A line keeps what it has. The host remembers each line that was written, and which of its words came from an option of a run: a run that
lacks the option changes nothing, one that gives it again takes away what the option asked for before.
"""

from __future__ import annotations

import json
import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ....module_utils._storage.boot_tables import BOOT_SETTINGS
from ....module_utils._storage.options.words import TAKE_AWAY, merged, words_of

KINDS = ("mounts", "swaps", "containers")

_LAYOUT, _SCHEMA = "the layout", "the schema"


@dataclass(frozen=True)
class Remembered:
    """What the host remembers of a line: its options, its key file, and the words that came from options of a run, by option."""

    options: str = ""
    key_file: str = ""
    given: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def together_with(self, before: Remembered | None) -> Remembered:
        """Return what is remembered until the line is written: then a run that was cut off knows of its words that an option gave them."""
        if before is None:
            return self
        options = dict.fromkeys((*before.given, *self.given))
        given = {option: tuple(dict.fromkeys((*before.given.get(option, ()), *self.given.get(option, ())))) for option in options}
        return Remembered(before.options, before.key_file, given)


Memory = Mapping[str, Mapping[str, Remembered]]
"""By kind of line, and by mount point, device or container."""


@dataclass(frozen=True)
class Asked:
    """What is asked of the options of a line.

    `fresh` holds where there is no line yet, `layout` follows from the layout, `schema` is written in it (with words that take something
    away), `given` comes from options of the run by their names; None: that option was not given.
    """

    fresh: tuple[str, ...] = ()
    layout: tuple[str, ...] = ()
    schema: tuple[str, ...] = ()
    given: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Settled:
    """The words of a line, where each comes from, and which of them the host has to remember as given by options."""

    words: tuple[str, ...]
    origins: Mapping[str, str]
    given: Mapping[str, tuple[str, ...]]


def settle(table: str, present: Sequence[str] | None, remembered: Remembered | None, asked: Asked) -> Settled:
    """Return what a line is to say; `present` are the words that it has in `table`, None where there is no line."""
    old = remembered.given if remembered is not None else {}
    base = present if present is not None else words_of(remembered.options) if remembered is not None else None
    wanted = dict.fromkeys(asked.fresh, _LAYOUT) if base is None else {}
    wanted |= {**dict.fromkeys(asked.layout, _LAYOUT), **dict.fromkeys(asked.schema, _SCHEMA)}
    taken_back: list[str] = []
    given: dict[str, tuple[str, ...]] = {}
    for option, words in asked.given.items():
        before = old.get(option, ())
        if words is None:
            given[option] = before
            continue
        wanted |= dict.fromkeys(words, option)
        taken_back += [word for word in before if word not in words]
        given[option] = tuple(word for word in words if not word.startswith(TAKE_AWAY) and (word in before or word not in (base or ())))
    gone = [f"{TAKE_AWAY}{word}" for word in taken_back if word not in wanted]
    found = tuple(merged(base or (), [*gone, *wanted]))
    earlier = {word: f"{option} of an earlier run" for option, words in old.items() for word in words}
    unasked = table if present is not None else BOOT_SETTINGS
    origins = {word: wanted.get(word) or earlier.get(word, unasked) for word in found}
    return Settled(found, origins, {option: words for option, words in given.items() if words})


def read_boot_settings(text: str) -> dict[str, dict[str, Remembered]]:
    """Return the host's record; nothing for text that is none: the lines of its tables count, whatever the record says."""
    try:
        raw = json.loads(text or "{}")
    except (ValueError, RecursionError):
        raw = {}
    found = raw if isinstance(raw, dict) else {}
    return {kind: {str(name): _remembered(one) for name, one in _entries(found.get(kind)).items()} for kind in KINDS}


def write_boot_settings(memory: Memory) -> str:
    """Return the text of what a host is to remember."""
    plain = {kind: {name: _plain(one) for name, one in memory[kind].items()} for kind in KINDS if memory.get(kind)}
    return json.dumps(plain, indent=1, sort_keys=True) + "\n" if plain else ""


def _entries(raw: t.Any) -> Mapping[t.Any, t.Any]:
    return raw if isinstance(raw, dict) else {}


def _remembered(raw: t.Any) -> Remembered:
    entry = _entries(raw)
    given = {str(option): tuple(map(str, words)) for option, words in _entries(entry.get("given")).items() if isinstance(words, list)}
    texts = {key: entry[key] for key in ("options", "key_file") if isinstance(entry.get(key), str)}
    return Remembered(**texts, given=given)


def _plain(one: Remembered) -> dict[str, t.Any]:
    given = {option: list(words) for option, words in one.given.items()}
    return {"options": one.options, **({"key_file": one.key_file} if one.key_file else {}), **({"given": given} if given else {})}
