# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read one dynamic schema for machine after machine, once for all those alike.

What a schema comes to follows from what its expressions give and from how large and of which kind the disks are. Twins of a
fleet differ in neither, so the second one costs as much as to look its expressions up.
"""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Iterator, Mapping

from ....module_utils._storage.raid import WRITE_MOSTLY
from ..model import Hardware, Schema
from .memo import Memory, Place, ReadSet
from .parse import parse_schema
from .yaql import Evaluator, is_expression, read_set

_NAMING_DISKS = frozenset({"disks", "avoid_disks", "best_with_disks", WRITE_MOSTLY})


class Known(t.Protocol):
    """What was learnt from machines before, and grows with every one."""

    memory: Memory
    schemas: dict[t.Hashable, Schema]


class SchemaReader:
    """Reads one schema for machine after machine."""

    def __init__(self, schema: t.Any) -> None:
        self._schema = schema
        entries = schema if isinstance(schema, (list, tuple)) else ()
        values = [(str(key) in _NAMING_DISKS, value) for entry in entries if isinstance(entry, Mapping) for key, value in entry.items()]
        self._expressions = [(of_disks, text) for of_disks, value in values for text in _texts(value) if is_expression(text)]
        plain = [text for of_disks, value in values if of_disks for text in _texts(value) if not is_expression(text)]
        keeps = any(isinstance(entry, Mapping) and entry.get("keep") is not None for entry in entries)
        self._names_disks = keeps or any(isinstance(text, str) for text in plain)

    def read(self, hardware: Hardware, cache: Known, alone: Collection[str] = ()) -> Schema:
        """Return the schema as it is for a machine; see parse_schema, also for what is raised."""
        likeness = self._likeness(hardware, cache.memory, alone)
        known = None if likeness is None else cache.schemas.get(likeness)
        if known is not None:
            return known
        schema = parse_schema(self._schema, hardware, cache.memory, alone=alone)
        # Only now is known what the expressions give.
        likeness = self._likeness(hardware, cache.memory, alone)
        if likeness is not None:
            cache.schemas[likeness] = schema
        return schema

    def read_set(self, hardware: Hardware, memory: Memory) -> ReadSet | None:
        """Return what machines of the same disks must have in common with this one, whose schema was read, so that it comes to the same.

        None when that is not known.
        """
        if self._likeness(hardware, memory, ()) is None:
            return None
        return read_set([text for _of_disks, text in self._expressions], hardware.facts, memory)

    def _likeness(self, hardware: Hardware, memory: Memory, alone: Collection[str]) -> t.Hashable:
        """Return what a machine has in common with all for which the schema comes to the same; None when that is not known.

        Names of disks are not in it, so neither the schema nor what its expressions give may have any.
        """
        if self._names_disks:
            return None
        evaluate = Evaluator(hardware.facts, memory)
        results = []
        for of_disks, text in self._expressions:
            result = evaluate.recall(text)
            if result is None or not _is_common(result.value[1], of_disks=of_disks):
                return None
            results.append(result)
        kinds = [
            (disk.size, disk.logical_block, repr(disk.facts.get("transport")), repr(disk.facts.get("type"))) for disk in hardware.disks
        ]
        return (*results, *kinds, hardware.drives, *alone)


def _texts(value: t.Any) -> Iterator[t.Any]:
    """Yield what a value of the schema is built of, but for its mappings and lists."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)
    else:
        yield value


def _is_common(value: t.Any, *, of_disks: bool) -> bool:
    """Return whether a result is the same for all machines that answer its questions alike; disks of theirs do where disks are named."""
    if isinstance(value, Place):
        return of_disks and value.path[:1] == ("disks",) and len(value.path) <= 2
    if isinstance(value, (list, tuple)):
        return all(_is_common(item, of_disks=of_disks) for item in value)
    if isinstance(value, Mapping):
        return not of_disks and all(_is_common(item, of_disks=False) for item in value.values())
    return not (of_disks and isinstance(value, str))
