# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a request from the arguments of the task provider_candidates: groups as YAML writes them."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....module_utils._data.containers import ListOf, MappingOf, Row, Table, Values
from ....module_utils._data.errors import Mistakes, Place
from ....module_utils._data.kinds import Kind, Text, Whole
from ..world.names import KnownNames
from ..world.parse import AGGREGATE, AMOUNTS, CONSUMER, REFERENCE, TRAIT
from .model import (
    UNSUFFIXED,
    Group,
    Preference,
    Request,
    Subtree,
    bounded_limit,
    check_names,
    check_preferences,
    check_request,
    isolated_suffixes,
    why_no_suffix,
)

_NAMES = ListOf(Text(filled=True), "names", single=True)
_AGGREGATES = ListOf(AGGREGATE, "UUIDs or names of aggregates", single=True)


class _Flat(Kind):
    """A list whose members may be lists: one list of all."""

    nested, blank = True, ()

    def __init__(self, kind: ListOf) -> None:
        self._kind = kind

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> tuple[t.Any, ...]:
        return self._kind.read_nested([item for entry in _as_list(value) for item in _as_list(entry)], place, mistakes)


class _Lists(Kind):
    """A list of lists of names, or one list of them."""

    nested, blank = True, ()

    def __init__(self, nothing: str = "") -> None:
        self._nothing = nothing

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> tuple[tuple[str, ...], ...]:
        entries = _as_list(value)
        if entries and all(isinstance(entry, str) for entry in entries):
            entries = [entries]
        found = tuple(_NAMES.read_nested(entry, (place, "[", number), mistakes) for number, entry in enumerate(entries))
        if self._nothing and not all(found):
            mistakes.add(place, f"has an empty list, which {self._nothing}")
        return found


class _Aggregates(Kind):
    """Sets of which one must be had, and forbidden ones: an entry is one, or ! and one, or a list of which one is enough."""

    nested = True
    blank: t.Any = ((), frozenset())

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
        wanted: list[frozenset[str]] = []
        forbidden: list[str] = []
        for number, entry in enumerate(_as_list(value)):
            where = (place, "[", number)
            if isinstance(entry, str) and entry.startswith("!"):
                forbidden += _AGGREGATES.read_nested(entry[1:], where, mistakes)
            else:
                wanted.append(frozenset(_AGGREGATES.read_nested(entry, where, mistakes)))
        if not all(wanted):
            mistakes.add(place, "has an empty list, which no aggregate can satisfy")
        return tuple(wanted), frozenset(forbidden)


_GROUP = Table(
    "a group",
    [
        Row("resources", AMOUNTS),
        Row("required", _NAMES, default=()),
        Row("forbidden", _NAMES, default=()),
        Row("any_of", _Lists("no trait can satisfy"), default=()),
        Row("member_of", _Aggregates(), default=_Aggregates.blank),
        Row("not_member_of", _Flat(_AGGREGATES), default=()),
        Row("in_tree", REFERENCE),
    ],
)
MOST_PREFERENCES = 8
"""Each set of preferences may be searched for by itself: these are up to 256 searches."""

_PREFERENCE = Table("a preference", [Row("trait", TRAIT), Row("aggregate", AGGREGATE), Row("weight", Whole(1, 1_000_000), default=1)])
_WISHES = Table(
    "what a request wishes",
    [
        Row("with", ListOf(CONSUMER, "UUIDs or names of consumers", single=True), default=()),
        Row("not_with", ListOf(CONSUMER, "UUIDs or names of consumers", single=True), default=()),
        Row("prefer", ListOf(_PREFERENCE, "preferences", single=True), default=()),
    ],
    others=True,
)
_REQUEST = Table(
    "a request",
    [
        Row("groups", MappingOf(_GROUP, "suffixes to groups", least=1), required=True),
        Row("same_subtree", _Lists(), default=()),
        Row("root_required", _NAMES, default=()),
        Row("root_forbidden", _NAMES, default=()),
        Row("root_member_of", _Aggregates(), default=_Aggregates.blank),
        Row("isolate", _Flat(_NAMES)),
        Row("can_split", _NAMES, default=()),
        Row("limit", Whole(1)),
    ],
    others=True,
)


def parse_groups(arguments: Mapping[str, t.Any], known: KnownNames) -> Request:
    """Return the request of the arguments groups, same_subtree, root_required, root_forbidden, root_member_of, group_policy, isolate,
    can_split and limit, made of the names that exist. Raises InputError with every mistake.
    """
    mistakes = Mistakes()
    values = _REQUEST.read_nested(_with_empty_groups(arguments), "", mistakes)
    policy = arguments.get("group_policy")
    if values["isolate"] and policy is not None:
        mistakes.add("isolate", "cannot be combined with group_policy; leave one of them out")
    root_member_of, root_not_member_of = values["root_member_of"]
    request = Request(
        groups=tuple(_group(suffix, group, mistakes) for suffix, group in values["groups"].items()),
        subtrees=tuple(_subtree(suffixes) for suffixes in values["same_subtree"]),
        root_required=frozenset(values["root_required"]),
        root_forbidden=frozenset(values["root_forbidden"]),
        root_member_of=root_member_of,
        root_not_member_of=root_not_member_of,
        isolated=isolated_suffixes(values["groups"], policy, values["isolate"]),
        can_split=frozenset(values["can_split"]),
        limit=None if values["limit"] is None else bounded_limit(values["limit"]),
    )
    check_request(request, known, mistakes)
    mistakes.check()
    return request


def with_wishes(request: Request, arguments: Mapping[str, t.Any], known: KnownNames) -> Request:
    """Return a request with what the arguments with, not_with and prefer say, made of the names that exist.

    Raises InputError with every mistake.
    """
    mistakes = Mistakes()
    values = _WISHES.read_nested(arguments, "", mistakes)
    preferences = []
    for number, entry in enumerate(values["prefer"]):
        named = [Preference(kind, entry[kind], entry["weight"]) for kind in ("trait", "aggregate") if entry[kind] is not None]
        if len(named) == 1:
            preferences += named
        elif not mistakes.has(f"prefer[{number}]"):
            mistakes.add(f"prefer[{number}]", "needs a trait or an aggregate, and not both")
    if len(preferences) > MOST_PREFERENCES:
        mistakes.add("prefer", f"has {len(preferences)} preferences; there may be {MOST_PREFERENCES}")
    for reference in sorted(set(values["with"]) & set(values["not_with"])):
        mistakes.add("with", f"has {reference}, which not_with has too")
    wished = replace(request, near=values["with"], away=values["not_with"], prefer=tuple(preferences))
    mistakes.check()
    check_preferences(wished, known, mistakes)
    mistakes.check()
    return wished


def parse_group(data: t.Any, place: str, known: KnownNames) -> Group:
    """Return what one provider must satisfy, of a mapping with the keys of a group. Raises InputError with every mistake."""
    mistakes = Mistakes()
    values = _GROUP.read_nested(data, place, mistakes)
    group = _group("_", {**values, "resources": values["resources"] or {}}, mistakes)
    check_names(place, group, known, mistakes)
    mistakes.check()
    return group


def _with_empty_groups(arguments: Mapping[str, t.Any]) -> Mapping[str, t.Any]:
    """Return the arguments with a mapping for each group that asks for nothing, and none for resources that are none."""
    groups = arguments.get("groups")
    if not isinstance(groups, Mapping):
        return arguments
    filled = {}
    for suffix, group in groups.items():
        group = {} if group is None else group
        asks = isinstance(group, Mapping) and (group.get("resources") or "resources" not in group)
        filled[suffix] = group if asks or not isinstance(group, Mapping) else {**group, "resources": None}
    return {**arguments, "groups": filled}


def _group(suffix: str, values: Values, mistakes: Mistakes) -> Group:
    if suffix != UNSUFFIXED and (says := why_no_suffix(suffix)):
        mistakes.add("groups", says)
    member_of, excluded = values["member_of"]
    return Group(
        suffix=suffix,
        resources=tuple((values["resources"] or {}).items()),
        required=(*(frozenset([trait]) for trait in values["required"]), *map(frozenset, values["any_of"])),
        forbidden=frozenset(values["forbidden"]),
        member_of=member_of,
        not_member_of=excluded | frozenset(values["not_member_of"]),
        in_tree=values["in_tree"],
    )


def _subtree(suffixes: Sequence[str]) -> Subtree:
    together = tuple(suffix for suffix in suffixes if not suffix.startswith("!"))
    return Subtree(together, tuple(suffix[1:] for suffix in suffixes if suffix.startswith("!")))


def _as_list(data: t.Any) -> list[t.Any]:
    if data is None:
        return []
    return list(data) if isinstance(data, (list, tuple)) else [data]
