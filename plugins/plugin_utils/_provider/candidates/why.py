# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why there is no candidate, or too few: for each group and constraint how many providers are left, and what would help.

The filters are those of the search (columns.py), counted one after the other; what would help is found by trying.
"""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ....module_utils._data.words import listed
from ..._common.libraries import np
from ..request.model import UNSUFFIXED, Group, Request
from .alike import canonical
from .columns import Filter, column_filters, request_columns, required_together, root_filters, trees_with
from .exclusion import find_exclusion
from .find import SearchOptions, find_candidates
from .index import Index, Mask
from .reasons import MOST_SHOWN, Counted, describe, group_name
from .requirements import column_amounts, stock_requirements


@dataclass(frozen=True)
class Relaxation:
    """A request that asks for one thing less; `place` is the argument that changes, `says` how."""

    place: str
    says: str
    request: Request


def relaxations(request: Request) -> Iterator[Relaxation]:
    """Yield the request without each of its constraints, one at a time; amounts stay as they are."""
    for number, group in enumerate(request.groups):
        for place, says, relaxed in _group_relaxations(group):
            groups = (*request.groups[:number], relaxed, *request.groups[number + 1 :])
            yield Relaxation(f"groups.{group.suffix or repr('')}.{place}", says, replace(request, groups=groups))
    for number, subtree in enumerate(request.subtrees):
        names = ", ".join([*subtree.together, *(f"!{suffix}" for suffix in subtree.apart)])
        rest = (*request.subtrees[:number], *request.subtrees[number + 1 :])
        yield Relaxation(f"same_subtree[{number}]", f"without same_subtree {names}", replace(request, subtrees=rest))
    if request.isolated:
        says = f"without isolating {', '.join(sorted(request.isolated))}"
        yield Relaxation("isolate", says, replace(request, isolated=frozenset()))
    yield from _root_relaxations(request)


def largest_that_fits(index: Index, request: Request, fits: Callable[[Request], bool]) -> Iterator[Relaxation]:
    """Yield for each amount that is too large by itself the largest smaller one with which the request fits."""
    for group in request.groups:
        for name, amount in group.resources:
            asking = partial(_asking, request, group, name)
            least = _least_piece(index, name)
            # What does not fit with the least piece fits with none, and takes the longest to search for.
            if not least or least >= amount or not fits(asking(least)):
                continue
            less = _largest(_smaller_pieces(index, name, amount), amount, _through(asking, fits))
            if less:
                says = f"with {less} {name} instead of {amount}"
                yield Relaxation(f"groups.{group.suffix or repr('')}.resources.{name}", says, asking(less))


def largest_free(index: Index, request: Request) -> Iterator[tuple[str, str, int, int, int]]:
    """Yield (suffix, class, amount asked, largest piece that is free, position of its provider) for each amount.

    Counts only providers that satisfy all other constraints of the group, or all providers if none does.
    """
    for group in request.groups:
        for name, amount in group.resources:
            table = index.classes.get(name)
            if table is None or not len(table.positions):
                continue
            # Where all that a group asks of one provider but the amounts holds.
            holds = np.ones(index.size, dtype=bool)
            for found in column_filters(index, group, (), split=False):
                holds &= found.own
            allowed = holds[table.positions]
            most = np.where(table.most >= table.min_unit, table.most, 0)
            if allowed.any():
                most = np.where(allowed, most, -1)
            row = int(most.argmax())
            yield group.suffix, name, amount, max(0, int(most[row])), int(table.positions[row])


def _group_relaxations(group: Group) -> Iterator[tuple[str, str, Group]]:
    for number, choice in enumerate(group.required):
        rest = (*group.required[:number], *group.required[number + 1 :])
        yield "required", f"without trait {' or '.join(sorted(choice))}", replace(group, required=rest)
    for trait in sorted(group.forbidden):
        yield "forbidden", f"with trait {trait} allowed", replace(group, forbidden=group.forbidden - {trait})
    for number, choice in enumerate(group.member_of):
        rest = (*group.member_of[:number], *group.member_of[number + 1 :])
        yield "member_of", f"outside aggregate {' or '.join(sorted(choice))}", replace(group, member_of=rest)
    for aggregate in sorted(group.not_member_of):
        yield "not_member_of", f"with aggregate {aggregate} allowed", replace(group, not_member_of=group.not_member_of - {aggregate})
    if group.in_tree is not None:
        yield "in_tree", f"outside the tree of {group.in_tree}", replace(group, in_tree=None)


def _root_relaxations(request: Request) -> Iterator[Relaxation]:
    if request.roots is not None:
        yield Relaxation("with", f"apart from {listed(request.near, MOST_SHOWN)}", replace(request, roots=None))
    if request.other_roots:
        yield Relaxation("not_with", f"on the root of {listed(request.away, MOST_SHOWN)}", replace(request, other_roots=frozenset()))
    for trait in sorted(request.root_required):
        yield Relaxation(
            "root_required", f"without trait {trait} at the root", replace(request, root_required=request.root_required - {trait})
        )
    for trait in sorted(request.root_forbidden):
        relaxed = replace(request, root_forbidden=request.root_forbidden - {trait})
        yield Relaxation("root_forbidden", f"with trait {trait} allowed at the root", relaxed)
    for number, choice in enumerate(request.root_member_of):
        rest = (*request.root_member_of[:number], *request.root_member_of[number + 1 :])
        yield Relaxation(
            "root_member_of", f"with a root outside aggregate {' or '.join(sorted(choice))}", replace(request, root_member_of=rest)
        )
    for aggregate in sorted(request.root_not_member_of):
        relaxed = replace(request, root_not_member_of=request.root_not_member_of - {aggregate})
        yield Relaxation("root_member_of", f"with a root in aggregate {aggregate} allowed", relaxed)


def _least_piece(index: Index, name: str) -> int:
    """Return the smallest amount that any provider could give by itself, 0 if none can give any."""
    table = index.classes.get(name)
    least = [] if table is None else table.min_unit[table.most >= table.min_unit].tolist()
    return min(least, default=0)


def _smaller_pieces(index: Index, name: str, amount: int) -> list[int]:
    """Return the largest piece below the amount that each provider can give, ascending and each only once."""
    table = index.classes.get(name)
    if table is None:
        return []
    ceiling = np.minimum(table.most, amount - 1)
    stepped = ceiling // table.step_size * table.step_size
    pieces = np.where(stepped >= table.min_unit, stepped, np.where(table.min_unit <= ceiling, table.min_unit, 0))
    return [piece for piece in np.unique(pieces).tolist() if piece > 0]


def _through(asking: Callable[[int], Request], fits: Callable[[Request], bool]) -> Callable[[int], bool]:
    return lambda less: fits(asking(less))


def _asking(request: Request, group: Group, name: str, less: int) -> Request:
    """Return the request with another amount of one class in one group."""
    resources = tuple((asked, less if asked == name else amount) for asked, amount in group.resources)
    return replace(request, groups=tuple(replace(one, resources=resources) if one is group else one for one in request.groups))


def _largest(pieces: Sequence[int], too_much: int, fits: Callable[[int], bool]) -> int:
    """Return the largest amount that fits, 0 if none does, by bisection: what fits with more fits with less, step sizes aside.

    The pieces that providers can give are tried first, so that step sizes are kept; then what lies between two of them.
    """
    tried = [0, *pieces, too_much]
    low, high = 0, len(tried) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(tried[middle]) else (low, middle)
    least, most = tried[low], tried[high]
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if fits(middle) else (least, middle)
    return least


TRIAL_BUDGET = 200_000
"""How many choices one trial of a relaxed request looks at, at most."""
TRIALS_BUDGET = 500_000
"""How many choices all trials of relaxed requests look at together, at most."""


Holders = Callable[[str, str], Sequence[Mapping[str, t.Any]]]
"""Returns the consumers that use a class of a provider (UUID): {consumer, name, project, user, amount} each."""

_MOST_CHANGES = 6
MOST_BUSY = 20


def explain(index: Index, request: Request, have: int = 0, holders: Holders = lambda _provider, _name: ()) -> dict[str, t.Any]:
    """Return why a request has only `have` candidates, as plain data.

    `says` are sentences. `first` names the first constraint that leaves nothing (None when single constraints leave something).
    `roots` and `combination` count trees, `groups` counts providers: {suffix: [{resources, constraints: [{kind, says, left}], trees}]},
    the unsuffixed group with an entry for each class. `excluding` are groups that exclude each other, where that is the reason:
    {groups: [suffixes], because: [places]}. `busy` are the providers that lack nothing but room, with `holders`, where that is the
    reason: {group, provider, name, resource_class, free, used_by}. `relax` lists the single changes that bring more candidates; `largest`
    the largest piece of each class that is free.
    """
    if request.drained:
        index = index.undrained()
    groups = {
        group.suffix: [_count_column(index, group, amounts, split) for amounts, split in column_amounts(group, request.can_split)]
        for group in request.groups
    }
    trials = _Trials(index, have)
    relax = list(_what_helps(request, trials))
    return describe(
        Counted(
            index.size,
            groups,
            [_largest_entry(index, entry) for entry in largest_free(index, request)],
            _count_roots(index, request),
            _count_combination(index, request),
        ),
        have,
        excluding=lambda: find_exclusion(request, partial(_is_impossible, index)),
        busy=lambda first: list(_busy(index, request, first, holders)),
        relax=relax,
        ending=_says_what_helps(relax, have, tried_all=trials.is_complete),
    )


def _busy(index: Index, request: Request, first: dict[str, t.Any], holders: Holders) -> Iterator[dict[str, t.Any]]:
    """Yield the providers that were left before the first empty constraint, which is room, and the consumers that use what they lack."""
    (group,) = (group for group in request.groups if group.suffix == first["group"])
    for amounts, split in column_amounts(group, request.can_split):
        steps = list(_steps(index, group, amounts, split))
        left = np.ones(index.size, dtype=bool)
        for step, name in zip(steps, _room_classes(steps, amounts), strict=True):
            remaining = left & (step.own | step.shared & _sharing(index))
            if step.kind == "room" and not remaining.any():
                for position in np.flatnonzero(left).tolist()[:MOST_BUSY]:
                    provider, asked = index.providers[position], 1 if split else dict(amounts)[name]
                    used, capacity = index.classes[name].loads[position]
                    free = max(0, capacity - used)
                    used_by = [{**entry, "enough": free + entry["amount"] >= asked} for entry in holders(provider.uuid, name)]
                    about = {"group": group.suffix, "provider": provider.uuid, "name": provider.name, "resource_class": name}
                    yield {**about, "free": free, "used_by": used_by}
                return
            left = remaining


def _room_classes(steps: Sequence[Filter], amounts: Sequence[tuple[str, int]]) -> list[str]:
    """Return the class that each step is about where it is about room, in whose order they come; else an empty text."""
    classes = iter([name for name, _amount in amounts])
    return [next(classes, "") if step.kind == "room" else "" for step in steps]


def _is_impossible(index: Index, request: Request) -> bool:
    answer = find_candidates(index, replace(request, limit=1), SearchOptions(budget=TRIAL_BUDGET))
    return not answer.candidates and not answer.truncated


def resource_steps(index: Index, name: str, amount: int, split: bool) -> Iterator[Filter]:
    """Yield what asking for one amount means, step by step; together they are the search's filter."""
    for asked in stock_requirements(name, amount, split=split):
        yield Filter(asked.kind, asked.says, asked.own(index), asked.shared(index))


def _count_roots(index: Index, request: Request) -> dict[str, t.Any]:
    left = np.ones(index.trees, dtype=bool)
    constraints = []
    for kind, says, holds in root_filters(index, request):
        left &= holds
        constraints.append({"kind": kind, "says": says, "left": int(left.sum())})
    return {"trees": index.trees, "constraints": constraints}


def _count_column(index: Index, group: Group, amounts: tuple[tuple[str, int], ...], split: bool) -> dict[str, t.Any]:
    own, shared = np.ones(index.size, dtype=bool), np.ones(index.size, dtype=bool)
    constraints = []
    for found in _steps(index, group, amounts, split):
        own &= found.own
        shared &= found.shared
        constraints.append({"kind": found.kind, "says": found.says, "left": int((own | shared & _sharing(index)).sum())})
    return {"resources": dict(amounts), "constraints": constraints, "trees": int(trees_with(index, own, shared).sum())}


def _steps(index: Index, group: Group, amounts: tuple[tuple[str, int], ...], split: bool) -> Iterator[Filter]:
    steps = [step for name, amount in amounts for step in resource_steps(index, name, amount, split)]
    yield from (step for step in steps if step.kind != "room")
    yield from (found for found in column_filters(index, group, amounts, split) if found.kind != "room")
    # Last: what nobody has is another reason than what others use.
    yield from (step for step in steps if step.kind == "room")


def _sharing(index: Index) -> Mask:
    return index.mask(np.array(sorted(index.sharing), dtype=np.int64))


def _count_combination(index: Index, request: Request) -> list[dict[str, t.Any]]:
    """Count the trees in which one group after the other has a provider, then what the unsuffixed group needs together."""
    left = np.ones(index.trees, dtype=bool)
    for _kind, _says, holds in root_filters(index, request):
        left &= holds
    columns = request_columns(index, request)
    counts = []
    for group in request.groups:
        of_group = [column for column in columns if column.group is group]
        for column in of_group:
            left &= trees_with(index, column.own, column.shared)
        counts.append(
            {"group": group.suffix, "says": f"{group_name(group.suffix)} has a provider in the same tree", "left": int(left.sum())}
        )
        if group.suffix == UNSUFFIXED:
            own = np.logical_or.reduce([column.own for column in of_group])
            shared = np.logical_or.reduce([column.shared for column in of_group])
            for choice in required_together(group, of_group):
                has = index.any_trait(choice)
                left &= trees_with(index, own & has, shared & has)
                says = f"one of its providers has trait {' or '.join(sorted(choice))}"
                counts.append({"group": group.suffix, "says": says, "left": int(left.sum())})
    return counts


@dataclass
class _Trials:
    """Whether relaxed requests have more than `have` candidates; those that differ in suffixes alone are tried once.

    `is_complete` is false as soon as a trial ended at its limit.
    """

    index: Index
    have: int
    left: int = TRIALS_BUDGET
    is_complete: bool = True
    known: dict[t.Hashable, bool] = field(default_factory=dict)

    def fits(self, relaxed: Request) -> bool:
        """Return whether a request has more candidates."""
        kind = canonical(relaxed)
        if kind is None or kind not in self.known:
            answer = find_candidates(
                self.index, replace(relaxed, limit=self.have + 1), SearchOptions(budget=max(1, min(TRIAL_BUDGET, self.left)))
            )
            self.left -= answer.steps
            found = len(answer.candidates) > self.have
            self.is_complete = self.is_complete and (found or not answer.truncated)
            if kind is None:
                return found
            self.known[kind] = found
        return self.known[kind]


def _what_helps(request: Request, trials: _Trials) -> Iterator[dict[str, str]]:
    """Yield the single changes that bring more candidates."""
    for relaxation in relaxations(request):
        if trials.fits(relaxation.request):
            yield {"place": relaxation.place, "says": relaxation.says}
    for relaxation in largest_that_fits(trials.index, request, trials.fits):
        yield {"place": relaxation.place, "says": relaxation.says}


def _largest_entry(index: Index, entry: tuple[str, str, int, int, int]) -> dict[str, t.Any]:
    suffix, name, asked, free, position = entry
    provider = index.providers[position]
    return {"group": suffix, "resource_class": name, "asked": asked, "free": free, "provider": provider.uuid, "name": provider.name}


def _says_what_helps(relax: list[dict[str, str]], have: int, *, tried_all: bool) -> str:
    if relax:
        changes = "; or ".join(f"{entry['says']} ({entry['place']})" for entry in relax[:_MOST_CHANGES])
        more = f"; or with one of {len(relax) - _MOST_CHANGES} other changes" if len(relax) > _MOST_CHANGES else ""
        return f"{'More would fit' if have else 'It would fit'} {changes}{more}."
    if have:
        return ""
    return "No single change would help." if tried_all else "No single change is known to help; the search for one ended at its limit."
