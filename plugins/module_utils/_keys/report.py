# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A run's report -> the result of the module. Pure. No key stands in it."""

from __future__ import annotations

import re
import typing as t

from .._storage.unlock import RECOVERY, Method
from .changes import METHOD_WORDS, Confirm, Container, Enrol, Present, Request, Step, TakeAway, plan_changes
from .header import Header
from .run import Report

Plain = dict[str, t.Any]

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def as_result(report: Report, request: Request, check_mode: bool) -> Plain:
    """Return what a run returns, whether it came to its end or not."""
    left = (*([report.failed] if report.failed is not None else []), *report.pending)
    changes = bool(report.done or report.failed) or (check_mode and bool(left))
    before = "".join(_picture(one, report.present[one.name]) for one in request.containers)
    after = _foreseen(report, request) if check_mode else "".join(_picture(one, report.now[one.name]) for one in request.containers)
    return {
        "changed": changes,
        "steps": [*(_plain(step, True) for step in report.done), *(_plain(step, False) for step in left)],
        "containers": [_container(one, report.now[one.name], request) for one in request.containers],
        "recovery_needed": list(report.recovery_needed),
        "recovery_slots": dict(_recovery_slots(report, request)),
        "added": {name: sorted(slots) for name, slots in report.added.items()},
        "diff": {"before_header": "keys", "after_header": "keys", "before": before, "after": after},
    }


def _recovery_slots(report: Report, request: Request) -> t.Iterator[tuple[str, int]]:
    """Give the containers that the controller's recovery keys open, with the slots that are marked as a recovery key's."""
    for container in request.containers:
        present = report.now[container.name]
        for method, slot in present.opened.items():
            if method.kind == RECOVERY and present.header is not None and present.header.method_of(slot) == RECOVERY:
                yield container.name, slot


def _plain(step: Step, done: bool) -> Plain:
    kind = _CAPITAL.sub("_", type(step).__name__).lower()
    values = vars(step)
    return {"kind": kind, "container": values["name"], "device": values["device"], "says": step.says, "done": done}


def _container(container: Container, present: Present, request: Request) -> Plain:
    changes = plan_changes(container, present, request)
    header = present.header or Header(())
    return {
        "name": container.name,
        "device": container.device,
        "slots": [{"slot": slot, "opened_by": header.method_of(slot)} for slot in header.slots],
        "unlisted": [{"slot": slot, "opened_by": header.method_of(slot)} for slot in header.slots if slot not in changes.kept],
    }


def _picture(container: Container, present: Present) -> str:
    if present.header is None:
        return f"{container.name} is not there yet\n"
    return "".join([f"{container.name}\n", *(f"  {line}\n" for line in _lines(present.header, present))])


def _lines(header: Header, present: Present) -> t.Iterator[str]:
    by_slot: dict[int, Method] = {slot: method for method, slot in present.opened.items()}
    for slot in header.slots:
        yield by_slot[slot].words if slot in by_slot else METHOD_WORDS[header.method_of(slot)]


def _foreseen(report: Report, request: Request) -> str:
    return "".join(_after(one, report.present[one.name], report.pending) for one in request.containers)


def _after(container: Container, present: Present, steps: t.Sequence[Step]) -> str:
    mine = [step for step in steps if vars(step)["name"] == container.name]
    gone = {slot for step in mine if isinstance(step, TakeAway) for slot in step.slots}
    gone |= {slot for step in mine if not isinstance(step, (TakeAway, Enrol, Confirm)) for slot in [vars(step)["slot"]] if slot is not None}
    header = present.header or Header(())
    stay = Header(tuple(slot for slot in header.slots if slot not in gone), header.tokens)
    added = [step.method.words for step in mine if isinstance(step, Enrol)]
    return "".join([f"{container.name}\n", *(f"  {line}\n" for line in (*_lines(stay, present), *added))])
