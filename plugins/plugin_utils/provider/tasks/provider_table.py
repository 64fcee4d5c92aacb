# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who uses what, as a table to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..world.model import Provider

_HEAD = ("provider", "class", "used", "capacity", "free", "consumers")


def summary(
    providers: Sequence[Provider],
    usages: Mapping[str, Mapping[str, Mapping[str, int]]],
    allocations: Mapping[str, Mapping[str, Mapping[str, int]]],
) -> str:
    """Return one line for each inventory, below its provider's name; providers come before those below them."""
    depths: dict[str | None, int] = {None: -1}
    rows: list[Sequence[str]] = [_HEAD]
    for provider in providers:
        depths[provider.uuid] = depths[provider.parent] + 1
        label = "  " * depths[provider.uuid] + provider.name
        for name, amounts in usages[provider.uuid].items():
            users = sum(1 for held in allocations.get(provider.uuid, {}).values() if name in held)
            rows.append((label, name, *(str(amounts[key]) for key in ("used", "capacity", "free")), str(users)))
            label = ""
        if label:
            rows.append((label, "", "", "", "", ""))
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return "\n".join(_line(row, widths) for row in rows)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    texts = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
    numbers = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
    return "  ".join([*texts, *numbers]).rstrip()
