# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fleet's facts against its plans: the state of each host, counts, a table, and what the page of the fleet shows of those that differ."""

from __future__ import annotations

import typing as t
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ...common.errors import InputError, Mistake
from ...common.table import table
from .compare import ORDER, Finding, Plain, State, compare


@dataclass(frozen=True)
class Drift:
    """What has become of a fleet's plans, by host."""

    findings: Mapping[str, tuple[Finding, ...]]

    def state(self, host: str) -> State:
        """Return the worst that was found on a host."""
        return max((finding.state for finding in self.findings[host]), key=ORDER.index, default=State.ALIKE)

    def to_plain(self) -> dict[str, t.Any]:
        """Return `{hosts, counts, summary, failures}`; `failures` are those that differ, as the page of a fleet takes them."""
        states = {host: self.state(host) for host in self.findings}
        counts = Counter(states.values())
        hosts = {
            host: {
                "state": str(states[host]),
                "findings": [{"place": place, "state": str(state), "says": says} for place, state, says in findings],
            }
            for host, findings in self.findings.items()
        }
        return {
            "hosts": hosts,
            "counts": {str(state): counts[state] for state in ORDER},
            "summary": self._summary(states),
            "failures": {host: {"msg": told(self.findings[host])} for host, state in states.items() if state is not State.ALIKE},
        }

    def _summary(self, states: Mapping[str, State]) -> str:
        """Return a table of all that is not as planned; hosts that are alike are counted only."""
        rows = [
            (host if not number else "", str(finding.state), finding.place, finding.says)
            for host, findings in self.findings.items()
            for number, finding in enumerate(findings)
        ]
        alike = sum(state is State.ALIKE for state in states.values())
        last = f"{alike} of {len(states)} hosts are as planned"
        return "\n".join([table(("host", "state", "where", "what"), rows), "", last]) if rows else last


def told(findings: tuple[Finding, ...]) -> str:
    """Return the differences of one host as lines."""
    return "\n".join(f"{finding.place}: {finding.says}" for finding in findings)


def drift(plans: Mapping[str, Plain], facts: Mapping[str, Plain], root: str = "/") -> Drift:
    """Compare hosts with their plans; raises InputError naming every host whose data are no plan or no facts."""
    found: dict[str, tuple[Finding, ...]] = {}
    mistakes = []
    for host, plan in plans.items():
        try:
            found[host] = tuple(compare(plan, facts[host], root))
        except (KeyError, TypeError, AttributeError) as error:
            mistakes.append(Mistake(f"plans.{host}", f"cannot be compared with the facts of the host: {type(error).__name__}: {error}"))
    if mistakes:
        raise InputError(mistakes)
    return Drift(found)
