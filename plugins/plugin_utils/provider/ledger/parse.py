# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read what a task wants of the ledger from plain data; every mistake is reported at once with its place.

What passes here is well formed; whether it fits what the ledger holds is for the ledger to say.
"""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence

from ...common.errors import Mistakes, Place
from ...common.fields import Checked, Kind, MappingOf, Row, Table, Values, read_all, refuse_doubles, shown
from ..world.model import Inventory
from ..world.names import LONGEST_NAME
from ..world.parse import AMOUNTS, GENERATION, INVENTORIES, NAME, PROVIDER_ROWS, UUID
from .changes import ROOT, ProviderChange
from .claims import Claim


def _why_no_owner(value: t.Any) -> str:
    if isinstance(value, str) and 1 <= len(value) <= LONGEST_NAME and value.isprintable():
        return ""
    return f"is {shown(value)}; must be a text of 1 to {LONGEST_NAME} printable characters"


class _Allocations(MappingOf):
    """Amounts by provider, or a candidate that has them as its `allocations`."""

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> dict[str, t.Any]:
        if isinstance(value, Mapping) and "mappings" in value and isinstance(value.get("allocations"), Mapping):
            value = value["allocations"]
        return super().read_nested(value, place, mistakes)


class _Parent(Kind):
    """A provider by UUID or name, or nothing: the provider is to be a root."""

    def read(self, value: t.Any) -> str:
        return ROOT if value == ROOT else NAME.read(value)


_OWNER = Checked(_why_no_owner, "text")
_CHANGE = Table("a provider", [row if row.name != "parent" else Row("parent", _Parent()) for row in PROVIDER_ROWS.values()])
_CLAIM = Table(
    "a claim",
    [
        Row("consumer", UUID, required=True),
        Row("allocations", _Allocations(AMOUNTS, "providers to amounts", NAME), default={}),
        Row("project", _OWNER),
        Row("user", _OWNER),
        Row("consumer_generation", GENERATION),
    ],
)


def parse_changes(entries: Sequence[t.Any], place: str) -> list[ProviderChange]:
    """Return what providers shall be; `place` is a format with the entry's number, such as `providers[{}]`. Raises InputError."""
    mistakes = Mistakes()
    changes = [_change(entry, place.format(number), mistakes) for number, entry in enumerate(entries)]
    refuse_doubles(((change.place, change.uuid) for change in changes), "uuid", mistakes)
    refuse_doubles(((change.place, change.name) for change in changes), "name", mistakes)
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


def parse_generations(data: t.Any, place: str) -> dict[str, int]:
    """Return {provider: generation}. Raises InputError."""
    found: dict[str, int] = read_all(MappingOf(GENERATION, "providers to generations"), data, place)
    return found


def _change(entry: t.Any, place: str, mistakes: Mistakes) -> ProviderChange:
    values = _CHANGE.read_nested(entry, place, mistakes)
    named = isinstance(entry, Mapping) and (entry.get("uuid") is not None or entry.get("name") is not None)
    if not named and not mistakes.told(place):
        mistakes.add(place, "needs a name or a uuid")
    return ProviderChange(
        place=place,
        uuid=values["uuid"],
        name=values["name"],
        parent=values["parent"],
        inventories=values["inventories"],
        traits=None if values["traits"] is None else frozenset(values["traits"]),
        aggregates=None if values["aggregates"] is None else frozenset(values["aggregates"]),
        generation=values["generation"],
    )


def _claim(values: Values) -> Claim:
    return Claim(
        consumer=values["consumer"],
        amounts=values["allocations"],
        project=values["project"],
        user=values["user"],
        generation=values["consumer_generation"],
    )
