# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a sound input is damaged: somewhere within plain data, somewhere within text, or within the JSON that a text holds."""

from __future__ import annotations

import copy
import json
import random
import typing as t

ODD = (
    *(None, True, False, -1, 0, 1, 5, 0.5, 1e22, 2**31, 2**53, 2**64, 10**400, -(10**400), float("nan"), float("inf"), float("-inf")),
    *("", " ", "x", "5", "-5 GiB", "10G", "30 %", "1" * 5000, "x" * 300, "/", "/a b", "/" + "a" * 300, "..", "-n", "--help", "a/b", "a\nb"),
    *("yaql=null", "yaql=$.disks.where(regex('[').matches($.id))", "yaql=(" * 200, "*", "[", "(?P<", "\\", "%s", "{{ 1 }}", "~nobody/x"),
    *(
        "all",
        "none",
        "raid1",
        "lv",
        "sda",
        "\x00",
        "\ud800",
        "\u202e",
        "ÿ" * 200,
        "f743c90f-45d7-5765-af56-12889982af99",
        "Infinity",
        "1e999",
    ),
    *([], {}, [[]], [None], [1], ["x"], {"id": None}, {"id": ["x"]}, {"a": {"b": []}}, (1,), {1: 2}, {None: 1}, {"": ""}),
)
_TEXTS = tuple(value for value in ODD if isinstance(value, str))
_LETTERS = (
    "\n",
    "\t",
    "\x00",
    ",",
    ";",
    ":",
    "|",
    "=",
    "/",
    "-",
    "[",
    "]",
    "{",
    "}",
    '"',
    "'",
    "\\",
    "#",
    "9",
    "Ω",
    "\u202e",
    "\ud800",
    " - ",
)
_MOST_CHANGES = 3


class BytesDraw(random.Random):
    """Draws from given bytes instead of a seed, so that bytes which differ a little make damages that differ a little."""

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self._left = data

    def getrandbits(self, count: int, /) -> int:
        """Return as many bits of the bytes that are left; all zero at their end."""
        length = (count + 7) // 8
        taken, self._left = self._left[:length], self._left[length:]
        return int.from_bytes(taken, "little") & ((1 << count) - 1)

    def random(self) -> float:
        """Return a number of the next two bytes."""
        return self.getrandbits(16) / 2**16


def mutate(draw: random.Random, sound: t.Any) -> t.Any:
    """Return an input with a few damages; text stays text, and what else there is plain data."""
    if isinstance(sound, str):
        return _damaged_text(draw, sound)
    damaged = copy.deepcopy(sound)
    for _change in range(draw.randint(1, _MOST_CHANGES)):
        damaged = _changed(draw, damaged, draw.choice(_places(damaged)))
    return damaged


def _places(data: t.Any, place: tuple[t.Any, ...] = ()) -> list[tuple[t.Any, ...]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [place, *(found for key, item in items for found in _places(item, (*place, key)))]


def _at(data: t.Any, place: tuple[t.Any, ...]) -> t.Any:
    for key in place:
        data = data[key]
    return data


def _changed(draw: random.Random, data: t.Any, place: tuple[t.Any, ...]) -> t.Any:
    if not place:
        return draw.choice(ODD) if draw.random() < 0.1 else data
    holder, key = _at(data, place[:-1]), place[-1]
    how = draw.randrange(7)
    if how == 0 and isinstance(holder, dict):
        del holder[key]
    elif how == 1 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    elif how == 2:
        holder[key] = copy.deepcopy(_at(data, draw.choice(_places(data))))
    elif how == 3 and isinstance(holder, dict):
        holder[draw.choice([*_TEXTS, "id", "name", "size", 5, None])] = holder.pop(key)
    elif how == 4 and isinstance(holder[key], str):
        holder[key] = _damaged_text(draw, holder[key])
    elif how == 5:
        holder[key] = [holder[key]]
    else:
        holder[key] = copy.deepcopy(draw.choice(ODD))
    return data


def _damaged_text(draw: random.Random, text: str) -> str:
    try:
        data = json.loads(text) if text[:1] in "{[" and draw.random() < 0.7 else None
    except ValueError:
        data = None
    if data:
        return json.dumps(mutate(draw, data), default=str, skipkeys=True)
    for _change in range(draw.randint(1, _MOST_CHANGES)):
        text = draw.choice((_without_a_part, _with_letters, _with_lines_changed, _with_a_word_changed))(draw, text)
    return text


def _without_a_part(draw: random.Random, text: str) -> str:
    start = draw.randint(0, len(text))
    return text[:start] + text[start + draw.choice((1, 1, 5, 50, len(text))) :]


def _with_letters(draw: random.Random, text: str) -> str:
    start = draw.randint(0, len(text))
    return text[:start] + draw.choice(_LETTERS) * draw.choice((1, 1, 1, 300)) + text[start:]


def _with_lines_changed(draw: random.Random, text: str) -> str:
    lines = text.split("\n")
    one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[one], lines[other] = draw.choice(((lines[other], lines[one]), (lines[other], lines[other]), ("", lines[other])))
    return "\n".join(lines)


def _with_a_word_changed(draw: random.Random, text: str) -> str:
    for mark in draw.sample(("|", ",", " ", "\n", "=", ":"), 6):
        words = text.split(mark)
        if len(words) > 1:
            words[draw.randrange(len(words))] = draw.choice(_TEXTS)
            return mark.join(words)
    return draw.choice(_TEXTS)
