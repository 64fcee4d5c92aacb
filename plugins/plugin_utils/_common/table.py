# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Text for a terminal: rows in columns, and sentences in lines, none longer than a terminal shows."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...module_utils._data.words import visible

WIDTH = 69
"""Columns of a line: 80 of a terminal, less the 11 that Ansible's default callback puts around a line of a list."""
_GAP = "  "
_INDENT = "    "
_SHORT = 24
"""Columns of a text that is not worth a second line."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str] = ()) -> str:
    """Return a table without lines; columns whose heads are among `right`, which are numbers, end below each other.

    A table that is too wide has its texts in several lines; one that is too wide even then has its last columns in lines of their own
    below the first ones.
    """
    cells = [[visible(cell) for cell in row] for row in (head, *rows)]
    columns = list(zip(*cells))
    natural = [max(map(len, column)) for column in columns]
    least = [_least(column, name in right, width) for name, column, width in zip(head, columns, natural)]
    bands = _bands(least if _total(least) <= WIDTH else natural)
    widths = [width for band in bands for width in _widths(band, natural, least)]
    lines = [line for row in cells for line in _row(row, bands, widths, [name in right for name in head])]
    return "\n".join(lines)


def _least(column: Sequence[str], is_number: bool, natural: int) -> int:
    """Return the width below which a column is not narrowed: words, short texts, and numbers below a head of several lines stay whole."""
    words = max(len(word) for cell in (column[:1] if is_number else column) for word in (*cell.split(), ""))
    return max([words, *map(len, column[1:])]) if is_number else min(natural, max(words, _SHORT))


def folded(text: str) -> str:
    """Return a text whose lines are no longer than a terminal shows, except those with a single longer word."""
    return "\n".join(part for line in text.split("\n") for part in _folded(line))


def wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    """Return the words of a text in lines; the first line begins with `first`, all others with `rest`.

    The beginning of a line is shortened where a word would not fit behind it.
    """
    lines, line, begun = [], first, False
    for word in text.split():
        if begun and len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line, begun = rest, False
        if not begun and len(line) + len(word) > WIDTH:
            lines += [line.rstrip()] if line is first and line.strip() else []
            line = rest[: max(0, WIDTH - len(word))]
        line += f" {word}" if begun else word
        begun = True
    return [*lines, line.rstrip()]


def _folded(line: str) -> list[str]:
    if len(line) <= WIDTH:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    return wrapped(line, indent, indent + _GAP)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _bands(widths: Sequence[int]) -> list[range]:
    """Return the columns that stand side by side, band by band; the bands stand below each other."""
    bands = [range(0)]
    for column in range(len(widths)):
        band = range(bands[-1].start, column + 1)
        room = WIDTH - (len(_INDENT) if len(bands) > 1 else 0)
        if bands[-1] and _total([widths[one] for one in band]) > room:
            bands.append(range(column, column + 1))
        else:
            bands[-1] = band
    return bands


def _widths(band: range, natural: Sequence[int], least: Sequence[int]) -> list[int]:
    """Return the widths of the columns of a band; the widest texts are narrowed until all fit."""
    widths = [natural[column] for column in band]
    while _total(widths) > WIDTH - (len(_INDENT) if band.start else 0):
        _width, widest = max((width, at) for at, width in enumerate([*widths, 0]) if at == len(widths) or width > least[band[at]])
        if widest == len(widths):
            break
        widths[widest] -= 1
    return widths


def _row(row: Sequence[str], bands: Sequence[range], widths: Sequence[int], right: Sequence[bool]) -> list[str]:
    lines = []
    for band in bands:
        texts = [_in_column(row[column], widths[column]) for column in band]
        for number in range(max(map(len, texts))):
            parts = [text[number] if number < len(text) else "" for text in texts]
            shown = [part.rjust(widths[at]) if right[at] else part.ljust(widths[at]) for at, part in zip(band, parts)]
            lines += _folded(((_INDENT if band.start else "") + _GAP.join(shown)).rstrip())
    return [line for at, line in enumerate(lines) if line or not at]


def _in_column(cell: str, width: int) -> list[str]:
    """Return the lines of a cell in a column of that width."""
    if len(cell) <= width:
        return [cell]
    lines = [""]
    for word in cell.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
