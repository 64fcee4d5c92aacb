# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole of a percentage: the most that the space can have.

For a volume these are the extents of its vg without all that must lie on the same disks, for an array the data room of its legs, for
a partition the largest of its disks, for `partitions` all of them; the boot partitions of these disks come first. Amounts are
rounded down to what a space is made of, so that what adds up to 100 % fits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....module_utils._storage import btrfs, lvm, overhead, thin, zfs
from ....module_utils._storage.raid import data_legs
from ..model import BOOT_PARTITIONS, ESP_MOUNT, Disk, Firmware, SpaceType
from .entry import Entry
from .sizes import Amount

_BOOT_TYPES = (SpaceType.ESP, SpaceType.BIOS_GRUB)
_IN_GROUPS = (SpaceType.LOGICAL_VOLUME, SpaceType.THIN_POOL, SpaceType.THIN_VOLUME)
_BOOT_MOUNTS = ("/boot", "/")


@dataclass(frozen=True)
class Percentages:
    """What percentages come to on one machine. `groups` has the vg of a volume by id; `allowed`, `legs` are by id, `extents` MiB by id."""

    disks: Sequence[Disk]
    drives: Sequence[int]
    """By disk: the first disk of those that are on one drive with it."""
    firmware: Firmware | None
    entries: Sequence[Entry]
    groups: Mapping[str, str]
    allowed: Mapping[str, frozenset[int]]
    legs: Mapping[str, int]
    extents: Mapping[str, int]
    encrypted: frozenset[str]
    flat: bool

    def mib(self, entry: Entry, amount: Amount) -> int:
        """Return the MiB of a relative amount of a space."""
        share = amount.number / 100
        if self.flat:
            return math.floor(share * sum(self.disks[disk].size for disk in self.allowed[entry.id]))
        if entry.type in _IN_GROUPS and entry.id in self.groups:
            group = next(other for other in self.entries if other.id == self.groups[entry.id])
            extent = self.extents[group.id]
            stripes = entry.values.get("stripes") or 1
            if stripes > 1:
                return math.floor(share * self._striped_room(group, stripes) / extent) * stripes * extent
            room = math.floor(share * self._group_room(group) / extent) * extent
            if entry.type is SpaceType.THIN_POOL:
                return thin.divide(room, extent, entry.values["chunk_size"], entry.values["metadata_size"]).size
            return room
        if entry.type is SpaceType.VOLUME_GROUP:
            return math.floor(share * self._group_room(entry, capped=False))
        if entry.type is SpaceType.ZPOOL:
            shape = zfs.shape_of(entry.values["vdev"] or zfs.Vdev.MIRROR, self.legs[entry.id], entry.values["vdevs"])
            return zfs.room(shape, math.floor(share * self._leg(entry, self._booting(entry))), entry.values["ashift"])
        booting = 0 if entry.type in _BOOT_TYPES else self._booting(entry)
        if self.legs.get(entry.id):
            return math.floor(share * self._leg(entry, booting)) * self._data_legs(entry)
        rooms = self._rooms(entry, booting)
        if entry.values["per_disk"]:
            return math.floor(share * rooms[-1]) if rooms else 0
        return math.floor(share * (sum(rooms) if entry.type is SpaceType.PARTITIONS else self._leg(entry, booting)))

    def _most(self, entry: Entry) -> list[int]:
        """Return the MiB of the bounds that a space may not be larger than."""
        amounts = [entry.values[key] for key in ("size", "max_size") if entry.values[key] is not None]
        return [self.mib(entry, amount) if amount.relative else math.floor(amount.number) for amount in amounts]

    def _least(self, entry: Entry, amount: Amount) -> int:
        return self.mib(entry, amount) if amount.relative else math.ceil(amount.number)

    def _rooms(self, entry: Entry, booting: int = 0) -> list[int]:
        """Return the MiB of the disks that a space may use, the largest first; `booting` MiB of those that may boot are taken."""
        return sorted((self._room(disk, booting) for disk in self.allowed[entry.id]), reverse=True)

    def _room(self, disk: int, booting: int) -> int:
        room = overhead.usable(self.disks[disk].size)
        return max(0, room - booting) if booting and disk in self._may_boot else room

    def _booting(self, entry: Entry) -> int:
        """Return the MiB of the boot partitions of a disk that boots, where such are on disks of a space for sure."""
        return sum(size for size, _pieces in self._boot_partitions(self.allowed[entry.id]))

    def _pieces(self, entry: Entry) -> int:
        """Return on how many disks a space lies."""
        if entry.values["per_disk"]:
            return len(self.allowed[entry.id])
        return ((self.legs.get(entry.id) or 1) + entry.values["spares"]) * (entry.values["count"] or 1)

    def _leg(self, entry: Entry, booting: int = 0) -> int:
        """Return the most MiB of each piece of a space."""
        largest: dict[int, int] = {}
        for disk in self.allowed[entry.id]:
            room = self._room(disk, booting)
            largest[self.drives[disk]] = max(room, largest.get(self.drives[disk], 0))
        rooms = sorted(largest.values(), reverse=True)
        return rooms[min(len(rooms), self._pieces(entry)) - 1] if rooms else 0

    def _data_legs(self, entry: Entry) -> int:
        level, legs = entry.values["level"], self.legs[entry.id]
        return max(1, btrfs.data_legs(level, legs) if entry.type is SpaceType.BTRFS else data_legs(level, legs))

    def _group_room(self, group: Entry, *, capped: bool = True) -> int:
        """Return the MiB in extents that a vg can have."""
        extent = self.extents.get(group.id, lvm.EXTENT)
        arrays = [other for other in self.entries if other.type is SpaceType.RAID and other.id in group.values["contains"]]
        if arrays:
            room = sum(self._array_room(array, extent, group.id in self.encrypted) for array in arrays)
        else:
            head = overhead.pv_head(group.id in self.encrypted)
            rooms = [lvm.pv_extents(room, head, extent) * extent for room in self._rooms(group)][: group.values["max_pvs"]]
            overheads = (min(pieces, len(rooms)) * math.ceil(size / extent) * extent for size, pieces in self._beside(group))
            room = max(0, sum(rooms) - sum(overheads))
        return min([room, *(self._most(group) if capped else ())])

    def _striped_room(self, group: Entry, stripes: int) -> int:
        """Return the MiB in extents that a vg can have on each of a number of disks."""
        rooms, head, extent = self._rooms(group), overhead.pv_head(group.id in self.encrypted), self.extents[group.id]
        largest = lvm.pv_extents(rooms[stripes - 1], head, extent) * extent if len(rooms) >= stripes else 0
        return max(0, largest - sum(math.ceil(size / extent) * extent for size, _pieces in self._beside(group)))

    def _array_room(self, array: Entry, extent: int, encrypted: bool) -> int:
        """Return the MiB in extents that an array can give to its vg."""
        data = self._data_legs(array)
        leg = min([self._leg(array) - sum(size for size, _pieces in self._beside(array)), *(most // data for most in self._most(array))])
        reserve = overhead.md_reserve(max(leg, 0), overhead.md_metadata(array.values["boot"]), data)
        return lvm.pv_extents(data * max(0, leg - reserve), overhead.array_pv_head(data, encrypted), extent) * extent

    def _beside(self, whole: Entry) -> Iterator[tuple[int, int]]:
        """Yield MiB and number of pieces of all that must lie on the disks of a vg or an array, and has a minimum."""
        own = self.allowed[whole.id]
        for other in self.entries:
            inside = other.id == whole.id or other.id in self.groups or other.type in (SpaceType.VOLUME_GROUP, SpaceType.THIN_VOLUME)
            below = any(other.id in entry.values["contains"] for entry in self.entries)
            if inside or below or other.type in _BOOT_TYPES or not self.allowed[other.id] <= own:
                continue
            amount = other.values["size"] or other.values["min_size"]
            least = 0 if amount is None else self._least(other, amount)
            if least and self._data_legs_or_one(other):
                yield math.ceil(least / self._data_legs_or_one(other)), self._pieces(other)
        yield from self._boot_partitions(own)

    def _data_legs_or_one(self, entry: Entry) -> int:
        if entry.type is SpaceType.ZPOOL or not self.legs.get(entry.id):
            return 1
        return self._data_legs(entry)

    def _boot_partitions(self, own: frozenset[int]) -> Iterator[tuple[int, int]]:
        """Yield the boot partitions of the disks that boot, with that which is added when a plan is made."""
        carriers = self._carriers()
        known = [entry for entry in self.entries if entry.type in _BOOT_TYPES]
        wanted = [entry.values["size"] or entry.values["min_size"] for entry in known]
        usual = {SpaceType.ESP: overhead.ESP_DEFAULT, SpaceType.BIOS_GRUB: overhead.BIOS_GRUB}
        sizes = [
            usual[entry.type or SpaceType.ESP]
            if amount is None
            else self.mib(entry, amount)
            if amount.relative
            else math.ceil(amount.number)
            for entry, amount in zip(known, wanted)
        ]
        sizes += [usual[added] for added in self._added(carriers)]
        if not all(self.allowed[entry.id] <= own for entry in carriers):
            return
        pieces = max((self._boots_on(entry) for entry in carriers), default=1)
        yield from ((size, pieces) for size in sizes)

    def _added(self, carriers: Sequence[Entry]) -> Iterator[SpaceType]:
        """Yield the type of the boot partition that the firmware needs and the schema lacks, which is added when a plan is made."""
        if self.firmware is None or not any(entry.values["boot"] for entry in carriers):
            return
        needed = BOOT_PARTITIONS[self.firmware]
        mirrored = [entry for entry in self.entries if entry.type is SpaceType.RAID and entry.values["mount"] == ESP_MOUNT]
        if not any(entry.type is needed for entry in self.entries) and not (needed is SpaceType.ESP and mirrored):
            yield needed

    def _carriers(self) -> list[Entry]:
        """Return what boots: what says so, else what has /boot, else what has /."""
        carriers = [entry for entry in self.entries if entry.values["boot"] and entry.type not in _BOOT_TYPES]
        for mount in _BOOT_MOUNTS:
            carriers = carriers or [entry for entry in self.entries if entry.values["mount"] == mount]
        return carriers

    @functools.cached_property
    def _may_boot(self) -> frozenset[int]:
        """Return the disks (positions) that boot partitions may be on."""
        carriers = self._carriers() or [entry for entry in self.entries if entry.type in _BOOT_TYPES]
        return frozenset().union(*(self.allowed[entry.id] for entry in carriers))

    def _boots_on(self, entry: Entry) -> int:
        """Return how many disks boot because of a space."""
        group = next((other for other in self.entries if other.id == self.groups.get(entry.id, entry.id)), entry)
        if group.type is not SpaceType.VOLUME_GROUP:
            return self._pieces(group)
        arrays = [other for other in self.entries if other.type is SpaceType.RAID and other.id in group.values["contains"]]
        return sum(map(self._pieces, arrays)) or min(group.values["max_pvs"] or len(self.disks), len(self.allowed[group.id]))
