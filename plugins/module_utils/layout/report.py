# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A run's report -> the result of the module: what was done, what was not, the diff, and by which UUIDs things are found. Pure."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Mapping
from dataclasses import dataclass

from ..facts.tree import Device
from ..schema import identities as derived
from ..schema.model import DesiredArray, DesiredContainer, DesiredFilesystem, DesiredVolume, Layout
from ..steps.kinds import Step
from .apply import Report, Request
from .contents import Action, Stack, judge_stacks
from .disks import FoundDisk, find_disks
from .partitions import PartitionMatch, match_disk
from .present import Present
from .preview import after, picture_of, render

Plain = dict[str, t.Any]


@dataclass(frozen=True)
class _Known:
    """The layout, the state, and what there is of the layout's partitions and arrays that stays."""

    layout: Layout
    present: Present
    matches: Mapping[str, PartitionMatch]
    stacks: Mapping[str, Stack]


def identities(layout: Layout, present: Present, found: tuple[FoundDisk, ...]) -> dict[str, list[Plain]]:
    """Return `{arrays, containers, filesystems}`, each thing with `device` as the schema calls it, its `uuid`, and its `node` of this boot.

    What is not there yet has the UUID that it will have, and no node. File systems have their `mountpoints`.
    """
    matches = {match.desired.device: match for disk in found for match in match_disk(disk, present.tree)}
    stacks = {stack.device: stack for stack in judge_stacks(layout, present, matches) if stack.action is not Action.BUILD}
    known = _Known(layout, present, matches, stacks)
    return {
        "arrays": [_array(known, array) for array in layout.arrays],
        "containers": [_container(known, container) for container in layout.containers],
        "filesystems": [_filesystem(known, filesystem) for filesystem in layout.filesystems],
    }


def _array(known: _Known, array: DesiredArray) -> Plain:
    device = _below(known, array.device)
    uuid = device.uuid if device is not None and device.uuid else known.layout.identity(array.device)
    return {"device": array.device, "uuid": uuid, "node": _node(device)}


def _container(known: _Known, container: DesiredContainer) -> Plain:
    below = _below(known, container.below)
    there = below.filesystem if below is not None else None
    uuid = there.uuid if there is not None and there.type == "crypto_LUKS" else None
    derived_uuid = derived.container_uuid(known.layout.identity(container.below))
    return {"name": container.name, "device": container.below, "uuid": uuid or derived_uuid, "node": _node(below)}


def _filesystem(known: _Known, filesystem: DesiredFilesystem) -> Plain:
    device = _top(known, filesystem.device)
    there = device.filesystem if device is not None else None
    uuid = there.uuid if there is not None and there.type == filesystem.type else None
    container = _container_at(known, filesystem.device)
    below = known.layout.identity(container.below if container is not None else filesystem.device)
    derived_uuid = filesystem.uuid or derived.filesystem_uuid(filesystem.type, below)
    mountpoints = list(device.mountpoints) if device is not None and uuid else []
    return {
        "device": filesystem.device,
        "type": filesystem.type,
        "uuid": uuid or derived_uuid,
        "node": _node(device),
        "mountpoints": mountpoints,
    }


def _node(device: t.Optional[Device]) -> t.Optional[str]:
    return device.dev if device is not None else None


def _below(known: _Known, device: str) -> t.Optional[Device]:
    """Return the present device of a partition, an array or a volume; None when there is none that stays."""
    thing = known.layout.thing(device)
    if isinstance(thing, DesiredVolume):
        return _volume(known, thing)
    stack = known.stacks.get(device)
    if stack is not None and stack.array is None:
        return stack.matches[0].device
    members = {match.device.name for match in stack.matches if match.device is not None} if stack is not None else set()
    children = (child for name in members for child in known.present.tree.children(name) if child.running)
    return next((child for child in children if child.kind.startswith("raid")), None)


def _volume(known: _Known, desired: DesiredVolume) -> t.Optional[Device]:
    disks = {match.disk.device.name for match in known.matches.values()}
    descendants = (device for name in disks for device in known.present.tree.descendants(name))
    return next((device for device in descendants if (device.group, device.title) == (desired.group, desired.name)), None)


def _top(known: _Known, device: str) -> t.Optional[Device]:
    """Return the present device on which a file system is."""
    container = _container_at(known, device)
    if container is None:
        return _below(known, device)
    below = _below(known, container.below)
    children = known.present.tree.children(below.name) if below is not None else ()
    return next((child for child in children if child.kind == "crypt" and child.running), None)


def _container_at(known: _Known, device: str) -> t.Optional[DesiredContainer]:
    return next((container for container in known.layout.containers if container.device == device), None)


_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def as_result(report: Report, request: Request, check_mode: bool) -> Plain:
    """Return what a run returns that did all there was to do, or in check mode would."""
    steps = report.pending if check_mode else report.done
    present = report.now or report.before
    found, _refusals = find_disks(request.layout, present, request.wipe)
    return {
        "changed": bool(steps),
        "steps": [_plain(step, not check_mode) for step in steps],
        "diff": _diff(report, request, steps),
        **identities(request.layout, present, found),
    }


def as_failure(report: Report) -> Plain:
    """Return what a run returns that did not come to its end; the text says all that the data say."""
    left = (*([report.failed] if report.failed is not None else []), *report.pending)
    parts = [str(report.problem)]
    if report.done or report.failed is not None:
        parts += [_listed("Done before", report.done), _listed("Not begun", report.pending)]
        parts.append("What failed may be half done. The same task run again goes on from here.")
    return {
        "msg": "\n".join(parts),
        "changed": bool(report.done) or report.failed is not None,
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
    found, _refusals = find_disks(request.layout, report.before, request.wipe)
    before = picture_of(report.before, [disk.device.name for disk in found])
    there = render(before)
    will_be = render(after(before, steps))
    listed = "".join(f"{step.says}\n" for step in steps)
    return [
        {"before_header": "disks", "after_header": "disks", "before": there, "after": will_be},
        *([{"prepared": f"steps:\n{listed}"}] if steps else []),
    ]
