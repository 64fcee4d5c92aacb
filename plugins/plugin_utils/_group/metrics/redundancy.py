# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node's failure would cost: N+1 for mirrored instances, and the same for those on shared storage.

A drbd instance fails over to its secondary, so N+1 is a matter of each node: the memory it keeps for the worst other
node must be free. An instance on shared storage may restart on any node of its group that reaches its pool, which is a
packing problem for each failing node (the open point of the seed design's "N+1 status"); it is solved by best fit, and
by integer programming where that leaves something out, with memory and exclusion tags as limits. CPUs are not counted, as
htools does not when it asks whether a node can be evacuated: a ratio of virtual to physical CPUs is for every day, not for the
hours in which a node is down.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._common.highs import Effort, Program, Undecided
from ..._common.libraries import np
from ..cluster.arrays import ANYWHERE, NOWHERE, Booleans, Floats, Integers, Quantity
from ..cluster.failures import failures_of
from ..cluster.model import PoolName
from ..cluster.state import ClusterState
from .limits import can_run

PROOFS = 20_000
"""The effort of all exact proofs for one look at a group: about two seconds, wherever it is."""

_NO_INSTANCES: Integers = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class NodeReserve:
    """Memory that a node keeps for failovers, in MiB: `short` of what `worst`, the node that needs most, would bring."""

    node: int
    free: int
    reserved: int
    short: int
    worst: int


@dataclass(frozen=True)
class NodeFailure:
    """What happens to the instances on shared storage when nodes fail together: those of `stranded` cannot restart.

    `proven` says that no other arrangement would strand less memory.
    """

    nodes: tuple[int, ...]
    instances: tuple[int, ...]
    stranded: tuple[int, ...]
    proven: bool
    overloaded: float = 0.0
    """MiB of mirrored instances beyond what their secondaries have; where a single node fails that is N+1's affair."""
    lost: tuple[int, ...] = ()
    """Mirrored instances both of whose nodes are among them."""

    @property
    def node(self) -> int:
        """Return the first of the nodes."""
        return self.nodes[0]

    def short(self, state: ClusterState) -> float:
        """Return the MiB that find no place."""
        return float(state.facts.instances.memory[list(self.stranded)].sum()) + self.overloaded


@dataclass(frozen=True)
class PoolReserve:
    """N+1 of one pool in one group: the node whose failure strands most memory, in MiB. `pool` None: reached by all nodes."""

    group: int
    pool: PoolName | None
    instances: int
    needed: int
    short: int
    worst: int
    proven: bool


def node_reserves(state: ClusterState) -> list[NodeReserve]:
    """Return for each node, in order, what it has and what it keeps."""
    free = state.quantities[Quantity.MEMORY]
    worst = state.peers.argmax(axis=1) if len(state.peers) else np.zeros(0, dtype=np.int64)
    return [
        NodeReserve(
            node=node,
            free=int(free[node]),
            reserved=int(state.reserved[node]),
            short=max(0, int(state.reserved[node] - free[node])),
            worst=int(worst[node]) if state.reserved[node] > 0 else NOWHERE,
        )
        for node in range(len(free))
    ]


def node_failures(state: ClusterState, group: int, effort: Effort | None = None) -> list[NodeFailure]:
    """Return for each online node of a group that carries instances on shared storage what its failure would strand.

    Sets of nodes that may fail together follow. What the effort, by default PROOFS, does not reach is answered by best fit alone.
    """
    effort = effort or Effort(PROOFS)
    carrying = np.zeros(len(state.offline) + 1, dtype=bool)
    carrying[state.primary[state.facts.instances.restarts]] = True
    nodes = state.group_nodes(group)
    singles = [(node,) for node in nodes[carrying[nodes] & ~state.offline[nodes]].tolist()]
    return [failure_of(state, failing, effort) for failing in (*singles, *failures_of(state, group))]


def failure_strands_more(
    state: ClusterState, failing: tuple[int, ...], most: float, effort: Effort, more: Integers = _NO_INSTANCES
) -> bool:
    """Return whether the failure of nodes would strand more than `most` MiB; what the effort does not disprove counts as more.

    `more` are instances that restart with those of the nodes, though they are not there in `state`.
    """
    return n1_deficit_above(state, failing, most, effort, more) > 0


def n1_deficit_above(state: ClusterState, failing: tuple[int, ...], most: float, effort: Effort, more: Integers = _NO_INSTANCES) -> float:
    """Return the MiB beyond `most` that the failure of nodes would strand, as failure_strands_more judges it; 0 for none."""
    problem = _restart(state, failing, more)
    most -= problem.overloaded
    stranded = _best_fit(problem)
    if problem.memory[stranded].sum() > most:
        stranded, _proven = _exact(problem, stranded, effort)
    return max(0.0, float(problem.memory[stranded].sum()) - most)


def pool_reserves(state: ClusterState, group: int, failures: list[NodeFailure]) -> list[PoolReserve]:
    """Return N+1 of every pool that the group's instances use, from its node_failures; those of several nodes do not count."""
    failures = [failure for failure in failures if len(failure.nodes) == 1]
    pool_of = state.facts.instances.pool
    memory = state.facts.instances.memory
    used = sorted({int(pool_of[instance]) for failure in failures for instance in failure.instances})
    reserves = []
    for pool in used:
        short = [sum(int(memory[i]) for i in failure.stranded if pool_of[i] == pool) for failure in failures]
        needed = [sum(int(memory[i]) for i in failure.instances if pool_of[i] == pool) for failure in failures]
        worst = max(range(len(failures)), key=lambda position: (short[position], needed[position]))
        reserves.append(
            PoolReserve(
                group=group,
                pool=None if pool == ANYWHERE else state.facts.pool_names[pool],
                instances=sum(int(pool_of[i] == pool) for failure in failures for i in failure.instances),
                needed=needed[worst],
                short=short[worst],
                worst=failures[worst].node,
                proven=failures[worst].proven,
            ),
        )
    return reserves


@dataclass(frozen=True)
class _Restart:
    """The packing problem of failing nodes: M instances, K nodes."""

    instances: Integers
    memory: Floats
    allowed: Booleans
    """[M, K]: the pool is reached and no exclusion tag is in the way."""
    room: Floats
    """[K]: MiB left once the drbd instances have failed over."""
    tags: Booleans
    """[M, T]: exclusion tags of each instance."""
    overloaded: float
    """MiB that mirrored instances lack on their secondaries; 0 where a single node fails."""


def _restarting(state: ClusterState, failing: tuple[int, ...], more: Integers = _NO_INSTANCES) -> Integers:
    """Return the running instances on shared storage of nodes, and `more`, largest first."""
    here = np.flatnonzero(np.isin(state.primary, failing) & state.facts.instances.restarts)
    if len(more):
        here = np.union1d(here, more)
    order: Integers = here[np.argsort(-state.facts.instances.memory[here], kind="stable")]
    return order


def failure_of(state: ClusterState, failing: tuple[int, ...], effort: Effort) -> NodeFailure:
    """Return what the failure of nodes of one group strands."""
    problem = _restart(state, failing)
    everything = tuple(problem.instances.tolist())
    stranded = _best_fit(problem)
    stranded, proven = _exact(problem, stranded, effort) if stranded else ([], True)
    lost = np.flatnonzero(np.isin(state.primary, failing) & np.isin(state.secondary, failing))
    return NodeFailure(
        failing, everything, tuple(everything[position] for position in stranded), proven, problem.overloaded, tuple(lost.tolist())
    )


def _restart(state: ClusterState, failing: tuple[int, ...], more: Integers = _NO_INSTANCES) -> _Restart:
    facts, nodes = state.facts.instances, state.facts.nodes
    instances = _restarting(state, failing, more)
    group = state.group_nodes(int(nodes.group[failing[0]]))
    targets = group[~np.isin(group, failing) & ~state.offline[group]]
    tag_counts = state.tag_counts.copy()
    surviving = (state.secondary != NOWHERE) & ~np.isin(state.secondary, failing)
    for mirrored in np.flatnonzero(np.isin(state.primary, failing) & surviving):
        tag_counts[state.secondary[mirrored], list(facts.exclusion[mirrored])] += 1
    # Rules are ignored: room is kept for all, and rules decide which instances use it once a node has failed. Hardware counts.
    soft = state.facts.slots.soft
    tags = np.zeros((len(instances), len(state.facts.slots.names)), dtype=bool)
    for row, instance in enumerate(instances):
        tags[row, list(facts.exclusion[instance])] = True
    tags = tags[:, :soft]
    pools = facts.pool[instances]
    reached = np.ones((len(instances), len(targets)), dtype=bool)
    named = pools != ANYWHERE
    reached[named] = nodes.pools[np.ix_(targets, pools[named])].T
    conflicts = tags.astype(np.int64) @ (tag_counts[targets][:, :soft] > 0).T.astype(np.int64)
    return _Restart(
        instances=instances,
        memory=facts.memory[instances],
        allowed=reached & (conflicts == 0) & can_run(state.facts, instances, targets),
        room=(room := state.quantities[Quantity.MEMORY, targets] - state.peers[np.ix_(targets, failing)].sum(axis=1)),
        tags=tags,
        overloaded=float(-np.minimum(room, 0.0).sum()) if len(failing) > 1 else 0.0,
    )


def _best_fit(problem: _Restart) -> list[int]:
    """Return the positions that find no node when each, largest first, takes the fullest node it still fits on."""
    room = problem.room.copy()
    taken = np.zeros((len(room), problem.tags.shape[1]), dtype=bool)
    stranded: list[int] = []
    # The first position and the number of instances in a row that need the same and have no exclusion tags.
    free = ~problem.tags.any(axis=1) & (problem.memory > 0)
    same = free[1:] & free[:-1] & (problem.memory[1:] == problem.memory[:-1])
    same &= (problem.allowed[1:] == problem.allowed[:-1]).all(axis=1)
    starts = np.flatnonzero(np.append(True, ~same)) if len(free) else np.zeros(0, dtype=np.int64)
    for position, count in list(zip(starts.tolist(), np.diff(np.append(starts, len(free))).tolist())):
        memory = problem.memory[position]
        fits = problem.allowed[position] & (room >= memory)
        fits &= ~taken[:, problem.tags[position]].any(axis=1)
        # Of several that are alike, a node takes as many as it can before the next fullest takes any.
        for node in np.flatnonzero(fits)[np.argsort(room[fits], kind="stable")].tolist():
            placed = 0
            while placed < count and room[node] >= memory:
                room[node] -= memory
                placed += 1
            taken[node] |= problem.tags[position]
            position, count = position + placed, count - placed
            if not count:
                break
        stranded += range(position, position + count)
    return stranded


def _exact(problem: _Restart, stranded: list[int], effort: Effort) -> tuple[list[int], bool]:
    """Return the positions that are stranded when as much memory as possible restarts, and whether that is proven."""
    rows, columns = np.nonzero(problem.allowed & (problem.memory[:, None] <= problem.room))
    if not len(rows):
        return stranded, True
    if not effort.affords(len(rows)):
        return stranded, False
    try:
        # The program: each instance at most once, memory, and each exclusion tag at most once on a node.
        program = Program()
        variables = program.columns(np.zeros(len(rows)), np.ones(len(rows)), integral=True)
        program.rows(rows, variables, np.ones(len(rows)), np.ones(len(problem.instances)))
        program.rows(columns, variables, problem.memory[rows], np.maximum(problem.room, 0.0))
        owners, tags = np.nonzero(problem.tags[rows])
        keys, slots = np.unique(columns[owners] * max(problem.tags.shape[1], 1) + tags, return_inverse=True)
        program.rows(slots, variables[owners], np.ones(len(owners)), np.ones(len(keys)))
        answer = effort.maximise(program, problem.memory[rows], 1e-4)
    except Undecided:
        answer = None
    if answer is None:
        return stranded, False
    placed = set(rows[answer.values > 0.5].tolist())
    found = [position for position in range(len(problem.instances)) if position not in placed]
    better = problem.memory[found].sum() <= problem.memory[stranded].sum()
    return (found if better else stranded), answer.proven
