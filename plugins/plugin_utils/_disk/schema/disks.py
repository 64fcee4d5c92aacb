# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sets of disks: what `disks`, `avoid_disks` and `best_with_disks` name -> positions in Hardware.disks.

A set is written as a query (`yaql=...` giving disks), as a list of ids, or as a list of disks as the facts have them. For
`best_with_disks` a list of queries means tiers: the first is liked best.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping, Sequence

from ....module_utils._data.errors import suggest
from ....module_utils._data.kinds import kind_of
from ....module_utils._data.words import listed
from ..model import Disk, Hardware, LeftOutDisk
from .yaql import is_expression

_MOST_NAMES = 6


class UnknownDisk(ValueError):
    """A value that does not name disks of the machine; the text says what would."""


class LeftOut(UnknownDisk):
    """A disk that the machine has and that the plan leaves alone."""

    def __init__(self, one: LeftOutDisk) -> None:
        asking = f"; add {', '.join(one.kinds)} to eligible to use it" if one.kinds else ""
        super().__init__(f"{one.disk.id} {one.reason}, so it is left out of plans{asking}")


class DiskNames:
    """Finds disks by every name that the facts know them by; ids go before other names."""

    def __init__(self, hardware: Hardware) -> None:
        self._ids = [disk.id for disk in hardware.disks]
        self._positions: dict[str, int] = {}
        for position, disk in enumerate(hardware.disks):
            for name in _other_names(disk):
                self._positions.setdefault(name, position)
        self._positions.update({disk_id: position for position, disk_id in enumerate(self._ids)})
        self._left_out = {name: one for one in hardware.left_out for name in (*_other_names(one.disk), one.disk.id)}

    def positions_in_use(self, value: t.Any) -> frozenset[int]:
        """Return the disks that an evaluated value names, without those that the plan leaves alone. Raises UnknownDisk."""
        if isinstance(value, (list, tuple)):
            return frozenset(position for item in value for position in self.positions_in_use(item))
        try:
            return self.positions(value)
        except LeftOut:
            return frozenset()

    def positions(self, value: t.Any) -> frozenset[int]:
        """Return the disks that an evaluated value names: an id, a disk, or a list of such.

        Raises UnknownDisk, and LeftOut for one that the plan leaves alone.
        """
        if isinstance(value, (list, tuple)):
            return frozenset(position for item in value for position in self.positions(item))
        if isinstance(value, Mapping):
            if "id" not in value:
                raise UnknownDisk("has a mapping without 'id'; it must give disks as they are in the facts, or their ids")
            return self.positions(value["id"])
        if not isinstance(value, str):
            raise UnknownDisk(f"has {kind_of(value)}, but must give disks or their ids")
        if value in self._left_out and value not in self._positions:
            raise LeftOut(self._left_out[value])
        if value not in self._positions:
            raise UnknownDisk(f"there is no disk {value!r}{suggest(value, self._ids)}; the disks are {listed(self._ids, _MOST_NAMES)}")
        return frozenset({self._positions[value]})


def as_tiers(raw: t.Any, evaluated: t.Any) -> Sequence[t.Any]:
    """Return the tiers of a preference, best first, as values for DiskNames.positions.

    `raw` is the key as it was written: queries within a list are tiers, ids and disks within a list are one tier together.
    """
    if not isinstance(raw, (list, tuple)) or not isinstance(evaluated, (list, tuple)):
        return [evaluated]
    if not any(is_expression(item) or isinstance(item, (list, tuple)) for item in raw):
        return [evaluated]
    return list(evaluated)


def without_repetition(tiers: Iterable[frozenset[int]]) -> tuple[frozenset[int], ...]:
    """Return tiers where every disk counts for the best tier that has it; empty tiers are left out."""
    seen: frozenset[int] = frozenset()
    kept: list[frozenset[int]] = []
    for tier in tiers:
        if tier - seen:
            kept.append(tier - seen)
        seen |= tier
    return tuple(kept)


def _other_names(disk: Disk) -> list[str]:
    links = disk.facts.get("links")
    names = (disk.path, disk.dev, *(links if isinstance(links, (list, tuple)) else ()))
    return [name for name in names if isinstance(name, str) and name]
