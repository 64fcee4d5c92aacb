# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is rather wanted: alternatives in order of preference, and of one request those candidates first that meet the most preferences.

A request with preferences becomes one for each set of them that a candidate may meet, the heaviest set first. So the search for the
best candidate asks for what it is to have, and does not look at all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from ..request.model import Request
from .find import Answer, SearchOptions
from .index import Index
from .write import Candidate

Find = Callable[[Request, SearchOptions], Answer]


@dataclass(frozen=True)
class Ranked:
    """What was found, best first: an answer, and of each of its candidates the number of the alternative that it satisfies."""

    answer: Answer
    alternatives: tuple[int, ...]


def tiers(request: Request) -> Iterator[Request]:
    """Yield the request once for each set of its preferences, the heaviest set first, and of equal ones the largest."""
    if not request.prefer:
        yield request
        return
    places = range(len(request.prefer))
    chosen = [frozenset(some) for size in range(len(request.prefer), -1, -1) for some in combinations(places, size)]
    chosen.sort(key=lambda some: -sum(request.prefer[place].weight for place in some))
    for some in chosen:
        yield replace(request, met=frozenset(request.prefer[place] for place in some))


def find_preferred(find: Find, alternatives: Sequence[Request], options: SearchOptions) -> Ranked:
    """Return the candidates of all alternatives, those of the first one first, up to the limit of the first."""
    if len(alternatives) == 1 and not alternatives[0].prefer:
        answer = find(alternatives[0], options)
        return Ranked(answer, (0,) * len(answer.candidates))
    limit, left = alternatives[0].limit, options.budget
    candidates: list[Candidate] = []
    anchors: list[tuple[Index, int]] = []
    numbers: list[int] = []
    seen, truncated = set(), False
    for number, alternative in enumerate(alternatives):
        for tier in tiers(alternative):
            if left <= 0 or (limit is not None and len(candidates) >= limit):
                break
            answer = find(replace(tier, limit=limit), replace(options, budget=left))
            left -= answer.steps
            truncated = truncated or answer.truncated
            for candidate, anchor in zip(answer.candidates, answer.anchors, strict=True):
                known = _key(candidate, options.distinct)
                if known not in seen and (limit is None or len(candidates) < limit):
                    seen.add(known)
                    candidates.append(candidate)
                    anchors.append(anchor)
                    numbers.append(number)
    spent = options.budget - max(0, left)
    return Ranked(Answer(candidates, truncated or left <= 0, tuple(anchors), spent), tuple(numbers))


def _key(candidate: Candidate, distinct: str) -> object:
    amounts = frozenset((uuid, name, amount) for uuid, parts in candidate["allocations"].items() for name, amount in parts.items())
    if distinct == "allocations":
        return amounts
    return amounts, frozenset((suffix, tuple(uuids)) for suffix, uuids in candidate["mappings"].items())
