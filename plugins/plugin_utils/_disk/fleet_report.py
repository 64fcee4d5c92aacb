# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page on the plans of many hosts, each planned by its own profile, from what is known of the hosts to HTML and figures."""

from __future__ import annotations

import enum
import typing as t
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .fleet import failures
from .planner import Objective, Planner
from .render.html import FleetHost
from .schema.eligible import parse_eligible
from .schema.profiles import merge, parse_idle

Plain = Mapping[str, t.Any]


class Source(enum.StrEnum):
    """From where the hardware of a host is known."""

    WRITTEN = "bareon_known_hardware"
    NOW = "disk_facts of this run"
    BEFORE = "facts that may be of an earlier run"


@dataclass(frozen=True)
class Member:
    """A host: its hardware and the name of its profile, or why it has none.

    `unread` is said of a host whose hardware is not known, `failure` of one whose variables cannot be used.
    """

    name: str
    hardware: t.Any = None
    profile: str = ""
    unread: str | None = None
    failure: str | None = None
    source: Source = Source.NOW


def described_sources(members: Sequence[Member]) -> str:
    """Return in words where the hardware of hosts comes from."""
    counts = Counter(member.source for member in members if member.hardware is not None)
    words = [f"{'1 host' if counts[source] == 1 else f'{counts[source]} hosts'} from {source}" for source in Source if counts[source]]
    return ", ".join(words) or "none"


def planned_fleet(
    members: Sequence[Member], profiles: Mapping[str, Plain], overrides: t.Any = None, eligible: t.Any = None
) -> list[FleetHost]:
    """Return all hosts as the page shows them. Those with one profile are planned together: twins are solved once.

    `overrides` are merged into every profile (by name), `eligible` takes the place of what profiles say. Raises InputError for these.
    """
    found: dict[str, FleetHost] = {}
    for name, profile in profiles.items():
        schema = profile["schema"] if overrides is None else merge(profile["schema"], overrides)
        kinds = parse_eligible(profile.get("eligible") if eligible is None else eligible)
        planner = Planner(schema, Objective.FAIR, 0, kinds, parse_idle(profile.get("idle")))
        hardware = {member.name: member.hardware for member in members if member.hardware is not None and member.profile == name}
        fleet = planner.plan_fleet(hardware)
        refused = failures(fleet)
        # What is shown of a profile is what is in its file, as its remarks are about that.
        found |= {
            host: FleetHost(host, fleet.plans.get(host), facts, profile["schema"], profile.get("why"), refused.get(host))
            for host, facts in hardware.items()
        }
    for member in members:
        says = member.failure or member.unread
        if says is not None:
            found[member.name] = FleetHost(member.name, failure={"msg": says})
    return [found[member.name] for member in members]


def report_counts(members: Sequence[Member], fleet: Sequence[FleetHost]) -> dict[str, int]:
    """Return how many hosts the page shows, how many of them have no plan, and how many could not be asked for their hardware."""
    unread = sum(member.unread is not None for member in members)
    return {"hosts": len(fleet), "without_plan": sum(host.plan is None for host in fleet) - unread, "unread": unread}
