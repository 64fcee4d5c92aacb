# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reasons why a request has no candidates, or too few, from what was counted: in a world's index, or by a ledger's indexes."""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ....module_utils._data.words import listed
from .exclusion import Exclusion

MOST_SHOWN = 3
_NAMED = ("required", "forbidden", "member_of", "not_member_of", "in_tree")
"""Constraints that describe the providers to a reader."""

Plain = dict[str, t.Any]


@dataclass(frozen=True)
class Counted:
    """What is left after each constraint, of `size` providers, and the largest free pieces, as `explain` of why.py returns them."""

    size: int
    groups: Mapping[str, list[Plain]]
    largest: Sequence[Plain]
    roots: Plain = field(default_factory=dict)
    combination: Sequence[Plain] = ()


def describe(
    counted: Counted,
    have: int,
    *,
    excluding: Callable[[], Exclusion | None],
    ending: str,
    busy: Callable[[Plain], Sequence[Plain]] = lambda _first: (),
    relax: Sequence[Plain] = (),
) -> Plain:
    """Return why a request has only `have` candidates, as `explain` of why.py does.

    `excluding` finds groups that exclude each other; it is asked where single constraints leave something. `busy` finds the providers that
    lack nothing but room; it is asked where room leaves none. `ending` is a sentence on what would help, which may be empty.
    """
    first = _first_empty(counted)
    exclusion = excluding() if first is None and not have else None
    users = busy(first) if first is not None and first.get("kind") == "room" else ()
    says = list(_sentences(counted, first, have, exclusion, users))
    return {
        "says": [*says, ending] if ending and counted.size else says,
        "first": first,
        "roots": counted.roots,
        "groups": counted.groups,
        "combination": list(counted.combination),
        "excluding": None if exclusion is None else exclusion.as_plain(),
        "busy": list(users),
        "relax": list(relax),
        "largest": list(counted.largest),
    }


def _first_empty(counted: Counted) -> Plain | None:
    """Return the first constraint after which nothing is left, with what was left before it."""
    before = counted.roots.get("trees")
    for entry in counted.roots.get("constraints", ()):
        if entry["left"] == 0:
            return {"where": "roots", "says": entry["says"], "before": before}
        before = entry["left"]
    for suffix, columns in counted.groups.items():
        for column in columns:
            before = None
            for entry in column["constraints"]:
                if entry["left"] == 0:
                    place = column["constraints"].index(entry)
                    what = " and ".join(said["says"] for said in column["constraints"][:place] if said["kind"] in _NAMED)
                    about = {"where": "group", "group": suffix, "kind": entry["kind"], "says": entry["says"], "before": before}
                    return {**about, "what": what} if entry["kind"] == "room" else about
                before = entry["left"]
    before = None
    for entry in counted.combination:
        if entry["left"] == 0:
            return {"where": "combination", "group": entry["group"], "says": entry["says"], "before": before}
        before = entry["left"]
    return None


def _sentences(counted: Counted, first: Plain | None, have: int, exclusion: Exclusion | None, busy: Sequence[Plain]) -> Iterator[str]:
    if not counted.size:
        yield "There are no providers at all."
        return
    if first is not None:
        yield from _sentences_of_busy(first, busy) if busy else [_sentence_of_first(first)]
    elif exclusion is not None:
        yield exclusion.says()
    elif have == 0:
        yield "Some trees have a provider for every group, but not for all together: merged amounts, isolation or same_subtree."
    for entry in counted.largest:
        if entry["free"] < entry["asked"]:
            yield (
                f"{group_name(entry['group'])} asks for {entry['asked']} {entry['resource_class']}; the largest piece that is free is "
                f"{entry['free']}, of {entry['name']}."
            )


def _sentences_of_busy(first: Plain, busy: Sequence[Plain]) -> Iterator[str]:
    what = first["what"] or "all else that is asked for"
    has = f"1 has {what}" if first["before"] == 1 else f"{first['before']} have {what}"
    users = listed([f"{entry['name']}, used by {_users(entry['used_by'])}" for entry in busy], MOST_SHOWN)
    yield f"{group_name(first['group'])}: {has}, but none {first['says']}: {users}."
    ending = [f"{_user(user)} on {entry['name']}" for entry in busy for user in entry["used_by"] if user["enough"]]
    if ending:
        yield f"There would be room without the claim of {listed(ending, MOST_SHOWN)}."


def _users(used_by: Sequence[Mapping[str, t.Any]]) -> str:
    return listed([_user(entry) for entry in used_by], MOST_SHOWN) if used_by else "nobody"


def _user(entry: Mapping[str, t.Any]) -> str:
    owners = [f"{kind} {entry[kind]}" for kind in ("project", "user") if entry.get(kind) is not None]
    if entry.get("expires_at") is not None:
        owners.append(f"until {entry['expires_at']}")
    return f"{entry['name']} ({', '.join(owners)})" if owners else str(entry["name"])


def _sentence_of_first(first: Plain) -> str:
    if first["where"] == "roots":
        return f"No tree is left after: {first['says']} ({first['before']} before)."
    before = "" if first["before"] is None else f" ({first['before']} before)"
    if first["where"] == "group":
        return f"{group_name(first['group'])}: no provider is left after: {first['says']}{before}."
    return f"No tree has a provider for every group; none is left after: {group_name(first['group'])}: {first['says']}{before}."


def group_name(suffix: str) -> str:
    """Return what sentences call a group."""
    return f"Group {suffix}" if suffix else "The group without a suffix"
