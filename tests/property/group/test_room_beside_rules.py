# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Room that is made beside rules and tolerances, compared with every set of moves; limits are counted as they are defined."""

from __future__ import annotations

import collections
import functools
import itertools
import random
import typing as t
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import (
    Cluster,
    DiskTemplate,
    Instance,
    Node,
    Rule,
    RuleKind,
    Tolerance,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.rules import contradictions
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.place.placement import PlacementRequest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.place.room import make_room
from ansible_collections.bareon.allocator.tests.support.group.policies import open_group
from ansible_collections.bareon.allocator.tests.support.house.share import examples

Where = Mapping[str, str]
MOST = 2
"""Moves of the sets that are tried."""


def guest(name: str, memory: int, primary: str = "", template: DiskTemplate = DiskTemplate.EXT) -> Instance:
    return Instance(name, memory, 1, 1, primary, disk_template=template)


def drawn_rules(chance: random.Random, old: Sequence[str], new: Sequence[str], nodes: Sequence[str]) -> Iterator[Rule]:
    def some(names: Sequence[str], most: int) -> tuple[str, ...]:
        return tuple(chance.sample(names, min(most, len(names))))

    for number in range(chance.randint(1, 3)):
        everybody, name = [*old, *new], f"r{number}"
        yield chance.choice(
            [
                Rule(name, RuleKind.IGNORE, some(old, 2)),
                Rule(name, RuleKind.PIN, some(old, 2), some(nodes, 2), hardware=chance.random() < 0.3),
                Rule(name, RuleKind.PIN, (new[0],), some(nodes, 2)),
                Rule(name, RuleKind.ANTI_AFFINITY, some(everybody, 3)),
                Rule(name, RuleKind.AFFINITY, some(everybody, 2)),
                Rule(name, RuleKind.SPREAD, some(everybody, 4), max_skew=chance.choice([1, 2])),
                Rule(name, RuleKind.PIN, some(everybody, 2), some(nodes, 1), strict=False, weight=3.0),
            ]
        )


def crowded(seed: int) -> tuple[Cluster, list[Instance]]:
    """Return three nodes with guests on shared storage, rules and perhaps a tolerance, and what is to come to them."""
    chance, names = random.Random(seed), ("n0", "n1", "n2")
    total = {name: chance.randint(6, 9) for name in names}
    left, old = dict(total), []
    for _number in range(chance.randint(3, 5)):
        memory, home = chance.randint(1, 2), chance.choice(names)
        if left[home] >= memory:
            left[home] -= memory
            old.append(guest(f"i{len(old)}", memory, home))
    largest = max(left.values())
    sizes = [largest + 1, largest + 1, largest + 2, 2]
    # What lies on a node's own disk needs no second place in case that it fails.
    template = chance.choice([DiskTemplate.PLAIN, DiskTemplate.PLAIN, DiskTemplate.EXT])
    new = [guest(f"x{number}", chance.choice(sizes), template=template) for number in range(chance.choice([1, 1, 2]))]
    rules = drawn_rules(chance, [one.name for one in old], [one.name for one in new], names)
    nodes = [Node(name, "g", float(total[name]), 0, left[name], 99.0, 99, 99.0, tags=(f"rack:{int(name == 'n2')}",)) for name in names]
    tolerate = chance.choice([None, None, None, Tolerance(nodes=2), Tolerance(domain="rack:")])
    return Cluster((open_group("g"),), tuple(nodes), tuple(old), rules=tuple(rules), tolerate=tolerate), new


@dataclass(frozen=True, eq=False)
class Book:
    """How much is wrong with places of guests, by the definitions."""

    cluster: Cluster
    guests: Mapping[str, Instance]

    @functools.cached_property
    def memory(self) -> dict[str, int]:
        return {name: one.memory for name, one in self.guests.items()}

    @functools.cached_property
    def failing(self) -> list[frozenset[str]]:
        """Each node, and what may fail at once beyond that."""
        nodes, tolerate = self.cluster.nodes, self.cluster.tolerate or Tolerance()
        if tolerate.domain:
            racks = [frozenset(node.name for node in nodes if node.tags == tags) for tags in {node.tags for node in nodes}]
        else:
            racks = [frozenset(names) for names in itertools.combinations([node.name for node in nodes], tolerate.nodes)]
        return [*(frozenset({node.name}) for node in nodes), *racks]

    def stranded(self, where: Where, failing: frozenset[str]) -> int:
        """Return the memory that finds no place at least when nodes fail, by trying every arrangement."""
        able = collections.defaultdict(lambda: frozenset(node.name for node in self.cluster.nodes))
        for rule in self.cluster.rules:
            for name in rule.instances if rule.hardware else ():
                able[name] &= frozenset(rule.nodes)
        left = {node.name: int(node.total_memory) for node in self.cluster.nodes if node.name not in failing}
        for name, home in where.items():
            if home in left:
                left[home] -= self.memory[name]
        going = [name for name, home in where.items() if home in failing and self.guests[name].disk_template is DiskTemplate.EXT]

        def least(number: int) -> int:
            if number == len(going):
                return 0
            name, best = going[number], self.memory[going[number]] + least(number + 1)
            for node in left:
                if node in able[name] and left[node] >= self.memory[name]:
                    left[node] -= self.memory[name]
                    best = min(best, least(number + 1))
                    left[node] += self.memory[name]
            return best

        return least(0)

    def wrong(self, where: Where) -> dict[tuple[t.Any, ...], int]:
        """Return how much is wrong of each kind."""
        nodes = [node.name for node in self.cluster.nodes]
        found: dict[tuple[t.Any, ...], int] = {}
        for node in self.cluster.nodes:
            used = sum(self.memory[name] for name, home in where.items() if home == node.name)
            found["memory", node.name] = max(0, used - int(node.total_memory))
        for rule in (one for one in self.cluster.rules if one.strict):
            homes = {name: where[name] for name in rule.instances if name in where}
            counts = [list(homes.values()).count(node) for node in nodes]
            if rule.kind is RuleKind.PIN:
                found |= {(rule.name, name): int(home not in rule.nodes) for name, home in homes.items()}
            if rule.kind is RuleKind.ANTI_AFFINITY:
                found |= {(rule.name, node): max(0, count - 1) for node, count in zip(nodes, counts)}
            if rule.kind is RuleKind.AFFINITY:
                found[rule.name, ""] = sum(counts) - max(counts)
            if rule.kind is RuleKind.SPREAD:
                found[rule.name, ""] = max(0, max(counts) - min(counts) - rule.max_skew)
        return found | {("stranded", failing): self.stranded(where, failing) for failing in self.failing}

    def holds(self, before: Where, after: Where, but: RuleKind | None = None) -> bool:
        """Return whether nothing is worse, with no regard to one kind of rules."""
        apart = {rule.name for rule in self.cluster.rules if rule.kind is but}
        then = self.wrong(before)
        return all(much <= then.get(what, 0) or what[0] in apart for what, much in self.wrong(after).items())

    def come(self, where: Where, new: Sequence[str]) -> bool:
        """Return whether all new ones find places, one after the other in any order."""
        places = [(name, {**where, name: node.name}) for name in new for node in self.cluster.nodes]
        return not new or any(self.holds(where, after) and self.come(after, [one for one in new if one != name]) for name, after in places)

    def fewest(self, where: Where, movable: Sequence[str], new: Sequence[str]) -> int | None:
        """Return how many moves let all come at least, of at most MOST, each of which makes nothing worse."""
        for count in range(MOST + 1):
            for order in itertools.permutations(movable, count):
                for places in itertools.product([node.name for node in self.cluster.nodes], repeat=count):
                    now, good = where, all(where[name] != place for name, place in zip(order, places))
                    for name, place in zip(order, places) if good else ():
                        now = {**now, name: place}
                        good = good and self.holds(where, now)
                    if good and self.come(now, new):
                        return count
        return None


def test_no_fewer_moves_make_room_and_none_breaks_a_rule():
    made = 0
    for seed in range(examples(60)):
        cluster, new = crowded(seed)
        book = Book(cluster, {one.name: one for one in (*cluster.instances, *new)})
        where = {one.name: one.primary for one in cluster.instances}
        stay = {name for one in contradictions(cluster) for name in one.instances}
        stay |= {name for rule in cluster.rules if rule.kind is RuleKind.IGNORE for name in rule.instances}
        found = make_room(
            ClusterState.from_cluster(cluster, new), [(len(where) + number, PlacementRequest()) for number in range(len(new))]
        )
        now: Where = where
        for move in found.moves:
            name = cluster.instances[move.instance].name
            assert name not in stay, seed
            now = {**now, name: cluster.nodes[move.target[0]].name}
            # Those that belong together go one after the other.
            assert book.holds(where, now, but=RuleKind.AFFINITY), seed
        assert book.holds(where, now), seed
        for result in found.results:
            if result.placements:
                name = new[result.instance - len(where)].name
                before, now = now, {**now, name: cluster.nodes[result.placements[0].primary].name}
                assert book.holds(before, now), seed
        best = book.fewest(where, [name for name in where if name not in stay], [one.name for one in new])
        if found.fewest and best is not None:
            assert found.placed == len(new), seed
            assert len(found.moves) <= best, seed
        made += bool(found.moves)
    assert made > 0


def test_those_that_belong_together_are_not_torn_apart_to_make_room():
    """The first set that makes room takes i1 away from i3; one as small leaves both."""
    rules = (
        Rule("together", RuleKind.AFFINITY, ("i1", "i3")),
        Rule("wish", RuleKind.ANTI_AFFINITY, ("i0", "i1", "i2"), strict=False),
        Rule("pin", RuleKind.PIN, ("i1", "i2"), ("n0", "n1")),
    )
    old = (guest("i0", 2, "n2"), guest("i1", 4, "n0"), guest("i2", 1, "n1"), guest("i3", 1, "n0"))
    left = {"n0": (8, 3), "n1": (7, 6), "n2": (9, 7)}
    nodes = tuple(Node(name, "g", float(total), 0, free, 99.0, 99, 99.0) for name, (total, free) in left.items())
    cluster, new = Cluster((open_group("g"),), nodes, old, rules=rules), guest("x0", 7)
    found = make_room(ClusterState.from_cluster(cluster, [new]), [(len(old), PlacementRequest())])
    assert [(cluster.instances[move.instance].name, cluster.nodes[move.target[0]].name) for move in found.moves] == [("i2", "n0")]
    assert found.placed == 1


def test_where_a_rule_is_broken_already_not_every_set_was_tried():
    """All three are on n0, which a spread does not want, so that none of them could be left there."""
    rules = (Rule("together", RuleKind.AFFINITY, ("x0", "i2")), Rule("even", RuleKind.SPREAD, ("i0", "i1", "i2")))
    old = (guest("i0", 4, "n0"), guest("i1", 3, "n0"), guest("i2", 2, "n0"))
    left = {"n0": (9, 0), "n1": (9, 9), "n2": (10, 10)}
    nodes = tuple(Node(name, "g", float(total), 0, free, 99.0, 99, 99.0) for name, (total, free) in left.items())
    state = ClusterState.from_cluster(Cluster((open_group("g"),), nodes, old, rules=rules), [guest("x0", 2)])
    found = make_room(state, [(len(old), PlacementRequest())])
    assert (found.placed, found.fewest) == (0, False)
