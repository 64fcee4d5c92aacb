# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The model of a request for allocation candidates, and what makes one contradict itself.

Spec "Getting On The Nested Magic Train 1" (seed 003); group_policy, traits and aggregates as in OpenStack Placement's
GET /allocation_candidates. groups.py reads a request from YAML, query.py from Placement's query string.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ....module_utils._data.errors import Mistakes
from ..world.names import KnownNames, canonical_reference

UNSUFFIXED = ""
"""The suffix of the group whose resource classes may each come from another provider of the tree."""

MOST_CANDIDATES = 10**9
"""What larger limits amount to: nobody has room for more candidates, and no database counts as far as one can write."""

_SUFFIX = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Group:
    """What one provider must satisfy; of the unsuffixed group, what the providers of its classes must satisfy together.

    `required` and `member_of` are sets of which one member each is enough. Aggregates and `in_tree`, a provider, are UUIDs or names.
    """

    suffix: str
    resources: tuple[tuple[str, int], ...] = ()
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    not_member_of: frozenset[str] = frozenset()
    in_tree: str | None = None


@dataclass(frozen=True, slots=True)
class Subtree:
    """One same_subtree: the providers of `together` have one of themselves as the ancestor of all; those of `apart` lie outside."""

    together: tuple[str, ...]
    apart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preference:
    """What is better to have than not: a trait, or an aggregate (`kind`), of a provider or of the root of its tree."""

    kind: str
    name: str
    weight: int


@dataclass(frozen=True, slots=True)
class Request:
    """A whole request. `isolated` are the suffixes whose provider satisfies no other suffixed group. With `drained` drained providers do.

    `near` and `away` are consumers, by UUID or name, on whose roots a candidate is to be, or not to be. A caller that
    knows the consumers sets `roots` (None: any) and `other_roots`, by UUID. `met` are the only preferences that a candidate meets; None:
    it does not matter.
    """

    groups: tuple[Group, ...]
    subtrees: tuple[Subtree, ...] = ()
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    root_member_of: tuple[frozenset[str], ...] = ()
    root_not_member_of: frozenset[str] = frozenset()
    isolated: frozenset[str] = frozenset()
    can_split: frozenset[str] = frozenset()
    limit: int | None = None
    drained: bool = False
    near: tuple[str, ...] = ()
    away: tuple[str, ...] = ()
    prefer: tuple[Preference, ...] = ()
    roots: frozenset[str] | None = None
    other_roots: frozenset[str] = frozenset()
    met: frozenset[Preference] | None = None

    def group(self, suffix: str) -> Group | None:
        """Return the group with a suffix."""
        return next((group for group in self.groups if group.suffix == suffix), None)


USUAL_LIMIT = 1000
"""How many candidates a task returns that does not say how many."""


def bounded_limit(limit: int | str) -> int:
    """Return a limit, a whole number from 1 or its digits, as one that can be counted to."""
    long = isinstance(limit, str) and len(limit) > len(str(MOST_CANDIDATES))
    return MOST_CANDIDATES if long else min(int(limit), MOST_CANDIDATES)


def with_names(request: Request, aggregates: Mapping[str, str], trees: Mapping[str, str]) -> Request:
    """Return the same request with the names of aggregates and of in_tree's providers where their UUIDs stood, as far as they have any."""

    def named(choice: frozenset[str]) -> frozenset[str]:
        return frozenset(aggregates.get(canonical_reference(reference), reference) for reference in choice)

    groups = (
        replace(
            group,
            member_of=tuple(map(named, group.member_of)),
            not_member_of=named(group.not_member_of),
            in_tree=None if group.in_tree is None else trees.get(canonical_reference(group.in_tree), group.in_tree),
        )
        for group in request.groups
    )
    return replace(
        request,
        groups=tuple(groups),
        root_member_of=tuple(map(named, request.root_member_of)),
        root_not_member_of=named(request.root_not_member_of),
    )


def why_no_suffix(suffix: str) -> str:
    """Return what is wrong with the suffix of a granular group, or an empty string."""
    if _SUFFIX.fullmatch(suffix) is None:
        return f"{suffix!r} is not a suffix; it has 1 to 64 of the characters a-z, A-Z, 0-9, _ and -"
    return ""


def isolated_suffixes(suffixes: Iterable[str], group_policy: str | None, isolate: Iterable[str] | None) -> frozenset[str]:
    """Return which suffixes are isolated: all of them with group_policy isolate, else those that are named."""
    if group_policy == "isolate":
        return frozenset(suffix for suffix in suffixes if suffix != UNSUFFIXED)
    return frozenset(isolate or ())


def check_request(request: Request, known: KnownNames, mistakes: Mistakes) -> None:
    """Collect what contradicts itself in a well-formed request, and the names that do not exist."""
    _check_groups(request, mistakes)
    _check_subtrees(request, mistakes)
    suffixes = {group.suffix for group in request.groups} - {UNSUFFIXED}
    for suffix in sorted(request.isolated - suffixes):
        mistakes.add("isolate", f"names {suffix!r}, but no group has that suffix")
    unsuffixed = request.group(UNSUFFIXED)
    asked = {name for name, _amount in unsuffixed.resources} if unsuffixed else set()
    for name in sorted(request.can_split - asked):
        mistakes.add("can_split", f"names {name!r}, which the group without a suffix does not ask for")
    for trait in sorted(request.root_required & request.root_forbidden):
        mistakes.add("root_required", f"requires and forbids {trait}")
    _check_known(request, known, mistakes)


def _check_groups(request: Request, mistakes: Mistakes) -> None:
    if not any(group.resources for group in request.groups):
        mistakes.add("groups", "at least one group must ask for resources")
        return
    placed = {suffix for subtree in request.subtrees for suffix in (*subtree.together, *subtree.apart)}
    for group in request.groups:
        if not group.resources and group.suffix == UNSUFFIXED:
            mistakes.add("groups['']", "the group without a suffix must ask for resources; give it a suffix and name that in same_subtree")
        elif not group.resources and group.suffix not in placed:
            mistakes.add(f"groups.{group.suffix}", "asks for no resources, so its suffix must be named in same_subtree")
        for choice in group.required:
            if choice <= group.forbidden:
                mistakes.add(f"groups.{group.suffix or repr('')}", f"requires and forbids {' or '.join(sorted(choice))}")


def _check_subtrees(request: Request, mistakes: Mistakes) -> None:
    suffixes = {group.suffix for group in request.groups} - {UNSUFFIXED}
    for number, subtree in enumerate(request.subtrees):
        place = f"same_subtree[{number}]"
        for suffix in (*subtree.together, *subtree.apart):
            if suffix not in suffixes:
                mistakes.add(place, f"names {suffix!r}, but no group has that suffix")
        if not subtree.together:
            mistakes.add(place, "needs at least one suffix without !")
        for suffix in sorted(set(subtree.together) & set(subtree.apart)):
            mistakes.add(place, f"names {suffix!r} both with and without !")


def _check_known(request: Request, known: KnownNames, mistakes: Mistakes) -> None:
    for group in request.groups:
        check_names(f"groups.{group.suffix or repr('')}", group, known, mistakes)
    roots = request.root_required | request.root_forbidden
    _add_unknown("root_required", (known.why_not_trait(trait) for trait in sorted(roots)), mistakes)
    _add_unknown_aggregates("root_member_of", [*request.root_member_of, request.root_not_member_of], known, mistakes)


def check_preferences(request: Request, known: KnownNames, mistakes: Mistakes) -> None:
    """Collect the traits and aggregates that a request prefers and that do not exist."""
    for number, preference in enumerate(request.prefer):
        why_not = known.why_not_trait if preference.kind == "trait" else known.why_not_aggregate
        _add_unknown(f"prefer[{number}].{preference.kind}", [why_not(preference.name)], mistakes)


def check_names(place: str, group: Group, known: KnownNames, mistakes: Mistakes) -> None:
    """Collect the classes, traits and aggregates of a group that do not exist."""
    _add_unknown(f"{place}.resources", (known.why_not_class(name) for name, _amount in group.resources), mistakes)
    traits = group.forbidden.union(*group.required)
    _add_unknown(f"{place}.required", (known.why_not_trait(trait) for trait in sorted(traits)), mistakes)
    _add_unknown_aggregates(f"{place}.member_of", [*group.member_of, group.not_member_of], known, mistakes)


def _add_unknown_aggregates(place: str, choices: Iterable[frozenset[str]], known: KnownNames, mistakes: Mistakes) -> None:
    names = frozenset().union(*choices)
    _add_unknown(place, (known.why_not_aggregate(name) for name in sorted(names)), mistakes)


def _add_unknown(place: str, sentences: Iterable[str], mistakes: Mistakes) -> None:
    for says in sentences:
        if says:
            mistakes.add(place, says)
