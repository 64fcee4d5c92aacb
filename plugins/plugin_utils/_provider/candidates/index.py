# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A world as arrays: providers numbered in pre-order, tree after tree, so that subtrees and trees are intervals.

Position p's subtree is [p, end[p]); tree t is [tree_start[t], tree_end[t]). Trees, and the children of a provider, stand in the order of
their names, so the numbering is the same in every process. An index is built once and answers any number of requests.
"""

from __future__ import annotations

import typing as t
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter

from ..._common.libraries import np, npt
from ..world.model import World
from ..world.names import SHARING_TRAIT, KnownNames, aggregate_uuid, known_names
from ..world.pieces import allows_piece

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


Stock = tuple[Hashable, str, int, int, int, int, int]
"""One inventory: its provider's key, its class, then used, capacity, min_unit, max_unit and step_size."""


class Member(t.NamedTuple):
    """One provider; `key` is what its inventories, traits, aggregates and children name it by.

    `drained` says why it gives nothing, for itself or for those above it; empty where something is.
    """

    key: Hashable
    uuid: str
    name: str
    generation: int
    parent: Hashable | None
    drained: str = ""


@dataclass(frozen=True)
class Rows:
    """Providers and what they have, row by row, as a database keeps them; traits and aggregates are (provider's key, name)."""

    members: Iterable[Member]
    stocks: Iterable[Stock]
    traits: Iterable[tuple[Hashable, str]]
    aggregates: Iterable[tuple[Hashable, str]]


@dataclass(frozen=True)
class ClassTable:
    """Every inventory of one resource class: parallel columns, by ascending position of the provider."""

    positions: Integers
    used: Integers
    capacity: Integers
    min_unit: Integers
    max_unit: Integers
    step_size: Integers

    @cached_property
    def room(self) -> Integers:
        """What is free; negative where a provider shrank below its use."""
        return self.capacity - self.used

    @cached_property
    def most(self) -> Integers:
        """The most that one request could be given: room and max_unit."""
        return np.minimum(self.room, self.max_unit)

    @cached_property
    def has_steps(self) -> bool:
        """Whether any step_size is not 1."""
        return bool((self.step_size != 1).any())

    @cached_property
    def rules(self) -> dict[int, tuple[int, int, int]]:
        """(most, min_unit, step_size) by position."""
        columns = (self.most.tolist(), self.min_unit.tolist(), self.step_size.tolist())
        return dict(zip(self.positions.tolist(), zip(*columns, strict=True), strict=True))

    @cached_property
    def loads(self) -> dict[int, tuple[int, int]]:
        """(used, capacity) by position."""
        return dict(zip(self.positions.tolist(), zip(self.used.tolist(), self.capacity.tolist(), strict=True), strict=True))

    def allows_piece(self, amount: int) -> Mask:
        """Where one consumer may have exactly this amount, row by row."""
        return allows_piece(amount, self.min_unit, self.max_unit, self.step_size if self.has_steps else 1)

    def fits(self, amount: int) -> Integers:
        """Return the positions that can give this amount now."""
        return self.positions[(self.room >= amount) & self.allows_piece(amount)]


@dataclass(frozen=True)
class Index:
    """All that the search asks of a world. Arrays by position have N entries, arrays by tree T."""

    providers: tuple[Member, ...]
    end: Integers
    tree: Integers
    depth: Integers
    tree_start: Integers
    tree_end: Integers
    classes: Mapping[str, ClassTable]
    with_trait: Mapping[str, Integers]
    in_aggregate: Mapping[str, Integers]
    shared_tree: Integers
    shared_position: Integers
    custom_classes: frozenset[str] = frozenset()
    custom_traits: frozenset[str] = frozenset()
    aggregate_names: frozenset[str] = frozenset()

    @cached_property
    def known(self) -> KnownNames:
        """Every resource class and trait that exists, and the names of aggregates."""
        return known_names(self.custom_classes.union(self.classes), self.custom_traits.union(self.with_trait), self.aggregate_names)

    @cached_property
    def drained(self) -> Mask:
        """Where nothing is given."""
        return np.array([bool(provider.drained) for provider in self.providers], dtype=bool)

    def undrained(self) -> Index:
        """Return the same index as if no provider were drained."""
        if not self.drained.any():
            return self
        return replace(self, providers=tuple(provider._replace(drained="") for provider in self.providers))

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """The position of each provider by its UUID."""
        return {uuid: position for position, uuid in enumerate(self.uuids)}

    @cached_property
    def uuids(self) -> list[str]:
        """The UUID of each position."""
        return [provider.uuid for provider in self.providers]

    @cached_property
    def ends(self) -> list[int]:
        """`end` as a list, which plain Python reads faster."""
        return self.end.tolist()

    @cached_property
    def starts(self) -> list[int]:
        """`tree_start` as a list."""
        return self.tree_start.tolist()

    @cached_property
    def root(self) -> Integers:
        """The position of the root of each position's tree."""
        return self.tree_start[self.tree]

    @cached_property
    def shared_with(self) -> dict[int, list[int]]:
        """The sharing providers of other trees by the tree that may use them, ascending."""
        shared: dict[int, list[int]] = {}
        for tree, position in zip(self.shared_tree.tolist(), self.shared_position.tolist(), strict=True):
            shared.setdefault(tree, []).append(position)
        return shared

    @cached_property
    def sharing(self) -> frozenset[int]:
        """The positions of all sharing providers."""
        return frozenset(self.with_trait.get(SHARING_TRAIT, _NOWHERE).tolist())

    @property
    def size(self) -> int:
        """How many providers there are."""
        return len(self.providers)

    @property
    def trees(self) -> int:
        """How many trees there are."""
        return len(self.tree_start)

    def mask(self, positions: Integers) -> Mask:
        """Return a mask of all providers that is true at some positions."""
        mask = np.zeros(self.size, dtype=bool)
        mask[positions] = True
        return mask

    def any_trait(self, traits: Iterable[str]) -> Mask:
        """Where at least one of the traits is."""
        return self._any(self.with_trait, traits)

    def any_aggregate(self, aggregates: Iterable[str]) -> Mask:
        """Where the provider itself is in at least one of the aggregates, UUIDs or names."""
        return self._any(self.in_aggregate, map(aggregate_uuid, aggregates))

    @cached_property
    def named(self) -> dict[str, int]:
        """The position of each provider by its name."""
        return {provider.name: position for position, provider in enumerate(self.providers)}

    def tree_mask(self, reference: str) -> Mask:
        """Where the tree is that has a provider, by UUID or name, as any member; nowhere if there is no such provider."""
        mask = np.zeros(self.size, dtype=bool)
        position = self.positions.get(reference, self.named.get(reference))
        if position is not None:
            tree = self.tree[position]
            mask[self.tree_start[tree] : self.tree_end[tree]] = True
        return mask

    def ancestors(self, position: int) -> list[int]:
        """Return the positions of the providers above one, the nearest first."""
        above: list[int] = []
        depth = self.depth[position]
        for before in range(position - 1, int(self.root[position]) - 1, -1):
            if self.depth[before] < depth:
                above.append(before)
                depth = self.depth[before]
        return above

    def traits_of(self, position: int) -> frozenset[str]:
        """Return the traits of one provider."""
        return frozenset(name for name, positions in self.with_trait.items() if position in positions)

    def aggregates_of(self, position: int) -> frozenset[str]:
        """Return the aggregates of one provider."""
        return frozenset(name for name, positions in self.in_aggregate.items() if position in positions)

    def _any(self, where: Mapping[str, Integers], names: Iterable[str]) -> Mask:
        mask = np.zeros(self.size, dtype=bool)
        for name in names:
            mask[where.get(name, _NOWHERE)] = True
        return mask


_NOWHERE: Integers = np.zeros(0, dtype=np.int64)
_NAME_AND_UUID = itemgetter(Member._fields.index("name"), Member._fields.index("uuid"))


def build_index(world: World) -> Index:
    """Return the index of a world whose parents exist and form no loop."""
    return index_rows(_rows_of(world), world.custom_classes, world.custom_traits, frozenset(world.aggregate_names.values()))


def index_rows(
    rows: Rows,
    custom_classes: frozenset[str] = frozenset(),
    custom_traits: frozenset[str] = frozenset(),
    aggregate_names: frozenset[str] = frozenset(),
) -> Index:
    """Return the index of rows whose parents are among them and form no loop, and of other existing names."""
    ordered, depths, tree_starts = _preorder(rows.members)
    positions = {member.key: position for position, member in enumerate(ordered)}
    tree_start = np.array(tree_starts, dtype=np.int64)
    tree_end = np.append(tree_start[1:], len(ordered))
    tree = np.repeat(np.arange(len(tree_start)), tree_end - tree_start)
    with_trait = _by_name(rows.traits, positions)
    in_aggregate = _by_name(rows.aggregates, positions)
    shared_tree, shared_position = _sharing(tree, with_trait, in_aggregate)
    return Index(
        providers=ordered,
        end=np.array(_subtree_ends(depths), dtype=np.int64),
        tree=tree,
        depth=np.array(depths, dtype=np.int64),
        tree_start=tree_start,
        tree_end=tree_end,
        classes=_class_tables(rows.stocks, positions),
        with_trait=with_trait,
        in_aggregate=in_aggregate,
        shared_tree=shared_tree,
        shared_position=shared_position,
        custom_classes=custom_classes,
        custom_traits=custom_traits,
        aggregate_names=aggregate_names,
    )


def _rows_of(world: World) -> Rows:
    """Return a world as rows, their keys the UUIDs."""
    used, drains = world.usages(), world.drains()
    return Rows(
        members=(
            Member(provider.uuid, provider.uuid, provider.name, provider.generation, provider.parent, drains.get(provider.uuid, ""))
            for provider in world.providers
        ),
        stocks=(
            (provider.uuid, name, used.get((provider.uuid, name), 0), has.capacity, has.min_unit, has.max_unit, has.step_size)
            for provider in world.providers
            for name, has in provider.inventories.items()
        ),
        traits=((provider.uuid, name) for provider in world.providers for name in provider.traits),
        aggregates=((provider.uuid, name) for provider in world.providers for name in provider.aggregates),
    )


def _preorder(members: Iterable[Member]) -> tuple[tuple[Member, ...], list[int], list[int]]:
    """Return (providers in pre-order, the depth of each, where each tree starts)."""
    children: dict[Hashable | None, list[Member]] = defaultdict(list)
    for member in sorted(members, key=_NAME_AND_UUID, reverse=True):
        children[member.parent].append(member)
    ordered: list[Member] = []
    depths: list[int] = []
    tree_starts: list[int] = []
    waiting = [(member, 0) for member in children.pop(None, ())]
    while waiting:
        member, depth = waiting.pop()
        if depth == 0:
            tree_starts.append(len(ordered))
        ordered.append(member)
        depths.append(depth)
        if member.key in children:
            waiting.extend((child, depth + 1) for child in children[member.key])
    return tuple(ordered), depths, tree_starts


def _subtree_ends(depths: Sequence[int]) -> list[int]:
    """Return for each position of a pre-order where its subtree ends."""
    ends = [len(depths)] * len(depths)
    open_positions: list[int] = []
    for position, depth in enumerate(depths):
        while open_positions and depths[open_positions[-1]] >= depth:
            ends[open_positions.pop()] = position
        open_positions.append(position)
    return ends


def _by_name(rows: Iterable[tuple[Hashable, str]], positions: Mapping[Hashable, int]) -> dict[str, Integers]:
    """Return the ascending positions of those that have a name."""
    found: dict[str, list[int]] = defaultdict(list)
    for key, name in rows:
        found[name].append(positions[key])
    return {name: np.array(sorted(having), dtype=np.int64) for name, having in found.items()}


def _class_tables(stocks: Iterable[Stock], positions: Mapping[Hashable, int]) -> dict[str, ClassTable]:
    found: dict[str, list[tuple[int, ...]]] = defaultdict(list)
    for key, name, used, capacity, min_unit, max_unit, step_size in stocks:
        if step_size < 1:
            # NumPy would warn, and go on with 0.
            raise ArithmeticError(f"step_size is {step_size}")
        found[name].append((positions[key], used, capacity, min_unit, max_unit, step_size))
    return {name: ClassTable(*_by_position(np.array(rows, dtype=np.int64))) for name, rows in found.items()}


def _by_position(rows: Integers) -> Integers:
    return rows[np.argsort(rows[:, 0])].T.copy()


def _sharing(tree: Integers, with_trait: Mapping[str, Integers], in_aggregate: Mapping[str, Integers]) -> tuple[Integers, Integers]:
    """Return parallel columns (tree, sharing provider of another tree), by ascending tree and position."""
    sharing = frozenset(with_trait.get(SHARING_TRAIT, _NOWHERE).tolist())
    pairs: set[tuple[int, int]] = set()
    for members in in_aggregate.values() if sharing else ():
        for position in sharing.intersection(members.tolist()):
            pairs.update((anchor, position) for anchor in tree[members].tolist() if anchor != tree[position])
    columns = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]
