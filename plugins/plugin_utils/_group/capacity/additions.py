# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many nodes to add so that a wanted number of copies of an instance fits into a group.

    added = nodes_to_add(cluster, instance, group, wanted, options, count)     # Addition; CopyOptions, the Count without any

`least` is a bound: no fewer nodes can do, however copies are put. `nodes` are enough, which is shown by placing all copies. Both are the
same where the bound is reached. Where they differ, fewer nodes are tried from the start, for as many copies as MOST_TRIED.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass

from ..cluster.model import Cluster, Instance
from ..place.placement import is_partitioned
from .bound import Bound, usual_node, with_nodes
from .copies import CopyOptions, commit, room_for
from .count import Count, best_count, fill, scorer_for
from .level import can_level
from .stranding import shares_storage

MOST_ADDED = 512
MOST_TRIED = 3_000
"""How many copies may be placed to see whether fewer nodes are enough than were found at first."""
_QUICK = 20
"""How many copies that are put by free memory count as one that is put by score."""
_FEW = 4
"""Added nodes of which more must bring something: a mirrored instance needs two."""


@dataclass(frozen=True)
class Addition:
    """Nodes like `like` with which `count` copies fit into a group; `nodes` None when no number of them would do.

    `least` is how many it takes at least, None where that is not known to be any number.
    """

    group: int
    like: int
    nodes: int | None
    least: int | None
    count: int


def nodes_to_add(cluster: Cluster, instance: Instance, group: int, wanted: int, options: CopyOptions, counted: Count) -> Addition:
    """Return how many nodes like the group's most usual one let `wanted` copies fit; `counted` is the best count without any."""
    like = usual_node(cluster, group)
    search = _Search(cluster, instance, group, wanted, options, like)
    if len(counted.copies) >= wanted:
        return Addition(group, like, 0, 0, wanted)
    least = search.least()
    if least is None:
        return Addition(group, like, None, None, len(counted.copies))
    high, found = search.enough(least, counted)
    if found < wanted:
        return Addition(group, like, None, least, found)
    return Addition(group, like, search.fewer(least, high), least, wanted)


class _Search:
    """Tries numbers of nodes."""

    def __init__(self, cluster: Cluster, instance: Instance, group: int, wanted: int, options: CopyOptions, like: int) -> None:
        self._cluster, self._instance, self._group, self._wanted, self._options = cluster, instance, group, wanted, options
        self._like = cluster.nodes[like]
        room = room_for(cluster, instance)
        self._is_quick = can_level(room) and not is_partitioned(room, group, options.strategy)
        self._goes_on = bool(room.facts.instances.two_nodes[0]) and not shares_storage(cluster, cluster.groups[group].name, ())

    def _with(self, number: int) -> Cluster:
        return with_nodes(self._cluster, self._like, number)

    def _count(self, number: int) -> int:
        return len(best_count(self._with(number), self._instance, (self._group,), self._options, self._wanted).copies)

    def least(self) -> int | None:
        """Return a number of nodes below which the copies cannot fit; None where as many as may be added are too few."""
        bound = Bound.of(self._with(1), self._instance, self._group, self._options)
        if bound.most(MOST_ADDED) < self._wanted:
            return None
        return 1 + bisect.bisect_left(range(1, MOST_ADDED), True, key=lambda number: bound.most(number) >= self._wanted)

    def enough(self, least: int, counted: Count) -> tuple[int, int]:
        """Return a number of nodes that are enough, or the most that were tried, and how many copies fit with them."""
        places = [copy.place for copy in counted.copies]
        before, number, found = 0, least, len(places)
        while True:
            last = found
            if self._goes_on:
                # Places of copies with `number` nodes, which follow some that are taken already.
                room = room_for(self._with(number), self._instance)
                for place in places:
                    commit(room, place)
                groups = (self._group,)
                copies, _attempt = fill(room, groups, scorer_for(room, groups, self._options), self._options, self._wanted - len(places))
                places = [*places, *(copy.place for copy in copies)]
                found = len(places)
            else:
                found = self._count(number)
            gained = found - last
            if found >= self._wanted or number >= MOST_ADDED or (gained <= 0 and number > _FEW):
                return number, min(found, self._wanted)
            # As many more as would do if each brought what the last ones did, but no more than twice as many.
            more = math.ceil((self._wanted - found) * (number - before) / gained) if gained > 0 else number
            before, number = number, min(number + max(1, min(more, number)), MOST_ADDED)

    def fewer(self, least: int, high: int) -> int:
        """Return the fewest nodes that are found to be enough, within MOST_TRIED copies."""
        low, tried = least - 1, 0
        each = math.ceil(self._wanted / (_QUICK if self._is_quick else 1))
        while high - low > 1 and tried + each <= MOST_TRIED:
            middle, tried = (low + high) // 2, tried + each
            low, high = (low, middle) if self._count(middle) >= self._wanted else (middle, high)
        return high
