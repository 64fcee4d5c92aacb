# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objective `ordered` for the types that the seed's program knows: lv, vg (a container only), partition and partitions.

The program itself is in `ordered`; here a machine and a schema become its arrays, and its sizes become pieces. Where lvs are in
vgs their room is counted in extents, after what each PV keeps for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ....module_utils._data.errors import Mistakes, NoSolution
from ....module_utils._storage import lvm, overhead
from ..._common.libraries import np
from ..conflict.refusal import Why, why
from ..model import Allocation, Hardware, Piece, Schema, SpaceType
from ..problem.formulate import formulate
from ..static.partitions import is_encrypted
from .allocate import DoesNotPack, Infeasible, allocate
from .program import NO_MAXIMUM, IntArray, OrderedRequest

_KNOWN = (SpaceType.LOGICAL_VOLUME, SpaceType.VOLUME_GROUP, SpaceType.PARTITION, SpaceType.PARTITIONS)
_MIB = 1


def allocate_ordered(hardware: Hardware, schema: Schema, *, reserve: int = 0, refuse: Why = why) -> Allocation:
    """Return the seed's allocation, whole and without its broken constraints; `reserve` MiB of every disk stay free.

    Raises InputError for what the program cannot say, NoSolution with the conflict as `refuse` says it.
    """
    _check_expressible(schema)
    try:
        sheet = _solve_all(schema, _room(hardware, schema, reserve))
    except (Infeasible, DoesNotPack) as error:
        reason = refuse(formulate(hardware, schema, reserve))
        raise (reason if reason.conflict["constraints"] else _too_tight()) from error
    return Allocation(
        pieces=tuple(_pieces(hardware, schema, sheet, reserve)),
        volumes={at: int(sizes.sum()) for at, sizes in sheet.sizes.items() if schema.spaces[at].volume_group is not None},
        proven=sheet.gap == 0.0,
        gap=sheet.gap,
        off_preferred=_off_preferred(schema, sheet),
        warnings=sheet.warnings,
        striped={at: tuple(np.flatnonzero(sizes).tolist()) for at, sizes in sheet.sizes.items() if schema.spaces[at].is_striped},
    )


def _too_tight() -> NoSolution:
    says = "the objective ordered keeps room for the metadata of a PV of every vg on every disk that the vg may use"
    remedies = ["use the objective fair, which finds a plan", "say with 'disks' where each vg may lie"]
    return NoSolution(f"No plan: {says}", {"short": None, "constraints": [{"name": "pv_heads", "says": says}], "remedies": remedies})


def _check_expressible(schema: Schema) -> None:
    mistakes = Mistakes()
    remedy = "use the objective fair"
    for space in schema.spaces:
        if space.type not in _KNOWN:
            mistakes.add(f"{space.place}.type", f"the objective ordered cannot plan {space.type}; {remedy}")
        unknown = {
            "cache_of": space.cache_of or space.zpool,
            "count": space.copy_of,
            "extent_size": space.extent_size != lvm.EXTENT,
            "per_disk": space.per_disk,
            "keep_data": space.keep_data,
            "max_pvs": space.max_pvs is not None,
            "apart_from": space.apart_from,
            "together_with": space.together_with,
        }
        for key, given in unknown.items():
            if given:
                mistakes.add(f"{space.place}.{key}", f"the objective ordered does not support it; {remedy}")
        if space.type is SpaceType.VOLUME_GROUP and (space.min_size or space.max_size is not None):
            mistakes.add(space.place, f"the objective ordered supports no bounds on a vg, only on what is in it; {remedy}")
    mistakes.check()


@dataclass(frozen=True)
class _Sheet:
    """Sizes (D,) in MiB of every space (position) but the vgs."""

    sizes: dict[int, IntArray]
    gap: float = 0.0
    warnings: tuple[str, ...] = ()


def _room(hardware: Hardware, schema: Schema, reserve: int) -> IntArray:
    """Return (D,) what the spaces may use of each disk, less the head of one PV for each vg that may lie there."""
    room = np.array([disk.size if schema.flat else overhead.usable(disk.size) for disk in hardware.disks], dtype=np.int64) - reserve
    for space in schema.spaces:
        if space.type is SpaceType.VOLUME_GROUP:
            room[sorted(space.allowed)] -= overhead.pv_head(is_encrypted(space, schema))
    return np.maximum(room, 0)


def _solve_all(schema: Schema, room: IntArray) -> _Sheet:
    volumes = [at for at, space in enumerate(schema.spaces) if space.volume_group is not None]
    others = [at for at, space in enumerate(schema.spaces) if space.volume_group is None and space.type is not SpaceType.VOLUME_GROUP]
    if not volumes:
        return _solve(schema, others, room, _MIB)
    if not others:
        return _solve(schema, volumes, room, lvm.EXTENT)
    try:
        return _solve_mixed(schema, volumes, others, room, lvm.EXTENT - 1)
    except (Infeasible, DoesNotPack):
        return _solve_mixed(schema, volumes, others, room, 0)


def _solve_mixed(schema: Schema, volumes: Sequence[int], others: Sequence[int], room: IntArray, spare: int) -> _Sheet:
    """Size partitions together with the volumes, and then the volumes again, in the extents that the partitions leave them.

    With less than an extent to spare on every disk the second step cannot fail; a tight fit has to try without.
    """
    together = _solve(schema, sorted([*volumes, *others]), np.maximum(room - spare, 0), _MIB)
    partitions = {at: together.sizes[at] for at in others}
    in_extents = _solve(schema, volumes, room - sum(partitions.values()), lvm.EXTENT)
    return _Sheet(partitions | in_extents.sizes, max(together.gap, in_extents.gap), together.warnings)


def _solve(schema: Schema, spaces: Sequence[int], room: IntArray, unit: int) -> _Sheet:
    if not spaces:
        return _Sheet({})
    chosen = [schema.spaces[at] for at in spaces]
    stripes = [space.stripes or 1 if space.volume_group is not None else 1 for space in chosen]
    # A striped one is as many extents as it has stripes, or some times that.
    extent_sizes = [lvm.EXTENT * of if space.volume_group is not None else _MIB for space, of in zip(chosen, stripes, strict=True)]
    low = [-(-space.min_size // extent_size) * extent_size for space, extent_size in zip(chosen, extent_sizes, strict=True)]
    high = [
        NO_MAXIMUM if space.max_size is None else max(least, space.max_size // extent_size * extent_size) // unit
        for space, extent_size, least in zip(chosen, extent_sizes, low, strict=True)
    ]
    disks = range(len(room))
    request = OrderedRequest(
        low=np.array(low, dtype=np.int64) // unit,
        high=np.array(high, dtype=np.int64),
        weight=np.array([space.weight for space in chosen]),
        best=np.array([[disk in frozenset().union(*space.preferred_disks) for disk in disks] for space in chosen]),
        allowed=np.array([[disk in space.allowed for disk in disks] for space in chosen]),
        none_order=np.array([space.none_order for space in chosen]),
        single=np.array([space.type is SpaceType.PARTITION for space in chosen]),
        capacity=room // unit,
        stripes=np.array(stripes, dtype=np.int64),
    )
    answer = allocate(request)
    loosened = [" and ".join(schema.spaces[spaces[row]].id for row in group) for group in answer.loosened]
    warnings = tuple(f"the weights of {names} cannot be kept exactly within their bounds" for names in loosened)
    return _Sheet({at: answer.sizes[row] * unit for row, at in enumerate(spaces)}, answer.gap, warnings)


def _pieces(hardware: Hardware, schema: Schema, sheet: _Sheet, reserve: int) -> Iterator[Piece]:
    """Return partitions and lvs in schema order, PVs last; the last PV takes what is less than an extent."""
    groups = {
        at: _group_sizes(schema, sheet, at, len(hardware.disks))
        for at, space in enumerate(schema.spaces)
        if space.type is SpaceType.VOLUME_GROUP
    }
    for disk, facts in enumerate(hardware.disks):
        plain = [
            Piece(at, disk, int(sizes[disk]))
            for at, sizes in sorted(sheet.sizes.items())
            if schema.spaces[at].volume_group is None and sizes[disk]
        ]
        physical = [Piece(at, disk, int(sizes[disk])) for at, sizes in groups.items() if sizes[disk]]
        yield from plain
        if physical:
            left = overhead.usable(facts.size) - reserve - sum(piece.size for piece in (*plain, *physical))
            padding = left if 0 < left < lvm.EXTENT else 0
            yield from physical[:-1]
            yield Piece(physical[-1].space, disk, physical[-1].size + padding)


def _group_sizes(schema: Schema, sheet: _Sheet, group: int, disks: int) -> IntArray:
    """Return (D,) sizes of a vg's PVs."""
    space = schema.spaces[group]
    total = np.zeros(disks, dtype=np.int64)
    for at, sizes in sheet.sizes.items():
        if schema.spaces[at].volume_group == space.id:
            total += sizes
    return np.where(total > 0, total + overhead.pv_head(is_encrypted(space, schema)), 0)


def _off_preferred(schema: Schema, sheet: _Sheet) -> dict[int, int]:
    off = {}
    for at, sizes in sheet.sizes.items():
        liked = frozenset().union(*schema.spaces[at].preferred_disks)
        elsewhere = sum(int(size) for disk, size in enumerate(sizes) if disk not in liked)
        if liked and elsewhere:
            off[at] = elsewhere
    return off
