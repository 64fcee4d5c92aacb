# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many instances at once as one assignment problem, for when taking them one by one leaves somebody out.

    places, proven = assign(before, lifted, wanted, effort)

Each instance takes one of its possible places or none. Limits are those of limits.py in linear form, and each is as
wide as it was broken before: nothing may get worse. What a node keeps for failovers is the most that any other node's
failure brings, which is a variable above each of those sums. `proven` says whether no better answer exists among the
places that were offered.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from dataclasses import dataclass

from ..._common.highs import Effort, Program, Undecided
from ..._common.libraries import np
from ..cluster.arrays import ANYWHERE, NOWHERE, Floats, Integers, Quantity
from ..cluster.rules import NO_DOMAIN
from ..cluster.state import ClusterState
from ..metrics.limits import LIMITED, REDUNDANCY, Bounds, counted_as_used, pool_rows, tag_rows
from ..metrics.skew import counted_domains, domain_counts, scope_skews
from .places import Choices

EFFORT = 1_000_000
"""How far the solver may look by default; what it has found by then is used."""


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

    def add_each(self, keys: Integers, columns: Integers, values: Floats, upper: Floats) -> None:
        """Add a constraint for each distinct key over the columns that have it, where `upper` at the key is finite."""
        order = np.argsort(keys, kind="stable")
        distinct, starts = np.unique(keys[order], return_index=True)
        for part, key in zip(np.split(order, starts[1:]), distinct):
            limit = float(upper[key])
            if np.isfinite(limit):
                self.add(columns[part], values[part], limit)


def assign(
    before: ClusterState,
    lifted: ClusterState,
    wanted: Sequence[Choices],
    effort: Effort | None = None,
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
    rows.add_each(columns.owner, every, np.ones(len(every)), np.ones(len(wanted)))
    bounds = Bounds.of_start(before, tolerance=0.0)
    room = bounds.room(lifted)
    _limit_quantities(rows, columns, lifted, room)
    _limit_tags(rows, columns, lifted, room)
    _keep_together(rows, columns, before, wanted)
    _keep_even(rows, columns, before, lifted)
    _limit_pools(rows, columns, lifted, room)
    _limit_redundancy(rows, columns, lifted, bounds.most)
    importance = np.array([want.importance for want in wanted], dtype=float)
    # All costs together stay below one instance's importance, so that nobody is left out to save cost.
    cost = np.concatenate([want.costs for want in wanted]) / (2.0 * len(wanted))
    try:
        worth = dict(zip(every.tolist(), (importance[columns.owner] - cost).tolist()))
        answer = (effort or Effort(EFFORT)).maximise(program, worth, 0.0)
    except Undecided:
        answer = None
    if answer is None:
        return places, False
    for column in np.flatnonzero(answer.values[: len(every)] > 0.5):
        places[columns.owner[column]] = int(columns.primary[column]), int(columns.secondary[column])
    return places, answer.proven


def _columns(wanted: Sequence[Choices]) -> _Columns:
    counts = [len(want.primaries) for want in wanted]
    empty = np.zeros(0, dtype=np.int64)
    return _Columns(
        owner=np.repeat(np.arange(len(wanted)), counts),
        instance=np.repeat(np.array([want.instance for want in wanted], dtype=np.int64), counts),
        primary=np.concatenate([empty, *(want.primaries for want in wanted)]),
        secondary=np.concatenate([empty, *(want.secondaries for want in wanted)]),
    )


def _needs(columns: _Columns, lifted: ClusterState) -> Floats:
    """Return [10, 2C]: what the primary of each column uses of each limited quantity, then what the secondary does."""
    facts = lifted.facts.instances
    return np.concatenate([counted_as_used(needs)[:, columns.instance] for needs in (facts.as_primary, facts.as_secondary)], axis=1)


def _uses(columns: _Columns, lifted: ClusterState, needs: Floats) -> tuple[Integers, Integers, Floats]:
    """Return nodes, columns and how much is used, for every role that needs any of a quantity on an online node."""
    every = np.arange(len(columns.owner))
    nodes = np.concatenate([columns.primary, columns.secondary])
    used = (nodes != NOWHERE) & (needs != 0)
    used[used] = ~lifted.offline[nodes[used]]
    return nodes[used], np.concatenate([every, every])[used], needs[used]


def _limit_quantities(rows: _Rows, columns: _Columns, lifted: ClusterState, room: Floats) -> None:
    for quantity, of_columns in zip(LIMITED, _needs(columns, lifted)):
        nodes, used, needs = _uses(columns, lifted, of_columns)
        rows.add_each(nodes, used, needs, room[quantity])


def _limit_tags(rows: _Rows, columns: _Columns, lifted: ClusterState, room: Floats) -> None:
    exclusion, slots = lifted.facts.instances.exclusion, lifted.facts.slots
    room = room[tag_rows(lifted.facts)]
    # A rule that was broken before is not to be broken again.
    room[slots.soft :] = (slots.hard_limit - lifted.tag_counts).T[slots.soft :]
    users = collections.defaultdict(list)
    for column, (instance, node) in enumerate(zip(columns.instance.tolist(), columns.primary.tolist())):
        for tag in exclusion[instance]:
            users[node, tag].append(column)
    for (node, tag), found in users.items():
        if len(found) > room[tag, node]:
            rows.add(np.array(found), np.ones(len(found)), float(room[tag, node]))


def _keep_together(rows: _Rows, columns: _Columns, before: ClusterState, wanted: Sequence[Choices]) -> None:
    """Let all members of a rule of affinity have the same primary, or none of them a place.

    Partners of an instance that has nowhere to go stay with it. Running matters more than being together, so this does not hold
    on a node that is down.
    """
    users: dict[int, dict[int, list[tuple[int, int]]]] = collections.defaultdict(lambda: collections.defaultdict(list))
    together, exclusion = before.facts.slots.together, before.facts.instances.exclusion
    for column, (instance, node) in enumerate(zip(columns.instance.tolist(), columns.primary.tolist())):
        for slot in exclusion[instance]:
            if together[slot]:
                users[slot][instance].append((node, column))
    stuck = {(slot, int(before.primary[want.instance])) for want in wanted if not len(want.primaries) for slot in exclusion[want.instance]}
    for slot, of_slot in users.items():
        for instance, places in of_slot.items():
            home = int(before.primary[instance])
            if home != NOWHERE and before.answers(home) and (slot, home) in stuck:
                rows.add(np.array([column for _node, column in places]), np.ones(len(places)), 0.0)
    for of_slot in users.values():
        (_first, at_first), *others = of_slot.items()
        for _other, at_other in others:
            for node in sorted({node for node, _column in (*at_first, *at_other)}):
                one, other = ([column for at, column in places if at == node] for places in (at_first, at_other))
                values = [1.0] * len(one) + [-1.0] * len(other)
                rows.program.row(zip([*one, *other], values), low=0.0, high=0.0)


def _keep_even(rows: _Rows, columns: _Columns, before: ClusterState, lifted: ClusterState) -> None:
    """Let no domain of a spread have more than the emptiest one of its scope has, but for what is allowed or is so already.

    What finds no place stays where it is, so that a column also takes its instance off its home.
    """
    exclusion = before.facts.instances.exclusion
    for spread in (one for one in before.facts.slots.spreads if one.strict):
        counts, counted = domain_counts(before, spread), counted_domains(lifted, spread)
        worst = scope_skews(spread, counts, counted)
        changes: list[dict[int, float]] = [collections.defaultdict(float) for _domain in counts]
        for column, (instance, node) in enumerate(zip(columns.instance.tolist(), columns.primary.tolist())):
            if spread.slot in exclusion[instance]:
                home = int(before.primary[instance])
                for at, sign in ((node, 1.0), (home, -1.0)):
                    if at != NOWHERE and spread.domain[at] != NO_DOMAIN:
                        changes[spread.domain[at]][column] += sign
        for scope in np.unique(spread.scope[counted]).tolist():
            here = np.flatnonzero(counted & (spread.scope == scope)).tolist()
            least, most = rows.program.columns(np.zeros(2), np.full(2, np.inf)).tolist()
            for domain in here:
                of_domain = [*changes[domain].items()]
                rows.program.row([*of_domain, (most, -1.0)], high=-float(counts[domain]))
                rows.program.row([*of_domain, (least, -1.0)], low=-float(counts[domain]))
            rows.program.row([(most, 1.0), (least, -1.0)], high=spread.max_skew + max(0.0, float(worst[scope])))


def _limit_pools(rows: _Rows, columns: _Columns, lifted: ClusterState, room: Floats) -> None:
    facts = lifted.facts
    pool = facts.instances.pool[columns.instance]
    every = np.arange(len(columns.owner))
    nodes, used = np.concatenate([columns.primary, columns.secondary]), np.concatenate([every, every])
    pools = np.concatenate([pool, pool])
    part = (nodes != NOWHERE) & (pools != ANYWHERE)
    nodes, used, pools = nodes[part], used[part], pools[part]
    room, shared = room[pool_rows(facts)], facts.pool_shared
    # The space of a shared pool is the same number at every node that is up.
    room = np.where(shared[:, None], room.min(axis=1, keepdims=True, initial=np.inf), room)
    keys = pools * len(facts.nodes.names) + np.where(shared[pools], 0, nodes) if len(pools) else nodes
    rows.add_each(keys, used, facts.instances.disk[columns.instance[used]], room.ravel())


def _limit_redundancy(rows: _Rows, columns: _Columns, lifted: ClusterState, most: Floats) -> None:
    """Add a variable for what each node keeps for failovers."""
    facts = lifted.facts.instances
    nodes, used, needs = _uses(columns, lifted, _needs(columns, lifted)[Quantity.MEMORY])
    keeping = np.flatnonzero((columns.secondary != NOWHERE) & (facts.reserves[columns.instance] > 0))
    keeping = keeping[~lifted.offline[columns.secondary[keeping]]]
    reserve = np.unique(np.concatenate([nodes, columns.secondary[keeping]]))
    kept_by = rows.program.columns(lifted.reserved[reserve], np.full(len(reserve), np.inf))
    variable = dict(zip(reserve.tolist(), kept_by.tolist()))
    free = lifted.quantities[Quantity.MEMORY] + most[REDUNDANCY]
    for node in reserve.tolist():
        here = nodes == node
        rows.add(np.append(used[here], variable[node]), np.append(needs[here], 1.0), float(free[node]))
    pairs = columns.secondary[keeping] * len(lifted.offline) + columns.primary[keeping]
    for pair in np.unique(pairs).tolist():
        secondary, primary = divmod(pair, len(lifted.offline))
        bringing = keeping[pairs == pair]
        kept = float(lifted.peers[secondary, primary])
        values = np.append(facts.reserves[columns.instance[bringing]], -1.0)
        rows.program.row(zip([*bringing.tolist(), variable[secondary]], values.tolist()), high=-kept)
