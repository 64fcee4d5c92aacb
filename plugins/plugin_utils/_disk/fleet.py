# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report on the plans of many hosts: a table, each warning once, and why some hosts have no plan."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence

from ...module_utils._data.errors import NoSolution
from ...module_utils._data.units import format_mib
from ...module_utils._data.words import listed
from .._common.table import folded, table
from .planner import Fleet

_MOST_NAMES = 5
_DATA = ("plan", "plans", "profile", "summary")
"""What a result has that a person at a terminal does not read."""


def fleet_summary(plans: Mapping[str, t.Any], left_out: Sequence[str]) -> str:
    """Return a table of hosts, a row each, and the sentence about those that nothing is known of."""
    head = ("host", "disks", "capacity", "used", "left out", "idle", "warnings")
    rows = [(host, *_of_host(plan)) for host, plan in plans.items()]
    return "\n\n".join([*([table(head, rows, right=head[1:])] if rows else ()), *_of_left_out(left_out)])


def _of_host(plan: Mapping[str, t.Any]) -> tuple[str, ...]:
    """Return how many disks a plan has, what they hold, the share that it uses, and how many disks and warnings it leaves."""
    size = sum(disk["size"] for disk in plan["disks"])
    used = size - sum(disk["unallocated"] for disk in plan["disks"])
    idle = sum(len(disks["disk_ids"]) for disks in plan.get("idle_disks", ()))
    return (
        str(len(plan["disks"])),
        format_mib(size),
        f"{100 * used / size:.0f}%" if size else "",
        *(str(count or "") for count in (len(plan.get("left_out_disks", ())), idle, len(plan["warnings"]))),
    )


def for_reading(result: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the result of a task for a person at a terminal: the summary line by line, and no data."""
    shown = {key: value for key, value in result.items() if key not in _DATA}
    return shown | {"summary_lines": folded(str(result["summary"])).splitlines()}


def fleet_warnings(plans: Mapping[str, t.Any], left_out: Sequence[str]) -> list[str]:
    """Return every warning once, with the hosts that it is about."""
    hosts: dict[str, list[str]] = {}
    for host, plan in plans.items():
        for warning in plan["warnings"]:
            hosts.setdefault(warning, []).append(host)
    return [*_of_left_out(left_out), *(f"{listed(about, _MOST_NAMES)}: {warning}" for warning, about in hosts.items())]


def describe_failures(fleet: Fleet) -> str:
    """Return one message about all hosts that have no plan, with the reason of each."""
    total = len(fleet.failures) + len(fleet.plans)
    lines = [f"{len(fleet.failures)} of {total} hosts have no plan: {', '.join(fleet.failures)}"]
    return "\n".join([*lines, *(f"- {host}: {error}" for host, error in fleet.failures.items())])


def failures(fleet: Fleet) -> dict[str, t.Any]:
    """Return {host: {msg, conflict}}; `conflict` is there where the input is sound and the machine too small."""
    found: dict[str, t.Any] = {}
    for host, error in fleet.failures.items():
        found[host] = {"msg": str(error)}
        if isinstance(error, NoSolution):
            found[host]["conflict"] = error.conflict
    return found


def _of_left_out(hosts: Sequence[str]) -> list[str]:
    reason = "without bareon_hardware, so left out of the plans; run bareon.allocator.disk_facts on them when they can be reached"
    return [f"{listed(hosts, _MOST_NAMES)}: {reason}"] if hosts else []
