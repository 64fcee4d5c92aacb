# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The arrays of Bareon's hand-written schema: all `raid` volumes with one mount point, or one name, are the legs of one array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .bareon_disks import FoundDisk
from .parse import LEAST_LEGS, NOT_MOUNTED, Mistakes, Volume


@dataclass(frozen=True)
class Array:
    """An array; its first leg says what becomes of it, as in Bareon."""

    name: str
    legs: tuple[Volume, ...]

    @property
    def first(self) -> Volume:
        """The leg that comes first in the schema."""
        return self.legs[0]


def gather_arrays(disks: Sequence[FoundDisk], mistakes: Mistakes) -> tuple[Array, ...]:
    """Return the arrays, ordered by what their legs have in common; legs that contradict each other or are too few are mistakes."""
    legs: dict[str, list[Volume]] = {}
    places: dict[str, list[str]] = {}
    for disk in disks:
        for volume in disk.entry.volumes:
            if volume.kind != "raid":
                continue
            common = volume.name if volume.files.mount == NOT_MOUNTED else volume.files.mount
            if common is None:
                mistakes.append(f"{volume.place}.mount: the legs of an array share a mount, or a name where it is not mounted; give either")
                continue
            legs.setdefault(common, []).append(volume)
            places.setdefault(common, []).append(disk.entry.place)
    for common, volumes in legs.items():
        _check(common, volumes, places[common], mistakes)
    arrays = tuple(Array(_name(volumes), tuple(volumes)) for _common, volumes in sorted(legs.items()))
    names = [array.name for array in arrays]
    mistakes.extend(f"{array.first.place}.name: two arrays are called {array.name}" for array in arrays if names.count(array.name) > 1)
    return arrays


def _check(common: str, volumes: Sequence[Volume], places: Sequence[str], mistakes: Mistakes) -> None:
    first = volumes[0]
    if len(volumes) < LEAST_LEGS[first.level]:
        need = LEAST_LEGS[first.level]
        mistakes.append(f"{first.place}: the array at {common} has {len(volumes)} of the {need} legs that a {first.level} needs at least")
    mistakes.extend(
        f"{volume.place}: the array at {common} has a leg on that disk already, see {volumes[places.index(place)].place}"
        for number, (volume, place) in enumerate(zip(volumes, places))
        if place in places[:number]
    )
    for volume in volumes[1:]:
        for key, own, other in (
            ("name", volume.name, first.name),
            ("level", volume.level, first.level),
            ("file_system", volume.files.type, first.files.type),
        ):
            if own is not None and own != other:
                mistakes.append(f"{volume.place}.{key}: is {own!r}, but {first.place} says {other!r} for the same array")


def _name(volumes: Sequence[Volume]) -> str:
    named = next((volume.name for volume in volumes if volume.name), None)
    return named or mount_name(volumes[0].files.mount)


def mount_name(mount: str) -> str:
    """Return what a mount point is called where a path cannot stand: `/` is root, `/var/log` is var-log."""
    return "root" if mount == "/" else mount.strip("/").replace("/", "-")
