# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sizes of Bareon's hand-written schema: amounts with units, shares, and what remains."""

from __future__ import annotations

import math
import re
import typing as t
from dataclasses import dataclass
from fractions import Fraction

MIB = 1024**2
SECTOR = 512

_PREFIXES = "KMGTPEZY"
_UNITS = {
    "b": 1,
    "s": SECTOR,
    **{f"{prefix.lower()}b": 1000**power for power, prefix in enumerate(_PREFIXES, start=1)},
    **{f"{prefix.lower()}ib": 1024**power for power, prefix in enumerate(_PREFIXES, start=1)},
}
_SIZE = re.compile(r"^\s*(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[A-Za-z]*|%)\s*$")
_REMAINING = "remaining"


@dataclass(frozen=True)
class Size:
    """An `amount` in MiB or a `share` in percent; neither for what remains."""

    amount: t.Optional[Fraction] = None
    share: t.Optional[Fraction] = None

    @property
    def remaining(self) -> bool:
        """Whether it is all that the others leave."""
        return self.amount is None and self.share is None

    def within(self, room: int, step: int = 1) -> int:
        """Return the MiB, a multiple of `step`, where `room` MiB are shared: amounts rounded up, shares down, 0 for what remains."""
        if self.amount is not None:
            return math.ceil(self.amount / step) * step
        return math.floor((self.share or Fraction(0)) * room / 100 / step) * step


REMAINING = Size()


def parse_size(value: t.Any) -> Size:
    """Return a size; without a unit it is MiB, `s` are sectors of 512 bytes. Raises ValueError with a sentence when it is none."""
    if isinstance(value, str) and value.strip().lower() == _REMAINING:
        return REMAINING
    text = str(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else ""
    match = _SIZE.match(text)
    if match is None:
        raise ValueError(f"{value!r} is no size; write '50 GiB', '2 TB', '40%', 'remaining', or a number of MiB")
    number, unit = Fraction(match["number"]), match["unit"].lower()
    if number == 0:
        raise ValueError(f"{value!r} is no size to make anything of; leave the entry out")
    if unit == "%":
        if number > 100:
            raise ValueError(f"{value!r} is more than all; at most 100% can be shared")
        return Size(share=number)
    if unit and unit not in _UNITS:
        raise ValueError(f"{value!r} has the unknown unit {match['unit']!r}; known are %, s, B, KB to YB and KiB to YiB")
    return Size(amount=number * _UNITS[unit or "mib"] / MIB)
