# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read what a task wants of the ledger from plain data; every mistake is reported at once with its place.

What passes here is well formed; whether it fits what the ledger holds is for the ledger to say.
"""

from __future__ import annotations

import re
import typing as t
from collections.abc import Mapping, Sequence

from ....module_utils._data.containers import Also, ListOf, MappingOf, Row, Table, Values, read_all, read_each, refuse_doubles
from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import Anything, Checked, Kind, Truth, Word, shown
from ..world.model import Inventory
from ..world.names import (
    CONSUMER_TYPE_PATTERN,
    LONGEST_NAME,
    STANDARD_CLASSES,
    STANDARD_TRAITS,
    aggregate_uuid,
    consumer_uuid,
    names_by_uuid,
    why_no_uuid,
)
from ..world.parse import AMOUNTS, CLASS, CONSUMER, GENERATION, INVENTORIES, NAME, PROVIDER_ROWS, TRAITS
from ..world.times import TimeKind
from .changes import ROOT, Parts, ProviderChange
from .claim_plan import Claim
from .own_names import Names

PARTS = ("inventories", "traits", "aggregates")
"""What a provider has several of, that are declared together or one by one."""


def _why_no_owner(value: t.Any) -> str:
    if isinstance(value, str) and 1 <= len(value) <= LONGEST_NAME and value.isprintable():
        return ""
    return f"is {shown(value)}; must be a string of 1 to {LONGEST_NAME} printable characters"


def _why_no_type(value: t.Any) -> str:
    if isinstance(value, str) and len(value) <= LONGEST_NAME and re.fullmatch(CONSUMER_TYPE_PATTERN, value):
        return ""
    return f"is {shown(value)}; must be 1 to {LONGEST_NAME} of A-Z, 0-9 and _, such as INSTANCE"


def _of_candidate(value: t.Any) -> t.Any:
    """Return the allocations of a candidate, anything else as it is."""
    if isinstance(value, Mapping) and "mappings" in value and isinstance(value.get("allocations"), Mapping):
        return value["allocations"]
    return value


class _Parent(Kind):
    """A provider by UUID or name, or nothing: the provider is to be a root."""

    def read(self, value: t.Any) -> str:
        return ROOT if value == ROOT else NAME.read(value)


_ALLOCATIONS = Also(MappingOf(AMOUNTS, "providers to amounts", NAME), _of_candidate, Anything({"type": "object"}))
OWNER = Checked(_why_no_owner, "text")
TYPE = Checked(_why_no_type, "a type of consumers", CONSUMER_TYPE_PATTERN)
LEASE = TimeKind(never="none")
_ADDED = Table("parts to add", [PROVIDER_ROWS[name] for name in PARTS])
_REMOVED = Table(
    "parts to remove", [Row("inventories", ListOf(CLASS, "resource classes")), PROVIDER_ROWS["traits"], PROVIDER_ROWS["aggregates"]]
)
_CHANGE = Table(
    "a provider",
    [
        *(row if row.name != "parent" else Row("parent", _Parent()) for row in PROVIDER_ROWS.values()),
        Row("add", _ADDED),
        Row("remove", _REMOVED),
        Row("replaces", NAME),
    ],
)
_NAMES = Table("names", [Row("custom_traits", TRAITS, default=()), Row("custom_classes", ListOf(CLASS, "resource classes"), default=())])
_CLAIM = Table(
    "a claim",
    [
        Row("consumer", CONSUMER, required=True),
        Row("allocations", _ALLOCATIONS, default={}),
        Row("project", OWNER),
        Row("user", OWNER),
        Row("consumer_type", TYPE),
        Row("consumer_generation", GENERATION),
        Row("take_over", Truth(), default=False),
        Row("lease", LEASE),
        Row("drained", Word(["exclude", "include"]), default="exclude"),
    ],
)


def parse_changes(entries: Sequence[t.Any], place: str, mistakes: Mistakes | None = None) -> list[ProviderChange]:
    """Return what providers shall be; `place` is a format with the entry's number, such as `providers[{}]`.

    Raises InputError, with the mistakes that were found before.
    """
    mistakes = Mistakes() if mistakes is None else mistakes
    places = [place.format(number) for number in range(len(entries))]
    read = read_each(_CHANGE, entries, places, mistakes)
    changes = [_change(entry, values, where, mistakes) for entry, values, where in zip(entries, read, places)]
    refuse_doubles(((change.place, change.uuid) for change in changes), "uuid", mistakes)
    refuse_doubles(((change.place, change.name) for change in changes), "name", mistakes)
    refuse_doubles(((change.place, change.replaces) for change in changes), "replaces", mistakes)
    mistakes.check()
    return changes


def parse_claims(entries: Sequence[t.Any], place: str) -> list[Claim]:
    """Return what consumers shall have; `place` as in parse_changes. Raises InputError."""
    mistakes = Mistakes()
    claims = [_claim(_CLAIM.read_nested(entry, place.format(number), mistakes)) for number, entry in enumerate(entries)]
    refuse_doubles(((place.format(number), claim.consumer) for number, claim in enumerate(claims)), "consumer", mistakes)
    mistakes.check()
    return claims


def parse_reshape(data: t.Any, place: str) -> dict[str, dict[str, Inventory]]:
    """Return {provider: {class: Inventory}}. Raises InputError."""
    found: dict[str, dict[str, Inventory]] = read_all(MappingOf(INVENTORIES, "providers to inventories", NAME), data, place)
    return found


def parse_names(arguments: Mapping[str, t.Any], mistakes: Mistakes) -> Names:
    """Return the names of one's own that a task is about. Standard names, which cannot come or go, are mistakes."""
    values = _NAMES.read_nested({key: arguments[key] for key in ("custom_traits", "custom_classes")}, "", mistakes)
    for key, standard in (("custom_traits", STANDARD_TRAITS), ("custom_classes", STANDARD_CLASSES)):
        for name in sorted(standard.intersection(values[key])):
            mistakes.add(key, f"{name} is a standard name, which is always there")
    return Names(frozenset(values["custom_traits"]), frozenset(values["custom_classes"]))


def parse_generations(data: t.Any, place: str) -> dict[str, int]:
    """Return {provider: generation}. Raises InputError."""
    found: dict[str, int] = read_all(MappingOf(GENERATION, "providers to generations"), data, place)
    return found


def _change(entry: t.Any, values: Values, place: str, mistakes: Mistakes) -> ProviderChange:
    named = isinstance(entry, Mapping) and (entry.get("uuid") is not None or entry.get("name") is not None)
    if not named and not mistakes.has(place):
        mistakes.add(place, "needs a name or a uuid")
    added, removed = values["add"] or {}, values["remove"] or {}
    for name in PARTS:
        single = [key for key, parts in (("add", added), ("remove", removed)) if parts.get(name)]
        if single and values[name] is not None:
            where = f"{place}.{single[0]}.{name}" if place else f"{single[0]}.{name}"
            mistakes.add(where, f"cannot be combined with {name}, which replaces them all; leave one of the two out")
    both = {name: sorted(set(added.get(name) or ()) & set(removed.get(name) or ())) for name in PARTS}
    for name, doubles in both.items():
        if doubles:
            mistakes.add(f"{place}.remove.{name}" if place else f"remove.{name}", f"has {', '.join(doubles)}, which add has too")
    return ProviderChange(
        place=place,
        uuid=values["uuid"],
        name=values["name"],
        parent=values["parent"],
        inventories=values["inventories"],
        traits=None if values["traits"] is None else frozenset(values["traits"]),
        aggregates=None if values["aggregates"] is None else frozenset(map(aggregate_uuid, values["aggregates"])),
        generation=values["generation"],
        drained=values["drained"],
        replaces=values["replaces"],
        add=_parts(added),
        remove=_parts(removed),
        aggregate_names=names_by_uuid([*(values["aggregates"] or ()), *(added.get("aggregates") or ())], aggregate_uuid),
    )


def _parts(values: Values) -> Parts | None:
    if not any(values.values()):
        return None
    inventories = values["inventories"] or {}
    return Parts(
        inventories if isinstance(inventories, Mapping) else dict.fromkeys(inventories),
        frozenset(values["traits"] or ()),
        frozenset(map(aggregate_uuid, values["aggregates"] or ())),
    )


def _claim(values: Values) -> Claim:
    named = consumer_uuid(values["consumer"], values["project"])
    return Claim(
        consumer=named,
        amounts=values["allocations"],
        project=values["project"],
        user=values["user"],
        generation=values["consumer_generation"],
        type=values["consumer_type"],
        name=values["consumer"] if why_no_uuid(values["consumer"]) else None,
        take_over=values["take_over"],
        lease=values["lease"],
        on_drained=values["drained"] == "include",
    )
