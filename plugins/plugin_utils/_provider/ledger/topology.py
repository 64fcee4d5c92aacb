# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which provider is below which: parents that exist, no loops, and descendants that move along with a provider."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ....module_utils._data.errors import Mistakes, Unavailable, suggest
from ....module_utils._data.words import listed
from ..._common.libraries import sa
from .changes import ROOT, ProviderChange
from .read import read_children, read_numbers, read_parent, read_parents, run_batches
from .stored import StoredProvider
from .tables import inventories, provider_aggregates, provider_traits, providers

_FEW = 3
_PLACE = sa.update(providers).where(providers.c.id == sa.bindparam("number")).values(parent_id=sa.bindparam("parent"))
_ROOT = sa.update(providers).where(providers.c.id == sa.bindparam("number")).values(root_id=sa.bindparam("root"))
_ROOTS_OF_BELONGINGS = tuple(
    sa.update(table).where(table.c.provider_id == sa.bindparam("number")).values(root_id=sa.bindparam("root"))
    for table in (inventories, provider_traits, provider_aggregates)
)


def wanted_parents(
    connection: sa.Connection, changes: Sequence[ProviderChange], stored: Mapping[str, StoredProvider]
) -> dict[str, str | None]:
    """Return the UUID of the parent of each provider that is given one, by the provider's UUID; None for a root.

    A parent may be a provider that the same call makes. Raises InputError for those that are nowhere.
    """
    declared = {change.name: change.uuid_among(stored) for change in changes if change.name}
    declared.update((uuid, uuid) for uuid in list(declared.values()))
    asked = {change.parent for change in changes if change.parent}
    known = {reference: uuid for reference, (_number, uuid) in read_numbers(connection, asked - declared.keys()).items()}
    known.update((name, uuid) for name, uuid in declared.items() if name is not None)
    mistakes = Mistakes()
    parents: dict[str, str | None] = {}
    for change in changes:
        if change.parent == ROOT:
            parents[change.uuid_among(stored)] = None
        elif change.parent is not None and change.parent in known:
            parents[change.uuid_among(stored)] = known[change.parent]
        elif change.parent is not None:
            mistakes.add(change.place_of("parent"), f"there is no provider {change.parent!r}{suggest(change.parent, known)}")
    mistakes.check()
    return parents


def moved_numbers(stored: Mapping[str, StoredProvider], parents: Mapping[str, str | None]) -> set[int]:
    """Return the numbers of the stored providers that get another parent."""
    return {provider.id for provider in stored.values() if provider.uuid in parents and parents[provider.uuid] != provider.parent}


def goes_below_stored(changes: Sequence[ProviderChange], stored: Mapping[str, StoredProvider], parents: Mapping[str, str | None]) -> bool:
    """Whether a new provider goes below one that is there already, and so must know its root while that stays where it is."""
    new = {change.uuid_among(stored) for change in changes if change.reference not in stored}
    return any(parents.get(uuid) is not None and parents[uuid] not in new for uuid in new)


def refuse_loops(
    connection: sa.Connection, changes: Sequence[ProviderChange], stored: Mapping[str, StoredProvider], parents: Mapping[str, str | None]
) -> None:
    """Raise InputError for each provider that would be its own ancestor; if stored ones move, the topology is guarded already."""
    # The way up never leads back from a stored provider to a new one, unless one of the stored ones moves.
    follow = bool(moved_numbers(stored, parents))
    mistakes = Mistakes()
    for change in changes:
        uuid = change.uuid_among(stored)
        place = change.place_of("parent")
        if mistakes.has(place) or parents.get(uuid) is None:
            continue
        if _is_its_own_ancestor(connection, uuid, parents, follow_stored=follow):
            mistakes.add(place, f"{change.parent} is the provider itself or below it; parents must not form a loop")
    mistakes.check()


def numbers_below(connection: sa.Connection, numbers: Collection[int]) -> set[int]:
    """Return the numbers of all providers below some, whose roots change when those move."""
    below: set[int] = set()
    level = set(numbers)
    while level:
        level = set(read_children(connection, level)) - below
        below |= level
    return below


def write_parents(connection: sa.Connection, present: Mapping[str, str | None], wanted: Mapping[str, str | None]) -> None:
    """Put providers below their parents where they are not; all of them exist by now."""
    parents = {child: parent for child, parent in wanted.items() if present[child] != parent}
    numbers = {uuid: number for number, uuid in read_numbers(connection, {*parents, *filter(None, parents.values())}).values()}
    rows = [{"number": numbers[child], "parent": None if parent is None else numbers[parent]} for child, parent in parents.items()]
    run_batches(connection, _PLACE, rows)


def write_roots(connection: sa.Connection, numbers: Collection[int]) -> None:
    """Say of providers that are new or have moved, and of all below them, which root they have now.

    Raises Unavailable where the way up ends at a parent that is not there, as after editing a database by hand.
    """
    parents: dict[int, int | None] = {}
    wanted = above = {*numbers, *numbers_below(connection, numbers)}
    while above:
        parents.update(read_parents(connection, above))
        if lost := above - parents.keys():
            rows_lost = listed(sorted(map(str, lost)), _FEW)
            raise Unavailable(f"the ledger has providers below a parent that is not there (row {rows_lost}); an audit names them")
        above = {parent for parent in parents.values() if parent is not None and parent not in parents}
    rows = [{"number": number, "root": _root_of(number, parents)} for number in sorted(wanted)]
    run_batches(connection, _ROOT, rows)
    for statement in _ROOTS_OF_BELONGINGS:
        run_batches(connection, statement, rows)


def _root_of(number: int, parents: Mapping[int, int | None]) -> int:
    above = parents[number]
    while above is not None:
        number, above = above, parents[above]
    return number


def _is_its_own_ancestor(connection: sa.Connection, uuid: str, parents: Mapping[str, str | None], *, follow_stored: bool) -> bool:
    seen: set[str] = set()
    here = parents[uuid]
    while here is not None and here != uuid and here not in seen:
        seen.add(here)
        stored = read_parent(connection, here) if follow_stored and here not in parents else None
        here = parents.get(here, stored)
    return here == uuid
