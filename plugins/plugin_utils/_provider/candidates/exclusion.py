# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Groups that exclude each other: each finds a provider, and so do all of them but one, yet not all of them together.

Found by leaving out one group after the other as long as what is left stays impossible: every group of the rest is then needed for it.
"""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from ....module_utils._data.words import listed
from ..request.model import UNSUFFIXED, Request

_MOST_NAMED = 6

Impossible = Callable[[Request], bool]
"""Returns whether a request is known to have no candidate."""


@dataclass(frozen=True)
class Exclusion:
    """The suffixes of groups that exclude each other, and the places of the constraints without any of which they would not.

    Without constraints it is the amounts: what the groups ask of the same providers is too much for them.
    """

    groups: tuple[str, ...]
    because: tuple[str, ...]

    def as_plain(self) -> dict[str, t.Any]:
        """Return it as plain data."""
        return {"groups": list(self.groups), "because": list(self.because)}

    def says(self) -> str:
        """Return it as a sentence."""
        names = [suffix or "''" for suffix in self.groups]
        if len(names) == 1:
            return f"No tree has all that group {names[0]} asks for together, although some tree has each part alone."
        groups = listed(names, _MOST_NAMED)
        if self.because:
            return f"Groups {groups} exclude each other, because of {listed(self.because, _MOST_NAMED)}."
        return f"Groups {groups} exclude each other: all groups come from one tree, and no tree has what they ask for together."


def find_exclusion(request: Request, impossible: Impossible) -> Exclusion | None:
    """Return the first minimal set of groups without a candidate; None where it is not known that there is one."""
    if not impossible(request):
        return None
    suffixes = [group.suffix for group in request.groups]
    for suffix in tuple(suffixes):
        rest = [other for other in suffixes if other != suffix]
        smaller = restricted(request, rest)
        if any(group.resources for group in smaller.groups) and impossible(smaller):
            suffixes = rest
    smallest = restricted(request, suffixes)
    return Exclusion(tuple(suffixes), tuple(_because(request, smallest, impossible)))


def restricted(request: Request, suffixes: Collection[str]) -> Request:
    """Return a request for some of the groups, and what it says of these."""
    groups = tuple(group for group in request.groups if group.suffix in suffixes)
    unsuffixed = {name for group in groups if group.suffix == UNSUFFIXED for name, _amount in group.resources}
    # The group that is missing may be the one above all others, so without it nothing is asked of the others.
    subtrees = (
        replace(subtree, apart=tuple(suffix for suffix in subtree.apart if suffix in suffixes))
        for subtree in request.subtrees
        if set(subtree.together) <= set(suffixes)
    )
    return replace(
        request,
        groups=groups,
        subtrees=tuple(subtrees),
        isolated=request.isolated & frozenset(suffixes),
        can_split=request.can_split & unsuffixed,
    )


def _because(request: Request, smallest: Request, impossible: Impossible) -> Iterator[str]:
    """Yield the places of the constraints, each of which is needed for the contradiction; those of the amounts alone have none."""
    kept = smallest
    if smallest.isolated:
        lax = replace(kept, isolated=frozenset())
        if impossible(lax):
            kept = lax
        else:
            yield "isolate"
    suffixes = [group.suffix for group in smallest.groups]
    for number, whole in enumerate(request.subtrees):
        for subtree in restricted(replace(request, subtrees=(whole,)), suffixes).subtrees:
            lax = replace(kept, subtrees=tuple(entry for entry in kept.subtrees if entry != subtree))
            if impossible(lax):
                kept = lax
            else:
                names = ", ".join([*subtree.together, *(f"!{suffix}" for suffix in subtree.apart)])
                yield f"same_subtree[{number}] ({names})"
