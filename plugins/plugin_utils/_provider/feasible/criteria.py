# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a tree must have to satisfy a request, as conditions in SQL that an index answers.

A criterion is what one choice of a provider needs: all its atoms of one provider of the tree, or of a sharing provider that the tree
reaches by an aggregate. Any atom may lead the way; the others are then asked of the providers that it finds.

Texts have `?` for values and a field `{p}` for the table's alias; numbers of rows are written out, since they are the ledger's own.
"""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..._common.libraries import sa
from ..candidates.requirements import Requirement, Sql, column_amounts, column_requirements, preferred, required_trait, root_requirements
from ..ledger.statements import select_rows
from ..request.model import UNSUFFIXED, Group, Request


@dataclass(frozen=True)
class Atom:
    """One thing that a provider has, a row in a table; `kind` and `label` describe it to people.

    `kept` are providers whose rows are as wanted whatever they say.
    """

    table: str
    says: Sql
    kind: str
    label: str
    kept: frozenset[int] = frozenset()

    @property
    def relaxed(self) -> Sql:
        """The row's condition, or that its provider is a kept one."""
        return Sql(f"({self.says.text} OR {{p}}.provider_id IN ({numbers_in(self.kept)}))", self.says.values) if self.kept else self.says


@dataclass(frozen=True)
class Criterion:
    """What one choice needs. `own` must hold in addition for a tree's own provider, `shared` for one of another tree; None: none will do.

    A tree needs `least` such providers, and `total` of the first atom's class in all of them. `tree` is the only root whose providers
    will do.
    """

    atoms: tuple[Atom, ...]
    own: tuple[Sql, ...] = ()
    shared: tuple[Sql, ...] | None = ()
    least: int = 1
    total: int = 0
    tree: int | None = None

    def found(self, alias: str, leading: int = 0) -> Sql:
        """Return the condition on a row of the leading atom's table that its provider, one of the tree's own, will do."""
        others = (has_row(atom.table, alias, atom.says) for number, atom in enumerate(self.atoms) if number != leading)
        tree = [] if self.tree is None else [Sql(f"{alias}.root_id = {self.tree}")]
        return conjunction([self.atoms[leading].says.of(alias), *others, *(says.of(alias) for says in self.own), *tree])

    def offered(self, alias: str) -> Sql:
        """Return the same of a row of the first atom's table, about a sharing provider of another tree."""
        others = (has_row(atom.table, alias, atom.relaxed) for atom in self.atoms[1:])
        tree = [] if self.tree is None else [Sql(f"{alias}.root_id = {self.tree}")]
        return conjunction([self.atoms[0].relaxed.of(alias), *others, *(says.of(alias) for says in self.shared or ()), *tree])


@dataclass(frozen=True)
class Criteria:
    """What a request needs of a tree. `unwanted` are tables and conditions of which the root's rows must have none.

    `held` are the roots of the trees in which the consumer has something, which counts as free: they are always searched. `roots` are
    the only ones that will do, None for any; `other_roots` will not.
    """

    wanted: tuple[Criterion, ...]
    unwanted: tuple[Atom, ...]
    held: frozenset[int] = frozenset()
    roots: frozenset[int] | None = None
    other_roots: frozenset[int] = frozenset()


def conjunction(parts: Iterable[Sql]) -> Sql:
    """Return the condition that all of the parts hold."""
    every = list(parts)
    return Sql(" AND ".join(part.text for part in every) or "1 = 1", tuple(value for part in every for value in part.values))


def numbers_in(numbers: Iterable[int]) -> str:
    """Return numbers of rows as SQL lists them."""
    return ",".join(map(str, numbers)) or "NULL"


def rows(connection: sa.Connection, sql: Sql) -> Sequence[t.Any]:
    """Return the rows that a statement selects."""
    return select_rows(connection, sql.text, sql.values)


def make_criteria(
    request: Request, trees: Mapping[str, int], kept: Mapping[int, int], sharing: Collection[int], numbers: Mapping[str, int] | None = None
) -> Criteria:
    """Return the criteria of a request.

    `trees` are the numbers of the roots of the trees that in_tree names, by that name. `kept` are the providers of which the consumer has
    something, each with its root; `sharing` are those of them that share. `numbers` are those of the roots that the request names, by UUID.
    """
    numbers = numbers or {}
    shares = frozenset(sharing)
    wanted = [criterion for group in request.groups for criterion in _of_group(request, group, trees, shares)]
    roots = list(root_requirements(request))
    at_root = (Sql("{p}.provider_id = {p}.root_id"),)
    wishes = sorted(request.met or (), key=lambda preference: (preference.kind, preference.name))
    return Criteria(
        (
            *(Criterion((atom_of(asked),), at_root, None) for asked in roots if not asked.forbidden),
            *(Criterion((atom_of(preferred(wish)),)) for wish in wishes),
            *_several(request, wanted),
        ),
        tuple(atom_of(asked) for asked in roots if asked.forbidden),
        frozenset(kept.values()),
        None if request.roots is None else frozenset(numbers[uuid] for uuid in request.roots & numbers.keys()),
        frozenset(numbers[uuid] for uuid in request.other_roots & numbers.keys()),
    )


def condition_on_provider(group: Group, tree: int | None, kept: frozenset[int] = frozenset()) -> Sql:
    """Return the condition that a provider, a row `{p}` with its number and its root's, satisfies a group by itself.

    `tree` is the root of the tree that in_tree names, None for any. `kept` are the providers that may have more room than their rows say.
    """
    alone = replace(group, suffix=group.suffix or "alone")
    parts = [
        on_provider(asked) if asked.forbidden else has_row(asked.what.table, "{p}", atom_of(asked, kept).relaxed)
        for asked in column_requirements(alone, group.resources, split=False)
    ]
    if tree is not None:
        parts.append(Sql(f"{{p}}.root_id = {tree}"))
    return conjunction(parts)


def _of_group(request: Request, group: Group, trees: Mapping[str, int], kept: frozenset[int]) -> Iterator[tuple[Group, Criterion]]:
    columns = column_amounts(group, request.can_split)
    unsuffixed = group.suffix == UNSUFFIXED
    tree = None if group.in_tree is None else trees.get(group.in_tree, 0)
    for amounts, split in columns:
        asked = list(column_requirements(group, amounts, split=split))
        atoms = tuple(atom_of(one, kept) for one in asked if not one.forbidden and not one.root_counts)
        others = [one for one in asked if one.forbidden or one.root_counts]
        if atoms:
            own, shared = (tuple(on_provider(one, with_root=one.root_counts and here) for one in others) for here in (True, False))
            none_shared = unsuffixed and tree is not None
            yield group, Criterion(atoms, own, None if none_shared else shared, tree=tree)
    for choice in required_apart(group, request.can_split):
        yield group, Criterion((atom_of(required_trait(choice)),))


def required_apart(group: Group, can_split: frozenset[str]) -> tuple[frozenset[str], ...]:
    """Return the sets of traits that any provider of the tree may have: those of a group without a suffix with several providers."""
    columns = column_amounts(group, can_split)
    return group.required if group.suffix == UNSUFFIXED and (len(columns) != 1 or columns[0][1]) else ()


def _several(request: Request, wanted: Sequence[tuple[Group, Criterion]]) -> Iterator[Criterion]:
    """Yield equal criteria once: as many providers where groups must differ, else as much room in all of them."""
    alike: dict[tuple[Group, Criterion], list[Group]] = {}
    for group, criterion in wanted:
        alike.setdefault((replace(group, suffix=group.suffix and "*"), criterion), []).append(group)
    for (_kind, criterion), groups in alike.items():
        isolated = sum(group.suffix in request.isolated for group in groups)
        amounts = [amount for _name, amount in groups[0].resources][:1]
        total = amounts[0] * len(groups) if amounts and len(groups) > 1 and groups[0].suffix else 0
        yield replace(criterion, least=max(1, isolated), total=0 if isolated else total)


def atom_of(asked: Requirement, kept: frozenset[int] = frozenset()) -> Atom:
    """Return a requirement as a row; `kept` are the providers that have room whatever their rows say."""
    return Atom(asked.what.table, asked.what.sql(), asked.kind, asked.says, kept if asked.kind == "room" else frozenset())


def has_row(table: str, alias: str, says: Sql) -> Sql:
    """Return the condition that a provider, a row of `alias`, has such a row of a table."""
    inner = f"{alias}h" if alias.isalpha() else "h"
    found = says.of(inner)
    return Sql(f"EXISTS (SELECT 1 FROM {table} {inner} WHERE {inner}.provider_id = {alias}.provider_id AND {found.text})", found.values)


def on_provider(asked: Requirement, *, with_root: bool = False) -> Sql:
    """Return the condition that a provider, a row `{p}`, or with it the root of its tree, has what is asked for, or has it not."""
    found, providers = asked.what.sql().of("n"), "{p}.provider_id, {p}.root_id" if with_root else "{p}.provider_id"
    exists = "NOT EXISTS" if asked.forbidden else "EXISTS"
    return Sql(f"{exists} (SELECT 1 FROM {asked.what.table} n WHERE n.provider_id IN ({providers}) AND {found.text})", found.values)
