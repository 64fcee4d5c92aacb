# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Claims as data: what is asked for, what it changes of what consumers have, and what refuses it."""

from __future__ import annotations

import typing as t
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ....module_utils._data.errors import NoSolution
from ..world.model import Allocations
from ..world.times import Time
from .owners import Asked
from .stored import Consumer, ConsumerState, Holding

Key = tuple[int, str]
"""A provider's number and a class."""


@dataclass(frozen=True)
class Claim:
    """What a consumer shall have: amounts by provider (UUID or name) and class; nothing at all takes everything back.

    `generation` is the consumer's that the caller saw, 0 for a consumer that must not exist yet, None for any.
    `project`, `user` and `type` stay as they are where they are None, and so do `name` and the end of its `lease`. Where the consumer is
    given by its name, `consumer` is the UUID that a new one gets. `take_over` allows to change what others own. `seen` are the providers
    that it was judged by. With `on_drained` it may take from drained providers.
    """

    consumer: str
    amounts: Allocations
    project: str | None = None
    user: str | None = None
    generation: int | None = None
    seen: Sequence[Seen] = ()
    type: str | None = None
    name: str | None = None
    take_over: bool = False
    lease: Time | None = None
    on_drained: bool = False

    @property
    def asked(self) -> Asked:
        """Which consumer it is for."""
        return Asked(self.consumer, self.name, self.project, self.user, self.take_over)


@dataclass(frozen=True)
class Seen:
    """A provider as it was when a candidate was found; `above` are the UUIDs of its ancestors, its parent first.

    `number` is the ledger's own, so that another provider of the same UUID counts as another.
    """

    number: Hashable
    uuid: str
    name: str
    generation: int
    above: tuple[str, ...]
    traits: frozenset[str]
    aggregates: frozenset[str]


@dataclass(frozen=True)
class Claimed:
    """What the claims changed: consumers before and after (those that are not there are left out), and providers' new generations.

    `names` are those of all providers in it, by UUID. `ended` are consumers whose lease had ended, and whose room was needed.
    """

    before: Mapping[str, ConsumerState]
    after: Mapping[str, ConsumerState]
    generations: Mapping[str, int] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    ended: Sequence[ConsumerState] = ()

    @property
    def changed(self) -> bool:
        """Whether any consumer has anything else than before."""
        return self.before != self.after


class ClaimRefused(NoSolution):
    """The ledger cannot give what is asked now; `conflict` lists every part that it cannot give and why."""

    def __init__(self, refusals: Sequence[Mapping[str, t.Any]]) -> None:
        super().__init__("; ".join(str(refusal["says"]) for refusal in refusals), {"refused": [dict(refusal) for refusal in refusals]})


class Outdated(NoSolution):
    """A provider is not any more what it was when the candidate was found."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"{', '.join(names)} changed since the candidate was found", {"outdated": list(names)})


@dataclass(frozen=True)
class Change:
    """One consumer's way from what it holds to what it wants, providers by their numbers.

    `former` is a consumer that has given everything back and leaves its name to this one.
    """

    held: Holding | None
    wanted: Consumer
    amounts: Mapping[Key, int]
    former: Consumer | None = None
    on_drained: bool = False

    @property
    def had(self) -> Mapping[Key, int]:
        """What is counted for the consumer now, though its lease may have ended."""
        return self.held.amounts if self.held else {}

    @property
    def holds(self) -> Mapping[Key, int]:
        """What the consumer has now."""
        return self.had if self.exists else {}

    @property
    def exists(self) -> bool:
        """Whether there is such a consumer now, and not merely the row of one that was there."""
        return self.held is not None and self.held.is_live

    @property
    def generation(self) -> int:
        """The consumer's generation as callers see it: 0 where there is none now."""
        return self.held.consumer.generation if self.held is not None and self.exists else 0

    @cached_property
    def touched(self) -> set[Key]:
        """The parts to write."""
        return {key for key in {*self.had, *self.amounts} if self.had.get(key) != self.amounts.get(key)}

    @cached_property
    def asked(self) -> set[Key]:
        """The parts that the consumer does not have already."""
        return {key for key, amount in self.amounts.items() if self.holds.get(key) != amount}

    @cached_property
    def renewed(self) -> set[Key]:
        """The parts that stay, but under another owner or after the lease has ended."""
        if self.held is None or not self.amounts:
            return set()
        before, after = self.held.consumer, self.wanted
        stays = self.exists and (before.project, before.user) == (after.project, after.user)
        return set() if stays else (self.had.keys() & self.amounts.keys()) - self.touched

    @cached_property
    def is_needed(self) -> bool:
        """Whether there is anything to write."""
        if self.held is None or not self.exists:
            return bool(self.amounts)
        return bool(self.touched) or self.held.consumer != self.wanted


@dataclass(frozen=True)
class ClaimPlan:
    """What the claims of one call come to, read before any guard at the second `now`.

    `uuids` and `names` are those of all providers in it, by number. `ended` releases the consumers whose lease has ended and whose room is
    needed.
    """

    changes: tuple[Change, ...]
    expected: Mapping[int, int | None]
    uuids: Mapping[int, str]
    names: Mapping[int, str]
    now: int
    ended: tuple[Change, ...] = ()

    @cached_property
    def needed(self) -> list[Change]:
        """The changes to write, in the order of their guards."""
        changes = [*self.ended, *(change for change in self.changes if change.is_needed)]
        return sorted(changes, key=lambda change: change.wanted.uuid)

    @cached_property
    def growth_of_projects(self) -> dict[tuple[str, str], int]:
        """How much more projects get than they have, by project and class."""
        more: Counter[tuple[str, str]] = Counter()
        for change in self.changes:
            sides = ((change.wanted, change.amounts, 1), (change.held.consumer if change.held else change.wanted, change.holds, -1))
            for consumer, amounts, sign in sides:
                if consumer.project is not None:
                    for (_number, name), amount in amounts.items():
                        more[consumer.project, name] += sign * amount
        return dict(more)

    def with_ended(self, holdings: Iterable[Holding]) -> ClaimPlan:
        """Return the plan that releases these consumers, too, whose lease has ended."""
        known = {change.wanted.uuid for change in self.needed}
        found = [holding for holding in holdings if holding.consumer.uuid not in known]
        uuids, names = dict(self.uuids), dict(self.names)
        for holding in found:
            uuids.update(holding.uuids)
            names.update(holding.names)
        return replace(self, uuids=uuids, names=names, ended=(*self.ended, *map(released, found)))

    @cached_property
    def providers(self) -> dict[int, int | None]:
        """The providers to guard, each with the generation that the caller expects."""
        numbers = {number for change in self.needed for number, _name in change.touched | change.asked}
        return {number: self.expected.get(number) for number in numbers}


def released(holding: Holding) -> Change:
    """Return what takes everything back from a consumer."""
    return Change(holding, _without_owner(holding.consumer), {})


def _without_owner(consumer: Consumer) -> Consumer:
    """Return a consumer that holds nothing: it belongs to nobody, but its name stays that of its project."""
    return replace(consumer, user=None, type=None, claimed_at=None, expires_at=None)
