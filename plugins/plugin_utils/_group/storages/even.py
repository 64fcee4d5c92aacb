# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From a cluster to the moves of disks that even its storages.

    plan = even_storages(cluster, StorageOptions(tolerance=0.05))

A plan has the least excess in all, among those the fewest MiB copied, and among those the fewest disks; sets share the limits on data
and moves, the set with most excess first. A set without excess is left alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..cluster.model import Cluster
from .disks import Candidate, DiskMove, StayingDisk, find_candidates
from .levels import Key, Storage, collect_storages, even_bands, excess, storage_sets
from .program import Found, Most, even_set
from .stages import Staged, staged


@dataclass(frozen=True)
class StorageOptions:
    """How far from even levels may be, and what a plan may cost at most (None: anything)."""

    tolerance: float = 0.05
    most_data: int | None = None
    most_moves: int | None = None


@dataclass(frozen=True)
class StoragePlan:
    """Moves in stages; storages before and after; MiB of excess before and after; disks that stay."""

    staged: Staged
    before: tuple[Storage, ...]
    after: tuple[Storage, ...]
    excess_before: float
    excess_after: float
    stays: tuple[StayingDisk, ...]
    complete: bool
    """Whether the search came to its end."""

    @property
    def moves(self) -> tuple[DiskMove, ...]:
        """The moves in their order."""
        return self.staged.moves


def even_storages(cluster: Cluster, options: StorageOptions = StorageOptions()) -> StoragePlan:
    """Return the moves after which the storages of each set are filled alike."""
    storages = collect_storages(cluster)
    sets = storage_sets(storages.values())
    candidates, stays = find_candidates(cluster, storages, sets)
    bands = _bands(sets, storages, candidates, options.tolerance)
    used = {key: storage.used for key, storage in storages.items()}
    found = _find(sets, storages, candidates, bands, Most(options.most_data, options.most_moves))
    ordered = staged([move for one in found for move in one.moves], storages)
    after = _moved(used, ordered.moves)
    return StoragePlan(
        staged=ordered,
        before=tuple(storages.values()),
        after=tuple(dataclasses.replace(storage, used=after[key]) for key, storage in storages.items()),
        excess_before=excess(storages, used, bands),
        excess_after=excess(storages, after, bands),
        stays=tuple(stays),
        complete=all(one.proven for one in found),
    )


def _bands(
    sets: Sequence[Sequence[Key]],
    storages: Mapping[Key, Storage],
    candidates: Sequence[Candidate],
    tolerance: float,
) -> dict[Key, tuple[float, float]]:
    """Return the band of each storage; what cannot move is fixed."""
    used = {key: storage.used for key, storage in storages.items()}
    fixed = dict(used)
    for candidate in candidates:
        fixed[candidate.source] -= candidate.size
    return {key: band for members in sets for key, band in even_bands(members, storages, fixed, tolerance).items()}


def _find(
    sets: Sequence[Sequence[Key]],
    storages: Mapping[Key, Storage],
    candidates: Sequence[Candidate],
    bands: Mapping[Key, tuple[float, float]],
    most: Most,
) -> list[Found]:
    """Return the moves of each set that has some excess, and disks that may move."""
    used = {key: storage.used for key, storage in storages.items()}
    found = []
    for members in sorted(sets, key=lambda members: -excess(members, used, bands)):
        inside = frozenset(members)
        own = [candidate for candidate in candidates if candidate.source in inside]
        if own and excess(members, used, bands):
            found.append(even_set(members, storages, own, bands, most))
            most = most.less(found[-1].moves)
    return found


def _moved(used: Mapping[Key, int], moves: Sequence[DiskMove]) -> dict[Key, int]:
    after = dict(used)
    for move in moves:
        after[move.source] -= move.size
        after[move.target] += move.size
    return after
