# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From a machine and a schema to areas, demands, pools and boot partitions."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ....module_utils._data.errors import Mistakes
from ....module_utils._storage import btrfs, cache, overhead, thin, zfs
from ....module_utils._storage.filesystems import made_on
from ....module_utils._storage.raid import RaidLevel, data_legs
from ..model import Hardware, Schema, Space, SpaceType
from .areas import areas_of
from .data_room import StripedData, ThinData, ZfsData, in_extents
from .kept import Kept, find_kept
from .model import Area, BootPartition, Demand, GrowthOrder, Kind, Pool, PreferredAreas, Problem
from .relations import relations_of

_BOOT_PARTITIONS = (SpaceType.ESP, SpaceType.BIOS_GRUB)
_BOOT_MOUNTS = ("/boot", "/")
_LEAST_PART = 16
"""MiB: of what is spread over disks nothing smaller is worth a partition."""


def formulate(hardware: Hardware, schema: Schema, reserve: int = 0, *, heads_first: bool = False) -> Problem:
    """Return the problem that a machine and a schema pose; `reserve` MiB of every disk stay free.

    What a PV keeps for itself is counted by each striped volume of its vg, and once for all others. With `heads_first` it is taken off all
    disks of such a vg beforehand instead, which leaves more where a vg lies on most of its disks.
    Raises InputError when data is to be kept that cannot be planned around.
    """
    kept = find_kept(hardware, schema)
    heads = dict(_heads_of_striped(schema, kept)) if heads_first else {}
    on = [
        (sum(head for group, head in heads.items() if area.disk in schema.spaces[group].allowed), area)
        for area in areas_of(hardware, schema, kept, reserve)
    ]
    areas = tuple(replace(area, size=area.size - taken) for taken, area in on if area.size > taken)
    builder = _Builder(hardware, schema, kept, areas, heads)
    return builder.problem()


def _heads_of_striped(schema: Schema, kept: Kept) -> Iterator[tuple[int, int]]:
    """Give vgs (positions) with striped volumes, and the MiB that each of their PVs keeps for itself."""
    for position, group in enumerate(schema.spaces):
        inside = [space for space in schema.spaces if space.volume_group == group.id]
        if position not in kept.spaces and any(space.is_striped for space in inside):
            yield position, overhead.pv_head(group.encrypt or any(space.encrypt for space in inside))


class _Builder:
    """Turns spaces into demands one after the other; only `problem` is for others."""

    def __init__(self, hardware: Hardware, schema: Schema, kept: Kept, areas: tuple[Area, ...], heads: Mapping[int, int]) -> None:
        self._hardware, self._schema, self._kept, self._areas, self._heads = hardware, schema, kept, areas, heads
        self._drives = hardware.drives if len(set(hardware.drives)) < len(hardware.disks) else ()
        self._demands: list[Demand] = []
        self._pools: list[Pool] = []
        self._demands_of: dict[int, list[int]] = {}
        self._pool_of: dict[int, int] = {}
        self._sections: dict[tuple[int, tuple[int, ...], PreferredAreas], int] = {}
        self._areas_known: dict[tuple[frozenset[int], int], tuple[int, ...]] = {}
        self._mistakes = Mistakes()
        self._warnings: list[str] = list(kept.warnings)

    def problem(self) -> Problem:
        spaces = self._schema.spaces
        for position, space in enumerate(spaces):
            if _may_be_cut(space):
                self._pool(position, space)
        for position, space in enumerate(spaces):
            if position not in self._kept.spaces:
                self._demand(position, space)
        self._mistakes.check()
        members: dict[tuple[Kind, int | None], list[int]] = {}
        for at, demand in enumerate(self._demands):
            members.setdefault((demand.kind, demand.pool), []).append(at)
        for pool in range(len(self._pools)):
            self._close_pool(pool, tuple(members.get((Kind.VOLUME, pool), ())), tuple(members.get((Kind.LEGS, pool), ())))
        boot_partitions = tuple(self._boot_partitions())
        return Problem(
            areas=self._areas,
            demands=tuple(self._demands),
            pools=tuple(self._pools),
            boot_partitions=boot_partitions,
            kept=self._kept.pieces,
            kept_names=tuple(self._schema.spaces[piece.space].id for piece in self._kept.pieces),
            kept_volumes=tuple(self._kept.volumes.items()),
            disk_names=tuple(disk.id for disk in self._hardware.disks),
            disk_sizes=tuple(disk.size for disk in self._hardware.disks),
            restrictions=tuple(
                (space.wish, space.disks_given or "disks")
                for space in self._schema.spaces
                if len(space.allowed) < len(self._hardware.disks) and (space.volume_group is None or space.disks_given)
            ),
            warnings=tuple(self._warnings),
            relations=tuple(relations_of(self._schema, self._areas, self._demands, self._pools, self._kept.pieces, self._drives)),
            heads=tuple(self._heads.items()),
            drives=self._drives,
        )

    def _pool(self, position: int, space: Space) -> None:
        if position in self._kept.spaces and space.type is not SpaceType.VOLUME_GROUP:
            return
        group = space.type is SpaceType.VOLUME_GROUP
        kept = position in self._kept.spaces
        least = _least_device(space) if space.type is SpaceType.PARTITIONS else 0
        areas = () if kept or self._arrays_in(space) else self._allowed(space, least)
        if any(other.volume_group == space.id and other.is_striped for other in self._schema.spaces):
            # Stripes and the rest of the vg are to share one PV on each disk.
            areas = self._roomiest(areas)
        self._pool_of[position] = len(self._pools)
        self._pools.append(
            Pool(
                name=space.id,
                space=position,
                extent_size=space.extent_size if group else 1,
                metadata_size=self._head_beside(None, position) if group else 0,
                areas=areas,
                preferred=self._preferred_areas(space),
                max_pvs=space.max_pvs,
                lo=self._least_of_group(space) if group and not kept else 0,
                hi=self._most_of_group(space) if group and not kept else None,
                percentages=(space.min_percentage, space.max_percentage),
                kept=self._kept.extents.get(position, 0),
                least=max(least, _LEAST_PART) if space.type is SpaceType.PARTITIONS else 0,
                is_group=group,
            )
        )

    def _least_of_group(self, group: Space) -> int:
        # What boots is there, as in `_volume`; volumes see to that by themselves.
        has_room = group.max_size is None or group.max_size >= group.extent_size
        empty = all(member.volume_group != group.id for member in self._schema.spaces) and not self._arrays_in(group)
        return max(group.min_size, group.extent_size) if group.boot and empty and has_room else group.min_size

    def _most_of_group(self, group: Space) -> int | None:
        # A maximum between two extents gives way to the minimum, as that of a volume does.
        if group.max_size is None or group.max_size < group.min_size:
            return group.max_size
        return max(group.max_size, in_extents(group.min_size, group.extent_size))

    def _encrypted(self, group: Space) -> bool:
        return group.encrypt or any(member.encrypt for member in self._schema.spaces if member.volume_group == group.id)

    def _demand(self, position: int, space: Space) -> None:
        if space.copy_of is not None and (first := self._siblings(space)[0]) != position:
            self._demands_of[position] = self._demands_of[first]
        elif space.type is SpaceType.RAID:
            self._raid(position, space)
        elif space.type is SpaceType.BTRFS:
            self._btrfs(position, space)
        elif space.type is SpaceType.ZPOOL:
            self._zpool(position, space)
        elif space.type is SpaceType.THIN_POOL:
            self._thin_pool(position, space)
        elif space.type is SpaceType.LOGICAL_VOLUME or (space.type is SpaceType.PARTITIONS and not space.per_disk):
            self._volume(position, space)
        elif space.type in (SpaceType.PARTITION, SpaceType.PARTITIONS):
            self._partition(position, space)
        elif space.type is SpaceType.DISK and not space.allowed:
            # A demand without an area says why there is no plan.
            self._add(position, space, Kind.SINGLE, least=1, areas=())
        elif space.type in _BOOT_PARTITIONS and not self._carriers():
            # Nothing says what boots, so it lies once, on the first disk with room.
            never_grows = dataclasses.replace(space, weight=0.0)
            areas = self._allowed(space)
            least = max((self._boot_partition_size(space, area) for area in areas), default=1)
            self._add(position, never_grows, Kind.SINGLE, least=least, areas=areas, floor=self._least_boot_partition(space))

    def _siblings(self, space: Space) -> tuple[int, ...]:
        """Return the spaces that are copies of one as this is, and are not there yet; all of them have one demand."""
        if space.copy_of is None:
            return ()
        return tuple(at for at, other in enumerate(self._schema.spaces) if other.copy_of == space.copy_of and at not in self._kept.spaces)

    def _partition(self, position: int, space: Space) -> None:
        least = _least_device(space)
        areas = self._allowed(space)
        if space.copy_of is not None:
            # Legs are of one size and on different disks, as copies are to be.
            copies = self._siblings(space)
            self._add(position, space, Kind.LEGS, least=least, areas=areas, legs=len(copies), copies=copies)
            return
        if space.legs:
            self._add(position, space, Kind.LEGS, least=least, areas=areas, legs=space.legs)
            return
        if not space.per_disk or (space.min_size and not areas):
            self._add(position, space, Kind.SINGLE, least=least, areas=areas)
            return
        for disk in sorted({self._areas[area].disk for area in areas}, key=self._rank):
            own = tuple(area for area in areas if self._areas[area].disk == disk)
            for _piece in range(space.per_disk):
                self._add(position, space, Kind.SINGLE, least=least, areas=own)

    def _raid(self, position: int, space: Space) -> None:
        level = space.level or RaidLevel.RAID1
        unit = max(1, data_legs(level, space.legs))
        metadata = overhead.md_metadata(space.boot)
        groups = [at for at, group in enumerate(self._schema.spaces) if group.type is SpaceType.VOLUME_GROUP and space.id in group.contains]
        least = overhead.least_array(_least_device(space), metadata, unit)
        copies = self._siblings(space)
        each = max(1, len(copies))
        self._add(
            position,
            space,
            Kind.LEGS,
            least=least,
            areas=self._allowed(space),
            unit=unit,
            legs=(space.legs + space.spares) * each,
            spares=space.spares * each,
            copies=copies,
            reserve=metadata,
            metadata_size=overhead.array_pv_head(unit, self._encrypted(self._schema.spaces[groups[0]])) if groups else 0,
            pool=self._pool_of[groups[0]] if groups else None,
        )

    def _btrfs(self, position: int, space: Space) -> None:
        unit = max(1, btrfs.data_legs(space.level or RaidLevel.RAID1, space.legs))
        least = _least_device(space) * unit
        self._add(position, space, Kind.LEGS, least=least, areas=self._allowed(space), unit=unit, legs=space.legs)

    def _zpool(self, position: int, space: Space) -> None:
        """Add a pool; its bounds are the MiB of its data devices, without copies and parity, that hold the requested room."""
        shape = space.shape
        unit = max(1, shape.data_legs)
        data = max(space.min_size, 1)
        least = zfs.leg_for(shape, data, space.ashift) * unit
        most = None if space.max_size is None else max(least, zfs.largest_leg(shape, space.max_size, space.ashift) * unit)
        gross = replace(space, min_size=least, max_size=most)
        self._add(
            position,
            gross,
            Kind.LEGS,
            least=zfs.LEAST_LEG * unit,
            areas=self._allowed(space),
            unit=unit,
            legs=shape.legs + space.spares,
            spares=space.spares,
            own=max(0, least - data) if space.min_size else 0,
            own_for="what ZFS keeps free and for itself",
            data_in=ZfsData(shape, space.ashift, unit),
        )

    def _volume(self, position: int, space: Space) -> None:
        if space.volume_group is None:
            # What boots is there: a disk on which it may grow from nothing would have no boot partition.
            holds_something = made_on(space.fs_type, space.mount) or space.encrypt or space.boot
            least = _least_device(space) if holds_something else 0
            self._add(position, space, Kind.VOLUME, least=least, pool=self._pool_of[position])
            return
        owner = next(at for at, group in enumerate(self._schema.spaces) if group.id == space.volume_group)
        # A vg is encrypted below its volumes.
        least = overhead.least_device(made_on(space.fs_type, space.mount), False, space.fs_options or "", space.sector)
        extent = self._schema.spaces[owner].extent_size
        if space.is_striped:
            self._striped(position, space, owner, least)
            return
        pool = self._section(owner, space)
        self._add(position, space, Kind.VOLUME, least=max(extent, least), unit=extent, pool=pool)

    def _striped(self, position: int, space: Space, owner: int, least: int) -> None:
        """Add a volume in equal parts on several PVs: legs with as many extents each, and the head of a PV, as a section has one.

        No segment lies on fewer PVs than there are stripes, so that one command, which names them, makes the volume.
        """
        main, unit = self._pools[self._pool_of[owner]], space.stripes or 1
        extent, head = main.extent_size, self._head_beside(position, owner)
        if main.lo or main.hi is not None or main.max_pvs is not None:
            says = f"stripes of an lv cannot be combined with min_size, max_size or max_pvs of its vg ({main.name}); give them to the lv"
            self._mistakes.add(f"{space.place}.stripes", says)
        elif not main.areas and space.allowed:
            says = f"the vg {main.name} lies on arrays or is kept, so where {space.id} lies in it is not chosen here; leave stripes out"
            self._mistakes.add(f"{space.place}.stripes", says)
        data = StripedData(unit, extent, head)
        smallest = data.legs_for(max(unit * extent, least))
        wanted = data.legs_for(max(space.min_size, 1)) if space.min_size else 0
        most = space.max_size
        if most is not None and most >= (space.min_size or max(unit * extent, least)):
            # A maximum between two sizes that it can have gives way to the minimum, as that of any volume does.
            most = max(smallest, wanted, unit * head + most // (unit * extent) * unit * extent)
        lo = max(wanted, smallest)
        self._add(
            position,
            replace(space, min_size=wanted, max_size=most),
            Kind.LEGS,
            least=smallest,
            areas=tuple(area for area in main.areas if self._areas[area].disk in space.allowed),
            unit=unit,
            legs=unit,
            metadata_size=head,
            group=owner,
            own=lo - max(space.min_size, least, 1),
            own_for="whole extents on each of its physical volumes, and what these keep for themselves",
            data_in=data,
        )

    def _head_beside(self, position: int | None, owner: int) -> int:
        """Return the MiB before the first extent of PVs that a striped volume counts, or (None) all that may lie anywhere in the vg.

        None where they are counted already.
        """
        group = self._schema.spaces[owner]
        carrier = None if owner in self._heads else self._head_carrier(group)
        return 0 if owner in self._heads or carrier not in (None, position) else overhead.pv_head(self._encrypted(group))

    def _head_carrier(self, group: Space) -> int | None:
        """Return the striped volume that is on every PV that its vg may have, and counts what these keep for themselves, once for all."""
        areas = self._allowed(group)
        if len({self._areas[area].disk for area in areas}) < len(areas):
            return None
        whole = (
            at
            for at, space in enumerate(self._schema.spaces)
            if space.volume_group == group.id and space.is_striped and space.stripes == len(areas) and space.allowed >= group.allowed
        )
        sure = (at for at in whole if self._schema.spaces[at].max_size is None or self._schema.spaces[at].min_size)
        return next((at for at in sure if at not in self._kept.spaces), None)

    def _thin_pool(self, position: int, space: Space) -> None:
        """Add a pool as a volume of its vg that is as large as the pool with all that LVM keeps for it, and as its volumes ask for."""
        owner = next(at for at, group in enumerate(self._schema.spaces) if group.id == space.volume_group)
        extent = self._schema.spaces[owner].extent_size
        data = max(extent, space.min_size, _least_for_volumes(self._schema, space, extent))
        room = functools.partial(thin.room_for, extent=extent, chunk=space.chunk_size, metadata=space.metadata_size)
        least = room(data)
        most = None if space.max_size is None else max(least, room(space.max_size)) if space.max_size >= data else space.max_size
        percentage = space.min_percentage if data == space.min_size else ""
        gross = replace(space, min_size=least, max_size=most, min_percentage=percentage)
        self._add(
            position,
            gross,
            Kind.VOLUME,
            least=extent,
            unit=extent,
            pool=self._section(owner, space),
            own=least - in_extents(data, extent),
            data_in=ThinData(extent, space.chunk_size, space.metadata_size),
        )

    def _section(self, owner: int, space: Space) -> int:
        """Return the pool of an lv: that of its vg, or a section of it when the lv may not use, or likes, only some of its disks."""
        main = self._pools[self._pool_of[owner]]
        areas = tuple(area for area in main.areas if self._areas[area].disk in space.allowed)
        tiers = self._preferred_areas(space) or main.preferred
        if (areas, tiers) == (main.areas, main.preferred):
            return self._pool_of[owner]
        if not main.areas:
            self._warnings.append(f"{space.id}: the vg {main.name} does not choose its disks, so those of {space.id} have no effect")
            return self._pool_of[owner]
        if main.lo or main.hi is not None or main.max_pvs is not None:
            bounded = "disks and best_with_disks of an lv cannot be combined with min_size, max_size or max_pvs of its vg"
            self._mistakes.add(space.place, f"{bounded} ({main.name}); give them to the vg")
            return self._pool_of[owner]
        key = (owner, areas, tiers)
        if key not in self._sections:
            self._sections[key] = len(self._pools)
            self._pools.append(dataclasses.replace(main, areas=areas, preferred=tiers, kept=0))
        return self._sections[key]

    def _add(
        self,
        position: int,
        space: Space,
        kind: Kind,
        *,
        least: int,
        areas: tuple[int, ...] = (),
        unit: int = 1,
        legs: int = 1,
        spares: int = 0,
        reserve: str = "",
        metadata_size: int = 0,
        pool: int | None = None,
        own: int = 0,
        own_for: str = "its metadata and their spare",
        data_in: Callable[[int], int] | None = None,
        copies: tuple[int, ...] = (),
        floor: int | None = None,
        group: int | None = None,
    ) -> None:
        lo = max(space.min_size, least) if space.max_size is None or space.max_size >= least else space.min_size
        self._demands_of.setdefault(position, []).append(len(self._demands))
        self._demands.append(
            Demand(
                name=space.wish,
                space=position,
                kind=kind,
                lo=lo,
                hi=space.max_size,
                unit=unit,
                weight=space.weight,
                growth_order=self._growth_order(space, kind, areas, pool),
                areas=areas,
                preferred=self._preferred_areas(space),
                legs=legs,
                spares=spares,
                reserve=reserve,
                metadata_size=metadata_size,
                pool=pool,
                own=own,
                own_for=own_for,
                data_in=data_in,
                group=group,
                copies=copies,
                percentages=(space.min_percentage if lo == space.min_size else "", space.max_percentage),
                floor=min(lo, least if floor is None else floor),
            )
        )

    def _growth_order(self, space: Space, kind: Kind, areas: Sequence[int], pool: int | None) -> GrowthOrder:
        if space.weight <= 0:
            return GrowthOrder.NEVER
        if kind is Kind.LEGS and pool is not None:
            # What lies on the array grows; the array itself takes only what is left in the end.
            return GrowthOrder.LEFTOVER
        tiers = self._preferred_areas(space)
        if kind is Kind.VOLUME and pool is not None:
            areas, tiers = self._pools[pool].areas, self._pools[pool].preferred
        # A preference that ranks all disks wants an order of them, not room that others want as well.
        return GrowthOrder.PREFERRED if tiers and not frozenset().union(*tiers).issuperset(areas) else GrowthOrder.NORMAL

    def _close_pool(self, position: int, volumes: tuple[int, ...], arrays: tuple[int, ...]) -> None:
        """Give the pool its members, the demands at these positions.

        What is free in a vg is a volume of its own that grows last, or first if it is the only one.
        """
        pool = self._pools[position]
        space = self._schema.spaces[pool.space]
        if space.type is SpaceType.VOLUME_GROUP and position == self._pool_of[pool.space]:
            empty = all(member.volume_group != space.id for member in self._schema.spaces)
            turn = GrowthOrder.LEFTOVER if space.weight > 0 else GrowthOrder.NEVER
            turn = self._growth_order(space, Kind.VOLUME, (), position) if empty else turn
            volumes = (*volumes, len(self._demands))
            self._demands.append(
                Demand(
                    pool.name,
                    None,
                    Kind.VOLUME,
                    0,
                    None,
                    unit=pool.extent_size,
                    weight=space.weight or 1.0,
                    growth_order=turn,
                    pool=position,
                )
            )
        self._pools[position] = dataclasses.replace(pool, volumes=volumes, arrays=arrays)

    def _boot_partitions(self) -> Iterable[BootPartition]:
        carriers = self._carriers()
        if not carriers:
            return
        for position, space in enumerate(self._schema.spaces):
            if space.type in _BOOT_PARTITIONS and position not in self._kept.spaces:
                yield self._boot_partition(position, space, carriers)

    def _boot_partition(self, position: int, space: Space, carriers: Sequence[int]) -> BootPartition:
        pools = {pool for carrier in carriers for pool in self._pools_under(carrier)}
        solid = [at for carrier in carriers for at in self._demands_of.get(carrier, []) if self._demands[at].kind is not Kind.VOLUME]
        arrays = [at for pool in pools for at in self._pools[pool].arrays]
        groups = {self._pools[pool].space for pool in pools}
        # LVM may put a volume on any PV of its group, those for striped volumes among them.
        striped = [at for at, demand in enumerate(self._demands) if demand.group in {*carriers, *groups}]
        return BootPartition(
            name=space.id,
            space=position,
            sizes=tuple((area, self._boot_partition_size(space, area)) for area in self._allowed(space)),
            demands=tuple(sorted({*solid, *striped, *arrays})),
            pools=tuple(sorted(pools)),
            disks=tuple(sorted({piece.disk for piece in self._kept.pieces if piece.space in {*carriers, *groups}})),
            percentage=space.min_percentage if space.min_size >= self._least_boot_partition(space) else "",
            floor=self._least_boot_partition(space),
        )

    def _pools_under(self, position: int) -> set[int]:
        """Return the pools whose parts make a disk boot: those of a vg or of a space in parts, for an lv the pool of its vg."""
        own = {at for at, pool in enumerate(self._pools) if pool.space == position}
        shares = {self._demands[at].pool for at in self._demands_of.get(position, []) if self._demands[at].kind is Kind.VOLUME}
        return own | {pool for pool in shares if pool is not None}

    def _carriers(self) -> list[int]:
        """Return the spaces that boot: what says so, else what is mounted at /boot, else at /."""
        spaces = self._schema.spaces
        asked = [at for at, space in enumerate(spaces) if space.boot and space.type not in _BOOT_PARTITIONS]
        if asked:
            return self._on_disks(asked)
        for mount in _BOOT_MOUNTS:
            mounted = [at for at, space in enumerate(spaces) if mount in space.mounts]
            if mounted:
                return self._on_disks(mounted)
        return []

    def _on_disks(self, positions: Sequence[int]) -> list[int]:
        """Return spaces with the pools of those that are thin volumes in the place of these: that is what lies on disks."""
        spaces = self._schema.spaces
        pools = {space.id: at for at, space in enumerate(spaces) if space.type is SpaceType.THIN_POOL}
        return list(dict.fromkeys(pools.get(spaces[at].thin_pool or "", at) for at in positions))

    def _least_boot_partition(self, space: Space) -> int:
        """Return the least size that a boot partition has on every area."""
        return max((self._least_on(space, area) for area in self._allowed(space)), default=1)

    def _least_on(self, space: Space, area: int) -> int:
        if space.type is not SpaceType.ESP:
            return 1
        return overhead.esp_minimum(self._hardware.disks[self._areas[area].disk].logical_block)

    def _boot_partition_size(self, space: Space, area: int) -> int:
        least = self._least_on(space, area)
        default = overhead.ESP_DEFAULT if space.type is SpaceType.ESP else overhead.BIOS_GRUB
        wanted = max((space.min_size or min(default, space.max_size or default)), least)
        if space.max_size is None or space.max_size >= wanted:
            return wanted
        warning = f"{space.id}: {space.max_size} MiB are less than the {least} MiB that FAT32 needs on a disk with such blocks"
        if space.max_size < least and warning not in self._warnings:
            self._warnings.append(warning)
        return space.max_size

    def _arrays_in(self, space: Space) -> bool:
        return any(member.type is SpaceType.RAID and member.id in space.contains for member in self._schema.spaces)

    def _allowed(self, space: Space, least: int = 0) -> tuple[int, ...]:
        """Return the areas that a space may use, of at least `least` MiB. Most spaces may use the same ones, so they are found once."""
        drives = self._hardware.drives
        copied = {
            drives[piece.disk] for piece in self._kept.pieces if space.copy_of and self._schema.spaces[piece.space].copy_of == space.copy_of
        }
        taken = {disk for disk, drive in enumerate(drives) if drive in copied} if copied else frozenset()
        key = space.allowed - taken if taken else space.allowed, least
        if key not in self._areas_known:
            self._areas_known[key] = tuple(at for at, area in enumerate(self._areas) if area.disk in key[0] and area.size >= least)
        return self._areas_known[key]

    def _roomiest(self, areas: Sequence[int]) -> tuple[int, ...]:
        """Return the largest of some areas on each disk."""
        roomiest: dict[int, int] = {}
        for area in sorted(areas, key=lambda area: (self._areas[area].size, -area)):
            roomiest[self._areas[area].disk] = area
        return tuple(sorted(roomiest.values()))

    def _preferred_areas(self, space: Space) -> PreferredAreas:
        """Return the areas of each tier, if the space may use any of them."""
        if all(space.allowed.isdisjoint(tier) for tier in space.preferred_disks):
            return ()
        return tuple(frozenset(at for at, area in enumerate(self._areas) if area.disk in tier) for tier in space.preferred_disks)

    def _rank(self, disk: int) -> int:
        return next(at for at, area in enumerate(self._areas) if area.disk == disk)


def _may_be_cut(space: Space) -> bool:
    if space.type is SpaceType.PARTITIONS:
        return not space.per_disk
    return space.type is SpaceType.VOLUME_GROUP or (space.type is SpaceType.LOGICAL_VOLUME and space.volume_group is None)


def _least_for_volumes(schema: Schema, pool: Space, extent: int) -> int:
    """Return how many MiB of room for data a thin pool needs at least, for its volumes to come to no more than is allowed."""
    given_out = sum(in_extents(space.min_size, extent) for space in schema.spaces if space.thin_pool == pool.id)
    return math.ceil(given_out / pool.overcommit)


def _least_device(space: Space) -> int:
    least = overhead.least_device(made_on(space.fs_type, space.mount), space.encrypt, space.fs_options or "", space.sector)
    least = max(least, zfs.LEAST_LEG) if space.zpool is not None else least
    return max(least, cache.LEAST) if space.cache_of is not None else least
