# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan as a table for a terminal: disks, below each what lies on it, below each group of volumes its volumes."""

from __future__ import annotations

import textwrap
import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....module_utils._data.units import format_mib, mib_or_nothing
from ....module_utils._data.words import visible
from ....module_utils._storage.filesystems import NOT_MOUNTED
from ....module_utils._storage.lvm import EXTENT
from .picture import picture
from .shapes import DiskPicture, HostPicture, IdlePicture, SpacePicture, SubvolumePicture
from .words import idle_words, left_out_words, remarks

WIDTH = 100
NAME_WIDTH = 32
SIZE_WIDTH = 9
SHARE_WIDTH = 6
LABEL_WIDTH = 20
MOUNT_WIDTH = 15


@dataclass(frozen=True)
class Row:
    """One line of the table and the lines that hang below it."""

    name: str
    size: str
    share: str
    text: str
    below: tuple[Row, ...] = ()


def summary(plan: Mapping[str, t.Any], hardware: Mapping[str, t.Any] | None = None) -> str:
    """Return the plan of one host as a table of at most 100 columns.

    Neighbouring disks that carry the same share one entry that names them all. Volumes hang below their group, subvolumes below
    their space; what lies on disks of several entries has an entry of its own for them. Shares are of the disk, of volumes of their group.
    """
    host = picture(plan, hardware)
    runs = _runs(host.disks)
    nested = _containers_within_one(runs)
    blocks = [_disk_block(host, run, nested) for run in runs]
    blocks += [_lines(_space_row(host, space, space.size, 0, nested=True)) for space in _own_entries(host, nested)]
    if not host.disks:
        blocks.append(["no disks"])
    if host.left_out:
        blocks.append([line for disk in host.left_out for line in _wrapped("- ", left_out_words(disk))])
    if host.idle:
        blocks.append(_idle_lines(host.idle))
    if host.warnings:
        blocks.append([line for warning in host.warnings for line in _wrapped("! ", warning)])
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks)


def _idle_lines(idle: Sequence[IdlePicture]) -> list[str]:
    lines = []
    for disks in idle:
        lines += [*_wrapped("- ", idle_words(disks)), *(_wrapped("    - ", disks.override) if disks.override else ())]
    return lines + [line for remark in remarks(idle) for line in _wrapped("- ", remark)]


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


def _disk_block(host: HostPicture, run: Sequence[DiskPicture], nested: frozenset[str]) -> list[str]:
    disk = run[0]
    spaces = host.by_id()
    rows = [
        Row(segment.space_id, format_mib(segment.size), _share(segment.size, disk.size), f"spare of a {spaces[segment.space_id].label}")
        if segment.spare
        else _space_row(host, spaces[segment.space_id], segment.size, disk.size, segment.space_id in nested)
        for segment in disk.segments
    ]
    if disk.unallocated > 0 or not rows:
        rows.append(Row("unallocated", format_mib(disk.unallocated), _share(disk.unallocated, disk.size), ""))
    head, *rest = _lines(Row(_disk_name(run), format_mib(disk.size), "each" if len(run) > 1 else "", disk.description, tuple(rows)))
    names = _wrapped("│  ", " ".join(other.name for other in run)) if len(run) > 1 else []
    return [head, *names, *rest]


def _disk_name(run: Sequence[DiskPicture]) -> str:
    disk = run[0]
    if len(run) > 1:
        return f"{len(run)} disks alike"
    return disk.short_id if disk.name == disk.short_id else f"{disk.name} {disk.short_id}"


def _space_row(host: HostPicture, space: SpacePicture, size: int, whole: int, nested: bool) -> Row:
    children = host.inside(space) if nested else ()
    rows = [_space_row(host, child, child.size, space.size, nested=True) for child in children]
    free = space.size - sum(child.size for child in children)
    if children and space.kind == "vg" and free > max(64, space.size // 1000, space.extent * space.disks if space.extent != EXTENT else 0):
        rows.append(Row("free in the group", format_mib(free), _share(free, space.size), ""))
    rows += [_subvolume_row(subvolume) for subvolume in space.subvolumes] if nested else []
    if space.kind == "thin_pool" and space.metadata:
        rows.insert(0, Row("metadata and spare", format_mib(2 * space.metadata), _share(2 * space.metadata, space.size), ""))
    # Volumes in a thin pool have no extents of their own.
    share = "" if space.kind == "thin" else _share(size, whole)
    use = f"{space.label:<{LABEL_WIDTH}} {_given_out(host, space)}" if space.kind == "thin_pool" else _use(space)
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
    return Row(subvolume.name, "", "", f"{subvolume.what:<{LABEL_WIDTH}} {subvolume.mount or '':<{MOUNT_WIDTH}} {limit}")


def _use(space: SpacePicture) -> str:
    label = f"encrypted {space.label.rsplit(' ', 1)[-1]}" if space.encrypted else space.label
    if space.lies_on:
        return f"{label} on {', '.join(space.lies_on)}"
    if space.disks > 1 and space.kind in {"vg", "raid"}:
        label = f"{label} on {space.disks - len(space.standing_by)} disks"
    elif space.disks > 1 and (space.kind in {"btrfs", "zpool"} or space.cache):
        label = f"{label}, {space.disks - len(space.standing_by)} disks"
    elif space.disks > 1 and space.kind in {"lv", "partitions"}:
        label = f"{label} of {format_mib(space.size)}"
    if space.cache:
        return f"{label:<{LABEL_WIDTH}} {space.cache}"
    return f"{label:<{LABEL_WIDTH}} {space.mount or '':<{MOUNT_WIDTH}} {space.fs_type or ''}"


def _share(size: int, whole: int) -> str:
    if whole <= 0:
        return ""
    percent = 100 * size / whole
    return "<0.1%" if 0 < percent < 0.1 else f"{percent:.1f}%"


def _lines(row: Row, first: str = "", rest: str = "") -> list[str]:
    name = visible(first + row.name)
    if len(name) > NAME_WIDTH:
        name = name[: NAME_WIDTH - 1] + "…"
    lines = [f"{name:<{NAME_WIDTH}} {row.size:>{SIZE_WIDTH}} {row.share:>{SHARE_WIDTH}}  {visible(row.text)}"[:WIDTH]]
    for number, below in enumerate(row.below, start=1):
        last = number == len(row.below)
        lines += _lines(below, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))
    return lines


def _wrapped(mark: str, text: str) -> list[str]:
    later = mark if mark.startswith("│") else " " * len(mark)
    return textwrap.wrap(visible(text), WIDTH, initial_indent=mark, subsequent_indent=later, break_on_hyphens=False) or [mark]


Plain = Mapping[str, t.Any]


def present_layout(facts: Plain, disk_ids: Sequence[str]) -> str:
    """Return what is on each of the disks now, in the order of the ids; `facts` is the machine's bareon_hardware."""
    by_id = {str(disk.get("id")): disk for disk in facts.get("disks") or ()}
    return _text((by_id[disk_id], _present(by_id[disk_id])) for disk_id in disk_ids if disk_id in by_id)


def planned_layout(plan: Plain) -> str:
    """Return what a plan puts on each of its disks."""
    static = plan["schema"]
    filesystems = {device: entry for entry in static["fss"] for device in entry.get("devices") or (entry["device"],)}
    partitions: dict[str, list[str]] = {}
    for table in static["parteds"]:
        partitions[table["disk_id"]] = [_planned(partition, filesystems.get(partition["name"], {})) for partition in table["partitions"]]
    disks = _text((disk, partitions.get(disk["disk_id"], [])) for disk in plan["disks"])
    return (
        disks
        + "".join(_array(array, filesystems) for array in static["mds"])
        + "".join(_group(group, static, filesystems) for group in static["vgs"])
        + "".join(_zpool(zpool) for zpool in static.get("zpools") or ())
    )


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


def _planned(partition: Plain, filesystem: Plain) -> str:
    size = partition["end"] - partition["begin"]
    return _line(partition["count"], partition["begin"], size, partition["space_id"], filesystem.get("fs_type"), _mounts(filesystem))


def _line(number: t.Any, start: t.Any, size: t.Any, name: t.Any, fs_type: t.Any, mounts: t.Any) -> str:
    place = f"{size} MiB at {start}" if isinstance(size, int) else f"{size} at {start}"
    return _words(f"{number}:", place, name, fs_type, *(mounts or ()))


def _array(array: Plain, filesystems: Mapping[str, Plain]) -> str:
    filesystem = filesystems.get(array["name"], {})
    return (
        _words(
            array["level"],
            array["space_id"],
            f"of {len(array['devices'])}",
            f"with {len(array['spares'])} spare" if array["spares"] else "",
            filesystem.get("fs_type"),
            *_mounts(filesystem),
        )
        + "\n"
    )


def _group(group: Plain, static: Plain, filesystems: Mapping[str, Plain]) -> str:
    lines = [f"vg {group['name']}"]
    for pool in static.get("thin_pools") or ():
        if pool["vgname"] == group["name"]:
            lines.append("  " + _words(f"{pool['name']}:", f"{pool['size']} MiB, thin pool, {pool['metadata_size']} MiB of metadata"))
    for volume in static["lvs"]:
        if volume["vgname"] == group["name"]:
            filesystem = filesystems.get(volume["device"], {})
            size = f"{volume['size']} MiB{' in ' + volume['pool'] if volume.get('pool') else ''}"
            lines.append("  " + _words(f"{volume['name']}:", size, filesystem.get("fs_type"), *_mounts(filesystem)))
    for cache in static.get("caches") or ():
        if cache["vgname"] == group["name"]:
            lines.append("  " + _words(f"{cache['name']}:", f"cache of {cache['origin']}, {cache['mode']}"))
    return "".join(f"{line}\n" for line in lines)


def _zpool(zpool: Plain) -> str:
    logs, caches, spares = (zpool.get(key) or () for key in ("logs", "caches", "spares"))
    parts = [f"{vdev['type']} of {len(vdev['devices'])}" for vdev in zpool["vdevs"]]
    parts += [f"log {log['type']} of {len(log['devices'])}" for log in logs]
    parts += [f"{what} {len(devices)}" for what, devices in (("cache", caches), ("spare", spares)) if devices]
    lines = [_words("zpool", zpool["name"], *parts)]
    lines += ["  " + _words(f"{one['name']}:", "dataset", one.get("mount")) for one in zpool.get("datasets") or ()]
    return "".join(f"{line}\n" for line in lines)


def _mounts(filesystem: Plain) -> list[str]:
    if not filesystem.get("fstab_enabled"):
        return []
    mounts = (thing.get("mount", NOT_MOUNTED) for thing in (filesystem, *(filesystem.get("subvolumes") or ())))
    return [mount for mount in mounts if mount != NOT_MOUNTED]


def _words(*words: t.Any) -> str:
    return " ".join(str(word) for word in words if word)
