# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plans of a fleet as one page: problems on top, then a row for hosts of one shape, which opens. It loads nothing.

What is shown is worked out here; how it looks is the template's affair.
"""

from __future__ import annotations

import pathlib
import re
import typing as t
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....module_utils._data.units import format_mib
from ....module_utils._data.words import visible
from ..._common.html import page_templates, script_digest
from .geometry import SMALLEST_LEGIBLE, Paint, paints
from .picture import picture, runs_of_alike
from .shapes import DiskPicture, HostPicture, Segment, SpacePicture
from .words import (
    free_tip,
    idle_words,
    label,
    left_out_words,
    percent,
    remarks,
    run_link,
    run_name,
    run_size,
    strip,
    tip,
    unallocated_tip,
)

Plain = Mapping[str, t.Any]
_TOGETHER = frozenset({"vg", "raid", "btrfs", "zpool", "lv", "thin_pool", "thin"})
"""Kinds of spaces that are one thing on all of their disks."""
TEMPLATES = pathlib.Path(__file__).parents[1] / "templates"


@dataclass(frozen=True)
class FleetHost:
    """What is known of one host: a plan, or the conflict that left it without one.

    `failure` is the result `{msg, conflict}` of a failed disk_plan, or, with a plan, `{msg}` on deviations from it; `schema` and `why` give
    the reasons of its spaces.
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
    """One disk: its words, its length as percent of the longest disk of the host, whether a magnified copy is needed."""

    name: str
    words: str
    link: str
    percent: float
    magnified: bool
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
    left_out: tuple[str, ...] = ()
    idle: tuple[tuple[str, str], ...] = ()
    """What is said of disks that a profile puts nothing on, each with the override that would use them, if there is one."""
    made_for: Mapping[str, str] = field(default_factory=dict)
    """The fingerprint of the disks that each plan was made for, by host."""
    warned: str = ""
    """How many of the hosts are not as planned or have warnings, in words; without a number where all are."""


@dataclass(frozen=True)
class Problem:
    """Something to know before the drawings, and the hosts that it is about. `says` is empty where `constraints` say it."""

    says: str
    hosts: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    short: str = ""


def fleet_page(hosts: Iterable[FleetHost], title: str = "Disk layouts", origin: Plain | None = None) -> str:
    """Return the HTML page of a fleet; `origin` says in words by what and from what the plans were made."""
    members = sorted(hosts, key=lambda host: _natural(host.name))
    planned = [(host, picture(host.plan, host.hardware, host.schema, host.why)) for host in members if host.plan is not None]
    groups = [_group(number, alike) for number, alike in enumerate(_alike(planned), start=1)]
    templates = page_templates(TEMPLATES)
    script = templates.get_template("fleet.js.j2").render()
    return templates.get_template("fleet.html.j2").render(
        title=visible(title),
        origin=[(visible(str(name)), visible(str(value))) for name, value in (origin or {}).items()],
        groups=groups,
        hosts=len(members),
        disks=sum(len(view.disks) for _host, view in planned),
        capacity=format_mib(sum(view.size for _host, view in planned)),
        conflicts=_failures(host for host in members if host.plan is None),
        differences=_failures(host for host in members if host.plan is not None),
        warnings=_warnings(planned),
        digest=script_digest(script),
    )


def _natural(name: str) -> list[tuple[int, t.Any]]:
    """Return a sort key that puts node2 before node10."""
    return [(1, int(word)) if word.isdigit() else (0, word) for word in re.split(r"(\d+)", name)]


def _alike(planned: Iterable[tuple[FleetHost, HostPicture]]) -> list[list[tuple[FleetHost, HostPicture]]]:
    groups: dict[t.Any, list[tuple[FleetHost, HostPicture]]] = {}
    for host, view in planned:
        groups.setdefault(view.shape(), []).append((host, view))
    return list(groups.values())


def _group(number: int, alike: Sequence[tuple[FleetHost, HostPicture]]) -> Group:
    host, view = alike[0]
    painted = paints(view.painted())
    largest = max((disk.size for disk in view.disks), default=0)
    return Group(
        anchor=f"group-{number}",
        hosts=tuple(visible(member.name) for member, _view in alike),
        facts=_machine_words(view, host.hardware or {}),
        bars=tuple(_bar(view, run, largest, painted) for run in runs_of_alike(view.disks)),
        lines=tuple(_line(view, space, painted) for space in view.spaces),
        disks=tuple((visible(member.name), tuple(_disk_words(disk) for disk in other.disks)) for member, other in alike),
        left_out=tuple(visible(left_out_words(disk)) for disk in view.left_out),
        idle=(
            *((visible(idle_words(disks)), visible(f"- {disks.override}" if disks.override else "")) for disks in view.idle),
            *((visible(remark), "") for remark in remarks(view.idle)),
        ),
        made_for={
            visible(member.name): visible(str(member.plan["fingerprint"]))
            for member, _view in alike
            if member.plan is not None and member.plan.get("fingerprint")
        },
        warned=_warned(alike),
    )


def _warned(alike: Sequence[tuple[FleetHost, HostPicture]]) -> str:
    counts = {
        "not as planned": sum(1 for host, _view in alike if host.failure is not None),
        "with warnings": sum(1 for _host, view in alike if view.warnings),
    }
    return ", ".join(words if count == len(alike) else f"{count} {words}" for words, count in counts.items() if count)


def _machine_words(view: HostPicture, hardware: Plain) -> str:
    words = ["1 disk" if len(view.disks) == 1 else f"{len(view.disks)} disks", format_mib(view.size)]
    if isinstance(hardware.get("ram"), (int, float)):
        words.append(f"{format_mib(hardware['ram'])} RAM")
    if hardware.get("firmware"):
        words.append(str(hardware["firmware"]).upper())
    return visible(", ".join(words))


def _disk_words(disk: DiskPicture) -> str:
    return visible(disk.id if disk.name in disk.id else f"{disk.name}: {disk.id}")


def _bar(view: HostPicture, run: Sequence[DiskPicture], largest: int, painted: Mapping[str, Paint]) -> Bar:
    disk = run[0]
    part = disk.size / largest if largest else 1.0
    return Bar(
        name=visible(run_name(run)),
        words=visible(run_size(run)),
        link=visible(run_link(run)),
        percent=100 * part,
        magnified=0 < part < SMALLEST_LEGIBLE,
        parts=_parts(view, disk, painted),
        alike=tuple(_disk_words(other) for other in run[1:]),
    )


def _parts(view: HostPicture, disk: DiskPicture, painted: Mapping[str, Paint]) -> tuple[Part, ...]:
    parts: list[Part] = []
    for segment in disk.segments:
        if segment.slices:
            parts.append(_container(view, disk, segment, painted))
        else:
            parts.append(_part(view, disk, segment.space_id, segment.size, painted))
    if disk.unallocated > 0:
        parts.append(_room("unallocated", disk.unallocated, unallocated_tip(disk)))
    return _with_tips_inwards(tuple(parts), 0, disk.size)


def _container(view: HostPicture, disk: DiskPicture, segment: Segment, painted: Mapping[str, Paint]) -> Part:
    inner = [_part(view, disk, part.space_id, part.size, painted) for part in segment.slices]
    if segment.free >= segment.size / 1000:
        inner.append(_room("free", segment.free, free_tip(segment)))
    heading = visible(strip(view.by_id(), segment))
    return Part(visible(segment.space_id), format_mib(segment.size), segment.size, None, (), strip=heading, parts=tuple(inner))


def _part(view: HostPicture, disk: DiskPicture, space_id: str, size: float, painted: Mapping[str, Paint]) -> Part:
    words = tip(view.by_id()[space_id], disk, size)
    return Part(visible(space_id), format_mib(size), size, painted[space_id], tuple(map(visible, words)))


def _room(name: str, size: float, words: Sequence[str]) -> Part:
    return Part(name, format_mib(size), size, None, tuple(map(visible, words)))


def _with_tips_inwards(parts: Sequence[Part], start: float, whole: float) -> tuple[Part, ...]:
    """Return the parts with the tips of those beyond the middle running to the left, so that none leaves the page."""
    turned = []
    for part in parts:
        leftward = start + part.grow / 2 > whole / 2
        turned.append(replace(part, leftward=leftward, parts=_with_tips_inwards(part.parts, start, whole)))
        start += part.grow
    return tuple(turned)


def _line(view: HostPicture, space: SpacePicture, painted: Mapping[str, Paint]) -> Line:
    container = view.by_id().get(space.inside or "")
    # What lies on each of several disks by itself has its size there, as the text says it.
    is_each = space.disks > 1 and space.kind not in _TOGETHER
    where = f"{'each ' if is_each else ''}on {space.disks} disks" if space.disks > 1 else ""
    share = percent(space.size, container.size) + f" of {container.id}" if container else where
    return Line(
        name=visible(space.id),
        depth=view.depth(space),
        label=visible(label(space)),
        size=format_mib(space.size / space.disks if is_each else space.size),
        share=visible(share),
        mount=visible(space.place),
        filesystem=visible(", ".join(_filesystem_words(space))),
        reasons=tuple(map(visible, space.reasons)),
        paint=painted.get(space.id),
    )


def _filesystem_words(space: SpacePicture) -> list[str]:
    if space.fs_type == "swap":
        return []
    return [word for word in (space.fs_type, space.mount_options) if word and word != "defaults"]


def _warnings(planned: Iterable[tuple[FleetHost, HostPicture]]) -> list[Problem]:
    hosts: dict[str, list[str]] = {}
    for host, view in planned:
        for warning in view.warnings:
            hosts.setdefault(warning, []).append(visible(host.name))
    return [Problem(visible(says), tuple(names)) for says, names in hosts.items()]


def _failures(members: Iterable[FleetHost]) -> list[Problem]:
    """Return the failures, those of the same words once."""
    found: dict[Problem, list[str]] = {}
    for host in members:
        if host.failure is not None:
            found.setdefault(_conflict(host.failure), []).append(visible(host.name))
    return [Problem(one.says, tuple(names), one.constraints, one.remedies, one.short) for one, names in found.items()]


def _conflict(failure: Plain) -> Problem:
    conflict = failure.get("conflict") or {}
    short = conflict.get("short")
    constraints = tuple(_sentence(constraint) for constraint in conflict.get("constraints") or ())
    return Problem(
        says="" if constraints else "\n".join(visible(line) for line in str(failure.get("msg") or "There is no plan.").splitlines()),
        hosts=(),
        constraints=constraints,
        remedies=tuple(_sentence(remedy) for remedy in conflict.get("remedies") or ()),
        short=format_mib(short) if isinstance(short, (int, float)) and short > 0 else "",
    )


def _sentence(item: t.Any) -> str:
    return visible(str(item.get("says") or item.get("name") or dict(item))) if isinstance(item, Mapping) else visible(str(item))
