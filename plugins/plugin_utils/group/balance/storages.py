# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks that move between storages, so that these are filled alike. Sizes are MiB, levels the share of a storage that is used.

    plan = even_storages(cluster, StorageOptions(tolerance=0.05))

Storages that the same nodes reach are a *set*: a disk moves within its set only, so that its instance can go wherever it could before.
Local storages of one node are sets, too. Disks count with their whole size, though thin ones may use less.

The even level of a set is water poured into its storages over what cannot be moved. What a storage has outside a band around its even
level is its *excess*. A plan has the least excess in all, among those the fewest MiB copied, and among those the fewest disks; sets
share the limits on data and moves, the set with most excess first. A set without excess is left alone. With many disks a plan may copy
half a percent more than the least.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...common.highs import Limits, Program, Undecided, maximise
from ..cluster.model import Cluster, Disk, Instance, PoolKind, PoolName

_GIB = 1024.0
"""Programs count in GiB, so that numbers are of a size that HiGHS is at home with."""
_DISK_COSTS = 1e-3
"""What a disk that moves costs beside its size: one MiB, so that the fewest of equally large ones move."""
_FEW, _EXACT, _CLOSE = 200, Limits(gap=1e-7, nodes=2000), Limits(gap=0.005, nodes=50)
"""Up to how many columns a program is solved to the last MiB, and how well larger ones are: within half a percent of the data."""
Key = tuple[PoolName, str]
"""Of a storage: its name, and its node where it lies within one."""


@dataclass(frozen=True)
class StorageOptions:
    """How far from even levels may be, and what a plan may cost at most (None: anything)."""

    tolerance: float = 0.05
    most_data: int | None = None
    most_moves: int | None = None


@dataclass(frozen=True)
class Storage:
    """A storage that disks of instances lie in; `node` is empty where it is outside of nodes, `nodes` are those that reach it."""

    name: PoolName
    node: str
    nodes: tuple[str, ...]
    total: int
    used: int
    content: tuple[str, ...] = ()

    @property
    def level(self) -> float:
        """The share of it that is used."""
        return self.used / self.total if self.total else 0.0

    def takes(self, disk: Disk) -> bool:
        """Return whether disks of this kind may lie here."""
        return not self.content or disk.content in self.content


@dataclass(frozen=True)
class DiskMove:
    """A disk of an instance, which stays on its node, goes to another storage."""

    instance: Instance
    disk: str
    size: int
    source: Key
    target: Key


@dataclass(frozen=True)
class StayingDisk:
    """A disk that cannot go to another storage, and why."""

    instance: str
    disk: str
    storage: str
    why: str


@dataclass(frozen=True)
class StoragePlan:
    """Moves in stages, as positions; storages before and after; MiB of excess before and after."""

    moves: tuple[DiskMove, ...]
    stages: tuple[tuple[int, ...], ...]
    before: tuple[Storage, ...]
    after: tuple[Storage, ...]
    excess_before: float
    excess_after: float
    stays: tuple[StayingDisk, ...]
    blocked: tuple[DiskMove, ...]
    """Moves that were found, but for which no storage on the way has room."""
    complete: bool
    """Whether the search came to its end."""


@dataclass(frozen=True)
class _Candidate:
    """A disk that may go to others of the storages `allowed`, among which is its own."""

    instance: Instance
    name: str
    size: int
    source: Key
    allowed: tuple[Key, ...]


def even_storages(cluster: Cluster, options: StorageOptions = StorageOptions()) -> StoragePlan:
    """Return the moves after which the storages of each set are filled alike."""
    storages = collect_storages(cluster)
    sets = _sets(storages.values())
    candidates, stays = _candidates(cluster, storages, sets)
    fixed = {key: storage.used for key, storage in storages.items()}
    for candidate in candidates:
        fixed[candidate.source] -= candidate.size
    bands = {key: band for members in sets for key, band in _bands(members, storages, fixed, options.tolerance).items()}
    used = {key: storage.used for key, storage in storages.items()}
    data, count, wanted, complete = options.most_data, options.most_moves, list[DiskMove](), True
    for members in sorted(sets, key=lambda members: -_excess(members, used, bands)):
        own = [candidate for candidate in candidates if candidate.source in members]
        found = _even_set(members, storages, own, bands, (data, count)) if own and _excess(members, used, bands) else _Found([])
        wanted += found.moves
        complete = complete and found.proven
        data = None if data is None else data - sum(move.size for move in found.moves)
        count = None if count is None else count - len(found.moves)
    moves, stages, blocked = _staged(wanted, storages)
    after = {key: storage.used for key, storage in storages.items()}
    for move in moves:
        after[move.source] -= move.size
        after[move.target] += move.size
    every = [key for members in sets for key in members]
    return StoragePlan(
        moves=tuple(moves),
        stages=stages,
        before=tuple(storages.values()),
        after=tuple(Storage(s.name, s.node, s.nodes, s.total, after[key], s.content) for key, s in storages.items()),
        excess_before=_excess(every, used, bands),
        excess_after=_excess(every, after, bands),
        stays=tuple(stays),
        blocked=tuple(blocked),
        complete=complete,
    )


def collect_storages(cluster: Cluster) -> dict[Key, Storage]:
    """Return the storages whose sizes are known, in the order of nodes; one outside of nodes is there once."""
    found: dict[Key, Storage] = {}
    for node in cluster.nodes:
        for pool in () if node.offline else node.storage:
            key = (pool.name, "" if pool.name.kind == PoolKind.EXTERNAL else node.name)
            if key in found:
                known = found[key]
                found[key] = Storage(known.name, known.node, (*known.nodes, node.name), known.total, known.used, known.content)
            elif pool.total and pool.free is not None:
                found[key] = Storage(*key, (node.name,), pool.total, max(0, pool.total - pool.free), pool.content)
    return found


def _sets(storages: Iterable[Storage]) -> list[tuple[Key, ...]]:
    """Return the storages that disks can move between: those of one kind that the same nodes reach."""
    alike: dict[tuple[PoolKind, frozenset[str]], list[Key]] = collections.defaultdict(list)
    for storage in storages:
        alike[storage.name.kind, frozenset(storage.nodes)].append((storage.name, storage.node))
    return [tuple(members) for members in alike.values()]


def _candidates(
    cluster: Cluster,
    storages: Mapping[Key, Storage],
    sets: Sequence[tuple[Key, ...]],
) -> tuple[list[_Candidate], list[StayingDisk]]:
    """Return the disks that may move, and those that may not."""
    set_of = {key: members for members in sets for key in members}
    candidates, stays = [], []
    for instance in cluster.instances:
        for position, disk in enumerate(() if instance.forthcoming else instance.disks):
            if disk.storage is None:
                continue
            name = disk.name or f"disk{position}"
            key = (disk.storage, "" if disk.storage.kind == PoolKind.EXTERNAL else instance.primary)
            allowed = tuple(other for other in set_of.get(key, ()) if other == key or storages[other].takes(disk))
            why = disk.stays or _why_it_stays(instance, key in storages, len(allowed))
            if why:
                stays.append(StayingDisk(instance.name, name, disk.storage.pool, why))
            elif disk.size:
                candidates.append(_Candidate(instance, name, disk.size, key, allowed))
    return candidates, stays


def _why_it_stays(instance: Instance, known: bool, choices: int) -> str:
    if not instance.auto_balance:
        return "its instance is not to be balanced"
    if not known:
        return "no node that answers tells how full its storage is"
    return "" if choices > 1 else "no other storage that the same nodes reach takes it"


def _bands(
    members: Sequence[Key],
    storages: Mapping[Key, Storage],
    fixed: Mapping[Key, int],
    tolerance: float,
) -> dict[Key, tuple[float, float]]:
    """Return between how many MiB each storage of a set is as full as the others."""
    everything = sum(storages[key].used for key in members)
    level = 0.0
    # Storages in the order in which the rising water reaches them.
    reached = sorted(members, key=lambda key: fixed[key] / storages[key].total)
    for count in range(1, len(reached) + 1):
        under = reached[:count]
        level = (everything - sum(fixed[key] for key in reached[count:])) / sum(storages[key].total for key in under)
        if count == len(reached) or level <= fixed[reached[count]] / storages[reached[count]].total:
            break
    found = {}
    for key in members:
        even = max(fixed[key] / storages[key].total, level)
        found[key] = ((even - tolerance) * storages[key].total, (even + tolerance) * storages[key].total)
    return found


def _excess(members: Iterable[Key], used: Mapping[Key, int], bands: Mapping[Key, tuple[float, float]]) -> float:
    """Return the MiB that storages have too much or too little in all."""
    return math.fsum(max(0.0, bands[key][0] - used[key], used[key] - bands[key][1]) for key in members)


@dataclass(frozen=True)
class _Found:
    moves: list[DiskMove]
    proven: bool = True


def _even_set(
    members: Sequence[Key],
    storages: Mapping[Key, Storage],
    candidates: Sequence[_Candidate],
    bands: Mapping[Key, tuple[float, float]],
    most: tuple[int | None, int | None],
) -> _Found:
    """Return the moves of one set, by a program of two goals: the least excess, then the least data."""
    kinds: dict[tuple[int, Key, tuple[Key, ...]], list[_Candidate]] = collections.defaultdict(list)
    for candidate in candidates:
        kinds[candidate.size, candidate.source, candidate.allowed].append(candidate)
    program = Program()
    loads: dict[Key, list[tuple[int, float]]] = {key: [] for key in members}
    fixed = {key: float(storages[key].used) for key in members}
    goes: dict[tuple[int, Key, tuple[Key, ...]], dict[Key, int]] = {}
    leaving: list[tuple[int, float]] = []
    for kind, alike in kinds.items():
        size, source, allowed = kind
        fixed[source] -= size * len(alike)
        goes[kind] = {key: program.column(0, len(alike), integral=True) for key in allowed}
        program.row([(column, 1.0) for column in goes[kind].values()], len(alike), len(alike))
        for key, column in goes[kind].items():
            loads[key].append((column, size / _GIB))
        leaving += [(column, size / _GIB) for key, column in goes[kind].items() if key != source]
    outside = {key: program.column() for key in members}
    for key in members:
        low, high = (bound - fixed[key] for bound in bands[key])
        program.row([*loads[key], (outside[key], 1.0)], low=low / _GIB)
        program.row([*loads[key], (outside[key], -1.0)], high=high / _GIB)
        program.row(loads[key], high=(max(storages[key].total, storages[key].used) - fixed[key]) / _GIB)
    data, count = most
    if data is not None:
        program.row(leaving, high=data / _GIB)
    if count is not None:
        program.row([(column, 1.0) for column, _size in leaving], high=count)
    limits = _EXACT if len(program.lower) <= _FEW else _CLOSE
    try:
        first = maximise(program, dict.fromkeys(outside.values(), -1.0), limits)
        if first is None:
            return _Found([])
        # A MiB more, since what is found is rounded.
        program.row([(column, 1.0) for column in outside.values()], high=-first.objective + 1 / _GIB)
        second = maximise(program, {column: -size - _DISK_COSTS for column, size in leaving}, limits)
    except Undecided:
        return _Found([], proven=False)
    if second is None:
        return _Found([], proven=False)
    moves = []
    for kind, alike in kinds.items():
        size, source, _allowed = kind
        left = iter(alike)
        for key, column in goes[kind].items():
            for _number in range(0 if key == source else round(second.values[column])):
                candidate = next(left)
                moves.append(DiskMove(candidate.instance, candidate.name, size, source, key))
    return _Found(moves, proven=first.proven and second.proven)


def _staged(
    wanted: Sequence[DiskMove],
    storages: Mapping[Key, Storage],
) -> tuple[list[DiskMove], tuple[tuple[int, ...], ...], list[DiskMove]]:
    """Return moves, stages, and the moves that never have room.

    While a disk is copied it takes room twice; what a stage frees counts from the next one on. An instance has one disk under way.
    """
    free = {key: storage.total - storage.used for key, storage in storages.items()}
    left = sorted(wanted, key=lambda move: -move.size)
    moves: list[DiskMove] = []
    stages = []
    while left:
        room, busy, stage = dict(free), set[str](), []
        for move in left:
            if move.instance.name not in busy and move.size <= room[move.target]:
                room[move.target] -= move.size
                busy.add(move.instance.name)
                stage.append(move)
        if not stage:
            break
        for move in stage:
            left.remove(move)
            free[move.target] -= move.size
            free[move.source] += move.size
        stages.append(tuple(range(len(moves), len(moves) + len(stage))))
        moves += stage
    return moves, tuple(stages), left
