# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A world as arrays: providers numbered in pre-order, tree after tree, so that subtrees and trees are intervals.

Position p's subtree is [p, end[p]); tree t is [tree_start[t], tree_end[t]). Trees, and the children of a provider, stand in the order of
their names, so the numbering is the same in every process. An index is built once and answers any number of requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...common.libraries import np, npt
from ..world.model import Inventory, Provider, World
from ..world.names import SHARING_TRAIT, KnownNames, aggregate_uuid, known_names

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


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
        """Where min_unit, max_unit and step_size allow one consumer exactly this amount (seed 002), row by row."""
        allowed = (self.min_unit <= amount) & (amount <= self.max_unit)
        if self.has_steps:
            allowed &= (self.min_unit == amount) | (amount % self.step_size == 0)
        return allowed

    def fits(self, amount: int) -> Integers:
        """Return the positions that can give this amount now."""
        return self.positions[(self.room >= amount) & self.allows_piece(amount)]


@dataclass(frozen=True)
class Index:
    """All that the search asks of a world. Arrays by position have N entries, arrays by tree T."""

    providers: tuple[Provider, ...]
    positions: Mapping[str, int]
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
    known: KnownNames

    @cached_property
    def uuids(self) -> list[str]:
        """The UUID of each position."""
        return [provider.uuid for provider in self.providers]

    @cached_property
    def ends(self) -> list[int]:
        """`end` as a list, which plain Python reads faster."""
        return self.end.tolist()

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

    def _any(self, where: Mapping[str, Integers], names: Iterable[str]) -> Mask:
        mask = np.zeros(self.size, dtype=bool)
        for name in names:
            mask[where.get(name, _NOWHERE)] = True
        return mask


_NOWHERE: Integers = np.zeros(0, dtype=np.int64)


def build_index(world: World, used: Mapping[tuple[str, str], int] | None = None) -> Index:
    """Return the index of a world whose parents exist and form no loop.

    `used` is what is in use by (provider UUID, class), by default what the world's allocations come to.
    """
    ordered, depths, tree_starts = _preorder(world.providers)
    positions = {provider.uuid: position for position, provider in enumerate(ordered)}
    depth = np.array(depths, dtype=np.int64)
    tree_start = np.array(tree_starts, dtype=np.int64)
    tree_end = np.append(tree_start[1:], len(ordered))
    tree = np.repeat(np.arange(len(tree_start)), tree_end - tree_start)
    with_trait = _by_name(provider.traits for provider in ordered)
    in_aggregate = _by_name(provider.aggregates for provider in ordered)
    shared_tree, shared_position = _sharing(ordered, tree, with_trait, in_aggregate)
    return Index(
        providers=ordered,
        positions=positions,
        end=np.array(_subtree_ends(depths), dtype=np.int64),
        tree=tree,
        depth=depth,
        tree_start=tree_start,
        tree_end=tree_end,
        classes=_class_tables(ordered, world.usages() if used is None else used, positions),
        with_trait=with_trait,
        in_aggregate=in_aggregate,
        shared_tree=shared_tree,
        shared_position=shared_position,
        known=known_names(
            {name for provider in ordered for name in provider.inventories} | world.custom_classes,
            world.custom_traits.union(with_trait),
            world.aggregate_names.values(),
        ),
    )


def _preorder(providers: Sequence[Provider]) -> tuple[tuple[Provider, ...], list[int], list[int]]:
    """Return (providers in pre-order, the depth of each, where each tree starts)."""
    children: dict[str | None, list[Provider]] = {}
    for provider in sorted(providers, key=lambda provider: (provider.name, provider.uuid), reverse=True):
        children.setdefault(provider.parent, []).append(provider)
    ordered: list[Provider] = []
    depths: list[int] = []
    tree_starts: list[int] = []
    waiting = [(provider, 0) for provider in children.get(None, [])]
    while waiting:
        provider, depth = waiting.pop()
        if depth == 0:
            tree_starts.append(len(ordered))
        ordered.append(provider)
        depths.append(depth)
        waiting.extend((child, depth + 1) for child in children.get(provider.uuid, ()))
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


def _by_name(names_of_each: Iterable[frozenset[str]]) -> dict[str, Integers]:
    found: dict[str, list[int]] = {}
    for position, names in enumerate(names_of_each):
        for name in names:
            found.setdefault(name, []).append(position)
    return {name: np.array(positions, dtype=np.int64) for name, positions in found.items()}


def _class_tables(
    ordered: Sequence[Provider], usages: Mapping[tuple[str, str], int], positions: Mapping[str, int]
) -> dict[str, ClassTable]:
    rows: dict[str, list[tuple[int, Inventory]]] = {}
    for position, provider in enumerate(ordered):
        for name, inventory in provider.inventories.items():
            rows.setdefault(name, []).append((position, inventory))
    used: dict[str, dict[int, int]] = {name: {} for name in rows}
    for (uuid, name), amount in usages.items():
        if name in used and uuid in positions:
            used[name][positions[uuid]] = amount
    return {name: _class_table(entries, used[name]) for name, entries in rows.items()}


def _class_table(rows: Sequence[tuple[int, Inventory]], used: Mapping[int, int]) -> ClassTable:
    columns = [
        (position, used.get(position, 0), inventory.capacity, inventory.min_unit, inventory.max_unit, inventory.step_size)
        for position, inventory in rows
    ]
    return ClassTable(*np.array(columns, dtype=np.int64).T.copy())


def _sharing(
    ordered: Sequence[Provider], tree: Integers, with_trait: Mapping[str, Integers], in_aggregate: Mapping[str, Integers]
) -> tuple[Integers, Integers]:
    """Return parallel columns (tree, sharing provider of another tree), by ascending tree and position."""
    pairs = []
    for position in with_trait.get(SHARING_TRAIT, _NOWHERE).tolist():
        members = [tree[in_aggregate[name]] for name in sorted(ordered[position].aggregates)]
        for anchor in np.unique(np.concatenate([_NOWHERE, *members])).tolist():
            if anchor != tree[position]:
                pairs.append((anchor, position))
    columns = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]
