# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The subvolumes of a Btrfs, as they are written."""

from __future__ import annotations

import typing as t

from ....module_utils._data.containers import ListOf, Row, Table, Values, refuse_doubles
from ....module_utils._data.errors import Mistakes, Place, spelled
from ....module_utils._data.kinds import Checked, Json, Kind, Size, Text, shown
from ....module_utils._storage import btrfs
from .mounts import Mount


def _why_no_subvolume(text: t.Any) -> str:
    if isinstance(text, str) and btrfs.subvolume_name(text.strip()):
        return ""
    return f"is {shown(text)}; must be {btrfs.NAME_WANTED}"


def _subvolume_name(text: str) -> str:
    return btrfs.subvolume_name(text.strip()) or ""


_SUBVOLUME = Table(
    "a subvolume",
    [
        Row(
            "name",
            Checked(_why_no_subvolume, "", rf"^\s*{btrfs.NAME_PATTERN}\s*$", _subvolume_name),
            "Its path below the top of the file system.",
            required=True,
        ),
        Row("mount", Mount("a subvolume"), "Where it is mounted."),
        Row("mount_options", Text(filled=True), "Options of its mount, after those of the space."),
        Row("quota", Size(zero=False), "The most that it may hold; quotas may come to more than there is."),
    ],
)


class Subvolumes(Kind):
    """The subvolumes of a Btrfs; each name and each mount point is that of one of them."""

    blank: t.Any = ()
    nested = True

    def __init__(self) -> None:
        self._list = ListOf(_SUBVOLUME, "subvolumes")

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> tuple[Values, ...]:
        found: tuple[Values, ...] = self._list.read_nested(value, place, mistakes)
        named = [(f"{spelled(place)}[{at}]", values) for at, values in enumerate(found)]
        refuse_doubles(((where, values["name"]) for where, values in named), "name", mistakes)
        for where, values in named:
            misplaced = btrfs.misplaced_option(values["mount_options"] or "")
            if misplaced is not None:
                mistakes.add(f"{where}.mount_options", btrfs.why_misplaced(misplaced))
        return found

    def json_schema(self) -> Json:
        return self._list.json_schema()
