# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a size of a space may be: MiB, or percent of what the space can have."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from ....module_utils._data.kinds import LARGEST_SIZE, Json, Kind, is_number, shown
from ....module_utils._data.units import NO_SIZE_PATTERN, SIZE_PATTERN, parse_mib
from ....module_utils._storage.units import KIB

_PERCENTAGE = re.compile(r"\s*(?P<number>[0-9]{1,15}(?:\.[0-9]{1,15})?)\s*%\s*")


@dataclass(frozen=True)
class Amount:
    """A size as it is written: `number` MiB, or percent of what a space can have."""

    number: Fraction
    relative: bool = False

    @property
    def percentage(self) -> str:
        """A percentage in words; nothing for MiB."""
        return f"{float(self.number):g} %" if self.relative else ""


class SpaceSize(Kind):
    """A size of a space; only a minimum may be nothing."""

    wanted = "a size: MiB as a number, text such as '50 GiB', '50G' or '30 %', or a yaql= expression that gives one of these"

    def __init__(self, *, zero: bool = False) -> None:
        self._zero = zero

    def read(self, value: t.Any) -> Amount:
        percentage = _PERCENTAGE.fullmatch(value) if isinstance(value, str) else None
        if percentage is not None:
            amount = Amount(Fraction(percentage["number"]), relative=True)
        elif isinstance(value, str) and not value.strip().startswith("-"):
            amount = Amount(parse_mib(value))
        elif is_number(value):
            amount = Amount(Fraction(value))
        else:
            self.refuse(value)
        if amount.number < 0:
            raise ValueError(f"is {shown(value)}; must be {'0' if self._zero else '1 MiB'} or more")
        if amount.number > LARGEST_SIZE:
            raise ValueError(f"is {shown(value)}; that is not a usable size")
        if not amount.number and not self._zero:
            raise ValueError("is 0; leave the space out if it is to have no room, or the key if there is no bound")
        return amount

    def json_schema(self) -> Json:
        number = {"type": "number", "maximum": LARGEST_SIZE} | ({"minimum": 0} if self._zero else {"exclusiveMinimum": 0})
        texts: list[Json] = [
            {"type": "string", "pattern": pattern} for pattern in (SIZE_PATTERN, r"^\s*[0-9]{1,15}(\.[0-9]{1,15})?\s*%\s*$")
        ]
        return {"anyOf": [number, *(text if self._zero else {**text, "not": {"pattern": NO_SIZE_PATTERN}} for text in texts)]}


class Kib(Kind):
    """A size in whole KiB of which `is_right` says whether it can be; a number without a unit is MiB, and `numbers` its JSON Schema."""

    def __init__(self, wanted: str, is_right: Callable[[int], bool], numbers: Json) -> None:
        self.wanted, self._is_right, self._numbers = f"{wanted}; a number without a unit is MiB", is_right, numbers

    def read(self, value: t.Any) -> int:
        """Return the KiB."""
        size = SpaceSize().read(value)
        in_kib = size.number * KIB
        if size.relative or in_kib.denominator != 1 or not self._is_right(int(in_kib)):
            self.refuse(value)
        return int(in_kib)

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        return {"anyOf": [self._numbers, text_of_size()]}


def powers_of_two(least: int, most: int) -> Json:
    """Return the JSON Schema of MiB that are powers of two; `least` and `most` are KiB, and powers of two."""
    return {"enum": [2**power / KIB for power in range(least.bit_length() - 1, most.bit_length())]}


def text_of_size() -> Json:
    """Return the JSON Schema of a size that is written as text, and not nothing."""
    return {"type": "string", "pattern": SIZE_PATTERN, "not": {"pattern": NO_SIZE_PATTERN}}
