# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run: read the host, plan, close what is on the disks, erase all of them at once, look again; and the result, however it ended."""

from __future__ import annotations

import concurrent.futures
import typing as t
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .._layout.losses import paragraph, plain_losses, why_unconfirmed
from .._layout.protected import Protection
from .._layout.read_present import read_present
from .._schema.model import DesiredDisk, Layout
from .._steps import requirements
from .._steps.machine import StepFailed
from .._steps.step import Step
from .carry_out import Workplace, erase, finished
from .plan import ErasePlan, Target, named_disks, plan_erasure
from .record import Record
from .ways import other_namespaces, ways_of

Plain = dict[str, t.Any]


@dataclass(frozen=True)
class Request:
    """What is asked for: `disks` by their ids, the `method`, the disks that nothing is written to, and the digest to be confirmed."""

    disks: tuple[str, ...]
    method: str
    protections: tuple[Protection, ...] = ()
    confirm: t.Optional[str] = None


@dataclass(frozen=True)
class Foreseen:
    """What a run is going to do, and the records of disks that were erased before and have not been written to since."""

    plan: ErasePlan
    records: tuple[Record, ...]
    lacking: tuple[str, ...]


def foresee(request: Request, place: Workplace) -> Foreseen:
    """Read the host and return the plan of the run; raises StepFailed, and Stopped for a signal."""
    named = tuple(DesiredDisk(f"disks[{number}]", name, name, None, ()) for number, name in enumerate(request.disks))
    present = read_present(place.machine, Layout(disks=named))
    found, _refusals = named_disks(request.disks, present, request.protections)
    disks = [disk.disk for disk in found]
    ways = {disk.device.name: ways_of(place.machine, disk) for disk in disks}
    namespaces = {disk.device.name: other_namespaces(place.machine, str(disk.device.dev)) for disk in disks if disk.transport == "nvme"}
    plan = plan_erasure(request.disks, request.method, present, request.protections, ways, namespaces)
    if plan.refusals:
        return Foreseen(plan, (), ())
    records = {}
    for target in plan.targets:
        done = finished(place, target.disk, request.method)
        if done is not None and not present.tree.children(target.disk.device.name):
            records[target.disk.id] = done.record
    left = [target.disk.id for target in plan.targets if target.disk.id not in records]
    if not left:
        return Foreseen(ErasePlan(notes=plan.notes), tuple(records.values()), ())
    if records:
        plan = plan_erasure(left, request.method, present, request.protections, ways, namespaces)
    return Foreseen(plan, tuple(records.values()), requirements.missing(place.machine, plan.closing))


def expected(foreseen: Foreseen, request: Request) -> Plain:
    """Return the result of a run that does nothing."""
    refused = _refused(foreseen, request)
    if refused:
        return _result(foreseen, (), (), refused)
    return _result(foreseen, (), (), "") | {"changed": bool(foreseen.plan.targets)}


def run(request: Request, place: Workplace, announce: Callable[[str], None]) -> Plain:
    """Erase, and return the result; every disk is erased as far as it can be, whatever becomes of the others. Raises StepFailed."""
    foreseen = foresee(request, place)
    refused = _refused(foreseen, request)
    if refused or not foreseen.plan.targets:
        return _result(foreseen, (), (), refused)
    announce(f"{paragraph(foreseen.plan.losses)} Erased: {', '.join(target.step.says for target in foreseen.plan.targets)}")
    closed: list[Step] = []
    try:
        for step in foreseen.plan.closing:
            step.run(place.machine)
            closed.append(step)
        for target in foreseen.plan.targets:
            # Have the kernel forget the partitions: a disk is only opened while none is in use, and none must be
            # mounted while it is erased.
            node = target.found.node
            place.machine.change(["kpartx", "-d", node] if target.disk.multipath else ["partx", "--delete", node], accepted=(0, 1))
            place.machine.settle()
    except StepFailed as error:
        return _result(foreseen, closed, (), f"Nothing was erased: {error}")
    with concurrent.futures.ThreadPoolExecutor(len(foreseen.plan.targets)) as pool:
        ends = list(pool.map(lambda target: _erased(place, target), foreseen.plan.targets))
    problems = [end for end in ends if isinstance(end, str)]
    return _result(foreseen, closed, ends, "\n- ".join(["Not all disks are erased:", *problems]) if problems else "")


def _erased(place: Workplace, target: Target) -> t.Union[Record, str]:
    """Return the record of a disk, or why it is not erased."""
    try:
        return erase(place, target)
    except StepFailed as error:
        return f"{target.found.words}: {error}"


def _refused(foreseen: Foreseen, request: Request) -> str:
    plan = foreseen.plan
    reasons = [*plan.refusals, *foreseen.lacking]
    if not reasons and plan.losses:
        refusal = why_unconfirmed(request.confirm, plan.losses)
        reasons += [refusal] if refusal is not None else []
    return "\n- ".join(["Nothing was erased:", *reasons]) if reasons else ""


def _result(foreseen: Foreseen, closed: Sequence[Step], ends: Sequence[t.Union[Record, str]], problem: str) -> Plain:
    plan = foreseen.plan
    steps = [_step(step, "close", done=step in closed) for step in plan.closing]
    finished_disks = {end.disk for end in ends if isinstance(end, Record)}
    steps += [_step(target.step, "erase_disk", done=target.disk.id in finished_disks) for target in plan.targets]
    records = [*foreseen.records, *(end for end in ends if isinstance(end, Record))]
    weak = [record for record in records if not record.verified]
    return {
        "changed": bool(closed or ends),
        "steps": steps,
        **plain_losses(plan.losses),
        "records": [record.plain() for record in records],
        "warnings": [*plan.notes, *(f"{record.disk} is erased, but not verified: {record.checked}" for record in weak)],
        **({"failed": True, "msg": problem} if problem else {}),
    }


def _step(step: t.Any, kind: str, *, done: bool) -> Plain:
    return {"kind": kind, "says": step.says, "done": done}
