# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Loads as people write them: by the names of instances or nodes, mappings of cpu, memory, disk and net."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence

from ...common.errors import Mistakes, suggest
from .model import Load

_LOAD_FIELDS = ("cpu", "memory", "disk", "net")


def read_loads(
    arguments: Mapping[str, t.Any],
    option: str,
    known: Sequence[str],
    kind: str,
    mistakes: Mistakes,
) -> dict[str, Load]:
    """Return the loads of an option by name; add a mistake for every unknown name and every part that is no number."""
    found = {}
    names = set(known)
    for name, given in (arguments.get(option) or {}).items():
        place = f"{option}[{name}]"
        if name not in names:
            mistakes.add(place, f"unknown {kind}{suggest(str(name), known)}")
        if not isinstance(given, Mapping):
            mistakes.add(place, f"is {given!r}; must be a mapping of {', '.join(_LOAD_FIELDS)}")
            continue
        found[name] = _load(place, given, mistakes)
    return found


def _load(place: str, given: Mapping[str, t.Any], mistakes: Mistakes) -> Load:
    """Return a load; parts that were not measured are 0."""
    parts = dict.fromkeys(_LOAD_FIELDS, 0.0)
    for name, value in given.items():
        if name not in parts:
            mistakes.add(f"{place}.{name}", f"is not known here{suggest(str(name), _LOAD_FIELDS)}")
            continue
        try:
            parts[name] = float(value)
        except (TypeError, ValueError):
            mistakes.add(f"{place}.{name}", f"is {value!r}; must be a number")
            continue
        if not 0 <= parts[name] < float("inf"):
            mistakes.add(f"{place}.{name}", f"is {value!r}; must be 0 or more")
    return Load(**parts)
