# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a request from the query string of OpenStack Placement's GET /allocation_candidates (microversion 1.39).

Beyond Placement: group_policy may be missing, `root_member_of`, `isolate`, `can_split`, and `!` in same_subtree (seed 003).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from ....module_utils._data.errors import Mistakes, suggest
from ..world.model import LARGEST_AMOUNT
from ..world.names import KnownNames, canonical_uuid, why_no_uuid
from .model import Group, Request, Subtree, bounded_limit, check_request, isolated_suffixes

_GROUP_KEY = re.compile(r"(?P<kind>resources|required|member_of|in_tree)(?P<suffix>[a-zA-Z0-9_-]{1,64})?")
_WHOLE_KEYS = ("limit", "group_policy", "root_required", "root_member_of", "same_subtree", "isolate", "can_split")
_AMOUNT = re.compile(rf"\s*\+?0*(?P<digits>[1-9][0-9]{{0,{len(str(LARGEST_AMOUNT)) - 1}}})\s*")


@dataclass
class _Parameters:
    """The values of each key, in the order in which they stand in the query."""

    by_suffix: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    whole: dict[str, list[str]] = field(default_factory=dict)


def parse_query(query: str, known: KnownNames) -> Request:
    """Return the request that a query string makes of the names that exist. Raises InputError with every mistake."""
    mistakes = Mistakes()
    parameters = _sort_parameters(query, mistakes)
    groups = tuple(_parse_group(suffix, values, mistakes) for suffix, values in parameters.by_suffix.items())
    whole = parameters.whole
    root_required, root_forbidden = _parse_root_traits(whole.get("root_required", []), mistakes)
    root_member_of, root_not_member_of = _parse_aggregates(whole.get("root_member_of", []), "root_member_of", mistakes)
    policy = _parse_policy(whole, mistakes)
    isolate = [suffix for value in whole.get("isolate", []) for suffix in _items(value, "isolate", mistakes)]
    request = Request(
        groups=groups,
        subtrees=tuple(_parse_subtree(value, mistakes) for value in whole.get("same_subtree", [])),
        root_required=root_required,
        root_forbidden=root_forbidden,
        root_member_of=root_member_of,
        root_not_member_of=root_not_member_of,
        isolated=isolated_suffixes(parameters.by_suffix, policy, isolate),
        can_split=frozenset(name for value in whole.get("can_split", []) for name in _items(value, "can_split", mistakes)),
        limit=_parse_limit(whole.get("limit", []), mistakes),
    )
    check_request(request, known, mistakes)
    mistakes.check()
    return request


def _sort_parameters(query: str, mistakes: Mistakes) -> _Parameters:
    parameters = _Parameters()
    for key, value in parse_qsl(query.removeprefix("?"), keep_blank_values=True):
        match = _GROUP_KEY.fullmatch(key)
        if key in _WHOLE_KEYS:
            parameters.whole.setdefault(key, []).append(value)
        elif match is not None:
            of_suffix = parameters.by_suffix.setdefault(match["suffix"] or "", {})
            of_suffix.setdefault(match["kind"], []).append(value)
        else:
            mistakes.add(
                key, f"is not a parameter of a request{suggest(key, [*_WHOLE_KEYS, 'resources', 'required', 'member_of', 'in_tree'])}"
            )
    return parameters


def _parse_group(suffix: str, values: dict[str, list[str]], mistakes: Mistakes) -> Group:
    required: list[frozenset[str]] = []
    forbidden: set[str] = set()
    for value in values.get("required", []):
        _parse_traits(value, f"required{suffix}", required, forbidden, mistakes)
    member_of, not_member_of = _parse_aggregates(values.get("member_of", []), f"member_of{suffix}", mistakes)
    return Group(
        suffix=suffix,
        resources=_parse_resources(values["resources"][-1], f"resources{suffix}", mistakes) if "resources" in values else (),
        required=tuple(required),
        forbidden=frozenset(forbidden),
        member_of=member_of,
        not_member_of=not_member_of,
        in_tree=_parse_uuid(values["in_tree"][-1], f"in_tree{suffix}", mistakes) if "in_tree" in values else None,
    )


def _parse_resources(value: str, place: str, mistakes: Mistakes) -> tuple[tuple[str, int], ...]:
    amounts: dict[str, int] = {}
    for item in value.split(","):
        name, _colon, text = item.partition(":")
        match = _AMOUNT.fullmatch(text)
        if not name or match is None or int(match["digits"]) > LARGEST_AMOUNT:
            mistakes.add(place, f"{item!r} is not CLASS:AMOUNT with an amount from 1 to {LARGEST_AMOUNT}")
            continue
        amounts[name] = int(match["digits"])
    return tuple(amounts.items())


def _parse_traits(value: str, place: str, required: list[frozenset[str]], forbidden: set[str], mistakes: Mistakes) -> None:
    names = _items(value.removeprefix("in:"), place, mistakes)
    if value.startswith("in:"):
        for name in names:
            if name.startswith("!"):
                mistakes.add(place, f"{name!r} cannot be forbidden inside in:")
        if names:
            required.append(frozenset(names))
        return
    for name in names:
        if name.startswith("!"):
            forbidden.add(name.lstrip("!"))
        else:
            required.append(frozenset([name]))


def _parse_root_traits(values: Sequence[str], mistakes: Mistakes) -> tuple[frozenset[str], frozenset[str]]:
    if len(values) > 1:
        mistakes.add("root_required", "may be given only once; separate the traits by commas")
    required: list[frozenset[str]] = []
    forbidden: set[str] = set()
    for value in values[:1]:
        if value.startswith("in:"):
            mistakes.add("root_required", "does not support in:; all of its traits are required")
        else:
            _parse_traits(value, "root_required", required, forbidden, mistakes)
    return frozenset().union(*required), frozenset(forbidden)


def _parse_aggregates(values: Sequence[str], place: str, mistakes: Mistakes) -> tuple[tuple[frozenset[str], ...], frozenset[str]]:
    member_of: list[frozenset[str]] = []
    not_member_of: set[str] = set()
    for value in values:
        forbidden, rest = value.startswith("!"), value.removeprefix("!")
        if not rest.startswith("in:") and "," in rest:
            mistakes.add(place, f"{value!r} is a list; write in: before it")
            continue
        uuids = [_parse_uuid(item, place, mistakes) for item in rest.removeprefix("in:").split(",")]
        if forbidden:
            not_member_of.update(uuids)
        else:
            member_of.append(frozenset(uuids))
    return tuple(member_of), frozenset(not_member_of)


def _parse_subtree(value: str, mistakes: Mistakes) -> Subtree:
    suffixes = _items(value, "same_subtree", mistakes)
    together = tuple(suffix for suffix in suffixes if not suffix.startswith("!"))
    return Subtree(together, tuple(suffix[1:] for suffix in suffixes if suffix.startswith("!")))


def _parse_policy(whole: dict[str, list[str]], mistakes: Mistakes) -> str | None:
    policies = whole.get("group_policy", [])
    for policy in policies:
        if policy not in ("none", "isolate"):
            mistakes.add("group_policy", f"must be none or isolate, not {policy!r}")
    if policies and "isolate" in whole:
        mistakes.add("isolate", "cannot be combined with group_policy; leave one of them out")
    return policies[0] if policies else None


def _parse_limit(values: Sequence[str], mistakes: Mistakes) -> int | None:
    for value in values:
        if re.fullmatch(r"[1-9][0-9]*", value) is None:
            mistakes.add("limit", f"must be a whole number from 1, not {value!r}")
            return None
    return bounded_limit(values[0]) if values else None


def _parse_uuid(value: str, place: str, mistakes: Mistakes) -> str:
    says = why_no_uuid(value)
    if says:
        mistakes.add(place, says)
    return canonical_uuid(value)


def _items(value: str, place: str, mistakes: Mistakes) -> list[str]:
    items = [item.strip() for item in value.split(",")]
    if any(item.strip("!") == "" for item in items):
        mistakes.add(place, f"{value!r} has an empty item")
    return [item for item in items if item.strip("!")]
