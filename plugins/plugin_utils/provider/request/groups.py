# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a request from the arguments of the task provider_candidates: groups as YAML writes them."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ...common.errors import Mistakes, suggest
from ..world.names import KnownNames, canonical_uuid, why_no_uuid
from ..world.parse import parse_amounts
from .model import UNSUFFIXED, Group, Request, Subtree, check_request, isolated_suffixes, why_no_suffix

_GROUP_KEYS = frozenset({"resources", "required", "forbidden", "any_of", "member_of", "not_member_of", "in_tree"})


def parse_groups(arguments: Mapping[str, t.Any], known: KnownNames) -> Request:
    """Return the request of the arguments groups, same_subtree, root_required, root_forbidden, root_member_of, group_policy, isolate,
    can_split and limit, made of the names that exist. Raises InputError with every mistake.
    """
    mistakes = Mistakes()
    groups = _parse_all_groups(arguments.get("groups"), mistakes)
    root_member_of, root_not_member_of = _parse_aggregates(arguments.get("root_member_of"), "root_member_of", mistakes)
    isolate = _flat(arguments.get("isolate"))
    if isolate and arguments.get("group_policy") is not None:
        mistakes.add("isolate", "cannot stand beside group_policy; leave one of them out")
    request = Request(
        groups=groups,
        subtrees=tuple(_parse_subtree(entry, f"same_subtree[{n}]", mistakes) for n, entry in enumerate(_subtree_lists(arguments))),
        root_required=frozenset(_texts(arguments.get("root_required"), "root_required", mistakes)),
        root_forbidden=frozenset(_texts(arguments.get("root_forbidden"), "root_forbidden", mistakes)),
        root_member_of=root_member_of,
        root_not_member_of=root_not_member_of,
        isolated=isolated_suffixes((group.suffix for group in groups), arguments.get("group_policy"), _texts(isolate, "isolate", mistakes)),
        can_split=frozenset(_texts(arguments.get("can_split"), "can_split", mistakes)),
        limit=_parse_limit(arguments.get("limit"), mistakes),
    )
    check_request(request, known, mistakes)
    mistakes.check()
    return request


def _parse_all_groups(data: t.Any, mistakes: Mistakes) -> tuple[Group, ...]:
    if not isinstance(data, Mapping) or not data:
        mistakes.add("groups", f"must be a mapping of suffixes to groups, not {data!r}")
        return ()
    return tuple(_parse_group(str(suffix), entry, mistakes) for suffix, entry in data.items())


def _parse_group(suffix: str, data: t.Any, mistakes: Mistakes) -> Group:
    place = f"groups.{suffix or repr('')}"
    if suffix != UNSUFFIXED and (says := why_no_suffix(suffix)):
        mistakes.add("groups", says)
    data = {} if data is None else data
    if not isinstance(data, Mapping):
        mistakes.add(place, f"must be a mapping, not {data!r}")
        return Group(suffix)
    for key in data:
        if key not in _GROUP_KEYS:
            mistakes.add(place, f"has the unknown key {key!r}{suggest(str(key), _GROUP_KEYS)}; known are {', '.join(sorted(_GROUP_KEYS))}")
    required = [frozenset([trait]) for trait in _texts(data.get("required"), f"{place}.required", mistakes)]
    choices = _choices(data.get("any_of"), f"{place}.any_of", mistakes)
    member_of, excluded = _parse_aggregates(data.get("member_of"), f"{place}.member_of", mistakes)
    not_member_of = _parse_uuids(_flat(data.get("not_member_of")), f"{place}.not_member_of", mistakes)
    return Group(
        suffix=suffix,
        resources=tuple(parse_amounts(data["resources"], f"{place}.resources", mistakes).items()) if data.get("resources") else (),
        required=(*required, *choices),
        forbidden=frozenset(_texts(data.get("forbidden"), f"{place}.forbidden", mistakes)),
        member_of=member_of,
        not_member_of=excluded | not_member_of,
        in_tree=_parse_in_tree(data.get("in_tree"), f"{place}.in_tree", mistakes),
    )


def _choices(data: t.Any, place: str, mistakes: Mistakes) -> list[frozenset[str]]:
    """Return the sets of any_of: a list of lists, or one list of traits."""
    entries = _as_list(data)
    if entries and all(isinstance(entry, str) for entry in entries):
        entries = [entries]
    choices = [frozenset(_texts(entry, f"{place}[{number}]", mistakes)) for number, entry in enumerate(entries)]
    if any(not choice for choice in choices):
        mistakes.add(place, "has an empty list, of which no trait can be had")
    return choices


def _parse_aggregates(data: t.Any, place: str, mistakes: Mistakes) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    """Return (sets of which one must be had, forbidden): an entry is a UUID, !UUID, or a list of UUIDs of which one is enough."""
    member_of: list[frozenset[str]] = []
    forbidden: list[str] = []
    for number, entry in enumerate(_as_list(data)):
        if isinstance(entry, str) and entry.startswith("!"):
            forbidden.append(entry[1:])
        else:
            member_of.append(_parse_uuids(_as_list(entry), f"{place}[{number}]", mistakes))
    if any(not choice for choice in member_of):
        mistakes.add(place, "has an empty list, of which no aggregate can be had")
    return tuple(member_of), _parse_uuids(forbidden, place, mistakes)


def _parse_uuids(entries: list[t.Any], place: str, mistakes: Mistakes) -> frozenset[str]:
    for entry in entries:
        if says := why_no_uuid(entry):
            mistakes.add(place, says)
    return frozenset(canonical_uuid(entry) for entry in entries if isinstance(entry, str))


def _parse_in_tree(value: t.Any, place: str, mistakes: Mistakes) -> str | None:
    if value is None:
        return None
    if says := why_no_uuid(value):
        mistakes.add(place, says)
        return None
    return canonical_uuid(value)


def _subtree_lists(arguments: Mapping[str, t.Any]) -> list[t.Any]:
    entries = _as_list(arguments.get("same_subtree"))
    return [entries] if entries and all(isinstance(entry, str) for entry in entries) else entries


def _parse_subtree(entry: t.Any, place: str, mistakes: Mistakes) -> Subtree:
    suffixes = _texts(entry, place, mistakes)
    together = tuple(suffix for suffix in suffixes if not suffix.startswith("!"))
    return Subtree(together, tuple(suffix[1:] for suffix in suffixes if suffix.startswith("!")))


def _parse_limit(value: t.Any, mistakes: Mistakes) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    mistakes.add("limit", f"must be a whole number from 1, not {value!r}")
    return None


def _texts(data: t.Any, place: str, mistakes: Mistakes) -> list[str]:
    entries = _as_list(data)
    for number, entry in enumerate(entries):
        if not isinstance(entry, str) or not entry:
            mistakes.add(f"{place}[{number}]", f"must be a name, not {entry!r}")
    return [entry for entry in entries if isinstance(entry, str)]


def _flat(data: t.Any) -> list[t.Any]:
    return [item for entry in _as_list(data) for item in _as_list(entry)]


def _as_list(data: t.Any) -> list[t.Any]:
    if data is None:
        return []
    return list(data) if isinstance(data, (list, tuple)) else [data]
