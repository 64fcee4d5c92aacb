# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What there is to see of a plan: disks, what lies on each in order, and every space with its total. Sizes are MiB.

The tables, the SVG and the page are all made from this one reading of the plan. It takes plans as plain data (they come
back from a playbook), and a plan that says less, such as one that was written by hand, gives a picture that says less.
"""

from __future__ import annotations

import json
import re
import typing as t
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ....module_utils._data.units import mib_or_nothing
from ....module_utils._schema.static import readable_layout
from ....module_utils._storage.lvm import EXTENT
from .shapes import DiskPicture, HostPicture, IdlePicture, LeftOutPicture, Segment, Slice, SpacePicture
from .spaces import Plain, spaces_of

TRANSPORTS = {"nvme": "NVMe", "sata": "SATA", "sas": "SAS", "usb": "USB", "mmc": "eMMC", "iscsi": "iSCSI", "fc": "FC"}

_YAML_PLAIN = re.compile(r"[A-Za-z0-9/][\w/.$()<>= -]*")
"""Text that needs no quotes within a flow of YAML."""


def picture(plan: Plain, hardware: Plain | None = None, schema: Sequence[Plain] = (), why: Plain | None = None) -> HostPicture:
    """Return what there is to see of a plan.

    `hardware` adds names, models and transports of the disks; `schema` (the dynamic schema) and `why` (a profile's
    remarks by space id) the reasons of each space.
    """
    spaces = spaces_of(readable_layout(plan.get("schema") or {}), _sizes_on_disks(plan), schema, why or {})
    return HostPicture(
        disks=_disks(plan, hardware or {}, spaces),
        spaces=spaces,
        warnings=tuple(str(warning) for warning in plan.get("warnings") or ()),
        left_out=tuple(_left_out(disk, hardware or {}) for disk in plan.get("left_out_disks") or ()),
        idle=tuple(_idle(disks, hardware or {}) for disks in plan.get("idle_disks") or ()),
    )


def runs_of_alike(disks: Iterable[DiskPicture]) -> list[tuple[DiskPicture, ...]]:
    """Return neighbouring disks of one shape together, in order."""
    runs: list[list[DiskPicture]] = []
    for disk in disks:
        if runs and runs[-1][0].shape() == disk.shape():
            runs[-1].append(disk)
        else:
            runs.append([disk])
    return [tuple(run) for run in runs]


def short_id(disk_id: str, longest: int = 24) -> str:
    """Return the last part of a disk's link, with its middle left out when it is long: both ends distinguish disks."""
    name = disk_id.rsplit("/", 1)[-1]
    if len(name) <= longest:
        return name
    tail = (longest - 1) // 2
    return f"{name[: longest - 1 - tail]}…{name[-tail:]}"


def describe_disk(facts: Plain) -> str:
    """Return kind, transport, vendor and model of a disk as one phrase, as much as is known of them."""
    transport = str(facts.get("transport") or "")
    vendor, model = (" ".join(str(facts.get(key) or "").split()) for key in ("vendor", "model"))
    if vendor.lower() in {"ata", "nvme", "0x1af4"} or model.lower().startswith(vendor.lower()):
        vendor = ""
    sector = "4Kn" if facts.get("logical_block") == 4096 else ""
    words = (TRANSPORTS.get(transport, transport), str(facts.get("type") or "").upper(), sector, vendor, model)
    return " ".join(word for word in words if word)


def _disks(plan: Plain, hardware: Plain, spaces: Sequence[SpacePicture]) -> tuple[DiskPicture, ...]:
    facts = {str(disk.get("id")): disk for disk in hardware.get("disks") or ()}
    by_id = {space.id: space for space in spaces}
    volumes = {space.id: _volumes_in(space, spaces) for space in spaces}
    before: dict[str, int] = {}
    pictures = []
    for disk in plan.get("disks") or ():
        segments = []
        for space_id, size in _taken(disk):
            spare = str(disk.get("disk_id")) in by_id[space_id].standing_by
            segments.append(
                Segment(space_id, size, spare=True)
                if spare
                else _segment(by_id[space_id], size, volumes[space_id], before.get(space_id, 0))
            )
            before[space_id] = before.get(space_id, 0) + size
        pictures.append(_disk(disk, facts.get(str(disk.get("disk_id")), {}), tuple(segments)))
    return tuple(pictures)


def _disk(disk: Plain, facts: Plain, segments: tuple[Segment, ...]) -> DiskPicture:
    disk_id = str(disk.get("disk_id"))
    size = int(disk.get("size") or mib_or_nothing(facts.get("size")))
    unallocated = disk.get("unallocated")
    return DiskPicture(
        id=disk_id,
        name=str(facts.get("dev") or disk_id).rsplit("/", 1)[-1],
        short_id=short_id(disk_id),
        description=describe_disk(facts),
        size=size,
        unallocated=int(unallocated) if unallocated is not None else size - sum(segment.size for segment in segments),
        segments=segments,
    )


def _left_out(disk: Plain, hardware: Plain) -> LeftOutPicture:
    disk_id = str(disk.get("disk_id"))
    facts: Plain = next((one for one in hardware.get("disks") or () if str(one.get("id")) == disk_id), {})
    size = int(disk.get("size") or mib_or_nothing(facts.get("size")))
    name = str(facts.get("dev") or disk_id).rsplit("/", 1)[-1]
    reason, kinds = str(disk.get("reason") or "is left out"), tuple(str(kind) for kind in disk.get("kinds") or ())
    return LeftOutPicture(name, short_id(disk_id), describe_disk(facts), size, reason, kinds)


def _idle(disks: Plain, hardware: Plain) -> IdlePicture:
    ids = [str(disk_id) for disk_id in disks.get("disk_ids") or ()]
    by_id = {str(disk.get("id")): disk for disk in hardware.get("disks") or ()}
    names = [str(by_id.get(disk_id, {}).get("dev") or disk_id).rsplit("/", 1)[-1] for disk_id in ids] or [""]
    override = disks.get("override")
    return IdlePicture(
        count=len(ids),
        first=names[0],
        last=names[-1],
        description=describe_disk(by_id.get(ids[0], {})) if ids else "",
        size=int(disks.get("size") or 0),
        remark=str(disks.get("remark") or ""),
        override=_on_one_line(override) if isinstance(override, Mapping) else "",
    )


def _on_one_line(space: Plain) -> str:
    """Return a space as YAML on one line."""
    return f"{{{', '.join(f'{key}: {_yaml_word(value)}' for key, value in space.items() if value not in (0, False))}}}"


def _yaml_word(value: t.Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_yaml_word, value))}]"
    text = str(value)
    return text.lower() if isinstance(value, bool) else text if _YAML_PLAIN.fullmatch(text) else json.dumps(text)


def _segment(space: SpacePicture, size: int, volumes: Sequence[SpacePicture], before: int) -> Segment:
    if not volumes:
        return Segment(space.id, size)
    slices = _shares_of_leg(space, size, volumes) if space.kind == "raid" else _fill_in_order(size, volumes, before)
    free = max(0.0, size - sum(part.size for part in slices))
    return Segment(space.id, size, slices, free if free >= space.extent or space.extent == EXTENT else 0.0)


def _fill_in_order(size: int, volumes: Sequence[SpacePicture], before: int) -> tuple[Slice, ...]:
    """Return the volumes as they fill the PVs of their group one after the other.

    LVM decides where each extent lies, so this shows how large each volume is, not where it is.
    """
    slices = []
    position = 0
    for volume in volumes:
        inside = min(before + size, position + volume.size) - max(before, position)
        if inside > 0:
            slices.append(Slice(volume.id, inside))
        position += volume.size
    return tuple(slices)


def _shares_of_leg(array: SpacePicture, size: int, volumes: Sequence[SpacePicture]) -> tuple[Slice, ...]:
    """Return the volumes on one leg: every leg of an array carries its share of each."""
    return tuple(Slice(volume.id, size * volume.size / array.size) for volume in volumes if array.size)


def _volumes_in(space: SpacePicture, spaces: Sequence[SpacePicture]) -> list[SpacePicture]:
    found = _volumes_shared(space, spaces)
    for inner in spaces:
        if inner.inside == space.id:
            found.extend([inner] if inner.kind in {"lv", "thin_pool"} else _volumes_in(inner, spaces))
    return found


def _volumes_shared(array: SpacePicture, spaces: Sequence[SpacePicture]) -> list[SpacePicture]:
    """Return what one of the arrays under a group holds of its volumes, which fill the arrays one after the other."""
    by_id = {space.id: space for space in spaces}
    found = []
    for group in spaces:
        if array.id in group.lies_on:
            before = sum(by_id[name].size for name in group.lies_on[: group.lies_on.index(array.id)])
            parts = _fill_in_order(array.size, _volumes_in(group, spaces), before)
            found += [replace(by_id[part.space_id], size=int(part.size)) for part in parts]
    return found


def _sizes_on_disks(plan: Plain) -> dict[str, list[int]]:
    sizes: dict[str, list[int]] = {}
    for disk in plan.get("disks") or ():
        for space_id, size in _taken(disk):
            sizes.setdefault(space_id, []).append(size)
    return sizes


def _taken(disk: Plain) -> list[tuple[str, int]]:
    return [
        (str(space["space_id"]), int(space["size"]))
        for space in disk.get("spaces") or ()
        if space["space_id"] != "unallocated" and int(space["size"]) > 0
    ]
