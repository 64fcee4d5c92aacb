# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run: read the host, plan, carry out, verify, until nothing is left to do; and its report, however it ended.

Whatever happens, the report says which steps are done, which one failed and why, and which were not begun. A later run completes it.
"""

from __future__ import annotations

import contextlib
import signal
import typing as t
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .._facts.present import Present
from .._facts.select import ALL_DISKS, Selection
from .._schema.model import Layout
from .._steps import requirements
from .._steps.key import NO_KEY
from .._steps.machine import Machine, StepFailed
from .._steps.needs import Tool
from .._steps.step import Step
from .disks import find_disks
from .identified import headers
from .losses import DiskLoss, paragraph, together, why_unconfirmed
from .plan import LayoutPlan, plan_steps
from .protected import Protection
from .read_present import read_present

_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

_PARTIAL = (
    "closed or stopped devices must be opened, and torn or unknown tables rewritten, before they can be examined; "
    "only then are the next steps known"
)

_MOST_OPENINGS = 8
"""How often a stack can turn out to have more to open: an array on LUKS on an array is far fewer."""


@dataclass(frozen=True)
class Request:
    """What is asked for; `wipe` are ids of disks, `fingerprint` is that of the hardware of the plan (None: not compared).

    `confirm` is the digest of what may be destroyed (None: not compared). `protections` are the disks that nothing is written to,
    `replacing` those that are emptied, with those that take their contents; `selection` names the disks behind `fingerprint`.
    """

    layout: Layout
    wipe: tuple[str, ...] = ()
    keep_unlisted: bool = True
    fingerprint: t.Optional[str] = None
    confirm: t.Optional[str] = None
    protections: tuple[Protection, ...] = ()
    replacing: Mapping[str, str] = field(default_factory=dict)
    selection: Selection = ALL_DISKS


@dataclass(frozen=True)
class Report:
    """What came of a run: `problem` is None when all is as it was asked for; `failed` is the step that did not come to its end.

    `before` is the state that was found, `now` the last one that was seen (None: there was no other look).
    """

    before: Present
    now: t.Optional[Present] = None
    done: tuple[Step, ...] = ()
    failed: t.Optional[Step] = None
    pending: tuple[Step, ...] = ()
    problem: t.Optional[str] = None
    notes: tuple[str, ...] = ()
    losses: tuple[DiskLoss, ...] = ()


def foresee(request: Request, machine: Machine) -> Report:
    """Return the report of a run that does nothing: its steps are all pending. What the host lacks for them is only noted."""
    present, plan = _plan(request, machine)
    report = Report(present, pending=(*plan.steps, *plan.later), notes=plan.notes, losses=plan.losses)
    refusals = _refusals(request, machine, plan)
    if refusals:
        return replace(report, problem=_listed("The layout cannot be made", refusals))
    partial = (_PARTIAL,) if plan.again and not plan.later else ()
    return replace(report, notes=(*plan.notes, *_missing(request, machine, present, report.pending), *partial))


def _say_nothing(_text: str) -> None:
    """Announce to nobody."""


def apply(
    request: Request,
    machine: Machine,
    stop_asked: Callable[[], bool],
    announce: Callable[[str], None] = _say_nothing,
    protections: t.Optional[Callable[[], tuple[Protection, ...]]] = None,
) -> Report:
    """Do all there is to do, one round after the other: what only opens things is followed by another look.

    After the round that changes things a last look has to find nothing left to do. `stop_asked` is asked before every step, and
    `announce` is called with what the steps destroy before the first step. `protections` reads the list of protected disks again, before
    each round but the first, and raises StepFailed where that cannot be read; None: those of the request hold to the end.
    """
    present, plan = _plan(request, machine)
    report = Report(present, notes=plan.notes)
    for _round in range(_MOST_OPENINGS):
        report = _carry_out_all(report, plan, request, machine, stop_asked, announce)
        if report.problem is not None or not plan.steps:
            return report
        opened = plan.again
        if opened and protections is not None:
            try:
                request = replace(request, protections=protections())
            except StepFailed as error:
                return replace(report, problem=str(error))
        present, plan = _plan(request, machine)
        report = replace(report, now=present, notes=tuple(dict.fromkeys((*report.notes, *plan.notes))))
        if not opened:
            return _checked(report, plan)
    return replace(
        report, pending=plan.steps, problem=f"Gave up after {_MOST_OPENINGS} rounds of opening devices; everything is left as it is now"
    )


def _plan(request: Request, machine: Machine) -> tuple[Present, LayoutPlan]:
    present = read_present(machine, request.layout, *([tuple(request.replacing)] if request.replacing else []))
    options = (request.wipe, request.keep_unlisted, request.fingerprint, request.protections, request.selection)
    if not request.replacing:
        return present, plan_steps(request.layout, present, *options)
    # Hosts get sources, and compile in each run what they import: this only where it is used.
    from .emptied import plan_replacing

    return present, plan_replacing(request.layout, present, request.replacing, *options)


def _carry_out_all(
    report: Report,
    plan: LayoutPlan,
    request: Request,
    machine: Machine,
    stop_asked: Callable[[], bool],
    announce: Callable[[str], None],
) -> Report:
    """Return the report with the steps of a plan carried out, as far as that goes."""
    refused = _refused(request, machine, report, plan)
    if refused is not None:
        return replace(report, pending=plan.steps, problem=refused, losses=plan.losses or report.losses)
    losses = together(report.losses, plan.losses)
    if losses != report.losses:
        announce(paragraph(plan.losses))
    report = replace(report, losses=losses)
    requirements.load_abilities(machine, plan.steps)
    found, _refusals = find_disks(request.layout, report.now or report.before, request.wipe)
    disks = [disk.node for disk in found]
    for position, step in enumerate(plan.steps):
        if stop_asked():
            return replace(report, pending=plan.steps[position:], problem="Stopped by a signal before the next step")
        try:
            if step.flushes_before:
                machine.flush(disks)
            step.run(machine)
            if _is_last_of_its_kind(plan.steps, position):
                machine.settle()
            if step is plan.steps[-1]:
                machine.flush(disks)
        except StepFailed as error:
            return replace(report, failed=step, pending=plan.steps[position + 1 :], problem=f"Could not {step.says}: {error}")
        report = replace(report, done=(*report.done, step))
    return report


def _is_last_of_its_kind(steps: tuple[Step, ...], position: int) -> bool:
    """Return whether another kind of step follows, or none: that has to find what udev made of all steps before it."""
    kinds = [type(step) for step in steps[position : position + 2]]
    return len(kinds) == 1 or kinds[0] != kinds[1]


def _refused(request: Request, machine: Machine, report: Report, plan: LayoutPlan) -> t.Optional[str]:
    refusals = _refusals(request, machine, plan, report.losses)
    if refusals:
        return _listed(f"The layout cannot be made, and {_changed_before(report)}", refusals)
    lacking = _missing(request, machine, report.now or report.before, plan.steps)
    return _listed(f"The host lacks what the layout needs, and {_changed_before(report)}", lacking) if lacking else None


def _changed_before(report: Report) -> str:
    return "nothing was done but what is listed below" if report.done else "nothing on the disks was changed"


def _refusals(request: Request, machine: Machine, plan: LayoutPlan, known: Sequence[DiskLoss] = ()) -> tuple[str, ...]:
    """Return all refusals, first the missing tools: the others may follow from facts that these tools would have read."""
    found = (*plan.refusals, *_unconfirmed(request, plan, known))
    return (*requirements.missing_tools(machine, _tools_for(request.layout)), *found) if found else ()


def _tools_for(layout: Layout) -> tuple[Tool, ...]:
    """Return the tools that read what a layout has."""
    # Hosts get sources, and compile in each run what they import: this only where it is used.
    from .._steps.cache import CACHE_CHECK
    from .._steps.luks import CRYPTSETUP
    from .._steps.lvm import LVM
    from .._steps.md import MDADM
    from .._steps.thin import THIN_CHECK
    from .._steps.zfs import ZPOOL

    needed: tuple[tuple[Tool, Sequence[t.Any]], ...] = (
        (LVM, layout.groups),
        (THIN_CHECK, layout.pools),
        (CACHE_CHECK, layout.caches),
        (CRYPTSETUP, layout.containers),
        (MDADM, layout.arrays),
        (ZPOOL, layout.zpools),
    )
    return tuple(tool for tool, things in needed if things)


def _unconfirmed(request: Request, plan: LayoutPlan, known: Sequence[DiskLoss]) -> Iterator[str]:
    """Give a refusal where something else would be destroyed than what was confirmed. What destroys nothing needs no confirmation.

    `known` are the losses of earlier rounds of the run, which were confirmed: what is left of them is no other loss.
    """
    refusal = why_unconfirmed(request.confirm, plan.losses)
    if refusal is not None and together(known, plan.losses) != tuple(known):
        yield refusal


def _missing(request: Request, machine: Machine, present: Present, steps: tuple[Step, ...]) -> tuple[str, ...]:
    lacking = requirements.missing(machine, steps)
    if not steps and not request.layout.containers:
        return lacking
    from .._steps.luks import lacks_key

    if any(lacks_key(step, machine.luks_key) for step in steps):
        return (*lacking, "LUKS containers must be made or opened: give luks_key or luks_key_file")
    return (*lacking, *_wrong_keys(request, machine, present))


def _wrong_keys(request: Request, machine: Machine, present: Present) -> Iterator[str]:
    """Give the containers whose headers the given keys do not open: open or not, they are opened with them at the next start.

    Where a schema says what is to open a container, that may be another key than those that are given.
    """
    from .._steps.luks import opens

    found, _refusals = find_disks(request.layout, present, request.wipe)
    otherwise = {container.name for container in request.layout.containers if container.unlock}
    for name, node in headers(request.layout, present, found).items():
        key = machine.luks_key.of(name) if name not in otherwise else NO_KEY
        try:
            if key.given and not opens(node, machine, key):
                yield f"the given key of the LUKS container {name} does not open {node}; {_remedy(present, node)}"
        except StepFailed as error:
            yield f"cannot find out whether the given key of the LUKS container {name} opens {node}: {error}"


def _remedy(present: Present, node: str) -> str:
    device = present.tree.by_node(node)
    unfinished = device is not None and device.name in present.sealed
    return "give the key it was made with" + (", or name its disk in wipe if what is in it may be destroyed" if unfinished else "")


def _checked(report: Report, plan: LayoutPlan) -> Report:
    """Return the report of a run after which another look was taken."""
    if plan.refusals:
        return replace(report, problem=_listed("All steps are done, but the host is not as requested", plan.refusals))
    if plan.steps:
        left = tuple(step.says for step in plan.steps)
        return replace(report, pending=plan.steps, problem=_listed("All steps are done, but a second look finds more to do", left))
    return report


def _listed(title: str, lines: tuple[str, ...]) -> str:
    return "\n- ".join([f"{title}:", *lines])


@contextlib.contextmanager
def stop_by_signal() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether a signal asked to stop: a running tool ends first, for half a file system is worth nothing."""
    asked: list[int] = []
    before = {number: signal.signal(number, lambda number, _frame: asked.append(number)) for number in _SIGNALS}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
