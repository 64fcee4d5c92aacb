# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sizes: text to MiB and back. A number without a unit is MiB, as everywhere in the collection.

A letter alone (`10G`) and the spelling with `i` (`10 GiB`) are powers of 1024, as LVM, sfdisk and disko have them; a letter with a
mere B (`10 GB`) is a power of 1000, as it is printed on disks. Case does not matter.
"""

from __future__ import annotations

import functools
import re
import typing as t

if t.TYPE_CHECKING:
    from fractions import Fraction

MIB = 1024**2

_LETTERS = "KMGTPE"
UNITS = {
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate(_LETTERS, start=1)},
    **{f"{letter}{rest}": 1024**power for power, letter in enumerate(_LETTERS, start=1) for rest in ("", "iB")},
}
_BY_FOLDED_NAME = {unit.lower(): size for unit, size in UNITS.items()}
_SIZE = re.compile(r"\s*(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[A-Za-z]*)\s*", re.ASCII)
_LONGEST = 100
"""No size that means anything has as many characters."""

_BLANKS = "[ \\t\\n\\r\\f\\v]*"
SIZE_PATTERN = rf"^{_BLANKS}[0-9]+(\.[0-9]+)?{_BLANKS}([KkMmGgTtPpEe]([Ii]?[Bb])?|[Bb])?{_BLANKS}$"
"""What parse_bytes takes, as a regular expression of JSON Schema, whose own class of blanks has more than those of ASCII."""
NO_SIZE_PATTERN = rf"^{_BLANKS}0+(\.0+)?{_BLANKS}([KkMmGgTtPpEe]([Ii]?[Bb])?|[Bb]|%)?{_BLANKS}$"
"""Sizes and percentages that are nothing."""


@functools.lru_cache(maxsize=1024)
def parse_bytes(text: str) -> Fraction:
    """Return the exact number of bytes of a size such as `50 GiB`, `50G`, `2 TB` or `512` (MiB).

    Raises ValueError with a sentence when the text is no size.
    """
    match = _SIZE.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        shown = repr(text) if len(text) <= _LONGEST else "a long text"
        raise ValueError(f"{shown} is not a size; write MiB as a number, or a number with a unit such as '50 GiB', '50G' or '2 TB'")
    unit = match["unit"].lower() or "mib"
    if unit not in _BY_FOLDED_NAME:
        raise ValueError(f"{text!r} has the unknown unit {match['unit']}; known are {', '.join(UNITS)}")
    # Loaded here because it is dear (it brings `decimal`), and clusters are read whose sizes are all numbers.
    from fractions import Fraction

    return Fraction(match["number"]) * _BY_FOLDED_NAME[unit]


@functools.lru_cache(maxsize=1024)
def parse_mib(text: str) -> Fraction:
    """Return the exact number of MiB of a size; see parse_bytes."""
    return parse_bytes(text) / MIB


def mib_or_nothing(value: object) -> float:
    """Return a size, as a number of MiB or as text, in MiB; 0 for anything else."""
    try:
        return float(parse_mib(value)) if isinstance(value, str) else float(value) if isinstance(value, (int, float)) else 0.0
    except (ValueError, OverflowError):
        return 0.0


def with_percentage(mib: int, percentage: str) -> str:
    """Return MiB in words; with the percentage that they were written as, where they were."""
    return f"{percentage} ({mib} MiB)" if percentage else f"{mib} MiB"


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
