# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Flows beside networkx: equal amounts, conserved, and a cut that proves what is short."""

from __future__ import annotations

import random

import networkx as nx
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.place.flow import Transport, bits, route
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import given, settings
from hypothesis import strategies as st


def test_bits() -> None:
    assert list(bits(0b101001)) == [0, 3, 5]
    assert list(bits(0)) == []


def made(source: random.Random) -> tuple[list[int], list[int], list[int]]:
    """Return demands, masks and capacities of a random problem; sizes are beyond 32 bits."""
    pools = source.randint(1, 7)
    rows = source.randint(1, 9)
    scale = source.choice([5, 2**40])
    return (
        [source.randint(0, scale) for _unused in range(rows)],
        [source.getrandbits(pools) for _unused in range(rows)],
        [source.randint(0, scale) for _unused in range(pools)],
    )


def judged(demand: list[int], masks: list[int], capacity: list[int]) -> int:
    graph = nx.DiGraph()
    graph.add_nodes_from(["from", "to"])
    for row, amount in enumerate(demand):
        graph.add_edge("from", ("row", row), capacity=amount)
        for pool in bits(masks[row]):
            graph.add_edge(("row", row), ("pool", pool))
    for pool, room in enumerate(capacity):
        graph.add_edge(("pool", pool), "to", capacity=room)
    return nx.maximum_flow_value(graph, "from", "to")


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(150), deadline=None)
def test_route_is_a_maximum_flow_and_its_cut_proves_it(seed: int) -> None:
    demand, masks, capacity = made(random.Random(seed))
    transport, short = route(demand, masks, capacity)
    placed = [sum(row) for row in transport.flow]
    assert sum(placed) == judged(demand, masks, capacity)
    assert all(amount >= 0 for row in transport.flow for amount in row)
    assert all(not amount or masks[row] >> pool & 1 for row, flow in enumerate(transport.flow) for pool, amount in enumerate(flow))
    used = [sum(flow[pool] for flow in transport.flow) for pool in range(len(capacity))]
    assert [room - amount for room, amount in zip(capacity, used, strict=True)] == transport.free
    assert min(transport.free) >= 0
    assert sorted(short) == [row for row, amount in enumerate(demand) if placed[row] < amount]
    rows, pools = transport.reach(short)
    lacking = sum(demand[row] for row in bits(rows)) - sum(capacity[pool] for pool in bits(pools))
    assert lacking == sum(demand) - sum(placed)
    assert all(masks[row] & ~pools == 0 for row in bits(rows))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(100), deadline=None)
def test_push_into_moves_others_as_far_as_they_go(seed: int) -> None:
    source = random.Random(seed)
    demand, masks, capacity = made(source)
    transport, short = route(demand, masks, capacity)
    while short or not masks[0] or not demand[0]:
        demand, masks, capacity = made(source)
        transport, short = route(demand, masks, capacity)
    pool = next(bits(masks[0]))
    for other in bits(masks[0]):
        transport.withdraw(0, other, transport.flow[0][other])
    got = transport.push_into(0, pool, demand[0])
    assert transport.flow[0][pool] == got
    assert [sum(row) for row in transport.flow[1:]] == demand[1:]
    assert got == judged(demand, [1 << pool, *masks[1:]], capacity) - sum(demand[1:])


def test_reserved_room_is_gone() -> None:
    transport = Transport([0b1], [10])
    transport.push(0, 6)
    transport.reserve(0, 0, 6)
    assert transport.push(0, 10) == 4
    transport.restore(0, 0, 6)
    assert transport.flow == [[10]]
