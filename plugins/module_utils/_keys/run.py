# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run: look at all containers, refuse with all that is in the way, add keys to all of them, remove keys, and look again.

Where a recovery key is needed, the run has three parts (changes.py), between which the controller writes the key: no slot is filled with a
recovery key, and no other key is removed, before that.
"""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from .._steps.key import Key
from .._steps.machine import Machine, StepFailed
from .._storage.unlock import KEY_FILE, PASSPHRASE, RECOVERY, TANG, TPM2, Method
from .changes import BEGIN, Changes, Confirm, Container, DropUnfinished, Enrol, Present, Request, Step, TakeAway, plan_changes, seen_to_open
from .enrol import confirm, drop_unfinished, enrol, path_below, take_away
from .header import has_header, read_header
from .material import decrypted, slot_opened, tpm_opens

_TOOLS = {TANG: "clevis", TPM2: "systemd-cryptenroll"}
_TPM = "/dev/tpmrm0"


@dataclass(frozen=True)
class Report:
    """What came of a run; `problem` is None when all is as it was asked for. `present` is what was found, `now` what was seen last.

    `recovery_needed` are the containers for which the controller has to create a recovery key before anything is changed, `added` the slots
    that were filled, by container.
    """

    present: Mapping[str, Present]
    now: Mapping[str, Present]
    done: tuple[Step, ...] = ()
    pending: tuple[Step, ...] = ()
    failed: t.Optional[Step] = None
    problem: t.Optional[str] = None
    recovery_needed: tuple[str, ...] = ()
    added: Mapping[str, frozenset[int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def foresee(request: Request, machine: Machine) -> Report:
    """Return the report of a run that changes nothing. A container that is not there yet would be new."""
    present, plans = _look_and_plan(request, machine, may_lack=True)
    needed = tuple(one.name for one, changes in zip(request.containers, plans) if changes.needs_recovery_key)
    return replace(_planned(present, plans), notes=_lacking(plans, machine), recovery_needed=needed)


def apply(request: Request, machine: Machine, stop_asked: Callable[[], bool]) -> Report:
    """Do this part of the run; raises StepFailed only where nothing was changed yet."""
    present, plans = _look_and_plan(request, machine)
    report = _planned(present, [*plans, Changes(problems=_lacking(plans, machine))])
    needed = tuple(one.name for one, changes in zip(request.containers, plans) if changes.needs_recovery_key)
    if request.hand_over.part == BEGIN and needed and report.problem is None:
        return replace(report, recovery_needed=needed)
    work = list(zip(request.containers, plans))
    additions = [(container, changes, step) for container, changes in work for step in changes.additions]
    removals = [(container, changes, step) for container, changes in work for step in changes.removals]
    for container, changes, step in (*additions, *removals):
        if report.problem is None:
            report = _carried_out(report, step, container, changes, request, machine, stop_asked)
    for container, changes in work:
        if changes.steps and report.problem is None:
            report = _checked(report, container, request, machine)
    return report


def _look_and_plan(request: Request, machine: Machine, may_lack: bool = False) -> tuple[Mapping[str, Present], list[Changes]]:
    """Return what the containers have, by name, and what is to be changed in each, in their order."""
    present = {}
    for one in request.containers:
        present[one.name] = _with_tang(one, _look(one, request, machine, may_lack), request, machine)
    plans = []
    for one in request.containers:
        plan = plan_changes(one, present[one.name], request)
        plans.append(replace(plan, problems=(*_bad_files(one, request, machine), *_forbidden(one, request, plan), *plan.problems)))
    return present, plans


def _forbidden(container: Container, request: Request, plan: Changes) -> t.Iterator[str]:
    """Give a refusal where the header of a container on a protected disk would be changed."""
    if container.name in request.protected and (plan.steps or plan.needs_recovery_key):
        by = request.protected[container.name]
        yield f"{container.name} ({container.device}) is on a disk that {by} protects, so its keys stay as they are"


def _bad_files(container: Container, request: Request, machine: Machine) -> t.Iterator[str]:
    """Give the key files of a container that are there and cannot be used."""
    for path in (path_below(request.root, method.path) for method in container.methods if method.kind == KEY_FILE):
        problem = machine.why_no_key_file(path) if machine.resolve(path) is not None else None
        if problem is not None:
            yield f"{path}, a key file of {container.name}, {problem}"


def _lacking(plans: t.Sequence[Changes], machine: Machine) -> tuple[str, ...]:
    """Return what the host lacks for the changes."""
    kinds = {step.method.kind for plan in plans for step in plan.steps if isinstance(step, Enrol)}
    lacking = [f"there is no {tool} on this host" for kind, tool in _TOOLS.items() if kind in kinds and not machine.has(tool)]
    if TPM2 in kinds and machine.resolve(_TPM) is None:
        lacking.append(f"there is no {_TPM}: this machine has no TPM 2, or its firmware has not switched it on")
    return tuple(lacking)


def _planned(present: Mapping[str, Present], plans: t.Sequence[Changes]) -> Report:
    problems = [problem for plan in plans for problem in plan.problems]
    steps = (*(step for plan in plans for step in plan.additions), *(step for plan in plans for step in plan.removals))
    says = "\n- ".join(["The keys cannot be changed, and nothing was changed:", *problems]) if problems else None
    return Report(present, present, pending=steps, problem=says)


def _look(container: Container, request: Request, machine: Machine, may_lack: bool = False) -> Present:
    """Return what the header of a container has, and which of the keys that are given or wanted open it."""
    if may_lack and not has_header(machine, container.device):
        return Present()
    header = read_header(machine, container.device)
    opened: dict[Method, int] = {}
    present = Present(header, opened)
    for method, key in _tried(container, request, machine):
        if method is None and present.unlocking is not None:
            continue
        slot = slot_opened(machine, container.device, key)
        if slot is not None and method is not None:
            opened[method] = slot
        if slot is None or present.unlocking is not None:
            continue
        # A slot of a recovery key without its token is a leftover that goes.
        if method is None or method.kind != RECOVERY or header.method_of(slot) == RECOVERY:
            present = replace(present, unlocking=key, unlocking_slot=slot)
    return present


def _with_tang(container: Container, present: Present, request: Request, machine: Machine) -> Present:
    """Return a container for which Tang gives a key, where keys are to be changed and none that was given opens it."""
    if present.header is None or present.unlocking is not None or not plan_changes(container, present, request).problems:
        return present
    for token in present.header.kind(TANG):
        try:
            key = Key(decrypted(machine, token.data["jwe"]))
            slot = slot_opened(machine, container.device, key)
        except StepFailed:
            continue
        if slot is not None:
            return replace(present, unlocking=key, unlocking_slot=slot)
    return present


def _proven(container: Container, changes: Changes, request: Request, machine: Machine) -> bool:
    """Return whether the TPM or Tang opens a slot that stays, by a token of the wish."""
    header = read_header(machine, container.device)
    for token in header.tokens:
        if not changes.kept & set(token.slots):
            continue
        if token.method == TPM2 and tpm_opens(machine, container.device, token.number, request.pin):
            return True
        if token.method == TANG:
            try:
                return slot_opened(machine, container.device, Key(decrypted(machine, token.data["jwe"]))) in changes.kept
            except StepFailed:
                continue
    return False


def _tried(container: Container, request: Request, machine: Machine) -> t.Iterator[tuple[t.Optional[Method], Key]]:
    """Give the keys to try: first those that are wanted as they are, with their methods, then others, until one opens.

    The recovery keys that the controller holds come last, since they are used only where no other key opens the container.
    """
    given = request.key.of(container.name)
    for method in container.methods:
        path = path_below(request.root, method.path)
        if method.kind == PASSPHRASE and request.key.passphrase:
            yield method, Key(request.key.passphrase)
        elif method.kind == KEY_FILE and machine.resolve(path) is not None and machine.why_no_key_file(path) is None:
            yield method, Key(file=path)
    earlier = Key(request.hand_over.earlier_keys.get(container.name, "").encode())
    for key in (given, request.key, request.old_key, earlier):
        if key.given:
            yield None, replace(key, files={})
    for method in container.methods:
        if method.kind == RECOVERY and container.name in request.hand_over.recovery_keys:
            yield method, Key(request.hand_over.recovery_keys[container.name].encode())


def _carried_out(
    report: Report,
    step: Step,
    container: Container,
    changes: Changes,
    request: Request,
    machine: Machine,
    stop_asked: Callable[[], bool],
) -> Report:
    """Return the report with one step more done, or with what was in its way."""
    if stop_asked():
        return replace(report, problem="Stopped by a signal before the next step")
    pending = tuple(other for other in report.pending if other is not step)
    present = report.now[container.name]
    try:
        slot = _carry_out(step, container, present, changes, request, machine)
    except StepFailed as error:
        return replace(report, pending=pending, failed=step, problem=f"Could not {step.says}: {error}")
    report = replace(report, pending=pending, done=(*report.done, step))
    if slot is None or not isinstance(step, Enrol):
        return report
    now = replace(present, opened={**present.opened, step.method: slot})
    added = {**report.added, container.name: report.added.get(container.name, frozenset()) | {slot}}
    return replace(report, now={**report.now, container.name: now}, added=added)


def _carry_out(step: Step, container: Container, present: Present, changes: Changes, request: Request, machine: Machine) -> t.Optional[int]:
    """Carry out one step, and return the slot that it has filled."""
    if isinstance(step, DropUnfinished):
        drop_unfinished(step, machine)
    elif isinstance(step, Confirm):
        confirm(step, machine)
    elif isinstance(step, Enrol):
        if present.unlocking is None:
            raise StepFailed("none of the given keys opens it")
        return enrol(step, machine, present.unlocking, request)
    elif isinstance(step, TakeAway):
        if not seen_to_open(changes, present, request) and not _proven(container, changes, request, machine):
            raise StepFailed("nothing was removed, because nothing that stays was seen to open the container; give a key that stays")
        take_away(step, machine)
    return None


def _checked(report: Report, container: Container, request: Request, machine: Machine) -> Report:
    """Return the report after another look at a container: what was renewed is not renewed again."""
    try:
        now = _look(container, request, machine)
    except StepFailed as error:
        return replace(report, problem=f"All steps are done, but the header of {container.name} cannot be read: {error}")
    left = plan_changes(container, now, replace(request, renew=()))
    report = replace(report, now={**report.now, container.name: now})
    if not left.steps and not left.problems:
        return report
    says = "\n- ".join(
        [f"The steps are done, but a second look at {container.name} finds more to do:", *(step.says for step in left.steps)]
    )
    return replace(report, problem="\n- ".join([says, *left.problems]))
