# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Share disks among divisible spaces: feasible, preferences first, weighted max-min fair, exact in MiB.

Four steps, each on whole numbers only:

1. *Feasibility.* The minimums are a maximum flow from spaces to disks; the minimum cut is the proof when they do not fit.
2. *Preferences.* Of the minimums, as few MiB as possible lie off the preferred disks (worst tier first, then schema order).
3. *Sizes.* First the spaces with a preference grow, on their preferred disks only; then the others, on all that is left.
   Both times `T = clamp(level * weight, low, high)` with the highest level that fits: progressive filling of a polymatroid
   (Megiddo 1974: lexicographically optimal flows), see `levels`.
4. *Layout.* Totals are laid on disks in few pieces, see `layout_pieces`.

Source of the formulation: the analysis of the seed's program; its semantics of clamped shares are systemd-repart's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..._common.libraries import np, npt
from ..problem.model import Placement, Problem, Sizes
from .flow import route, split
from .lay_out import Item, Shelf, lay
from .levels import Grower, fill, whole_weights

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

NO_MAXIMUM = 2**63 - 1
UNPREFERRED = 127


@dataclass(frozen=True)
class Request:
    """S divisible spaces and D disks; sizes are whole units (MiB, or extents when all of them are).

    Spaces are in schema order and disks in their stable order: both decide ties.
    """

    low: IntArray
    """(S,) minimums."""
    high: IntArray
    """(S,) maximums, NO_MAXIMUM for none."""
    weight: npt.NDArray[np.float64]
    """(S,) share of what is left; 0 never grows."""
    allowed: BoolArray
    """(S, D) where a space may lie."""
    tier: IntArray
    """(S, D) how much a space likes a disk: 0 best, 1 next ..., UNPREFERRED for disks no query of the space names.

    All 0 for a space without a preference.
    """
    capacity: IntArray
    """(D,) what the spaces may use of each disk."""


class Infeasible(Exception):
    """The minimums do not fit; the minimum cut proves it.

    `spaces` (positions) may lie on no other disks than `disks` (positions) and need `need`, but these hold `room`.
    """

    def __init__(self, spaces: tuple[int, ...], disks: tuple[int, ...], need: int, room: int) -> None:
        super().__init__(f"{len(spaces)} spaces need {need} MiB on {len(disks)} disks that hold {room} MiB")
        self.spaces = spaces
        self.disks = disks
        self.need = need
        self.room = room
        self.short = need - room


def share(request: Request) -> IntArray:
    """Return (S, D) how much each space takes of each disk.

    Raises Infeasible when the minimums do not fit.
    """
    grid = _Grid.of(request)
    low = request.low.tolist()
    _check_feasible(low, grid)
    parts = split(low, grid.tiers, grid.room)
    sizes = _grow(request, low, parts, grid)
    return _lay_out(sizes, grid)


def off_preferred(request: Request, sizes: IntArray) -> IntArray:
    """Return (S,) how much of each space lies on a disk that none of its preferences names, although some name others."""
    selective = ((request.tier < UNPREFERRED) & request.allowed).any(axis=1)
    off: IntArray = (sizes * (request.tier >= UNPREFERRED)).sum(axis=1) * selective
    return off


@dataclass(frozen=True)
class _Grid:
    """The request with disks of the same standing merged to pools; sets of pools are the bits of an int."""

    shelf: Shelf
    room: list[int]
    """(P,) capacity of each pool."""
    tiers: list[dict[int, int]]
    """(S,) tier -> pools; one entry for a space without a placement to make."""
    all_pools: list[int]
    """(S,) pools a space may lie on."""
    growth: list[int]
    """(S,) pools a space may grow on: its preferred ones, if it has any."""
    selective: list[bool]
    """(S,) whether a space keeps to its preferred pools, of which it does not have all."""

    @classmethod
    def of(cls, request: Request) -> _Grid:
        standing = np.where(request.allowed, request.tier, -1).astype(np.int16)
        columns = np.ascontiguousarray(standing.T)
        numbers: dict[bytes, int] = {}
        pool = tuple(numbers.setdefault(column.tobytes(), len(numbers)) for column in columns)
        kinds = [np.frombuffer(column, dtype=np.int16).tolist() for column in numbers]
        shelf = Shelf(pool, tuple(request.capacity.tolist()))
        tiers: list[dict[int, int]] = [{} for _unused in range(len(request.low))]
        for number, kind in enumerate(kinds):
            for space, tier in enumerate(kind):
                if tier >= 0:
                    tiers[space][tier] = tiers[space].get(tier, 0) | 1 << number
        all_pools = [_union(by_tier.values()) for by_tier in tiers]
        liked = [_union(pools for tier, pools in by_tier.items() if tier < UNPREFERRED) for by_tier in tiers]
        return cls(
            shelf,
            shelf.pool_room(),
            tiers,
            all_pools,
            [some or everything for some, everything in zip(liked, all_pools, strict=True)],
            [some not in (0, everything) for some, everything in zip(liked, all_pools, strict=True)],
        )


def _union(masks: Iterable[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


def check_minimums(low: IntArray, allowed: BoolArray, capacity: IntArray) -> None:
    """Raise Infeasible when minimums (S,) do not fit on the disks (D,) that are allowed to them (S, D)."""
    everywhere_alike = np.zeros(allowed.shape, dtype=np.int64)
    no_limit = np.full(len(low), NO_MAXIMUM, dtype=np.int64)
    request = Request(low, no_limit, np.ones(len(low)), allowed, everywhere_alike, capacity)
    _check_feasible(low.tolist(), _Grid.of(request))


def _check_feasible(low: Sequence[int], grid: _Grid) -> None:
    rows = _Rows()
    for space, amount in enumerate(low):
        rows.add(grid.all_pools[space], amount)
    transport, short = route(rows.demand, list(rows.number), grid.room)
    if not short:
        return
    cut_rows, cut_pools = transport.reach(short)
    spaces = tuple(space for space, amount in enumerate(low) if amount and cut_rows >> rows.number[grid.all_pools[space]] & 1)
    disks = tuple(disk for disk, pool in enumerate(grid.shelf.pool) if cut_pools >> pool & 1)
    raise Infeasible(spaces, disks, sum(low[space] for space in spaces), sum(grid.shelf.room[disk] for disk in disks))


class _Rows:
    """Demands merged by the set of pools they may lie on: `number` mask -> row, `demand` by row."""

    def __init__(self) -> None:
        self.number: dict[int, int] = {}
        self.demand: list[int] = []

    def add(self, mask: int, amount: int) -> int:
        """Add a demand and return its row."""
        row = self.number.setdefault(mask, len(self.number))
        if row == len(self.demand):
            self.demand.append(0)
        self.demand[row] += amount
        return row


def _grow(request: Request, low: Sequence[int], parts: Sequence[Mapping[int, int]], grid: _Grid) -> list[int]:
    """Return (S,) sizes: first the selective spaces grow on what they prefer, then the others on what is left."""
    rows = _Rows()
    for space, by_tier in enumerate(parts):
        for tier, amount in by_tier.items():
            rows.add(_union(pools for other, pools in grid.tiers[space].items() if other <= tier), amount)
    all_room = sum(grid.room)
    limits = [min(high, least + all_room) for high, least in zip(request.high.tolist(), low, strict=True)]
    weights = whole_weights(request.weight.tolist())
    sizes = list(low)
    for turn in (True, False):
        spaces = [space for space, selective in enumerate(grid.selective) if selective is turn]
        growers = [Grower(rows.add(grid.growth[space], 0), weights[space], low[space], limits[space]) for space in spaces]
        grown = fill(growers, rows.demand, list(rows.number), grid.room) if growers else []
        for space, size in zip(spaces, grown, strict=True):
            rows.add(grid.growth[space], size - low[space])
            sizes[space] = size
    return sizes


def _lay_out(sizes: Sequence[int], grid: _Grid) -> IntArray:
    """Return (S, D) the sizes laid on disks, each space as far as possible on its better tiers."""
    by_tier = split(sizes, grid.tiers, grid.room)
    items = [Item(space, grid.tiers[space][tier], amount) for space, amounts in enumerate(by_tier) for tier, amount in amounts.items()]
    result = np.zeros((len(sizes), len(grid.shelf.pool)), dtype=np.int64)
    for (item, disk), amount in lay(items, grid.shelf).items():
        result[items[item].space, disk] += amount
    return result


def only_divisible(problem: Problem) -> bool:
    """Tell whether nothing but pools without heads, one volume each, is to be laid on disks of one area each."""
    one_each = len({area.disk for area in problem.areas}) == len(problem.areas)
    loose = all(pool.metadata_size == 0 and pool.extent_size == 1 and len(pool.volumes) == 1 for pool in problem.pools)
    alone = not problem.boot_partitions and not problem.relations
    return one_each and loose and len(problem.demands) == len(problem.pools) and alone


def share_out(problem: Problem) -> tuple[Placement, Sizes] | None:
    """Return placement and sizes of a divisible problem, or None when its minimums do not fit."""
    volumes = [problem.demands[pool.volumes[0]] for pool in problem.pools]
    if any(volume.hi is not None and volume.hi < volume.lo for volume in volumes):
        return None
    allowed, tier = _cells(problem)
    request = Request(
        low=np.array([volume.lo for volume in volumes], dtype=np.int64),
        high=np.array([NO_MAXIMUM if volume.hi is None else volume.hi for volume in volumes], dtype=np.int64),
        weight=np.array([volume.weight for volume in volumes], dtype=np.float64),
        allowed=allowed,
        tier=tier,
        capacity=np.array([area.size for area in problem.areas], dtype=np.int64),
    )
    try:
        shared = share(request)
    except Infeasible:
        return None
    parts = {(pool, area): int(shared[pool, area]) for pool, area in zip(*(positions.tolist() for positions in np.nonzero(shared)))}
    steps = [0] * len(problem.demands)
    for position, pool in enumerate(problem.pools):
        steps[pool.volumes[0]] = int(shared[position].sum())
    left = tuple(int(size) for size in request.capacity - shared.sum(axis=0))
    placement = Placement(
        areas_of_demand=((),) * len(problem.demands),
        pvs=tuple(tuple(areas.tolist()) for areas in map(np.flatnonzero, shared)),
        boot_partitions=(),
    )
    return placement, Sizes(tuple(steps), parts, left)


def _cells(problem: Problem) -> tuple[BoolArray, IntArray]:
    """Return where each pool may lie and how much it likes each area, both (pools, areas)."""
    shape = len(problem.pools), len(problem.areas)
    allowed = np.zeros(shape, dtype=np.bool_)
    tier = np.zeros(shape, dtype=np.int64)
    for position, pool in enumerate(problem.pools):
        allowed[position, list(pool.areas)] = True
        if pool.preferred:
            tier[position] = UNPREFERRED
        for rank in reversed(range(len(pool.preferred))):
            tier[position, sorted(pool.preferred[rank])] = rank
    return allowed, tier
