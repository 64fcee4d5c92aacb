# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much projects may have together: checked by the transaction that claims, so that no storm of claims goes beyond it.

A project with a quota has a row, whose generation each claim for it raises before anything else: from then on the transaction is the only
one in which the project gets more, and adds up what the project has. Claims that begin before a quota is set do not know it.
"""

from __future__ import annotations

import typing as t
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ....module_utils._data.errors import NoSolution
from ..._common.libraries import sa
from .clock import read_now
from .read import run_batches
from .retry import LostRace
from .statements import Statement, among, select_rows
from .tables import projects, quotas

Limits = Mapping[str, int]
"""The most that a project may have, by class."""

_GUARD = Statement(sa.update(projects).where(projects.c.name == sa.bindparam("project")).values(generation=projects.c.generation + 1))
_USED = (
    "SELECT a.resource_class, SUM(a.used) FROM consumers c JOIN allocations a ON a.consumer_id = c.id "
    "WHERE c.project = ? AND (c.expires_at IS NULL OR c.expires_at > {now}) GROUP BY a.resource_class"
)


class QuotaExceeded(NoSolution):
    """Projects would have more than their quotas; `conflict` lists what was asked, what is in use and the limit."""

    def __init__(self, exceeded: Sequence[Mapping[str, t.Any]]) -> None:
        lines = [
            f"project {each['project']}: {each['asked']} more {each['resource_class']} requested, "
            f"{each['used']} of its quota of {each['limit']} in use"
            for each in exceeded
        ]
        super().__init__("; ".join(lines), {"quotas": [dict(each) for each in exceeded]})


@dataclass(frozen=True)
class QuotaChanged:
    """The limits of a project before and after, and how much it has of each class that is limited now."""

    before: Limits
    after: Limits
    used: Mapping[str, int]


def refuse_beyond_quotas(connection: sa.Connection, growth: Mapping[tuple[str, str], int], now: int) -> None:
    """Guard the projects that get more, by (project, class), and raise QuotaExceeded where that is too much."""
    exceeded = []
    for project in sorted({project for (project, _name), more in growth.items() if more > 0}):
        if not _GUARD.change(connection, {"project": project}):
            continue
        limits, used = read_limits(connection, [project])[project], read_used(connection, project, now)
        for name in sorted(limits):
            more = growth.get((project, name), 0)
            if more > 0 and used[name] + more > limits[name]:
                what = {"project": project, "resource_class": name, "asked": more, "used": used[name], "limit": limits[name]}
                exceeded.append(what)
    if exceeded:
        raise QuotaExceeded(exceeded)


def read_limits(connection: sa.Connection, names: Collection[str] | None = None) -> dict[str, dict[str, int]]:
    """Return the limits of all projects, or of some, by project; those without a quota are left out of all."""
    found: dict[str, dict[str, int]] = {name: {} for name in names or ()}
    if names is None:
        rows: Iterable[t.Any] = select_rows(connection, "SELECT project, resource_class, most FROM quotas")
    else:
        wanted = among(sorted(names))
        text = f"SELECT project, resource_class, most FROM quotas WHERE project IN ({wanted.slots})"
        rows = select_rows(connection, text, wanted.values)
    for project, name, most in rows:
        found.setdefault(project, {})[name] = most
    return found


def read_used(connection: sa.Connection, project: str, now: int) -> Counter[str]:
    """Return how much a project has `now` of each class; what has expired does not count."""
    return Counter({name: int(used) for name, used in select_rows(connection, _USED.format(now=now), (project,))})


def put_quota(connection: sa.Connection, project: str, limits: Limits) -> QuotaChanged:
    """Limit what a project may have, of these classes and no others; without limits the quota is removed. Raises LostRace.

    What the project has stays, though it is more.
    """
    is_there = _GUARD.change(connection, {"project": project}) == 1
    before = read_limits(connection, [project])[project]
    if before != limits:
        connection.execute(sa.delete(quotas).where(quotas.c.project == project))
        if not is_there:
            connection.execute(sa.insert(projects).values(name=project, generation=0))
        rows = ({"project": project, "resource_class": name, "most": most} for name, most in sorted(limits.items()))
        run_batches(connection, sa.insert(quotas), rows)
        if not limits and connection.execute(sa.delete(projects).where(projects.c.name == project)).rowcount != 1:
            raise LostRace
    used = read_used(connection, project, read_now(connection))
    return QuotaChanged(before, limits, {name: used[name] for name in sorted(limits)})
