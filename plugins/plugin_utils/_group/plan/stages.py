# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which moves of a valid sequence may run side by side: as few stages as the limits allow.

    plan = stages(state, found.moves, guard)
    plan.stages, plan.after

A stage is sound when its moves may be under way all at once, their steps in any order. Each limit of a node is a sum over
instances, N+1 included, which is one sum for each other node that may fail; and in any order no sum gets larger than
with each instance at that step of its move at which it takes most. So each move joins the earliest stage at which that
keeps the limits, there and in the stages after it. How unequally a spread divides its instances is no such sum: they keep their order,
each in a stage of its own. Instances whose turn is later join no stage of those before them.
What the sequence itself breaks (an instance whose node is down may
be started where N+1 breaks) may be as broken in any order.

Whether instances on shared storage can restart is no sum but a packing problem for each failing node. There each stage takes
as many of the moves that are left as keep it even with all arrived and none gone. Where that leads nowhere, the sequence is
cut into runs that do, and stages are made run by run.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..._common.libraries import np
from ..cluster.arrays import ANYWHERE, NOWHERE, Floats, Quantity
from ..cluster.changes import carry_out
from ..cluster.moves import Move, Place
from ..cluster.state import ClusterState
from ..metrics.limits import REDUNDANCY, counted_as_used, pool_rows, tag_rows, usage
from .order import Guard
from .turns import in_turn

_Uses = Mapping[int, Floats]
"""By node, [R + N]: the rows of limits.usage, and for each node what its failure brings beyond the memory that is left."""


MOST_PACKED = 1000
"""Moves of groups on shared storage that are taken out of their sequence for fewer stages."""


@dataclass(frozen=True)
class Plan:
    """Moves in the order of their stages; for each the positions of those it comes after, which are earlier; stages of positions."""

    moves: tuple[Move, ...]
    after: tuple[tuple[int, ...], ...]
    stages: tuple[tuple[int, ...], ...]


def stages(state: ClusterState, moves: Sequence[Move], guard: Guard, most_at_node: int | None = None) -> Plan:
    """Return moves, which are a valid sequence from `state`, in stages; at most `most_at_node` moves of a stage touch a node.

    A move comes after those of earlier stages that touch a node of its own; where runs are cut, after the whole stage before.
    """
    moves = in_turn(state, moves, guard)
    after: list[tuple[int, ...]] = [()] * len(moves)
    found: list[list[int]] = []
    # The positions of moves in sets that have no group in common, each in order.
    group_of = state.facts.nodes.group
    groups_of = [{int(group_of[node]) for node in nodes_of(move)} for move in moves]
    parts: list[set[int]] = []
    for groups in groups_of:
        joined = groups.union(*(part for part in parts if part & groups))
        parts = [*(part for part in parts if not part & groups), joined]
    for part in [[number for number, groups in enumerate(groups_of) if groups & part] for part in parts]:
        own, is_whole = _by_runs(state, moves, part, guard, most_at_node)
        if not is_whole and len(part) <= MOST_PACKED:
            own = min(own, _Packing(state, moves, guard, most_at_node).of_positions(part) or own, key=len)
        for number, earlier in (_before_at_nodes(state, own, moves) if is_whole else _all_before(own)).items():
            after[number] = earlier
        found += [[] for _missing in range(len(own) - len(found))]
        for stage, members in zip(found, own):
            stage += members
    sequence = [number for stage in found for number in sorted(stage)]
    position = {number: at for at, number in enumerate(sequence)}
    return Plan(
        tuple(moves[number] for number in sequence),
        tuple(tuple(sorted(position[earlier] for earlier in after[number])) for number in sequence),
        tuple(tuple(sorted(position[number] for number in stage)) for stage in found),
    )


def nodes_of(move: Move) -> set[int]:
    """Return the nodes that a move touches."""
    return {node for place in (move.source, *move.steps) for node in place} - {NOWHERE}


def _by_runs(
    state: ClusterState, moves: Sequence[Move], part: Sequence[int], guard: Guard, most_at_node: int | None
) -> tuple[list[list[int]], bool]:
    """Return the stages of a part of the moves, made run by run, and whether one run is all."""
    found: list[list[int]] = []
    runs = _runs(state, [moves[number] for number in part], guard)
    now = state.copy()
    for run in runs:
        positions = [part[number] for number in run]
        found += _Schedule(now, [moves[number] for number in positions], guard, most_at_node).of_positions(positions)
        if run is not runs[-1]:
            carry_out(now, (moves[number] for number in positions))
    return found, len(runs) == 1


def _runs(state: ClusterState, moves: Sequence[Move], guard: Guard) -> list[range]:
    """Return the longest runs in which shared storage keeps what it must whatever the order; one move alone is always one."""
    groups = {int(state.facts.nodes.group[node]) for move in moves for node in nodes_of(move)}
    reserves = [guard.reserves[group] for group in sorted(groups & guard.reserves.keys())]
    if not reserves:
        return [range(len(moves))]
    now = state.copy()
    runs: list[range] = []
    while (first := runs[-1].stop if runs else 0) < len(moves):
        least, too_many = 1, len(moves) - first + 1
        trial = too_many - 1
        while trial > least:
            if all(reserve.holds_in_any_order(now, moves[first : first + trial]) for reserve in reserves):
                least = trial
            else:
                too_many = trial
            trial = (least + too_many) // 2
        runs.append(range(first, first + least))
        carry_out(now, moves[first : first + least])
    return runs


def _all_before(found: Sequence[Sequence[int]]) -> dict[int, tuple[int, ...]]:
    """Return for each position all that are in the stage before."""
    return {number: tuple(sorted(before)) for before, members in zip([[], *found], found) for number in members}


def spread_slots(state: ClusterState, move: Move) -> list[int]:
    """Return the slots of the strict spreads that an instance belongs to."""
    own = state.facts.instances.exclusion[move.instance]
    return [spread.slot for spread in state.facts.slots.spreads if spread.strict and spread.slot in own]


def _before_at_nodes(state: ClusterState, found: Sequence[Sequence[int]], moves: Sequence[Move]) -> dict[int, tuple[int, ...]]:
    """Return for each position the moves that touched its nodes last, in an earlier stage; those come after the ones before them."""
    last: dict[int, list[int]] = {}
    after = {}
    for members in found:
        here = collections.defaultdict(list)
        for number in members:
            nodes = nodes_of(moves[number]) | {-2 - slot for slot in spread_slots(state, moves[number])}
            after[number] = tuple(sorted({other for node in nodes for other in last.get(node, ())}))
            for node in nodes:
                here[node].append(number)
        last |= here
    return after


@dataclass
class _Stage:
    """A stage that is being filled. `worst` is the most that may be used at the nodes that its moves touch."""

    moves: list[int] = field(default_factory=list)
    worst: dict[int, Floats] = field(default_factory=dict)
    at_node: collections.Counter[int] = field(default_factory=collections.Counter)


class _Schedule:
    """The stages of moves from one state, in which shared storage is in nobody's way."""

    def __init__(
        self,
        state: ClusterState,
        moves: Sequence[Move],
        guard: Guard,
        most_at_node: int | None,
        allowed: Mapping[int, Floats] | None = None,
    ) -> None:
        """Make stages; `allowed` is the most that may be used at each node, by default the guard's bounds or what the sequence comes to."""
        self._start: dict[int, Floats] = {}
        self._changes: dict[int, list[tuple[int, Floats]]] = collections.defaultdict(list)
        self._stages: list[_Stage] = []
        self._most_at_node = most_at_node
        needs = [_needs(state, move) for move in moves]
        self.allowed: dict[int, Floats] = {}
        self._look_at(state, guard, needs)
        self.allowed = self.allowed if allowed is None else dict(allowed)
        stage_of: dict[int, int] = {}
        by_turn: dict[int, int] = {}
        turns = state.facts.instances.turn
        for number, (move, (most, net)) in enumerate(zip(moves, needs)):
            # The sign keeps slots and instances apart.
            one_by_one = [move.instance, *(-1 - slot for slot in spread_slots(state, move))]
            turn = int(turns[move.instance])
            before_it = max((stage for other, stage in by_turn.items() if other < turn), default=-1)
            first = max(before_it, *(stage_of.get(one, -1) for one in one_by_one)) + 1
            stage = self._add(number, first, nodes_of(move), most, net)
            stage_of |= dict.fromkeys(one_by_one, stage)
            by_turn[turn] = max(by_turn.get(turn, -1), stage)

    def of_positions(self, positions: Sequence[int]) -> list[list[int]]:
        """Return the stages with these numbers for the moves."""
        return [[positions[number] for number in stage.moves] for stage in self._stages]

    def _look_at(self, state: ClusterState, guard: Guard, needs: Iterable[tuple[_Uses, _Uses]]) -> None:
        """Note what is used at the start, and the most that may be: the guard's bounds, or what the sequence itself comes to."""
        now: dict[int, Floats] = {}
        for most, net in needs:
            for node, need in most.items():
                if node not in now:
                    self._start[node] = now[node] = _used(state, node)
                    bounds = guard.bounds.most[:, node]
                    self.allowed[node] = np.concatenate([bounds, np.full(len(state.offline), bounds[REDUNDANCY])])
                self.allowed[node] = np.maximum(self.allowed[node], now[node] + need)
                now[node] = now[node] + net[node]

    def _add(self, number: int, first: int, nodes: set[int], most: _Uses, net: _Uses) -> int:
        """Put a move into the earliest stage, from `first` on, that takes it, and return that."""
        at = next((at for at in range(first, len(self._stages)) if self._takes(at, nodes, most, net)), len(self._stages))
        if at == len(self._stages):
            self._stages.append(_Stage())
        stage = self._stages[at]
        stage.moves.append(number)
        stage.at_node.update(nodes)
        for node, need in most.items():
            stage.worst[node] = self._worst(at, node) + need
            self._changes[node].append((at, net[node]))
            for later in self._stages[at + 1 :]:
                if node in later.worst:
                    later.worst[node] = later.worst[node] + net[node]
        return at

    def _takes(self, at: int, nodes: set[int], most: _Uses, net: _Uses) -> bool:
        if self._most_at_node is not None and any(self._stages[at].at_node[node] >= self._most_at_node for node in nodes):
            return False
        for node, need in most.items():
            if (self._worst(at, node) + need > self.allowed[node]).any():
                return False
            later = (stage.worst[node] for stage in self._stages[at + 1 :] if node in stage.worst)
            if any((worst + net[node] > self.allowed[node]).any() for worst in later):
                return False
        return True

    def _worst(self, at: int, node: int) -> Floats:
        """Return the most that may be used at a node in a stage; where none of its moves touches it, what those before leave."""
        known = self._stages[at].worst.get(node) if at < len(self._stages) else None
        return known if known is not None else sum((net for stage, net in self._changes[node] if stage < at), self._start[node])


class _Packing:
    """Stages that take moves out of their sequence, each as many as can be under way together."""

    def __init__(self, state: ClusterState, moves: Sequence[Move], guard: Guard, most_at_node: int | None) -> None:
        self._now, self._moves, self._guard, self._most_at_node = state.copy(), moves, guard, most_at_node

    def of_positions(self, positions: Sequence[int]) -> list[list[int]] | None:
        """Return stages of moves, or None when some of them find no turn."""
        left, found = list(positions), []
        allowed = self._schedule(left).allowed
        while left:
            offered = self._schedule(left, allowed).of_positions(left)[0]
            # The first is in the first stage because it must be in one.
            offered = offered if self._guard.lets(self._now, self._moves[offered[0]]) else offered[1:]
            stage = self._most_together([], offered) or self._single(left)
            if not stage:
                return None
            found.append(sorted(stage))
            carry_out(self._now, (self._moves[number] for number in found[-1]))
            left = [number for number in left if number not in stage]
        return found

    def _schedule(self, numbers: Sequence[int], allowed: Mapping[int, Floats] | None = None) -> _Schedule:
        return _Schedule(self._now, [self._moves[number] for number in numbers], self._guard, self._most_at_node, allowed)

    def _most_together(self, chosen: list[int], offered: Sequence[int]) -> list[int]:
        """Return the chosen moves with as many of those offered as shared storage bears, halving what it does not."""
        if self._holds([*chosen, *offered]):
            return [*chosen, *offered]
        if len(offered) < 2:
            return chosen
        middle = len(offered) // 2
        return self._most_together(self._most_together(chosen, offered[:middle]), offered[middle:])

    def _holds(self, numbers: Sequence[int]) -> bool:
        moves = [self._moves[number] for number in numbers]
        groups = {int(self._now.facts.nodes.group[node]) for move in moves for node in nodes_of(move)}
        return all(self._guard.reserves[group].holds_in_any_order(self._now, moves) for group in groups & self._guard.reserves.keys())

    def _single(self, left: Sequence[int]) -> list[int]:
        """Return the first move that can be made alone: it has left one node when it has arrived at another."""
        moved: set[int] = set()
        for number in left:
            move = self._moves[number]
            if move.instance not in moved and self._guard.lets(self._now, move):
                return [number]
            moved.add(move.instance)
        return []


def _used(state: ClusterState, node: int) -> Floats:
    rows = usage(state, [node])[:, 0]
    # The sums for each other node give N+1; spreads are kept by the order.
    rows[REDUNDANCY] = -np.inf
    first = tag_rows(state.facts).start
    rows[[first + spread.slot for spread in state.facts.slots.spreads]] = -np.inf
    return np.concatenate([rows, state.peers[node] + rows[Quantity.MEMORY]])


def _needs(state: ClusterState, move: Move) -> tuple[_Uses, _Uses]:
    """Return by node how much more than at the source a move takes at most, and at its end."""
    most, net = {}, {}
    for node in sorted(nodes_of(move)):
        before = _share(state, move.instance, move.source, node)
        more = [_share(state, move.instance, step, node) - before for step in move.steps]
        most[node] = np.maximum(np.maximum.reduce(more), 0.0)
        net[node] = more[-1]
    return most, net


def _share(state: ClusterState, instance: int, place: Place, node: int) -> Floats:
    """Return what an instance uses at a node when it is at a place."""
    facts = state.facts
    tags, pools = tag_rows(facts).start, pool_rows(facts)
    share: Floats = np.zeros(pools.stop + len(state.offline))
    if node not in place:
        return share
    needs = facts.instances.as_primary if node == place[0] else facts.instances.as_secondary
    used = counted_as_used(needs[:, instance])
    share[: len(used)] = used
    share[pools.stop :] = used[Quantity.MEMORY]
    if node == place[0]:
        for tag in facts.instances.exclusion[instance]:
            share[tags + tag] += 1
    else:
        share[pools.stop + place[0]] += facts.instances.reserves[instance]
    pool = int(facts.instances.pool[instance])
    # The space of a shared pool is the same wherever its instances are.
    if pool != ANYWHERE and not facts.pool_shared[pool]:
        share[pools.start + pool] += facts.instances.disk[instance]
    return share
