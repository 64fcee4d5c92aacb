# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fleet's facts against its plans: the state of each host, counts, a table, and what the page of the fleet shows of those that differ."""

from __future__ import annotations

import typing as t
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ....module_utils._data.errors import InputError, Mistake, Mistakes
from ....module_utils._data.words import listed
from ..._common.table import table
from ..known_hardware import FACT
from ..plan_files import OTHER_FORM, PLAN
from ..schema.hardware import parse_hardware
from .compare import Plain, compare
from .findings import ORDER, Finding, State

_MOST_NAMES = 5


@dataclass(frozen=True)
class Drift:
    """What has become of a fleet's plans, by host.

    `left_out` are hosts that nothing is known of; `unread` are those whose plan or facts cannot be read, and why.
    """

    findings: Mapping[str, tuple[Finding, ...]]
    left_out: tuple[str, ...] = ()
    unread: Mapping[str, InputError] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Return the number of hosts of which something is known."""
        return len(self.findings) + len(self.unread)

    def state(self, host: str) -> State:
        """Return the worst that was found on a host."""
        return max((finding.state for finding in self.findings[host]), key=ORDER.index, default=State.ALIKE)

    def to_plain(self) -> dict[str, t.Any]:
        """Return `{hosts, counts, summary, failures, left_out_hosts, unread_hosts}`; `failures` are what the page of a fleet takes."""
        states = self._states()
        hosts = {
            host: {
                "state": str(states[host]),
                "findings": [{"place": place, "state": str(state), "says": says} for place, state, says in findings],
            }
            for host, findings in self.findings.items()
        }
        return {
            "hosts": hosts,
            "counts": self.counts(),
            "summary": self._summary(),
            "failures": {
                **{host: {"msg": described(self.findings[host])} for host, state in states.items() if state is not State.ALIKE},
                **{host: {"msg": str(error)} for host, error in self.unread.items()},
            },
            "left_out_hosts": list(self.left_out),
            "unread_hosts": list(self.unread),
        }

    def counts(self) -> dict[str, int]:
        """Return how many hosts are in each state."""
        counts = Counter(self._states().values())
        return {str(state): counts[state] for state in ORDER}

    def sentence(self) -> str:
        """Return one sentence on how many hosts are as planned."""
        alike = self.counts()[State.ALIKE]
        silent = f", nothing is known about {len(self.left_out)} more" if self.left_out else ""
        unread = f", {len(self.unread)} cannot be compared" if self.unread else ""
        return f"{alike} of {self.total} hosts are as planned{unread}{silent}"

    def with_states(self, states: Iterable[str]) -> list[str]:
        """Return the hosts on which something was found in one of the states."""
        wanted = set(states)
        return [host for host, findings in self.findings.items() if any(finding.state in wanted for finding in findings)]

    def refuse_silence(self, *, must_all: bool) -> None:
        """Raise InputError where nothing is known about hosts that are all to be compared, or of any."""
        if self.left_out and (must_all or not (self.findings or self.unread)):
            raise InputError([Mistake("hardware", self._silent())])

    def warnings(self, unplanned: Sequence[str]) -> list[str]:
        """Return which hosts were not compared; `unplanned` are those asked for that have no plan."""
        said = [self._silent()] if self.left_out else []
        return said + ([f"there is no plan for {listed(unplanned, _MOST_NAMES)}"] if unplanned else [])

    def _silent(self) -> str:
        hosts = listed(self.left_out, _MOST_NAMES)
        return f"nothing is known about {hosts}; run bareon.allocator.disk_facts there, or keep {FACT} in a file"

    def _states(self) -> dict[str, State]:
        return {host: self.state(host) for host in self.findings}

    def _summary(self) -> str:
        """Return a table of all that is not as planned; hosts that are alike are counted only."""
        rows = [(host, "unread", "", str(error).replace("\n", "; ")) for host, error in self.unread.items()]
        rows += [
            (host if not number else "", str(finding.state), finding.place, finding.says)
            for host, findings in self.findings.items()
            for number, finding in enumerate(findings)
        ]
        return "\n".join([table(("host", "state", "where", "what"), rows), "", self.sentence()]) if rows else self.sentence()


def described(findings: tuple[Finding, ...]) -> str:
    """Return the differences of one host as lines."""
    return "\n".join(f"{finding.place}: {finding.says}" for finding in findings)


def drift(hosts: Iterable[str], plan_of: Callable[[str], t.Any], facts_of: Callable[[str], t.Any], root: str = "/") -> Drift:
    """Compare hosts with their plans, one at a time; `facts_of` gives None for a host that nothing is known of.

    Both may raise InputError; it concerns this host only, as do data that are no plan or no facts.
    """
    found: dict[str, tuple[Finding, ...]] = {}
    left_out = []
    unread = {}
    for host in hosts:
        try:
            plan, facts = plan_of(host), facts_of(host)
            if facts is None:
                left_out.append(host)
            else:
                found[host] = tuple(_compared(host, plan, facts, root))
        except InputError as error:
            unread[host] = error
    return Drift(found, tuple(left_out), unread)


def _compared(host: str, plan: t.Any, facts: t.Any, root: str) -> list[Finding]:
    try:
        return compare(plan, facts, root)
    except OTHER_FORM:
        return _read_strictly(host, plan, facts, root)


def _read_strictly(host: str, plan: Plain, facts: t.Any, root: str) -> list[Finding]:
    """Compare what could not be compared as it is: people may write sizes as text. Else say what is wrong, and where."""
    mistakes = Mistakes()
    PLAN.read_nested(plan, f"plans.{host}", mistakes)
    try:
        facts = parse_hardware(facts, f"hardware.{host}").facts
    except InputError as error:
        mistakes.extend(error.mistakes)
    mistakes.check()
    try:
        return compare(plan, facts, root)
    except OTHER_FORM as error:
        says = f"cannot be compared with the facts of the host: one of the two is not what disk_plan or disk_facts write ({error})"
        raise InputError([Mistake(f"plans.{host}", says)]) from None
