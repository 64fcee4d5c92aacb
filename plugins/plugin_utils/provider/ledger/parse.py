# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read what a task wants of the ledger from plain data; every mistake is reported at once with its place.

What passes here is well formed; whether it fits what the ledger holds is for the ledger to say.
"""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence

from ...common.errors import Mistakes, suggest
from ..world.model import Allocations, Inventory
from ..world.names import LONGEST_NAME, canonical_uuid, why_no_provider_name, why_no_trait, why_no_uuid
from ..world.parse import parse_aggregates, parse_amounts, parse_inventories, parse_name_list
from .changes import ROOT, ProviderChange
from .claims import Claim

_PROVIDER_KEYS = ("uuid", "name", "parent", "inventories", "traits", "aggregates", "generation")
_CLAIM_KEYS = ("consumer", "allocations", "project", "user", "consumer_generation")


def parse_changes(entries: Sequence[t.Any], place: str) -> list[ProviderChange]:
    """Return what providers shall be; `place` is a format with the entry's number, such as `providers[{}]`. Raises InputError."""
    mistakes = Mistakes()
    changes = [_parse_change(entry, place.format(number), mistakes) for number, entry in enumerate(entries)]
    _refuse_twice(
        [(change.place, part) for change in changes for part in dict.fromkeys((change.uuid, change.name)) if part], "provider", mistakes
    )
    mistakes.check()
    return changes


def parse_claims(entries: Sequence[t.Any], place: str) -> list[Claim]:
    """Return what consumers shall have; `place` as in parse_changes. Raises InputError."""
    mistakes = Mistakes()
    claims = [_parse_claim(entry, place.format(number), mistakes) for number, entry in enumerate(entries)]
    _refuse_twice([(place.format(number), claim.consumer) for number, claim in enumerate(claims)], "consumer", mistakes)
    mistakes.check()
    return claims


def parse_reshape(data: t.Any, place: str) -> dict[str, dict[str, Inventory]]:
    """Return {provider: {class: Inventory}}. Raises InputError."""
    mistakes = Mistakes()
    found = {}
    for reference, entry in _as_mapping(data, place, mistakes).items():
        _check(why_no_provider_name(reference), place, mistakes)
        found[str(reference)] = parse_inventories(entry, f"{place}.{reference}", mistakes)
    mistakes.check()
    return found


def parse_generations(data: t.Any, place: str) -> dict[str, int]:
    """Return {provider: generation}. Raises InputError."""
    mistakes = Mistakes()
    entries = _as_mapping(data, place, mistakes)
    found = {str(reference): _parse_generation(entry, f"{place}.{reference}", mistakes) for reference, entry in entries.items()}
    mistakes.check()
    return {reference: generation for reference, generation in found.items() if generation is not None}


def _parse_change(data: t.Any, place: str, mistakes: Mistakes) -> ProviderChange:
    entry = _as_mapping(data, place, mistakes)
    _refuse_unknown(entry, _PROVIDER_KEYS, place, mistakes)
    uuid, name, parent = entry.get("uuid"), entry.get("name"), entry.get("parent")
    if uuid is None and name is None:
        mistakes.add(place, "needs a name or a uuid")
    _check(why_no_uuid(uuid) if uuid is not None else "", _below(place, "uuid"), mistakes)
    _check(why_no_provider_name(name) if name is not None else "", _below(place, "name"), mistakes)
    _check(why_no_provider_name(parent) if parent not in (None, ROOT) else "", _below(place, "parent"), mistakes)
    inventories, traits, aggregates = entry.get("inventories"), entry.get("traits"), entry.get("aggregates")
    return ProviderChange(
        place=place,
        uuid=canonical_uuid(uuid) if isinstance(uuid, str) else None,
        name=name if isinstance(name, str) else None,
        parent=parent if isinstance(parent, str) else None,
        inventories=None if inventories is None else parse_inventories(inventories, _below(place, "inventories"), mistakes),
        traits=None if traits is None else parse_name_list(traits, _below(place, "traits"), why_no_trait, mistakes),
        aggregates=None if aggregates is None else parse_aggregates(aggregates, _below(place, "aggregates"), mistakes),
        generation=_parse_generation(entry.get("generation"), _below(place, "generation"), mistakes),
    )


def _parse_claim(data: t.Any, place: str, mistakes: Mistakes) -> Claim:
    entry = _as_mapping(data, place, mistakes)
    _refuse_unknown(entry, _CLAIM_KEYS, place, mistakes)
    consumer = entry.get("consumer")
    _check(why_no_uuid(consumer), _below(place, "consumer"), mistakes)
    for key in ("project", "user"):
        _check(_why_no_owner(entry.get(key)), _below(place, key), mistakes)
    return Claim(
        consumer=canonical_uuid(consumer) if isinstance(consumer, str) else "",
        amounts=_parse_allocations(entry.get("allocations"), _below(place, "allocations"), mistakes),
        project=entry.get("project"),
        user=entry.get("user"),
        generation=_parse_generation(entry.get("consumer_generation"), _below(place, "consumer_generation"), mistakes),
    )


def _parse_allocations(data: t.Any, place: str, mistakes: Mistakes) -> Allocations:
    """Return {provider: {class: amount}} of that itself, or of a candidate that has it as its `allocations`."""
    entry = _as_mapping({} if data is None else data, place, mistakes)
    if "mappings" in entry and isinstance(entry.get("allocations"), Mapping):
        entry = entry["allocations"]
    found = {}
    for reference, amounts in entry.items():
        _check(why_no_provider_name(reference), place, mistakes)
        found[str(reference)] = parse_amounts(amounts, f"{place}.{reference}", mistakes)
    return found


def _parse_generation(value: t.Any, place: str, mistakes: Mistakes) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        mistakes.add(place, f"must be a whole number from 0, not {value!r}")
        return None
    return value


def _why_no_owner(value: t.Any) -> str:
    if value is None or (isinstance(value, str) and 1 <= len(value) <= LONGEST_NAME and value.isprintable()):
        return ""
    return f"must be a text of 1 to {LONGEST_NAME} printable characters, not {value!r}"


def _refuse_twice(entries: Sequence[tuple[str, str]], kind: str, mistakes: Mistakes) -> None:
    first: dict[str, str] = {}
    for place, part in entries:
        if first.setdefault(part, place) != place:
            mistakes.add(place, f"is the {kind} {part}, which {first[part]} is already")


def _refuse_unknown(entry: Mapping[t.Any, t.Any], known: Sequence[str], place: str, mistakes: Mistakes) -> None:
    for key in entry:
        if key not in known:
            mistakes.add(place, f"has the unknown key {key!r}{suggest(str(key), known)}; known are {', '.join(known)}")


def _as_mapping(data: t.Any, place: str, mistakes: Mistakes) -> Mapping[t.Any, t.Any]:
    if isinstance(data, Mapping):
        return data
    mistakes.add(place, f"must be a mapping, not {data!r}")
    return {}


def _check(says: str, place: str, mistakes: Mistakes) -> None:
    if says:
        mistakes.add(place, says)


def _below(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key
