# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of text in columns, for the summaries of results."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...module_utils._data.words import visible


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str] = ()) -> str:
    """Return a table without lines; columns whose heads are among `right`, which are numbers, end below each other."""
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    lines = (
        "  ".join(cell.rjust(width) if name in right else cell.ljust(width) for cell, width, name in zip(row, widths, head))
        for row in (head, *rows)
    )
    return "\n".join(line.rstrip() for line in lines)
