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
from ..candidates.columns import column_amounts
from ..ledger.statements import select_rows
from ..request.model import UNSUFFIXED, Group, Preference, Request
from ..world.names import aggregate_uuid


@dataclass(frozen=True)
class Sql:
    """A piece of SQL and the values of its question marks."""

    text: str
    values: tuple[t.Any, ...] = ()

    def of(self, alias: str) -> Sql:
        """Return it about a table with this alias."""
        return Sql(self.text.replace("{p}", alias), self.values)


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
        others = (_has(atom.table, alias, atom.says) for number, atom in enumerate(self.atoms) if number != leading)
        tree = [] if self.tree is None else [Sql(f"{alias}.root_id = {self.tree}")]
        return conjunction([self.atoms[leading].says.of(alias), *others, *(says.of(alias) for says in self.own), *tree])

    def offered(self, alias: str) -> Sql:
        """Return the same of a row of the first atom's table, about a sharing provider of another tree."""
        others = (_has(atom.table, alias, atom.relaxed) for atom in self.atoms[1:])
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
    roots = [_with_trait([trait], "root_required", "root has ") for trait in sorted(request.root_required)]
    roots += [_in_aggregate(choice, "root_member_of", "root is ") for choice in request.root_member_of]
    at_root = (Sql("{p}.provider_id = {p}.root_id"),)
    preferred = (Criterion((_preferred(preference),)) for preference in sorted(request.met or (), key=_by_name))
    unsuffixed = request.group(UNSUFFIXED)
    excluded = request.root_not_member_of | (unsuffixed.not_member_of if unsuffixed else frozenset())
    unwanted = [
        *([_with_trait(request.root_forbidden, "root_forbidden", "root has not ")] if request.root_forbidden else []),
        *([_in_aggregate(excluded, "root_member_of", "root is not ")] if excluded else []),
    ]
    return Criteria(
        (*(Criterion((atom,), at_root, None) for atom in roots), *preferred, *_several(request, wanted)),
        tuple(unwanted),
        frozenset(kept.values()),
        None if request.roots is None else frozenset(numbers[uuid] for uuid in request.roots & numbers.keys()),
        frozenset(numbers[uuid] for uuid in request.other_roots & numbers.keys()),
    )


def criteria_of_groups(request: Request) -> Iterator[tuple[str, Criterion]]:
    """Yield the criteria of each group, with its suffix, each by itself."""
    for group in request.groups:
        for _group, criterion in _of_group(request, group, {}, frozenset()):
            yield group.suffix, criterion


def condition_on_provider(group: Group, tree: int | None, kept: frozenset[int] = frozenset()) -> Sql:
    """Return the condition that a provider, a row `{p}` with its number and its root's, satisfies a group by itself.

    `tree` is the root of the tree that in_tree names, None for any. `kept` are the providers that may have more room than their rows say.
    """
    atoms = [_with_room(name, amount, kept, split=False) for name, amount in group.resources]
    atoms += [_with_trait(choice, "required") for choice in group.required]
    atoms += [_in_aggregate(choice, "member_of") for choice in group.member_of]
    parts = [_has(atom.table, "{p}", atom.relaxed) for atom in atoms]
    if group.forbidden:
        parts.append(_has_not("provider_traits", _one_of("trait", group.forbidden), "{p}.provider_id"))
    if group.not_member_of:
        outside = _one_of("aggregate", map(aggregate_uuid, group.not_member_of))
        parts.append(_has_not("provider_aggregates", outside, "{p}.provider_id"))
    if tree is not None:
        parts.append(Sql(f"{{p}}.root_id = {tree}"))
    return conjunction(parts)


def _of_group(request: Request, group: Group, trees: Mapping[str, int], kept: frozenset[int]) -> Iterator[tuple[Group, Criterion]]:
    columns = column_amounts(group, request.can_split)
    unsuffixed = group.suffix == UNSUFFIXED
    each = not unsuffixed or (len(columns) == 1 and not columns[0][1])
    traits = [_with_trait(choice, "required") for choice in group.required]
    tree = None if group.in_tree is None else trees.get(group.in_tree, 0)
    for amounts, split in columns:
        atoms = [_with_room(name, amount, kept, split=split) for name, amount in amounts]
        atoms += traits if each else []
        own, shared = [], []
        if group.forbidden:
            own.append(_has_not("provider_traits", _one_of("trait", group.forbidden), "{p}.provider_id"))
            shared.append(own[-1])
        for choice in group.member_of:
            if unsuffixed:
                inside = _one_of("aggregate", map(aggregate_uuid, choice))
                own.append(_is_in(inside, "{p}.provider_id, {p}.root_id"))
                shared.append(_is_in(inside, "{p}.provider_id"))
            else:
                atoms.append(_in_aggregate(choice, "member_of"))
        if group.not_member_of:
            outside = _one_of("aggregate", map(aggregate_uuid, group.not_member_of))
            own.append(_has_not("provider_aggregates", outside, "{p}.provider_id, {p}.root_id" if unsuffixed else "{p}.provider_id"))
            shared.append(_has_not("provider_aggregates", outside, "{p}.provider_id"))
        if atoms:
            none_shared = unsuffixed and tree is not None
            yield group, Criterion(tuple(atoms), tuple(own), None if none_shared else tuple(shared), tree=tree)
    if not each:
        for atom in traits:
            yield group, Criterion((atom,))


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


def _with_room(name: str, amount: int, kept: frozenset[int], *, split: bool) -> Atom:
    label = f"has a piece of {name} free" if split else f"has {amount} {name} free at once (min_unit, max_unit, step_size)"
    return Atom("inventories", _room(name, amount, split=split), "room", label, kept)


def _with_trait(choice: Iterable[str], kind: str, verb: str = "") -> Atom:
    return Atom("provider_traits", _one_of("trait", choice), kind, f"{verb}trait {' or '.join(sorted(choice))}")


def _by_name(preference: Preference) -> tuple[str, str]:
    return preference.kind, preference.name


def _preferred(preference: Preference) -> Atom:
    having = _with_trait if preference.kind == "trait" else _in_aggregate
    return having([preference.name], "prefer")


def _in_aggregate(choice: Iterable[str], kind: str, verb: str = "") -> Atom:
    says = _one_of("aggregate", map(aggregate_uuid, choice))
    return Atom("provider_aggregates", says, kind, f"{verb}in aggregate {' or '.join(sorted(choice))}")


def _room(name: str, amount: int, *, split: bool) -> Sql:
    of_class = "{p}.resource_class = ? AND "
    if split:
        return Sql(of_class + "{p}.most >= 1 AND {p}.min_unit <= {p}.most", (name,))
    piece = "{p}.min_unit <= ? AND ({p}.min_unit = ? OR ? % {p}.step_size = 0)"
    return Sql(of_class + "{p}.most >= ? AND " + piece, (name, *[amount] * 4))


def _one_of(column: str, names: Iterable[str]) -> Sql:
    values = tuple(sorted(names))
    return Sql(f"{{p}}.{column} IN ({', '.join('?' * len(values))})", values)


def _has(table: str, alias: str, says: Sql) -> Sql:
    inner = f"{alias}h" if alias.isalpha() else "h"
    found = says.of(inner)
    return Sql(f"EXISTS (SELECT 1 FROM {table} {inner} WHERE {inner}.provider_id = {alias}.provider_id AND {found.text})", found.values)


def _has_not(table: str, says: Sql, providers: str) -> Sql:
    found = says.of("n")
    return Sql(f"NOT EXISTS (SELECT 1 FROM {table} n WHERE n.provider_id IN ({providers}) AND {found.text})", found.values)


def _is_in(says: Sql, providers: str) -> Sql:
    found = says.of("m")
    return Sql(f"EXISTS (SELECT 1 FROM provider_aggregates m WHERE m.provider_id IN ({providers}) AND {found.text})", found.values)
