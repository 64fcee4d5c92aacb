# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan as a table for a terminal: disks, below each what lies on it, below each group of volumes its volumes."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....module_utils._data.units import format_mib, mib_or_nothing
from ....module_utils._data.words import visible
from ....module_utils._schema.model import DesiredArray, DesiredFilesystem, DesiredGroup, DesiredPartition, DesiredZpool, Layout
from ....module_utils._schema.static import layout_of
from ....module_utils._storage.lvm import EXTENT
from ....module_utils._storage.units import MIB
from ..._common.table import WIDTH, wrapped
from .picture import picture
from .shapes import DiskPicture, HostPicture, SpacePicture, SubvolumePicture
from .words import idle_words, left_out_words, remarks

MOST_NAME = 28
"""Columns of the longest name that is shown whole."""
MOST_MOUNT = 14
"""Columns of the longest mount point that others are aligned with."""


@dataclass(frozen=True)
class Row:
    """A part of a disk, and the parts within it; `cells` say what it is, where it is mounted, and as what."""

    name: str
    size: str
    share: str
    cells: tuple[str, ...] = ()
    below: tuple[Row, ...] = ()


@dataclass(frozen=True)
class Line:
    """A row as it is shown: its name behind the branch that leads to it, and what lines below it begin with."""

    name: str
    size: str
    share: str
    cells: tuple[str, ...]
    below: str


@dataclass(frozen=True)
class Columns:
    """The widths of the columns of one table."""

    name: int
    size: int
    share: int
    what: int
    mount: int


def summary(plan: Mapping[str, t.Any], hardware: Mapping[str, t.Any] | None = None) -> str:
    """Return the plan of one host as a table that a terminal shows; a line is longer only where a single word is.

    Neighbouring disks that carry the same share one entry that names them all. Volumes hang below their group, subvolumes below
    their space; what lies on disks of several entries has an entry of its own for them. Shares are of the disk, of volumes of their group.
    """
    host = picture(plan, hardware)
    runs = _runs(host.disks)
    nested = _containers_within_one(runs)
    entries = [_disk_lines(host, run, nested) for run in runs]
    entries += [_lines(_space_row(host, space, space.size, 0, nested=True)) for space in _own_entries(host, nested)]
    columns = _columns([line for entry in entries for line in entry])
    blocks = [[text for line in entry for text in _shown(line, columns)] for entry in entries]
    if not host.disks:
        blocks.append(["no disks"])
    if host.left_out:
        blocks.append([line for disk in host.left_out for line in _wrapped("- ", left_out_words(disk))])
    if host.idle:
        lines = []
        for disks in host.idle:
            lines += [*_wrapped("- ", idle_words(disks)), *(_wrapped("    - ", disks.override) if disks.override else ())]
        blocks.append(lines + [line for remark in remarks(host.idle) for line in _wrapped("- ", remark)])
    if host.warnings:
        blocks.append([line for warning in host.warnings for line in _wrapped("! ", warning)])
    return "\n\n".join("\n".join(block) for block in blocks)


def _runs(disks: Sequence[DiskPicture]) -> list[list[DiskPicture]]:
    runs: list[list[DiskPicture]] = []
    for disk in disks:
        if runs and _carries(runs[-1][0]) == _carries(disk):
            runs[-1].append(disk)
        else:
            runs.append([disk])
    return runs


def _carries(disk: DiskPicture) -> tuple[t.Any, ...]:
    return (
        disk.description,
        disk.size,
        disk.unallocated,
        tuple((segment.space_id, segment.size, segment.spare) for segment in disk.segments),
    )


def _containers_within_one(runs: Sequence[Sequence[DiskPicture]]) -> frozenset[str]:
    """Return the spaces that lie on the disks of one entry only, so that what is inside them can hang there."""
    entries: dict[str, set[int]] = {}
    for number, run in enumerate(runs):
        for segment in run[0].segments:
            entries.setdefault(segment.space_id, set()).add(number)
    return frozenset(space_id for space_id, numbers in entries.items() if len(numbers) == 1)


def _own_entries(host: HostPicture, nested: frozenset[str]) -> list[SpacePicture]:
    alone = [space for space in host.spaces if space.inside is None and space.id not in nested]
    return [space for space in alone if host.holds_others(space) or space.subvolumes]


def _disk_lines(host: HostPicture, run: Sequence[DiskPicture], nested: frozenset[str]) -> list[Line]:
    disk = run[0]
    spaces = host.by_id()
    rows = [
        Row(segment.space_id, format_mib(segment.size), _share(segment.size, disk.size), (f"spare of a {spaces[segment.space_id].label}",))
        if segment.spare
        else _space_row(host, spaces[segment.space_id], segment.size, disk.size, segment.space_id in nested)
        for segment in disk.segments
    ]
    if disk.unallocated > 0 or not rows:
        rows.append(Row("unallocated", format_mib(disk.unallocated), _share(disk.unallocated, disk.size)))
    name, each = (f"{len(run)} disks alike", "each") if len(run) > 1 else (disk.name, "")
    head, *rest = _lines(Row(name, format_mib(disk.size), each, (disk.description,), tuple(rows)))
    names = " ".join(other.name for other in run) if len(run) > 1 else disk.short_id
    return [head, *([Line("│  ", "", "", (visible(names),), "│  ")] if names != disk.name else ()), *rest]


def _space_row(host: HostPicture, space: SpacePicture, size: int, whole: int, nested: bool) -> Row:
    children = host.inside(space) if nested else ()
    rows = [_space_row(host, child, child.size, space.size, nested=True) for child in children]
    free = space.size - sum(child.size for child in children)
    if children and space.kind == "vg" and free > max(64, space.size // 1000, space.extent * space.disks if space.extent != EXTENT else 0):
        rows.append(Row("free", format_mib(free), _share(free, space.size)))
    rows += [_subvolume_row(subvolume) for subvolume in space.subvolumes] if nested else []
    if space.kind == "thin_pool" and space.metadata:
        rows.insert(0, Row("metadata and spare", format_mib(2 * space.metadata), _share(2 * space.metadata, space.size)))
    # Volumes in a thin pool have no extents of their own.
    share = "" if space.kind == "thin" else _share(size, whole)
    use = (space.label, _given_out(host, space)) if space.kind == "thin_pool" else _use(space)
    return Row(space.id, format_mib(size), share, use, tuple(rows))


def _given_out(host: HostPicture, space: SpacePicture) -> str:
    """Return how much of a thin pool its volumes may come to."""
    room = space.size - 2 * space.metadata
    if room <= 0 or not host.inside(space):
        return ""
    given_out = sum(volume.size for volume in host.inside(space))
    return f"{format_mib(given_out)} given out, {_share(given_out, room)}"


def _subvolume_row(subvolume: SubvolumePicture) -> Row:
    limit = f"≤ {format_mib(subvolume.quota)}" if subvolume.quota else ""
    return Row(subvolume.name, "", "", (subvolume.what, subvolume.mount or "", limit))


def _use(space: SpacePicture) -> tuple[str, ...]:
    # Of a partition the kind is enough: "EFI system".
    label = f"encrypted {space.label.rsplit(' ', 1)[-1]}" if space.encrypted else space.label.removesuffix(" partition")
    if space.lies_on:
        return (f"{label} on {', '.join(space.lies_on)}",)
    if space.disks > 1 and (space.kind in {"vg", "raid", "btrfs", "zpool"} or space.cache):
        label = f"{label}, {space.disks - len(space.standing_by)} disks"
    elif space.disks > 1 and space.kind in {"lv", "partitions"}:
        label = f"{label} of {format_mib(space.size)}"
    return (label, space.cache) if space.cache else (label, space.mount or "", space.fs_type or "")


def _share(size: int, whole: int) -> str:
    if whole <= 0:
        return ""
    percent = 100 * size / whole
    return "<0.1%" if 0 < percent < 0.1 else f"{percent:.1f}%"


def _lines(row: Row, first: str = "", rest: str = "") -> list[Line]:
    branch = "│  " if row.below else ""
    lines = [Line(visible(first + row.name), row.size, row.share, tuple(map(visible, row.cells)), rest + branch)]
    for number, below in enumerate(row.below, start=1):
        last = number == len(row.below)
        lines += _lines(below, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))
    return lines


def _columns(lines: Sequence[Line]) -> Columns:
    """Return the widths that the lines of a table need; a cell that nothing follows needs none."""

    def widest(cells: t.Iterable[str]) -> int:
        return max(map(len, cells), default=0)

    filled = [cells for line in lines if any((cells := (*line.cells, "", ""))[1:])]
    return Columns(
        name=min(MOST_NAME, widest(line.name for line in lines)),
        size=widest(line.size for line in lines),
        share=widest(line.share for line in lines),
        what=widest(cells[0] for cells in filled),
        mount=min(MOST_MOUNT, widest(cells[1] for cells in filled if cells[2])),
    )


def _shown(line: Line, columns: Columns) -> list[str]:
    """Return a line as a terminal shows it; what does not fit goes below its last column."""
    if not line.size and not any(line.cells[1:]) and line.name == line.below:
        return wrapped(" ".join(line.cells), line.name, line.below)
    name = line.name if len(line.name) <= columns.name else line.name[: columns.name - 1] + "…"
    start = f"{name:<{columns.name}} {line.size:>{columns.size}} {line.share:>{columns.share}}  "
    what, mount, rest = (*line.cells, "", "", "")[:3]
    # Where that does not fit, the file system follows its mount point.
    for padded in (f"{mount:<{columns.mount}} {rest}", f"{mount} {rest}"):
        shown = f"{start}{what:<{columns.what}} {padded}".rstrip()
        if len(shown) <= WIDTH:
            return [shown]
    return wrapped(f"{what} {mount} {rest}", start, line.below.ljust(len(start)))


def _wrapped(mark: str, text: str) -> list[str]:
    return wrapped(visible(text), mark, " " * len(mark))


Plain = Mapping[str, t.Any]


def present_layout(facts: Plain, disk_ids: Sequence[str]) -> str:
    """Return what is on each of the disks now, in the order of the ids; `facts` is the machine's bareon_hardware."""
    by_id = {str(disk.get("id")): disk for disk in facts.get("disks") or ()}
    return _text((by_id[disk_id], _present(by_id[disk_id])) for disk_id in disk_ids if disk_id in by_id)


def planned_layout(plan: Plain) -> str:
    """Return what a plan puts on each of its disks."""
    layout = layout_of(plan["schema"])
    partitions = {
        disk.id: [_planned(partition, layout.filesystem_on(partition.device)) for partition in disk.partitions] for disk in layout.disks
    }
    return (
        _text((disk, partitions.get(disk["disk_id"], [])) for disk in plan["disks"])
        + "".join(_array(array, layout.filesystem_on(array.device)) for array in layout.arrays)
        + "".join(_group(group, layout) for group in layout.groups)
        + "".join(map(_zpool, layout.zpools))
    )


def layout_differences(plans: Mapping[str, t.Any], hardware: Mapping[str, t.Any]) -> list[dict[str, str]]:
    """Return, of each host, what is on its disks and what its plan puts there, as Ansible's diffs."""
    return [
        {
            "before": present_layout(hardware[host], [disk["disk_id"] for disk in plan["disks"]]),
            "after": planned_layout(plan),
            "before_header": f"{host} (present layout)",
            "after_header": f"{host} (planned layout)",
        }
        for host, plan in plans.items()
    ]


def _text(disks: t.Iterable[tuple[Plain, Sequence[str]]]) -> str:
    lines = []
    for disk, entries in disks:
        # The size of a plan's disk is MiB, that of the facts may be text.
        lines.append(f"{disk.get('id') or disk.get('disk_id')} ({format_mib(mib_or_nothing(disk['size']))})")
        lines += [f"  {entry}" for entry in entries] or ["  nothing"]
    return "".join(f"{line}\n" for line in lines)


def _present(disk: Plain) -> list[str]:
    return [
        _line(entry.get("number"), entry.get("start"), entry.get("size"), entry.get("name"), entry.get("fs_type"), entry.get("mountpoints"))
        for entry in disk.get("partitions") or ()
    ]


def _planned(partition: DesiredPartition, filesystem: DesiredFilesystem | None) -> str:
    return _line(partition.number, partition.begin, partition.mib, partition.space, *_filesystem(filesystem))


def _line(number: t.Any, start: t.Any, size: t.Any, name: t.Any, fs_type: t.Any, mounts: t.Any) -> str:
    place = f"{size} MiB at {start}" if isinstance(size, int) else f"{size} at {start}"
    return _words(f"{number}:", place, name, fs_type, *(mounts or ()))


def _array(array: DesiredArray, filesystem: DesiredFilesystem | None) -> str:
    fs_type, mounts = _filesystem(filesystem)
    spares = f"with {len(array.spares)} spare" if array.spares else ""
    return _words(array.level, array.space, f"of {len(array.members)}", spares, fs_type, *mounts) + "\n"


def _group(group: DesiredGroup, layout: Layout) -> str:
    lines = [f"vg {group.name}"]
    for pool in layout.pools_of(group.name):
        lines.append("  " + _words(f"{pool.name}:", f"{pool.size // MIB} MiB, thin pool, {pool.metadata // MIB} MiB of metadata"))
    for volume in layout.volumes_of(group.name):
        fs_type, mounts = _filesystem(layout.filesystem_on(volume.device))
        size = f"{volume.size // MIB} MiB{' in ' + volume.pool if volume.pool else ''}"
        lines.append("  " + _words(f"{volume.name}:", size, fs_type, *mounts))
    lines += ["  " + _words(f"{cache.name}:", f"cache of {cache.origin}, {cache.mode}") for cache in layout.caches_of(group.name)]
    return "".join(f"{line}\n" for line in lines)


def _zpool(zpool: DesiredZpool) -> str:
    parts = [f"{vdev.type} of {len(vdev.devices)}" for vdev in zpool.vdevs]
    parts += [f"log {log.type} of {len(log.devices)}" for log in zpool.logs]
    parts += [f"{what} {len(devices)}" for what, devices in (("cache", zpool.caches), ("spare", zpool.spares)) if devices]
    lines = [_words("zpool", zpool.name, *parts)]
    lines += ["  " + _words(f"{one.name}:", "dataset", dict(one.properties).get("mountpoint")) for one in zpool.datasets]
    return "".join(f"{line}\n" for line in lines)


def _filesystem(filesystem: DesiredFilesystem | None) -> tuple[str, tuple[str, ...]]:
    """Return the type of a file system and where it is mounted when the machine starts; nothing for none."""
    return ("", ()) if filesystem is None else (filesystem.type, tuple(mount.path for mount in filesystem.mounts))


def _words(*words: t.Any) -> str:
    return " ".join(str(word) for word in words if word)
