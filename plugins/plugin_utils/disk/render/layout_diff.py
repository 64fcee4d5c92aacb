# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The present layout of a machine's disks against the planned one, as text for a diff."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence

from ...common.units import format_mib

Plain = Mapping[str, t.Any]


def present_layout(facts: Plain, disk_ids: Sequence[str]) -> str:
    """Return what is on each of the disks now, in the order of the ids; `facts` is the machine's bareon_hardware."""
    by_id = {str(disk.get("id")): disk for disk in facts.get("disks") or ()}
    return _text((by_id[disk_id], _present(by_id[disk_id])) for disk_id in disk_ids if disk_id in by_id)


def planned_layout(plan: Plain) -> str:
    """Return what a plan puts on each of its disks."""
    static = plan["schema"]
    filesystems = {filesystem["device"]: filesystem for filesystem in static["fss"]}
    partitions: dict[str, list[str]] = {}
    for table in static["parteds"]:
        partitions[table["disk_id"]] = [_planned(partition, filesystems.get(partition["name"], {})) for partition in table["partitions"]]
    disks = _text((disk, partitions.get(disk["disk_id"], [])) for disk in plan["disks"])
    return (
        disks
        + "".join(_array(array, filesystems) for array in static["mds"])
        + "".join(_group(group, static, filesystems) for group in static["vgs"])
    )


def _text(disks: t.Iterable[tuple[Plain, Sequence[str]]]) -> str:
    lines = []
    for disk, entries in disks:
        lines.append(f"{disk.get('id') or disk.get('disk_id')} ({format_mib(disk['size'])})")
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
    return _words(f"{number}:", f"{size} MiB at {start}", name, fs_type, *(mounts or ()))


def _array(array: Plain, filesystems: Mapping[str, Plain]) -> str:
    filesystem = filesystems.get(array["name"], {})
    return _words(array["level"], array["space_id"], f"of {len(array['devices'])}", filesystem.get("fs_type"), *_mounts(filesystem)) + "\n"


def _group(group: Plain, static: Plain, filesystems: Mapping[str, Plain]) -> str:
    lines = [f"vg {group['name']}"]
    for volume in static["lvs"]:
        if volume["vgname"] == group["name"]:
            filesystem = filesystems.get(volume["device"], {})
            lines.append("  " + _words(f"{volume['name']}:", f"{volume['size']} MiB", filesystem.get("fs_type"), *_mounts(filesystem)))
    return "".join(f"{line}\n" for line in lines)


def _mounts(filesystem: Plain) -> list[str]:
    return [filesystem["mount"]] if filesystem.get("fstab_enabled") else []


def _words(*words: t.Any) -> str:
    return " ".join(str(word) for word in words if word)
