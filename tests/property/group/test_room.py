# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Room for instances that do not fit is made by the fewest moves, of these by the cheapest, held against every set of moves."""

from __future__ import annotations

import itertools
import random

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.changes import after_moves, with_places
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Cluster, DiskTemplate, Instance, Node
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.health import group_health
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.place.placement import PlacementRequest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.place.room import make_room
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.order import Guard, order, reserves_left
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.stages import stages
from ansible_collections.bareon.allocator.tests.support.group.carry_out import assert_no_order_is_worse
from ansible_collections.bareon.allocator.tests.support.group.limits import excess
from ansible_collections.bareon.allocator.tests.support.group.policies import open_group
from ansible_collections.bareon.allocator.tests.support.group.super_clusters import is_allowed
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

MODEST = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
GROUP = open_group("g")


def guest(name: str, memory: int, disk: int, template: DiskTemplate, **home) -> Instance:
    return Instance(name, memory=memory, disk=disk, vcpus=1, disk_template=template, **home)


@st.composite
def crowded(draw):
    """Return a group of three nodes that is nearly full, and what is to come to it."""
    shared = draw(st.booleans())
    template = DiskTemplate.EXT if shared else DiskTemplate.DRBD
    sizes = {f"n{number}": draw(st.integers(5, 9)) for number in range(3)}
    left, disk = dict(sizes), dict.fromkeys(sizes, 12)
    instances = []
    for number in range(draw(st.integers(2, 4 if shared else 3))):
        memory, size = draw(st.integers(1, 4)), draw(st.integers(1, 4))
        homes = [name for name in draw(st.permutations(sorted(sizes))) if disk[name] >= size or shared]
        if not homes or left[homes[0]] < memory or (not shared and len(homes) < 2):
            continue
        left[homes[0]] -= memory
        for name in homes[: 1 if shared else 2]:
            disk[name] -= 0 if shared else size
        instances.append(guest(f"i{number}", memory, size, template, primary=homes[0], secondary="" if shared else homes[1]))
    nodes = tuple(Node(name, "g", float(size), 0, left[name], 12.0, disk[name], 99.0) for name, size in sizes.items())
    just_too_large = st.sampled_from([max(left.values()) + 1, max(left.values()) + 2])
    memories = [draw(st.one_of(just_too_large, just_too_large, st.integers(2, 5))) for _new in range(draw(st.sampled_from([1, 1, 2])))]
    new = [guest(f"new{number}", memory, 1, template) for number, memory in enumerate(memories)]
    return Cluster(groups=(GROUP,), nodes=nodes, instances=tuple(instances)), new


def every_place(state: ClusterState, instance: int):
    nodes = range(len(state.offline))
    return itertools.permutations(nodes, 2) if state.facts.instances.two_nodes[instance] else ((node, -1) for node in nodes)


def is_kept(before: ClusterState, after: ClusterState) -> bool:
    """Return whether no limit of a node and no failure of one is worse than before."""
    stranded = group_health(before, 0).stranded
    kept = all(memory <= stranded.get(node, 0) for node, memory in group_health(after, 0).stranded.items())
    return kept and is_allowed(before.to_cluster(), after.to_cluster())


def come(state: ClusterState, new: tuple[int, ...]) -> bool:
    """Return whether all new instances find places, one after the other in any order."""
    if not new:
        return True
    for instance in new:
        for place in every_place(state, instance):
            after = with_places(state, {instance: place})
            if is_kept(state, after) and come(after, tuple(other for other in new if other != instance)):
                return True
    return False


def fewest(state: ClusterState, new: tuple[int, ...]) -> tuple[int, int] | None:
    """Return the number of moves and the MiB copied of the cheapest set of moves that lets all come, by trying every one."""
    old = range(len(state.facts.cluster.instances))
    for count in range(len(old) + 1):
        costs = []
        for chosen in itertools.combinations(old, count):
            for places in itertools.product(*(every_place(state, instance) for instance in chosen)):
                targets = dict(zip(chosen, places))
                if any(place == state.place_of(instance) for instance, place in targets.items()):
                    continue
                data = sum(
                    int(state.facts.instances.disk[instance]) * len(set(place) - {-1, *state.place_of(instance)})
                    for instance, place in targets.items()
                    if state.facts.instances.two_nodes[instance]
                )
                if costs and data >= min(costs):
                    continue
                after = with_places(state, targets)
                guard = Guard.at_every_move(state, reserves_left(state, targets))
                if is_kept(state, after) and come(after, new) and not order(state, targets, guard).blocked:
                    costs.append(data)
        if costs:
            return count, min(costs)
    return None


@settings(MODEST, max_examples=12)
@given(crowded())
def test_as_few_and_as_cheap_moves_as_any_set_of_moves(asked):
    cluster, new = asked
    state = ClusterState.from_cluster(cluster, new)
    # Where N+1 fails already, a mirror still needs a node with the memory of its instance, which the oracle does not ask for.
    assume(not state.fails_n1.any())
    positions = tuple(range(len(cluster.instances), len(cluster.instances) + len(new)))
    found = make_room(state, [(position, PlacementRequest()) for position in positions])
    best = fewest(state, positions)
    event(f"{best and best[0]} moves")
    if best is None:
        assert found.placed < len(new)
        return
    assert found.placed == len(new) or (len(new) > 1 and not found.fewest)
    data = sum(
        int(state.facts.instances.disk[move.instance]) * len(set(move.target) - {-1, *move.source})
        for move in found.moves
        if move.target[1] >= 0
    )
    if found.placed == len(new):
        # Several on shared storage are placed one after the other or together, but not in every way that restarts allow.
        assert (len(found.moves), data) == best if found.fewest else (len(found.moves), data) >= best
    assert found.fewest or len(new) > 1


@MODEST
@given(crowded(), st.randoms(use_true_random=False))
def test_no_limit_gets_worse_in_any_order(asked, lot: random.Random):
    cluster, new = asked
    state = ClusterState.from_cluster(cluster, new)
    first = len(cluster.instances)
    found = make_room(state, [(first + number, PlacementRequest()) for number in range(len(new))])
    plan = stages(state, found.moves, Guard.at_every_step(state, reserves_left(state, [move.instance for move in found.moves])))
    assert_no_order_is_worse(state, plan, excess, lot)
    now = after_moves(state, found.moves)
    for result in found.results:
        if result.placements:
            after = with_places(now, {result.instance: (result.placements[0].primary, result.placements[0].secondary)})
            assert is_kept(now, after)
            now = after
