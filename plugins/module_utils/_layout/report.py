# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A run's report -> the result of the module: what was done, what was not, and the diff. Pure."""

from __future__ import annotations

import re
import typing as t

from .._steps.step import Step
from .apply import Report, Request
from .disks import find_disks
from .identified import identities
from .losses import plain_losses

Plain = dict[str, t.Any]


_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def as_result(report: Report, request: Request, check_mode: bool, shows_diff: bool) -> Plain:
    """Return what a run returns that did all there was to do, or in check mode would; `diff` only where it is shown."""
    steps = report.pending if check_mode else report.done
    present = report.now or report.before
    found, _refusals = find_disks(request.layout, present, request.wipe)
    return {
        "changed": bool(steps),
        "steps": [_plain(step, not check_mode) for step in steps],
        **({"diff": _diff(report, request, steps)} if shows_diff else {}),
        **plain_losses(report.losses),
        **identities(request.layout, present, found),
    }


def as_failure(report: Report) -> Plain:
    """Return what a run returns that did not come to its end; the text says all that the data say."""
    left = (*([report.failed] if report.failed is not None else []), *report.pending)
    parts = [str(report.problem)]
    if report.done or report.failed is not None:
        parts += [_listed("Done before", report.done), _listed("Not begun", report.pending)]
        half = "What failed may be half done. " if report.failed is not None else ""
        parts.append(f"{half}The same task run again goes on from here.")
    return {
        "msg": "\n".join(parts),
        "changed": bool(report.done) or report.failed is not None,
        **plain_losses(report.losses),
        "steps": [*(_plain(step, True) for step in report.done), *(_plain(step, False) for step in left)],
        **({"failed_step": _plain(report.failed, False)} if report.failed is not None else {}),
    }


def _listed(title: str, steps: tuple[Step, ...]) -> str:
    return "\n- ".join([f"{title}:", *(step.says for step in steps)]) if steps else f"{title}: nothing"


def _plain(step: Step, done: bool) -> Plain:
    kind = _CAPITAL.sub("_", type(step).__name__).lower()
    return {"kind": kind, "device": _device(step), "says": step.says, "done": done}


def _device(step: Step) -> str:
    values = vars(step)
    if "group" in values and "name" in values:
        return f"{values['group']}/{values['name']}"
    what = next(values[name] for name in ("device", "disk", "group", "name", "devices") if name in values)
    return ", ".join(what) if isinstance(what, tuple) else str(what)


def _diff(report: Report, request: Request, steps: tuple[Step, ...]) -> list[Plain]:
    """Return the diff: disks before and after, and the steps from the one to the other."""
    # Hosts get sources, and compile in each run what they import: this only where it is used.
    from .preview import after, picture_of, render

    found, _refusals = find_disks(request.layout, report.before, request.wipe)
    names = [disk.device.name for disk in found]
    if request.replacing:
        from .replacing import old_disks

        names += sorted(old_disks(report.before, request.replacing) - set(names))
    before = picture_of(report.before, names)
    there = render(before)
    will_be = render(after(before, steps))
    listed = "".join(f"{step.says}\n" for step in steps)
    return [
        {"before_header": "disks", "after_header": "disks", "before": there, "after": will_be},
        *([{"prepared": f"steps:\n{listed}"}] if steps else []),
    ]
