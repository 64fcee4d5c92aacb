# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kinds of values of a static schema, in addition to those of all inputs: names that reach commands, GUIDs, RAID levels, properties."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from .._data.containers import ListOf, Row
from .._data.errors import Mistakes, Place
from .._data.kinds import LARGEST_SIZE, Json, Kind, Truth, Whole, shown
from .._storage import names, zfs
from .._storage.names import GUID_WANTED, guid_of
from .._storage.options.datasets import OF_POOLS, PROPERTIES
from .._storage.raid import RaidLevel, parse_level

WhyNot = t.Callable[[str], t.Optional[str]]
"""Returns what is wrong with a text, and what would be right; None for nothing."""


class Named(Kind):
    """Text that `why_not` finds nothing wrong with, as it is; without `filled` it may be empty."""

    wanted, blank = "text", ""

    def __init__(self, why_not: WhyNot, *, filled: bool = True) -> None:
        self._why_not, self._filled = why_not, filled

    def read(self, value: t.Any) -> str:
        """Return the text."""
        if not isinstance(value, str) or (self._filled and not value):
            self.refuse(value)
        says = self._why_not(value) if value else None
        if says is not None:
            raise ValueError(says)
        return value

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        return {"type": "string"} | ({"pattern": r"\S"} if self._filled else {})


class Amount(Whole):
    """A whole number, 2**53 at most: what is counted from it is exact in every program that reads it."""

    def __init__(self, least: int) -> None:
        super().__init__(least)
        self._most = LARGEST_SIZE
        self.within = (least, LARGEST_SIZE)


class Level(Kind):
    """A RAID level, in any spelling of mdadm's."""

    wanted = f"one of {', '.join(RaidLevel)}"

    def read(self, value: t.Any) -> RaidLevel:
        """Return the level."""
        return (parse_level(value) if isinstance(value, str) else None) or self.refuse(value)

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        return {"enum": [*RaidLevel, *(level.removeprefix("raid") for level in RaidLevel), "stripe", "mirror"]}


class Guid(Kind):
    """A GUID; it may be empty, which leaves it open."""

    wanted, blank = "a GUID", ""

    def read(self, value: t.Any) -> str:
        """Return the GUID in lower case."""
        found = guid_of(value) if isinstance(value, str) and value else ""
        if not isinstance(value, str) or found is None:
            raise ValueError(f"{GUID_WANTED}, not {shown(value)}")
        return found

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        return {"type": "string"}


class Properties(Kind):
    """Properties of ZFS by their names; on and off may be written as YAML's truths."""

    wanted, blank = "properties of ZFS by their names, such as {compression: lz4, atime: off}", ()
    nested = True

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> tuple[tuple[str, str], ...]:
        """Return the properties that are right, by name."""
        if not isinstance(value, Mapping):
            mistakes.add(place, f"is {shown(value)}; must be {self.wanted}")
            return ()
        found = []
        for name, given in value.items():
            word = {True: "on", False: "off"}[given] if isinstance(given, bool) else str(given).strip()
            says: t.Optional[str] = f"the value of {name} is {shown(given)}; must be a word or a number"
            if isinstance(given, (bool, int, str)):
                says = zfs.why_no_property(str(name), word)
            if says is None:
                found.append((str(name), word))
            else:
                mistakes.add(place, says)
        return tuple(sorted(found))

    def json_schema(self) -> Json:
        """Return the JSON Schema."""
        return {
            "type": "object",
            "propertyNames": {
                "anyOf": [
                    {"enum": sorted({*PROPERTIES} - {*OF_POOLS, *zfs.OWN_KEYS, *zfs.NOT_HERE})},
                    {"pattern": f"^{zfs.USER_PROPERTY_PATTERN}$"},
                ]
            },
            "additionalProperties": {"type": ["string", "integer", "boolean"]},
        }


NODE, NODE_IF_ANY = Named(names.why_no_device), Named(names.why_no_device, filled=False)
NODES, DEVICES = ListOf(NODE, "devices"), ListOf(NODE, "devices", least=1)
KEPT = [
    Row("keep_data", Truth(), "Whether existing contents stay.", default=False),
    Row("space_id", Named(names.why_no_text, filled=False), "The id of its space in the dynamic schema."),
]
"""What the entries of most lists have."""
