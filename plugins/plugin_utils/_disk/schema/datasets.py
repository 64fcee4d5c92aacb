# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The datasets of a ZFS pool, as they are written."""

from __future__ import annotations

import typing as t

from ....module_utils._data.containers import ListOf, Row, Table, Values, refuse_doubles
from ....module_utils._data.errors import Mistakes, Place, spelled
from ....module_utils._data.kinds import Checked, Json, Kind, Size, shown
from ....module_utils._schema.kinds import Properties
from ....module_utils._storage import zfs
from .mounts import Mount


def _why_no_dataset(text: t.Any) -> str:
    if isinstance(text, str) and zfs.is_dataset_name(text.strip()):
        return ""
    return f"is {shown(text)}; must be {zfs.DATASET_WANTED}"


_DATASET = Table(
    "a dataset",
    [
        Row(
            "name",
            Checked(_why_no_dataset, "", rf"^\s*{zfs.DATASET_PATTERN}\s*$", str.strip),
            "Its path below the pool.",
            required=True,
        ),
        Row("mount", Mount("a dataset"), "Where it is mounted; by default below what it lies in."),
        Row("quota", Size(zero=False), "The most that it and all in it may hold."),
        Row("reservation", Size(zero=False), "What it has for itself, whatever others take."),
        Row("properties", Properties(), "Its properties, as zfs has them.", default=()),
    ],
)


class Datasets(Kind):
    """The datasets of a ZFS pool; each name is that of one of them."""

    blank: t.Any = ()
    nested = True

    def __init__(self) -> None:
        self._list = ListOf(_DATASET, "datasets")

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> tuple[Values, ...]:
        found: tuple[Values, ...] = self._list.read_nested(value, place, mistakes)
        named = [(f"{spelled(place)}[{at}]", values) for at, values in enumerate(found)]
        refuse_doubles(((where, values["name"]) for where, values in named), "name", mistakes)
        return found

    def json_schema(self) -> Json:
        return self._list.json_schema()
