# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plans of a fleet before and after a change: the changes of each host, counts and a table."""

from __future__ import annotations

import typing as t
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from ....module_utils._data.errors import InputError, Mistake, Mistakes
from ....module_utils._data.words import listed
from ..._common.table import table
from ..plan_files import OTHER_FORM, PLAN
from .changes import ORDER, WORSE, Change, ComparedPlan, Kind, changes

_MOST_NAMES = 5


@dataclass(frozen=True)
class PlanDiff:
    """What a change does to the plans of a fleet, by host; `left_out` are hosts with a plan before that are not compared."""

    changes: Mapping[str, tuple[Change, ...]]
    left_out: tuple[str, ...] = ()

    def kind(self, host: str) -> Kind:
        """Return the worst change of a host."""
        return max((change.kind for change in self.changes[host]), key=ORDER.index, default=Kind.ALIKE)

    def with_kinds(self, kinds: Iterable[str]) -> list[str]:
        """Return the hosts that have a change of one of the kinds."""
        wanted = set(kinds)
        return [host for host, found in self.changes.items() if any(change.kind in wanted for change in found)]

    def counts(self) -> dict[str, int]:
        """Return how many hosts have each kind as their worst change."""
        counts = Counter(map(self.kind, self.changes))
        return {str(kind): counts[kind] for kind in ORDER}

    def sentence(self) -> str:
        """Return one sentence on how many plans are worse, other, and alike."""
        worse, alike = len(self.with_kinds(WORSE)), self.counts()[Kind.ALIKE]
        aside = f", {len(self.left_out)} left out" if self.left_out else ""
        return f"{len(self.changes)} hosts: {worse} worse, {len(self.changes) - worse - alike} otherwise changed, {alike} alike{aside}"

    def warnings(self) -> list[str]:
        """Return which hosts had a plan and are not compared."""
        return [f"there was a plan for {listed(self.left_out, _MOST_NAMES)}, not among the hosts to compare"] if self.left_out else []

    def to_plain(self) -> dict[str, t.Any]:
        """Return `{hosts, counts, summary, worse, left_out_hosts}`."""
        hosts = {
            host: {
                "kind": str(self.kind(host)),
                "changes": [{"place": place, "kind": str(kind), "says": says} for place, kind, says in found],
            }
            for host, found in self.changes.items()
        }
        return {
            "hosts": hosts,
            "counts": self.counts(),
            "summary": self._summary(),
            "worse": self.with_kinds(WORSE),
            "left_out_hosts": list(self.left_out),
        }

    def _summary(self) -> str:
        """Return a table of all changes, hosts with the worst ones first; hosts whose plans are alike are counted only."""
        worst_first = sorted(self.changes, key=lambda host: -ORDER.index(self.kind(host)))
        rows = [
            (host if not number else "", str(change.kind), change.place, change.says)
            for host in worst_first
            for number, change in enumerate(self.changes[host])
        ]
        return "\n".join([table(("host", "kind", "where", "what"), rows), "", self.sentence()]) if rows else self.sentence()


def plan_diff(
    before: tuple[Collection[str], Callable[[str], t.Any]],
    after: tuple[Collection[str], Callable[[str], t.Any]],
    hosts: Collection[str] | None,
    tolerance: float,
) -> PlanDiff:
    """Compare the plans of hosts; `before` and `after` are names of hosts and what gives the plan of one.

    Raises InputError where nothing was planned before, or where what a host has is no plan.
    """
    known = list(before[0])
    if not known:
        raise InputError([Mistake("before", "has no plan of any host")])
    wanted = list(hosts) if hosts is not None else list(dict.fromkeys([*known, *after[0]]))
    mistakes = Mistakes()
    found: dict[str, tuple[Change, ...]] = {}
    for host in wanted:
        old, new = (_read(name, host, read, mistakes) for name, read in (("before", before[1]), ("after", after[1])))
        if mistakes:
            continue
        if old is not None and new is None:
            found[host] = (Change("", Kind.NO_PLAN, "there is no plan any more"),)
        elif old is None and new is not None:
            found[host] = (Change("", Kind.CHANGED, "there was no plan before"),)
        elif old is not None and new is not None:
            found[host] = tuple(changes(old, new, tolerance))
    mistakes.check()
    return PlanDiff(found, tuple(host for host in known if host not in set(wanted)))


def _read(name: str, host: str, read: Callable[[str], t.Any], mistakes: Mistakes) -> ComparedPlan | None:
    """Return the plan of a host, None where there is none or where it has mistakes, which are added."""
    try:
        plan = read(host)
    except InputError as error:
        mistakes.extend(error.mistakes)
        return None
    if plan is None:
        return None
    wrong = len(mistakes)
    PLAN.read_nested(plan, f"{name}.{host}", mistakes)
    if len(mistakes) > wrong:
        return None
    try:
        return ComparedPlan(plan)
    except OTHER_FORM as error:
        mistakes.add(f"{name}.{host}", f"is not what disk_plan writes ({error})")
        return None
