# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The trees that may satisfy one request, best first, while entries take more and more of them.

What is taken only grows, so a tree that has no candidate any more is never searched again for the same request, and five hundred equal
requests cost one walk over the trees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from ..._common.libraries import np, sa
from ..candidates.columns import feasible_trees, request_columns
from ..candidates.find import Answer, Part, SearchOptions, find_in_parts
from ..candidates.index import ClassTable, Index
from ..candidates.order import share_key, share_order
from ..candidates.write import Candidate
from ..feasible.parts import Asker, read_part
from ..request.model import Request
from .model import Key, Placement

_TREES = 64
"""How many trees are loaded at once."""


@dataclass
class Taken:
    """What the entries before have taken, by provider's number and class, and the providers that give nothing more."""

    amounts: Counter[Key] = field(default_factory=Counter)
    closed: set[int] = field(default_factory=set)
    version: int = 0
    trees: list[int] = field(default_factory=list)
    """The roots of the trees in the order in which something was taken from them."""

    def add(self, placement: Placement) -> None:
        """Take what a placement takes."""
        self.amounts.update(placement.amounts)
        self.trees += placement.trees
        self.version += 1

    def close(self, providers: Collection[int]) -> None:
        """Have providers give nothing more."""
        self.closed.update(providers)
        self.version += 1

    def of(self, index: Index) -> Index:
        """Return an index of what is left."""
        left = {name: self._left(index, name, table) for name, table in index.classes.items()}
        return replace(index, classes=left)

    def _left(self, index: Index, name: str, table: ClassTable) -> ClassTable:
        keys = [index.providers[position].key for position in table.positions.tolist()]
        more = [self.amounts.get((key, name), 0) for key in keys]
        closed = [key in self.closed for key in keys] if self.closed else []
        if any(closed):
            table = replace(table, max_unit=np.where(np.array(closed), 0, table.max_unit))
        return replace(table, used=table.used + np.array(more, dtype=np.int64)) if any(more) else table


@dataclass
class _Loaded:
    """Some trees: their index, and the position of the root of each that may still do, by its number."""

    index: Index
    roots: dict[int, int]
    left: Index
    version: int


class Supply:
    """The trees of one request. `wanted` is about how many of its candidates are asked for."""

    def __init__(self, connection: sa.Connection, request: Request, options: SearchOptions, taken: Taken, wanted: int) -> None:
        self.is_truncated = False
        self._connection, self._request, self._options, self._taken = connection, request, options, taken
        self._asked: Counter[str] = Counter()
        for group in request.groups:
            self._asked.update(dict(group.resources))
        self._asker = Asker(connection)
        self._finder = self._asker.finder(request)
        self._waiting: list[tuple[float, int, int]] = []
        self._chunks: list[list[int]] = []
        self._chunk_of: dict[int, int] = {}
        self._place_of: dict[int, int] = {}
        self._noticed = 0
        self._parts: dict[int, _Loaded] = {}
        self._pages: Iterator[list[int]] = iter(())
        if options.order == "none":
            self._pages = self._finder.by_name(wanted)
        else:
            found, shares = self._finder.with_shares(dict(self._asked), self._asker.free_by_root)
            best_first = share_order(shares, options.order).tolist()
            self._wait_for([found[place] for place in best_first], share_key(shares, options.order)[best_first].tolist(), best_first)

    def take(self, not_on: Collection[int]) -> tuple[Candidate, tuple[Index, int]] | None:
        """Return the best candidate of what is left, off some roots (by their numbers), and where it was found; None if there is none."""
        aside = []
        self._notice_taken()
        try:
            while self._waiting or self._walk_on():
                key, place, root = waiting = heappop(self._waiting)
                if root in not_on:
                    aside.append(waiting)
                    continue
                loaded = self._loaded(self._chunk_of[place])
                if root not in loaded.roots:
                    continue
                position = loaded.roots[root]
                if self._share(loaded.left, position) != key:
                    # It was added once more as something was taken from it.
                    continue
                answer = _best_of(Part(loaded.left, [position]), self._request, self._options)
                self.is_truncated = self.is_truncated or answer.truncated
                if answer.candidates:
                    heappush(self._waiting, waiting)
                    return answer.candidates[0], answer.anchors[0]
            return None
        finally:
            for waiting in aside:
                heappush(self._waiting, waiting)

    def count(self, most: int) -> int:
        """Return how many trees may do by themselves, counted no further than `most`."""
        found = number = 0
        while found < most and (number < len(self._chunks) or self._walk_on()):
            found += len(self._loaded(number).roots)
            number += 1
        return min(found, most)

    def _notice_taken(self) -> None:
        """Add the trees once more, as they are sorted now, from which something was taken since the last time."""
        changed = self._taken.trees[self._noticed :]
        self._noticed += len(changed)
        if self._options.order == "none":
            return
        for root in dict.fromkeys(changed):
            place = self._place_of.get(root)
            loaded = None if place is None else self._loaded(self._chunk_of[place])
            if place is not None and loaded is not None and root in loaded.roots:
                heappush(self._waiting, (self._share(loaded.left, loaded.roots[root]), place, root))

    def _walk_on(self) -> bool:
        """Add the next trees by name; return whether there are any."""
        page = next((page for page in self._pages if page), None)
        if page is None:
            return False
        start = len(self._chunk_of)
        self._wait_for(page, [0.0] * len(page), range(start, start + len(page)))
        return True

    def _wait_for(self, roots: Sequence[int], keys: Sequence[float], places: Sequence[int]) -> None:
        """Add trees in the order of their keys, which is that of a heap; places are those by name."""
        self._waiting += zip(keys, places, roots, strict=True)
        self._place_of.update(zip(roots, places, strict=True))
        for first in range(0, len(roots), _TREES):
            self._chunk_of.update(dict.fromkeys(places[first : first + _TREES], len(self._chunks)))
            self._chunks.append(list(roots[first : first + _TREES]))

    def _loaded(self, chunk: int) -> _Loaded:
        loaded = self._parts.get(chunk)
        if loaded is None:
            loaded = self._parts[chunk] = self._load(self._chunks[chunk])
        if loaded.version != self._taken.version:
            loaded.left, loaded.version = self._taken.of(loaded.index), self._taken.version
        return loaded

    def _load(self, roots: Sequence[int]) -> _Loaded:
        part = read_part(self._connection, roots, self._asked, self._asker.free, shares=self._finder.shares)
        index = part.index.undrained() if self._request.drained else part.index
        may = feasible_trees(index, self._request, request_columns(index, self._request))
        places = dict(zip(roots, part.roots or (), strict=True))
        return _Loaded(index, {root: place for root, place in places.items() if may[index.tree[place]]}, index, -1)

    def _share(self, index: Index, root: int) -> float:
        """Return what a tree is sorted by."""
        if self._options.order == "none":
            return 0.0
        start, end = root, int(index.end[root])
        total, kinds = 0.0, 0
        for name, amount in sorted(self._asked.items()):
            table = index.classes.get(name)
            if table is None:
                continue
            own = slice(*np.searchsorted(table.positions, [start, end]).tolist())
            capacity = int(table.capacity[own].sum())
            if capacity > 0:
                total += (int(table.used[own].sum()) + amount) / capacity
                kinds += 1
        share = np.array([total / kinds if kinds else 0.0])
        return float(share_key(share, self._options.order)[0])


def _best_of(part: Part, request: Request, options: SearchOptions) -> Answer:
    return find_in_parts(lambda _found: [part], replace(request, limit=1), options)
