# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One item of a schema as its table has read it: values by key, its place, and what is wrong with several of them together."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Iterator

from .._data.containers import Values
from .._data.errors import Mistakes

Found = tuple[str, str]
"""A place in the schema, and what is wrong there."""


class Entry:
    """An item and its place (`parteds[1].partitions[0]`); a value that is wrong reads as its default, or as nothing."""

    def __init__(self, values: Values, place: str, mistakes: Mistakes) -> None:
        self.place = place
        self._values, self._mistakes = values, mistakes

    def __getitem__(self, key: str) -> t.Any:
        return self._values[key]

    def mistake(self, key: str, says: t.Optional[str]) -> None:
        """Remember what is wrong with a value; None for nothing."""
        if says is not None:
            self._mistakes.add(f"{self.place}.{key}", says)

    def is_right(self, *keys: str) -> bool:
        """Return whether nothing is known to be wrong with these values, with what lies in them, or with the whole item."""
        return not self._mistakes or not any(self._mistakes.concern(f"{self.place}.{key}") for key in keys)

    def items(self, key: str) -> tuple[Entry, ...]:
        """Return the items of a list."""
        place = f"{self.place}.{key}" if self.place else key
        return tuple(Entry(values, f"{place}[{at}]", self._mistakes) for at, values in enumerate(self._values[key]))

    @property
    def space(self) -> str:
        """The id of the item's space, else the last part of its name, or of its device's name."""
        name = self["space_id"] or self._values.get("name") or self._values.get("device") or ""
        return str(self["space_id"] or name.rsplit("/", 1)[-1])


def doubles(key: str, named: Iterable[tuple[str, t.Any]]) -> Iterator[Found]:
    """Give names that are there twice."""
    first: dict[t.Any, str] = {}
    for place, name in named:
        if first.setdefault(name, place) != place:
            yield f"{place}.{key}", f"{name} is already that of {first[name]}"
