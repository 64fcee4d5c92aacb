# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plans of a fleet as one page: problems on top, then hosts of one shape together. It loads nothing and runs nothing.

What is shown is worked out here; how it looks is the template's affair.
"""

from __future__ import annotations

import functools
import pathlib
import re
import typing as t
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..common.units import format_mib
from .palette import Paint, paints
from .picture import DiskPicture, HostPicture, Segment, SpacePicture, picture, runs_of_alike, shown
from .scale import SMALLEST_LEGIBLE

Plain = Mapping[str, t.Any]
TEMPLATES = pathlib.Path(__file__).parent / "templates"


@dataclass(frozen=True)
class FleetHost:
    """What is known of one host: a plan, or the conflict that left it without one.

    `failure` is `{msg, conflict}` as disk_plan fails with it; `schema` and `why` give the reasons of its spaces.
    """

    name: str
    plan: Plain | None = None
    hardware: Plain | None = None
    schema: Sequence[Plain] = ()
    why: Plain | None = None
    failure: Plain | None = None


@dataclass(frozen=True)
class Part:
    """One coloured piece of a bar, `grow` its share of the bar. Without a paint it is room that nothing takes."""

    name: str
    size: str
    grow: float
    paint: Paint | None
    tip: tuple[str, ...]
    leftward: bool = False
    strip: str = ""
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Bar:
    """One disk: its words, its length as percent of the longest disk of the host, how much it must be magnified."""

    name: str
    words: str
    link: str
    percent: float
    magnified: str
    parts: tuple[Part, ...]
    alike: tuple[str, ...] = ()


@dataclass(frozen=True)
class Line:
    """One space in the table below the bars."""

    name: str
    depth: int
    label: str
    size: str
    share: str
    mount: str
    filesystem: str
    reasons: tuple[str, ...]
    paint: Paint | None


@dataclass(frozen=True)
class Group:
    """Hosts of one shape: the first of them is drawn; `disks` are the disks of each by name."""

    anchor: str
    hosts: tuple[str, ...]
    facts: str
    bars: tuple[Bar, ...]
    lines: tuple[Line, ...]
    disks: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Problem:
    """Something to know before the drawings, and the hosts that it is about."""

    says: str
    hosts: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    short: str = ""


def fleet_page(hosts: Iterable[FleetHost], title: str = "Disk layouts") -> str:
    """Return the HTML page of a fleet."""
    members = sorted(hosts, key=lambda host: _natural(host.name))
    planned = [(host, picture(host.plan, host.hardware, host.schema, host.why)) for host in members if host.plan is not None]
    painted = paints(_most_frequent_first(view for _host, view in planned))
    groups = [_group(number, alike, painted) for number, alike in enumerate(_alike(planned), start=1)]
    return _environment().get_template("fleet.html.j2").render(
        title=shown(title),
        groups=groups,
        hosts=len(members),
        disks=sum(len(view.disks) for _host, view in planned),
        capacity=format_mib(sum(view.size for _host, view in planned)),
        conflicts=_conflicts(members),
        warnings=_warnings(planned),
    )


@functools.cache
def _environment() -> Environment:
    return Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _natural(name: str) -> list[tuple[int, t.Any]]:
    """Return a sort key that puts node2 before node10."""
    return [(1, int(word)) if word.isdigit() else (0, word) for word in re.split(r"(\d+)", name)]


def _alike(planned: Iterable[tuple[FleetHost, HostPicture]]) -> list[list[tuple[FleetHost, HostPicture]]]:
    groups: dict[t.Any, list[tuple[FleetHost, HostPicture]]] = {}
    for host, view in planned:
        groups.setdefault(view.shape(), []).append((host, view))
    return list(groups.values())


def _most_frequent_first(views: Iterable[HostPicture]) -> list[str]:
    """Return all space ids of the fleet: those that most hosts have choose their colours first."""
    counts: dict[str, int] = {}
    for view in views:
        for space in view.spaces:
            if not _children(view, space):
                counts[space.id] = counts.get(space.id, 0) + 1
    return sorted(counts, key=lambda space_id: (-counts[space_id], space_id))


def _group(number: int, alike: Sequence[tuple[FleetHost, HostPicture]], painted: Mapping[str, Paint]) -> Group:
    host, view = alike[0]
    largest = max((disk.size for disk in view.disks), default=0)
    return Group(
        anchor=f"group-{number}",
        hosts=tuple(shown(member.name) for member, _view in alike),
        facts=_machine_words(view, host.hardware or {}),
        bars=tuple(_bar(view, run, largest, painted) for run in runs_of_alike(view.disks)),
        lines=tuple(_line(view, space, painted) for space in view.spaces),
        disks=tuple((shown(member.name), tuple(_disk_words(disk) for disk in other.disks)) for member, other in alike),
    )


def _machine_words(view: HostPicture, hardware: Plain) -> str:
    words = ["1 disk" if len(view.disks) == 1 else f"{len(view.disks)} disks", format_mib(view.size)]
    if isinstance(hardware.get("ram"), (int, float)):
        words.append(f"{format_mib(hardware['ram'])} RAM")
    if hardware.get("firmware"):
        words.append(str(hardware["firmware"]).upper())
    return shown(", ".join(words))


def _disk_words(disk: DiskPicture) -> str:
    return shown(disk.id if disk.name in disk.id else f"{disk.name}: {disk.id}")


def _bar(view: HostPicture, run: Sequence[DiskPicture], largest: int, painted: Mapping[str, Paint]) -> Bar:
    disk = run[0]
    percent = 100 * disk.size / largest if largest else 100.0
    times = 100 / percent if percent else 1.0
    size = f"{len(run)} × {format_mib(disk.size)}" if len(run) > 1 else format_mib(disk.size)
    return Bar(
        name=shown(f"{disk.name} … {run[-1].name}" if len(run) > 1 else disk.name),
        words=shown(f"{size} {disk.description}"),
        link=shown(disk.short_id) if len(run) == 1 and disk.short_id != disk.name else "",
        percent=percent,
        magnified="" if percent >= 100 * SMALLEST_LEGIBLE else f"×{times:.0f}",
        parts=_parts(view, disk, painted),
        alike=tuple(_disk_words(other) for other in run[1:]),
    )


def _parts(view: HostPicture, disk: DiskPicture, painted: Mapping[str, Paint]) -> tuple[Part, ...]:
    parts = []
    position = 0
    for segment in disk.segments:
        leftward = position + segment.size / 2 > disk.size / 2
        parts.append(_container(view, disk, segment, painted, position) if segment.slices else _part(view, disk, segment.space_id, segment.size, painted, leftward))
        position += segment.size
    if disk.unallocated > 0:
        size = format_mib(disk.unallocated)
        tip = ("unallocated", f"{size} of {disk.name}, {_percent(disk.unallocated, disk.size)}")
        parts.append(Part("unallocated", size, disk.unallocated, None, tip, leftward=position > disk.size / 2))
    return tuple(parts)


def _container(view: HostPicture, disk: DiskPicture, segment: Segment, painted: Mapping[str, Paint], start: float) -> Part:
    space = view.by_id()[segment.space_id]
    inner = []
    position = start
    for part in segment.slices:
        inner.append(_part(view, disk, part.space_id, part.size, painted, position + part.size / 2 > disk.size / 2))
        position += part.size
    if segment.free >= segment.size / 1000:
        tip = ("free", f"{format_mib(segment.free)} in {space.id}")
        inner.append(Part("free", format_mib(segment.free), segment.free, None, tip, leftward=position > disk.size / 2))
    strip = shown(f"{space.id}, {space.label}, {format_mib(segment.size)}")
    return Part(shown(space.id), format_mib(segment.size), segment.size, None, (), strip=strip, parts=tuple(inner))


def _part(view: HostPicture, disk: DiskPicture, space_id: str, size: float, painted: Mapping[str, Paint], leftward: bool) -> Part:
    space = view.by_id()[space_id]
    return Part(shown(space_id), format_mib(size), size, painted[space_id], tuple(map(shown, _tip(space, disk, size))), leftward)


def _tip(space: SpacePicture, disk: DiskPicture, size: float) -> list[str]:
    lines = [space.id, f"{space.label}{', encrypted' if space.encrypted else ''}{f' in {space.inside}' if space.inside else ''}"]
    lines.append(f"{format_mib(size)} on {disk.name}, {_percent(size, disk.size)}")
    if round(size) != space.size:
        lines.append(f"{format_mib(space.size)} in all")
    if space.mount or space.fs_type:
        lines.append(_mount_words(space))
    return [*lines, *space.reasons]


def _mount_words(space: SpacePicture) -> str:
    words = [space.mount, space.fs_type, space.mount_options if space.mount_options not in (None, "defaults") else None]
    return ", ".join(word for word in words if word)


def _percent(size: float, whole: float) -> str:
    share = 100 * size / whole if whole else 0.0
    return "less than 0.1 %" if 0 < share < 0.1 else f"{share:.1f} %"


def _line(view: HostPicture, space: SpacePicture, painted: Mapping[str, Paint]) -> Line:
    container = view.by_id().get(space.inside or "")
    where = f"on {space.disks} disks" if space.disks > 1 else ""
    share = _percent(space.size, container.size) + f" of {container.id}" if container else where
    return Line(
        name=shown(space.id),
        depth=view.depth(space),
        label=shown(f"{space.label}{', encrypted' if space.encrypted else ''}"),
        size=format_mib(space.size),
        share=shown(share),
        mount=shown(space.mount or ("swap" if space.fs_type == "swap" else "")),
        filesystem=shown(", ".join(filter(None, (space.fs_type if space.fs_type != "swap" else None, space.mount_options)))),
        reasons=tuple(map(shown, space.reasons)),
        paint=painted.get(space.id),
    )


def _children(view: HostPicture, container: SpacePicture) -> list[SpacePicture]:
    return [space for space in view.spaces if space.inside == container.id]


def _warnings(planned: Iterable[tuple[FleetHost, HostPicture]]) -> list[Problem]:
    hosts: dict[str, list[str]] = {}
    for host, view in planned:
        for warning in view.warnings:
            hosts.setdefault(warning, []).append(shown(host.name))
    return [Problem(shown(says), tuple(names)) for says, names in hosts.items()]


def _conflicts(members: Iterable[FleetHost]) -> list[Problem]:
    """Return the failures, those of the same words once."""
    found: dict[Problem, list[str]] = {}
    for host in members:
        if host.failure is not None:
            found.setdefault(_conflict(host.failure), []).append(shown(host.name))
    return [Problem(one.says, tuple(names), one.constraints, one.remedies, one.short) for one, names in found.items()]


def _conflict(failure: Plain) -> Problem:
    conflict = failure.get("conflict") or {}
    short = conflict.get("short")
    return Problem(
        says=shown(str(failure.get("msg") or "There is no plan.")),
        hosts=(),
        constraints=tuple(_sentence(constraint) for constraint in conflict.get("constraints") or ()),
        remedies=tuple(_sentence(remedy) for remedy in conflict.get("remedies") or ()),
        short=format_mib(short) if isinstance(short, (int, float)) and short > 0 else "",
    )


def _sentence(item: t.Any) -> str:
    return shown(str(item.get("says") or item.get("name") or dict(item))) if isinstance(item, Mapping) else shown(str(item))
