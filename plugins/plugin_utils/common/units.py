# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sizes: text to MiB and back. A number without a unit is MiB, as everywhere in the collection."""

from __future__ import annotations

import re
from fractions import Fraction

MIB = 1024**2

_DECIMAL = {unit: 1000**power for power, unit in enumerate(["B", "KB", "MB", "GB", "TB", "PB", "EB"])}
_BINARY = {unit: 1024**power for power, unit in enumerate(["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"], start=1)}
UNITS = {**_DECIMAL, **_BINARY}
_BY_FOLDED_NAME = {unit.lower(): size for unit, size in UNITS.items()}
_SIZE = re.compile(r"^\s*(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[A-Za-z]*)\s*$")


def parse_bytes(text: str) -> Fraction:
    """Return the exact number of bytes of a size such as `50 GiB`, `2 TB` or `512` (MiB).

    Raises ValueError with a sentence when the text is no size.
    """
    match = _SIZE.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size; write MiB as a number, or a number with a unit such as '50 GiB' or '2 TB'")
    unit = match["unit"].lower() or "mib"
    if unit not in _BY_FOLDED_NAME:
        raise ValueError(f"{text!r} has the unknown unit {match['unit']}; known are {', '.join(UNITS)}")
    return Fraction(match["number"]) * _BY_FOLDED_NAME[unit]


def parse_mib(text: str) -> Fraction:
    """Return the exact number of MiB of a size; see parse_bytes."""
    return parse_bytes(text) / MIB


def format_mib(mib: float) -> str:
    """Return MiB as a person reads them: `512 MiB`, `50 GiB`, `1.82 TiB` (three significant digits, no trailing zeros)."""
    value = float(mib)
    for unit in ("MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            break
        value /= 1024
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = f"{value:.{decimals}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"{text} {unit}"
