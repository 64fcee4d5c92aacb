# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Load of whole groups relative to their capacity: a score of the super cluster by load alone, outliers, moves that level them.

    loads = group_loads(state)                      # pressure [4, G]: 1 where a group is as loaded as the whole
    loads.score, loads.outliers(0.2)
    balanced = balance_load(state, LoadOptions(), mode)

This is the seed design's "Load balancing": the load that the instances of a group generate is compared with what its
online nodes can do (CPU: cores times speed; memory: MiB; disk: spindles; network: nodes), and the score is the cluster
score's way of counting, the standard deviation, over groups instead of nodes. Loads are measurements in any unit that is
the same for all instances. Nothing moves between groups that are no outliers.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._common.libraries import np
from ..cluster.arrays import Booleans, Floats, Integers, Quantity
from ..cluster.changes import after_moves
from ..cluster.moves import Move, Place, can_move
from ..cluster.state import ClusterState
from ..metrics.health import takes_storage
from ..metrics.score import ScoreMode, Scorer
from ..place.refusal import Refusal
from ..place.relocation import place_in
from ..plan.order import Guard, order

KINDS = ("cpu", "memory", "disk", "net")
_QUANTITIES = (Quantity.CPU_LOAD, Quantity.MEMORY_LOAD, Quantity.DISK_LOAD, Quantity.NET_LOAD)


@dataclass(frozen=True)
class LoadOptions:
    """When to move what. `tolerance` is how far a group's pressure may be from 1; a move must gain `min_gain` of score."""

    tolerance: float = 0.2
    min_gain: float = 0.001
    max_moves: int | None = None
    disk_moves: bool = False
    sources: tuple[int, ...] | None = None
    """The groups to bring back to the mean; None is all."""


@dataclass(frozen=True)
class GroupLoads:
    """Loads and capacities, [4, G] in the order of KINDS."""

    load: Floats
    capacity: Floats

    @property
    def expected(self) -> Floats:
        """Return the part of the whole load that each group would carry if it were level."""
        load, capacity = self.load.sum(axis=1, keepdims=True), self.capacity.sum(axis=1, keepdims=True)
        expected: Floats = self.capacity * np.divide(load, capacity, out=np.zeros_like(load), where=capacity > 0)
        return expected

    @property
    def pressure(self) -> Floats:
        """Return load by capacity, relative to that of the whole; 1 where there is no load or no capacity."""
        expected = self.expected
        pressure: Floats = np.divide(self.load, expected, out=np.ones_like(self.load), where=expected > 0)
        return pressure

    @property
    def score(self) -> float:
        """Return the sum over the kinds of the standard deviation of the pressures of all groups with capacity; 0 is level."""
        return float(_scores(self.pressure, self.capacity > 0))

    def outliers(self, tolerance: float) -> Integers:
        """Return [G]: 1 for a group that carries too much of any kind, -1 for one that carries too little of every kind, 0 for others."""
        part = (self.capacity > 0) & (self.load.sum(axis=1, keepdims=True) > 0)
        high = (part & (self.pressure > 1 + tolerance)).any(axis=0)
        low = part.any(axis=0) & (~part | (self.pressure < 1 - tolerance)).all(axis=0)
        outliers: Integers = high.astype(np.int64) - low
        return outliers


@dataclass(frozen=True)
class LoadBalancing:
    """Moves in an order in which they can be carried out, and the loads before and after."""

    before: GroupLoads
    after: GroupLoads
    moves: tuple[Move, ...]


def group_loads(state: ClusterState) -> GroupLoads:
    """Return the loads of all groups; instances on offline nodes load their group, which only online nodes can carry."""
    facts = state.facts.nodes
    count = len(state.facts.cluster.groups)
    online = ~state.offline
    abilities = (facts.total_cpus * facts.cpu_speed, facts.total_memory, facts.total_spindles, np.ones(len(facts.names)))
    return GroupLoads(
        load=np.array([np.bincount(facts.group, state.quantities[row], minlength=count) for row in _QUANTITIES]),
        capacity=np.array([np.bincount(facts.group, ability * online, minlength=count) for ability in abilities]),
    )


def balance_load(state: ClusterState, options: LoadOptions, mode: ScoreMode) -> LoadBalancing:
    """Return the moves that lower the score most, one by one, until no group is an outlier or none gains enough."""
    before = group_loads(state)
    now = state.copy()
    refused: set[tuple[int, int]] = set()
    targets: dict[int, Place] = {}
    while options.max_moves is None or len(targets) < options.max_moves:
        step = _best_step(now, options, refused, mode)
        if step is None:
            break
        instance, place = step
        now.place(instance, *place)
        targets[instance] = place
        # Room has changed, so refused instances may be tried again; moved ones stay.
        refused = {(moved, group) for moved in targets for group in range(len(state.facts.cluster.groups))}
    moves = order(state, targets, Guard.at_every_move(state)).moves
    after = after_moves(state, moves)
    return LoadBalancing(before, group_loads(after), moves)


def _best_step(
    now: ClusterState,
    options: LoadOptions,
    refused: set[tuple[int, int]],
    mode: ScoreMode,
) -> tuple[int, Place] | None:
    """Return an instance and its new place by the most gain of those that are possible."""
    loads = group_loads(now)
    placed = np.flatnonzero(now.primary >= 0).tolist()
    able = [i for i in placed if can_move(now, i) and (options.disk_moves or not now.facts.instances.two_nodes[i])]
    instances = np.array([i for i in able if not now.offline[now.place_of(i)[0]]], dtype=np.int64)
    gains = _gains(now, loads, instances, options)
    for row, group in zip(*np.unravel_index(np.argsort(-gains, axis=None, kind="stable"), gains.shape)):
        if gains[row, group] < options.min_gain:
            return None
        instance = int(instances[row])
        if (instance, int(group)) in refused or not takes_storage(now, instance, int(group)):
            continue
        home = now.place_of(instance)
        with now.lifted(instance):
            place = place_in(now, instance, home, int(group), Scorer(now, mode))
        if not isinstance(place, Refusal):
            return instance, place
        refused.add((instance, int(group)))
    return None


def _gains(now: ClusterState, loads: GroupLoads, instances: Integers, options: LoadOptions) -> Floats:
    """Return [len(instances), G]: by how much the score falls when an instance goes to a group; -inf where that cures no outlier."""
    facts = now.facts
    share = facts.instances.as_primary[:, instances] + facts.instances.as_secondary[:, instances]
    load = share[list(_QUANTITIES)]
    home = facts.nodes.group[now.primary[instances]]
    expected = loads.expected
    rate = np.divide(1.0, expected, out=np.zeros_like(expected), where=expected > 0)
    part = loads.capacity > 0
    outliers = loads.outliers(options.tolerance)
    wanted = np.isin(np.arange(len(outliers)), range(len(outliers)) if options.sources is None else options.sources)
    gains = np.full((len(instances), len(outliers)), -np.inf)
    for group in range(len(outliers)):
        cures = (home != group) & (((outliers[home] > 0) & wanted[home]) | bool(outliers[group] < 0 and wanted[group]))
        if outliers[group] > 0 or not part[:, group].any() or not cures.any():
            continue
        rows = np.flatnonzero(cures)
        pressure = np.repeat(loads.pressure[:, :, None], len(rows), axis=2)
        pressure[:, home[rows], np.arange(len(rows))] -= load[:, rows] * rate[:, home[rows]]
        pressure[:, group, :] += load[:, rows] * rate[:, [group]]
        gains[rows, group] = loads.score - _scores(pressure, part)
    return gains


def _scores(pressure: Floats, part: Booleans) -> Floats:
    """Return the score of pressures [4, G, ...], where `part` says which groups count."""
    weights = part.reshape(*part.shape, *([1] * (pressure.ndim - 2))).astype(float)
    count = np.maximum(weights.sum(axis=1, keepdims=True), 1.0)
    centred = (pressure - (pressure * weights).sum(axis=1, keepdims=True) / count) * weights
    scores: Floats = np.sqrt((centred**2).sum(axis=1) / count[:, 0]).sum(axis=0)
    return scores
