# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records as a program writes them: all fields at once when every type is the usual one.

Clusters have thousands of records, nearly all of them sound. Looking at each field on its own, as `Fields` does, takes
several times as long as reading them; so that is only done with a record that has not the usual shape, to read it
all the same or to say what is wrong with it.
"""

from __future__ import annotations

import operator
import typing as t
from collections.abc import Mapping


class Shape:
    """Two or more fields with the type of each, exactly; a bool is no int. Fields with a default may be missing."""

    def __init__(self, types: Mapping[str, type], defaults: Mapping[str, t.Any]) -> None:
        self._pick = operator.itemgetter(*types)
        self._names = frozenset(types)
        self._types = tuple(types.values())
        self._defaults = dict(defaults)

    def read(self, record: t.Any) -> tuple[t.Any, ...] | None:
        """Return the values in the order of the types, or None when the record has another shape."""
        values = self._picked(record)
        return values if values is not None and tuple(map(type, values)) == self._types else None

    def _picked(self, record: t.Any) -> tuple[t.Any, ...] | None:
        if record.__class__ is not dict:
            return None
        try:
            picked: tuple[t.Any, ...] = self._pick(record)
        except KeyError:
            complete = {**self._defaults, **record}
            return self._pick(complete) if complete.keys() >= self._names else None
        return picked
