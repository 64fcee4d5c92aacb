# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many instances at once as one assignment problem, for when taking them one by one leaves somebody out.

    places, proven = assign(before, lifted, wanted, seconds)

Each instance takes one of its possible places or none. Limits are those of limits.py in linear form, and each is as
wide as it was broken before: nothing may get worse. What a node keeps for failovers is the most that any other node's
failure brings, which is a variable above each of those sums. `proven` tells whether no better answer exists among the
places that were offered.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ...common.highs import Limits, Program, Undecided, maximise
from ...common.libraries import np
from ..cluster.arrays import ANYWHERE, NOWHERE, Booleans, Floats, Integers, Quantity
from ..cluster.state import ClusterState

SECONDS = 20.0
NODES = 2000
"""How long and how far the solver may look; what it has found by then is used."""
_LEFT = (Quantity.MEMORY, Quantity.MEMORY_PLANNED, Quantity.DISK, Quantity.DISK_PLANNED)
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Wanted:
    """The places that an instance may take; `costs` are between 0 and 1, `importance` is a whole number above 0."""

    instance: int
    primaries: Integers
    secondaries: Integers
    """NOWHERE for places with one node."""
    costs: Floats
    importance: int = 1


@dataclass
class _Columns:
    """Every (instance, place) as one binary variable."""

    owner: Integers
    """Position in the list of wanted."""
    instance: Integers
    primary: Integers
    secondary: Integers


@dataclass(frozen=True)
class _Rows:
    """Constraints `sum(values * variables) <= upper`, none of which asks for less than nothing."""

    program: Program

    def add(self, columns: Integers, values: Floats, upper: float) -> None:
        """Add one constraint."""
        self.program.rows(np.zeros(len(columns), dtype=np.int64), columns, values, [max(upper, 0.0)])

    def add_each(self, keys: Integers, columns: Integers, values: Floats, upper: Callable[[int], float]) -> None:
        """Add a constraint for each distinct key over the columns that have it."""
        order = np.argsort(keys, kind="stable")
        distinct, starts = np.unique(keys[order], return_index=True)
        for part, key in zip(np.split(order, starts[1:]), distinct):
            limit = upper(int(key))
            if np.isfinite(limit):
                self.add(columns[part], values[part], limit)


def assign(
    before: ClusterState,
    lifted: ClusterState,
    wanted: Sequence[Wanted],
    seconds: float = SECONDS,
) -> tuple[list[tuple[int, int] | None], bool]:
    """Return a place (primary, secondary) or None for each of `wanted`, and whether that is proven to be best.

    `lifted` is `before` without the wanted instances. First as much importance as possible is placed, then at least cost.
    """
    columns = _columns(wanted)
    places: list[tuple[int, int] | None] = [None] * len(wanted)
    if not len(columns.owner):
        return places, True
    program = Program()
    rows = _Rows(program)
    every = program.columns(np.zeros(len(columns.owner)), np.ones(len(columns.owner)), integral=True)
    rows.add_each(columns.owner, every, np.ones(len(every)), lambda _owner: 1.0)
    _limit_quantities(rows, columns, before, lifted)
    _limit_tags(rows, columns, before, lifted)
    _limit_pools(rows, columns, before, lifted)
    _limit_redundancy(rows, columns, before, lifted)
    importance = np.array([want.importance for want in wanted], dtype=float)
    # All costs together stay below one instance's importance, so that nobody is left out to save cost.
    cost = np.concatenate([want.costs for want in wanted]) / (2.0 * len(wanted))
    try:
        answer = maximise(program, dict(zip(every.tolist(), (importance[columns.owner] - cost).tolist())), Limits(0.0, seconds, NODES))
    except Undecided:
        answer = None
    if answer is None:
        return places, False
    for column in np.flatnonzero(answer.values[: len(every)] > 0.5):
        places[columns.owner[column]] = int(columns.primary[column]), int(columns.secondary[column])
    return places, answer.proven


def _columns(wanted: Sequence[Wanted]) -> _Columns:
    counts = [len(want.primaries) for want in wanted]
    empty = np.zeros(0, dtype=np.int64)
    return _Columns(
        owner=np.repeat(np.arange(len(wanted)), counts),
        instance=np.repeat(np.array([want.instance for want in wanted], dtype=np.int64), counts),
        primary=np.concatenate([empty, *(want.primaries for want in wanted)]),
        secondary=np.concatenate([empty, *(want.secondaries for want in wanted)]),
    )


def _uses(columns: _Columns, lifted: ClusterState, quantity: Quantity) -> tuple[Integers, Integers, Floats]:
    """Return nodes, columns and the need of a quantity, for every role that needs any of it on an online node."""
    facts = lifted.facts.instances
    every = np.arange(len(columns.owner))
    nodes = np.concatenate([columns.primary, columns.secondary])
    needs = np.concatenate([facts.as_primary[quantity, columns.instance], facts.as_secondary[quantity, columns.instance]])
    used = (nodes != NOWHERE) & (needs != 0)
    used[used] = ~lifted.offline[nodes[used]]
    return nodes[used], np.concatenate([every, every])[used], needs[used]


def _limit_quantities(rows: _Rows, columns: _Columns, before: ClusterState, lifted: ClusterState) -> None:
    facts = lifted.facts.nodes
    for quantity in _LEFT:
        _limit_left(rows, columns, before, lifted, quantity, np.ones(len(facts.names), dtype=bool))
    for quantity in (Quantity.SPINDLES, Quantity.SPINDLES_PLANNED):
        _limit_left(rows, columns, before, lifted, quantity, facts.exclusive)
    most_cpus = facts.vcpu_ratio * facts.total_cpus
    most_use = np.where(facts.exclusive, np.inf, facts.spindle_limit)
    for quantity, most in (
        (Quantity.CPUS, most_cpus),
        (Quantity.CPUS_PLANNED, most_cpus),
        (Quantity.SPINDLE_USE, most_use),
        (Quantity.SPINDLE_USE_PLANNED, most_use),
    ):
        nodes, used, needs = _uses(columns, lifted, quantity)
        room = np.maximum(most, before.quantities[quantity]) - lifted.quantities[quantity]
        rows.add_each(nodes, used, needs, _at(room))


def _at(room: Floats) -> Callable[[int], float]:
    return lambda node: float(room[node])


def _limit_left(
    rows: _Rows,
    columns: _Columns,
    before: ClusterState,
    lifted: ClusterState,
    quantity: Quantity,
    counts: Booleans,
) -> None:
    """Keep what is left of a quantity from falling below 0, or below what it was when that is less."""
    nodes, used, needs = _uses(columns, lifted, quantity)
    part = counts[nodes]
    room = lifted.quantities[quantity] - np.minimum(before.quantities[quantity], 0.0)
    rows.add_each(nodes[part], used[part], -needs[part], _at(room))


def _limit_tags(rows: _Rows, columns: _Columns, before: ClusterState, lifted: ClusterState) -> None:
    exclusion = lifted.facts.instances.exclusion
    users = collections.defaultdict(list)
    for column, (instance, node) in enumerate(zip(columns.instance.tolist(), columns.primary.tolist())):
        for tag in exclusion[instance]:
            users[node, tag].append(column)
    for (node, tag), found in users.items():
        most = max(1, int(before.tag_counts[node, tag])) - int(lifted.tag_counts[node, tag])
        if len(found) > most:
            rows.add(np.array(found), np.ones(len(found)), float(most))


def _limit_pools(rows: _Rows, columns: _Columns, before: ClusterState, lifted: ClusterState) -> None:
    facts = lifted.facts
    pool = facts.instances.pool[columns.instance]
    every = np.arange(len(columns.owner))
    nodes, used = np.concatenate([columns.primary, columns.secondary]), np.concatenate([every, every])
    pools = np.concatenate([pool, pool])
    part = (nodes != NOWHERE) & (pools != ANYWHERE)
    nodes, used, pools = nodes[part], used[part], pools[part]
    room = lifted.pool_free - np.minimum(before.pool_free, 0.0)
    count = max(len(facts.pool_names), 1)
    keys = np.where(facts.pool_shared[pools], 0, nodes) * count + pools if len(pools) else nodes
    # The space of a shared pool is the same number in every row.
    rows.add_each(keys, used, facts.instances.disk[columns.instance[used]], lambda key: float(room[key // count, key % count]))


def _limit_redundancy(rows: _Rows, columns: _Columns, before: ClusterState, lifted: ClusterState) -> None:
    """Add a variable for what each node keeps for failovers."""
    facts = lifted.facts.instances
    nodes, used, needs = _uses(columns, lifted, Quantity.MEMORY)
    keeping = np.flatnonzero((columns.secondary != NOWHERE) & (facts.reserves[columns.instance] > 0))
    keeping = keeping[~lifted.offline[columns.secondary[keeping]]]
    reserve = np.unique(np.concatenate([nodes, columns.secondary[keeping]]))
    kept_by = rows.program.columns(lifted.reserved[reserve], np.full(len(reserve), np.inf))
    variable = dict(zip(reserve.tolist(), kept_by.tolist()))
    short = np.maximum(before.reserved - before.quantities[Quantity.MEMORY], 0.0)
    for node in reserve.tolist():
        here = nodes == node
        room = float(lifted.quantities[Quantity.MEMORY, node] + short[node])
        rows.add(np.append(used[here], variable[node]), np.append(-needs[here], 1.0), room)
    pairs = columns.secondary[keeping] * len(lifted.offline) + columns.primary[keeping]
    for pair in np.unique(pairs).tolist():
        secondary, primary = divmod(pair, len(lifted.offline))
        bringing = keeping[pairs == pair]
        kept = float(lifted.peers[secondary, primary])
        values = np.append(facts.reserves[columns.instance[bringing]], -1.0)
        rows.program.row(zip([*bringing.tolist(), variable[secondary]], values.tolist()), high=-kept)


def got_worse(before: ClusterState, after: ClusterState, among: Collection[int] | None = None) -> list[tuple[int, str, float]]:
    """Return (node, limit, by how much) for every limit of an online node that is broken, and more than it was before.

    `among` are the nodes that are looked at, by default all.
    """
    nodes = np.arange(len(after.offline)) if among is None else np.array(sorted(among), dtype=np.int64)
    nodes = nodes[~after.offline[nodes]]
    names, free = _limit_names(after)
    now, then = _excess(after, nodes), _excess(before, nodes)
    rows, columns = np.nonzero(now > np.maximum(then, free) + _TOLERANCE)
    return [(int(nodes[column]), names[row], float(now[row, column] - free[row, 0])) for row, column in zip(rows, columns)]


def _limit_names(state: ClusterState) -> tuple[list[str], Floats]:
    """Return the names of the rows of `_excess`, and [R, 1] what each may be without being broken."""
    tags, pools = state.tag_counts.shape[1], state.pool_free.shape[1]
    names = [quantity.name.lower() for quantity in _LEFT] + ["spindles", "cpus", "spindle_use", "redundancy"]
    free = np.zeros((len(names) + tags + pools, 1))
    free[len(names) : len(names) + tags] = 1.0
    return names + ["tags"] * tags + ["pool"] * pools, free


def _excess(state: ClusterState, nodes: Integers) -> Floats:
    """Return [R, len(nodes)]: by how much each limit is passed; negative where there is room."""
    facts, quantities = state.facts.nodes, state.quantities[:, nodes]
    exclusive = facts.exclusive[nodes]
    use = quantities[Quantity.SPINDLE_USE] - facts.spindle_limit[nodes]
    return np.vstack(
        [
            -quantities[list(_LEFT)],
            -quantities[Quantity.SPINDLES] * exclusive,
            quantities[Quantity.CPUS] - facts.vcpu_ratio[nodes] * facts.total_cpus[nodes],
            np.where(exclusive, 0.0, use),
            state.reserved[nodes] - quantities[Quantity.MEMORY],
            state.tag_counts[nodes].T,
            -state.pool_free[nodes].T,
        ]
    )
