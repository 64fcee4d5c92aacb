# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values of the schema's keys: sizes, shares, flags and text, each checked at its place."""

from __future__ import annotations

import math
import re
import typing as t
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from ...common.errors import Mistakes, suggest
from ...common.units import parse_mib
from .hardware import kind_of

_PERCENTAGE = re.compile(r"^\s*(?P<number>[0-9]+(?:\.[0-9]+)?)\s*%\s*$")
_LEAST_WEIGHT, _GREATEST_WEIGHT = 1e-6, 1e6
_SIZE_HINT = (
    "write MiB as a number, text with a unit such as '50 GiB', a percentage such as '30 %', or a yaql= expression that gives one of these"
)


@dataclass(frozen=True)
class Bounds:
    """What `size`, `min_size` and `max_size` come to, in whole MiB; None for no maximum.

    `contradictory` when the minimum is over the maximum.
    """

    least: int = 0
    most: int | None = None

    @property
    def contradictory(self) -> bool:
        return self.most is not None and self.least > self.most


class Entry:
    """One entry of the schema with all expressions evaluated.

    Every method returns a key's value or, after noting a mistake, the default.
    """

    def __init__(self, values: Mapping[str, t.Any], place: str, mistakes: Mistakes) -> None:
        self._values = values
        self.place = place
        self._mistakes = mistakes

    def __contains__(self, key: str) -> bool:
        return self._values.get(key) is not None

    def wrong(self, key: str, says: str) -> None:
        """Note a mistake of one key."""
        self._mistakes.add(f"{self.place}.{key}", says)

    def raw(self, key: str) -> t.Any:
        """Return the value as it is; None when there is none."""
        return self._values.get(key)

    def text(self, key: str) -> str | None:
        """Return a text that is not empty."""
        value = self.raw(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            self.wrong(key, f"is {kind_of(value) if value != '' else 'empty'}, but must be text")
            return None
        return str(value).strip()

    def flag(self, key: str) -> bool:
        """Return a boolean, by default False."""
        value = self.raw(key)
        if value is not None and not isinstance(value, bool):
            self.wrong(key, f"{value!r} must be true or false")
            return False
        return bool(value)

    def count(self, key: str, least: int) -> int | None:
        """Return a whole number of at least `least`."""
        value = self.raw(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.wrong(key, f"{value!r} must be a whole number, {least} or more")
            return None
        return int(value)

    def one_of(self, key: str, known: Iterable[str]) -> str | None:
        """Return one of the known words."""
        value = self.raw(key)
        words = list(known)
        if value is not None and value not in words:
            self.wrong(key, f"{value!r} is unknown; it is one of {', '.join(words)}{suggest(str(value), words)}")
            return None
        return None if value is None else str(value)

    def weight(self) -> float:
        """Return the weight, by default 1."""
        value = self.raw("weight")
        if value is None:
            return 1.0
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            self.wrong("weight", f"{value!r} must be a number, 0 or more")
            return 1.0
        if value < 0:
            self.wrong("weight", f"{value} is negative; 0 is a space that never grows")
            return 1.0
        if value and not _LEAST_WEIGHT <= value <= _GREATEST_WEIGHT:
            self.wrong("weight", f"{value} is out of range; it is 0, or from {_LEAST_WEIGHT} to {_GREATEST_WEIGHT:.0f}")
            return 1.0
        return float(value)

    def bounds(self, whole: int) -> Bounds:
        """Return the bounds; percentages are of `whole` MiB. A minimum is rounded up, a maximum down, an exact size to the nearest MiB."""
        if "size" in self:
            doubled = [key for key in ("min_size", "max_size") if key in self]
            if doubled:
                self.wrong("size", f"fixes both bounds; drop it or {' and '.join(doubled)}")
                return Bounds()
            exact = self._amount("size", whole)
            if exact is None:
                return Bounds()
            rounded = max(1, math.floor(exact + Fraction(1, 2)))
            return Bounds(rounded, rounded)
        least, most = self._amount("min_size", whole), self._amount("max_size", whole)
        lower = 0 if least is None else math.ceil(least)
        if most is None:
            return Bounds(lower)
        between_two_mib = least is not None and least <= most and lower > math.floor(most)
        return Bounds(lower, lower if between_two_mib else math.floor(most))

    def _amount(self, key: str, whole: int) -> Fraction | None:
        value = self.raw(key)
        if value is None:
            return None
        try:
            amount = _to_mib(value, whole)
        except ValueError as error:
            self.wrong(key, str(error))
            return None
        if amount < 0:
            self.wrong(key, f"{value} is negative; a size is {'1 MiB' if key != 'min_size' else '0'} or more")
            return None
        if amount == 0 and key != "min_size":
            self.wrong(key, "is 0; leave the space out if it is to have no room, or the key if there is no bound")
            return None
        return amount


def _to_mib(value: t.Any, whole: int) -> Fraction:
    if isinstance(value, str):
        percentage = _PERCENTAGE.match(value)
        if percentage:
            return Fraction(percentage["number"]) * whole / 100
        if value.strip().startswith("-"):
            return -_to_mib(value.strip()[1:], whole)
        return parse_mib(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{_shown(value)} is not a size; {_SIZE_HINT}")
    return Fraction(value)


def _shown(value: t.Any) -> str:
    return repr(value) if isinstance(value, (bool, int, float)) else kind_of(value)
