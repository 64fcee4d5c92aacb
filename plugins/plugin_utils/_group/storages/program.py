# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The moves that even one set of storages: the least excess in all, among those the fewest MiB copied, then the fewest disks.

Disks that are alike (size, storage, where they may go) are one column each for the places that they may take. Disks count with their
whole size, though thin ones may use less. With many columns a plan may copy half a percent more than the least.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..._common.highs import Floats, Limits, Program, Undecided, maximise
from .disks import Candidate, DiskMove
from .levels import Key, Storage

Kind = tuple[int, Key, tuple[Key, ...]]
"""Disks that are alike: their size, the storage that they lie on, and those that they may lie on."""
_GIB = 1024.0
"""Programs count in GiB, so that numbers are of a size that HiGHS is at home with."""
_DISK_COSTS = 1e-3
"""What a disk that moves costs in addition to its size: one MiB, so that the fewest of equally large ones move."""
_FEW, _EXACT, _CLOSE = 200, Limits(gap=1e-7, nodes=2000), Limits(gap=0.005, nodes=50)
"""Up to how many columns a program is solved to the last MiB, and how well larger ones are: within half a percent of the data."""


@dataclass(frozen=True)
class Found:
    """Moves, and whether nothing better is left to be found."""

    moves: tuple[DiskMove, ...]
    proven: bool


@dataclass(frozen=True)
class Most:
    """What may be copied at most, MiB and disks; None is any number."""

    data: int | None
    moves: int | None

    def less(self, moves: Sequence[DiskMove]) -> Most:
        """Return what is left after these."""
        data = None if self.data is None else self.data - sum(move.size for move in moves)
        return Most(data, None if self.moves is None else self.moves - len(moves))


def even_set(
    members: Sequence[Key],
    storages: Mapping[Key, Storage],
    candidates: Sequence[Candidate],
    bands: Mapping[Key, tuple[float, float]],
    most: Most,
) -> Found:
    """Return the moves of one set, by a program of two goals: the least excess, then the least data."""
    kinds: dict[Kind, list[Candidate]] = collections.defaultdict(list)
    for candidate in candidates:
        kinds[candidate.size, candidate.source, candidate.allowed].append(candidate)
    program = Program()
    goes = {kind: _columns(program, kind, len(alike)) for kind, alike in kinds.items()}
    outside = _load_rows(program, members, storages, kinds, goes, bands)
    leaving = [
        (column, size / _GIB) for (size, source, _allowed), columns in goes.items() for key, column in columns.items() if key != source
    ]
    if most.data is not None:
        program.row(leaving, high=most.data / _GIB)
    if most.moves is not None:
        program.row([(column, 1.0) for column, _size in leaving], high=most.moves)
    limits = _EXACT if len(program.lower) <= _FEW else _CLOSE
    try:
        first = maximise(program, dict.fromkeys(outside, -1.0), limits)
        if first is None:
            return Found((), proven=True)
        # A MiB more, since what is found is rounded.
        program.row([(column, 1.0) for column in outside], high=-first.objective + 1 / _GIB)
        second = maximise(program, {column: -size - _DISK_COSTS for column, size in leaving}, limits)
    except Undecided:
        return Found((), proven=False)
    if second is None:
        return Found((), proven=False)
    return Found(tuple(_moves(kinds, goes, second.values)), proven=first.proven and second.proven)


def _columns(program: Program, kind: Kind, count: int) -> dict[Key, int]:
    """Return the columns of how many of `count` disks that are alike go to each storage, all of them to one or another."""
    _size, _source, allowed = kind
    columns = {key: program.column(0, count, integral=True) for key in allowed}
    program.row([(column, 1.0) for column in columns.values()], count, count)
    return columns


def _load_rows(
    program: Program,
    members: Sequence[Key],
    storages: Mapping[Key, Storage],
    kinds: Mapping[Kind, Sequence[Candidate]],
    goes: Mapping[Kind, Mapping[Key, int]],
    bands: Mapping[Key, tuple[float, float]],
) -> list[int]:
    """Bind what lies on each storage to its size, and to its band by the columns that are returned: the excess of each."""
    loads: dict[Key, list[tuple[int, float]]] = {key: [] for key in members}
    fixed = {key: float(storages[key].used) for key in members}
    for (size, source, _allowed), columns in goes.items():
        fixed[source] -= size * len(kinds[size, source, _allowed])
        for key, column in columns.items():
            loads[key].append((column, size / _GIB))
    outside = []
    for key in members:
        outside.append(program.column())
        low, high = (bound - fixed[key] for bound in bands[key])
        program.row([*loads[key], (outside[-1], 1.0)], low=low / _GIB)
        program.row([*loads[key], (outside[-1], -1.0)], high=high / _GIB)
        program.row(loads[key], high=(max(storages[key].total, storages[key].used) - fixed[key]) / _GIB)
    return outside


def _moves(
    kinds: Mapping[Kind, Sequence[Candidate]],
    goes: Mapping[Kind, Mapping[Key, int]],
    values: Floats,
) -> Iterator[DiskMove]:
    """Yield the moves that a solution has: of disks that are alike the first ones."""
    for kind, alike in kinds.items():
        size, source, _allowed = kind
        first = 0
        for key, column in goes[kind].items():
            behind = first + (0 if key == source else round(values[column]))
            yield from (DiskMove(one.instance, one.name, size, source, key) for one in alike[first:behind])
            first = behind
