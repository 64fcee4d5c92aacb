# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs of a layout on a simulated host: to the end, or cut off at any moment."""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ansible_collections.bareon.allocator.plugins.module_utils._layout.plan import LayoutPlan, plan_steps
from ansible_collections.bareon.allocator.plugins.module_utils._schema.model import Layout
from ansible_collections.bareon.allocator.plugins.module_utils._storage.derived import condemned_uuid
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import BY_ID, SimulatedHost
from ansible_collections.bareon.allocator.tests.support.host.simulated.steps import carry_out, perform

Plain = dict[str, t.Any]
MOST_ROUNDS = 40


def disks_of(schema: Plain) -> list[str]:
    return [table["name"].rsplit("-", 1)[-1] for table in schema["parteds"]]


def ids(disks: t.Iterable[str]) -> list[str]:
    return [f"{BY_ID}{disk}" for disk in disks]


def state_of(host: SimulatedHost) -> dict[str, t.Any]:
    """The table of every disk, and where something else is written: of a table one copy may be torn with nothing lost."""
    media = host.media
    return {disk: (media.visible_table(disk), frozenset(media.marks.get(disk, {})) - media.tables(disk).keys()) for disk in media.sizes}


def not_begun(host: SimulatedHost, before: dict[str, t.Any], disks: list[str]) -> list[str]:
    """The disks on which nothing was destroyed yet: they have their table of before, and everything is where it was."""
    now = state_of(host)
    return ids(disk for disk in disks if _is_same(before[disk][0], now[disk][0]) and before[disk][1] <= now[disk][1])


def _is_same(before: t.Any, now: t.Any) -> bool:
    """Whether a table is as it was, or tells only that some of its partitions are to be made again."""
    if before is None or now is None or len(before[2]) != len(now[2]):
        return bool(before == now)
    marked = (
        replace(one, uuid=other.uuid) if other.uuid == condemned_uuid(str(one.uuid)) else one for one, other in zip(before[2], now[2])
    )
    return bool((*before[:2], tuple(marked)) == now)


def complete(host: SimulatedHost, layout: Layout, wipe: list[str]) -> int:
    """Run to the end; returns how many steps there were."""
    steps = 0
    for _round in range(MOST_ROUNDS):
        plan = plan_steps(layout, host.present(), wipe)
        assert not plan.refusals, plan.refusals
        if not plan.steps:
            return steps
        for step in plan.steps:
            try:
                carry_out(host, step)
            except (AssertionError, LookupError) as error:
                raise AssertionError(f"{step.says}: {error}\n" + "\n".join(each.says for each in plan.steps)) from error
            steps += 1
    raise AssertionError("there is no end to it")


def import_as_asked(host: SimulatedHost, layout: Layout, wipe: list[str]) -> None:
    """Import ZFS pools where a run asks for that, and for nothing else: at the start a torn table may have hidden a part of them."""
    again = True
    while again:
        plan = plan_steps(layout, host.present(), wipe)
        again = plan.again
        for step in plan.steps if again else ():
            carry_out(host, step)
    if any("import it first (zpool import " in refusal for refusal in plan.refusals):
        host.import_zpools()


def reduce_as_asked(host: SimulatedHost, layout: Layout, wipe: list[str]) -> None:
    """Give up the physical volumes that a run says are not attached, as vgreduce --removemissing --force does, and nothing else."""
    refusals = " ".join(plan_steps(layout, host.present(), wipe).refusals)
    for group in host.groups(host.blocks()).values():
        there = host.physical(host.blocks())
        lacking = {uuid for uuid, _extents in group.physical} - there.keys()
        if lacking and f"(vgreduce --removemissing {group.name})" in refusals:
            host.reduce_group(group, lacking)


def run_until(host: SimulatedHost, plan: LayoutPlan, moment: int) -> bool:
    """Carry out steps up to a moment; returns whether it came."""
    for step in plan.steps:
        for _moment in perform(host, step):
            if moment == 0:
                return True
            moment -= 1
    return False
