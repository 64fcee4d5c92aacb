# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The disk that an image is written to, and the arrays below it, in the words of Ironic and of Metal3, which drives Ironic.

Both write an image to one device, and make md arrays of partitions on whole disks (software RAID) before that. They make no partitions and
no file systems. After ironic/drivers/raid_config_schema.json and the CustomResourceDefinition BareMetalHost.
"""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....module_utils._data.words import listed
from ....module_utils._schema.model import DesiredArray, DesiredDisk, Layout
from ....module_utils._storage import gpt
from ....module_utils._storage.identity import BY_PATH
from ....module_utils._storage.raid import RaidLevel, data_legs
from .durable import world_wide_name
from .losses import Losses
from .write import Target

Plain = dict[str, t.Any]

_MIB_PER_GIB = 1024
_ROOT, _OF_IMAGE = "/", "/boot"
_BY_FIRMWARE = (gpt.ESP, gpt.BIOS_BOOT)
"""Types of partitions that the image brings, or that Ironic makes on the disks of an array."""
_LEVELS = {
    RaidLevel.RAID0: "0",
    RaidLevel.RAID1: "1",
    RaidLevel.RAID5: "5",
    RaidLevel.RAID6: "6",
    RaidLevel.RAID10: "1+0",
}
_METAL3_LEVELS = ("0", "1", "1+0")
_METAL3_ARRAYS = 2


@dataclass(frozen=True)
class _Hint:
    """What names one disk and no other: its WWN, its serial number, or its link by path."""

    kind: str
    value: str


@dataclass(frozen=True)
class _Array:
    """An array of Ironic's; `gib` None is all that the disks have left."""

    space: str
    level: str
    gib: int | None
    is_root: bool
    disks: tuple[_Hint, ...]


@dataclass(frozen=True)
class _Wanted:
    """What both can say of a plan: the disk of the image where it lies on one, else the arrays, that of the image first."""

    root: _Hint | None
    arrays: tuple[_Array, ...]


def _wanted(layout: Layout, losses: Losses, target: str) -> _Wanted:
    root = next((filesystem for filesystem in layout.filesystems if _ROOT in (mount.path for mount in filesystem.mounts)), None)
    if root is None:
        losses.refuse(layout.disks[0].id, f"nothing is mounted at /, so {target} does not know where the image is to be written")
        return _Wanted(None, ())
    below = set(layout.partitions_below(root.device))
    on = [disk for disk in layout.disks if set(disk.partitions) & below]
    under = next((array for array in layout.arrays if below <= set(layout.partitions_below(array.device))), None)
    adjacent = [array for array in layout.arrays if under is not None and array is not under and _may_be_beside(layout, array, on)]
    made = () if under is None else tuple(_array(array, layout, losses, target, is_root=array is under) for array in (under, *adjacent))
    others = [array for array in layout.arrays if array is not under and array not in adjacent]
    _lose_rest(layout, losses, target, root.device, others)
    if made or len(on) == 1:
        _check_order(made, losses, target)
        return _Wanted(None if made else _hint(on[0], losses, target), made)
    names = listed([disk.id for disk in on])
    losses.refuse(root.space, f"{target} writes the image to one disk or one array, and / lies on {names}; plan it on a raid")
    return _Wanted(None, ())


def _may_be_beside(layout: Layout, array: DesiredArray, disks: Sequence[DesiredDisk]) -> bool:
    """Return whether an array can be made with that of the image: on the same disks, of 1 GiB or more, and nothing that the image has."""
    parts = layout.partitions_below(array.device)
    filesystem = layout.filesystem_on(array.device)
    own = filesystem is not None and filesystem.mount_point.startswith(_OF_IMAGE)
    return (
        not own
        and _capacity(array, layout) >= _MIB_PER_GIB
        and [disk for disk in layout.disks if set(disk.partitions) & set(parts)] == disks
    )


def _capacity(array: DesiredArray, layout: Layout) -> int:
    return data_legs(RaidLevel(array.level), len(array.members)) * min(part.mib for part in layout.partitions_below(array.device))


def _array(array: DesiredArray, layout: Layout, losses: Losses, target: str, *, is_root: bool) -> _Array:
    level = RaidLevel(array.level)
    parts = layout.partitions_below(array.device)
    disks = [disk for disk in layout.disks if set(disk.partitions) & set(parts)]
    if array.spares:
        losses.lose(array.space, f"{target} makes arrays without spare disks, so not with {len(array.spares)}")
    takes_rest = all(disk.partitions[-1] in parts and _reaches_end(disk) for disk in disks)
    capacity = _capacity(array, layout)
    gib = capacity // _MIB_PER_GIB
    if not takes_rest and capacity % _MIB_PER_GIB:
        losses.lose(array.space, f"{target} makes arrays of whole GiB, so of {gib} GiB, not of {capacity} MiB")
    hints = tuple(hint for disk in disks if (hint := _hint(disk, losses, target)) is not None)
    return _Array(array.space, _LEVELS[level], None if takes_rest else gib, is_root, hints)


def _reaches_end(disk: DesiredDisk) -> bool:
    return disk.size is not None and disk.partitions[-1].end // (1024 * 1024) >= disk.size - gpt.TAIL


def _lose_rest(layout: Layout, losses: Losses, target: str, root: str, arrays: Sequence[DesiredArray]) -> None:
    """Lose what an image has by itself, or what has to be made once it runs; `arrays` are those that are not made."""
    members = {part for array in layout.arrays for part in layout.partitions_below(array.device)}
    lost = [part.space for part in layout.partitions() if part not in members and part.type not in _BY_FIRMWARE and part.device != root]
    lost += [array.space for array in arrays] + [container.space for container in layout.containers]
    lost += [group.space for group in layout.groups] + [volume.space for volume in layout.volumes]
    for filesystem in layout.filesystems:
        on = {part.type for part in layout.partitions_below(filesystem.device)}
        if filesystem.device != root and not on <= set(_BY_FIRMWARE):
            lost.append(filesystem.space)
    for space in dict.fromkeys(lost):
        losses.lose(space, f"{target} writes an image, and makes none of this; disk_layout does once the machine runs")
    losses.note("the file system at / is that of the image")


def _hint(disk: DesiredDisk, losses: Losses, target: str) -> _Hint | None:
    name = disk.device
    if world_wide_name(name):
        return _Hint("wwn", world_wide_name(name))
    if name.startswith(BY_PATH):
        return _Hint("by_path", name)
    losses.refuse(disk.id, f"{target} finds disks by WWN or by path, and {name} names neither; give hardware whose links have one of these")
    return None


def write_ironic(layout: Layout, losses: Losses) -> Plain:
    """Return `properties` and `target_raid_config` of a node."""
    wanted = _wanted(layout, losses, "Ironic")
    made: Plain = {"properties": {} if wanted.root is None else {"root_device": {wanted.root.kind: wanted.root.value}}}
    if wanted.arrays:
        made["target_raid_config"] = {
            "logical_disks": [
                {
                    "controller": "software",
                    "raid_level": array.level,
                    "size_gb": "MAX" if array.gib is None else array.gib,
                    "physical_disks": [{hint.kind: hint.value} for hint in array.disks],
                    **({"is_root_volume": True} if array.is_root else {}),
                    **({"volume_name": array.space} if array.space else {}),
                }
                for array in wanted.arrays
            ]
        }
    return made


def write_metal3(layout: Layout, losses: Losses) -> Plain:
    """Return the parts `raid` and `rootDeviceHints` of a BareMetalHost's `spec`."""
    wanted = _wanted(layout, losses, "Metal3")
    made: Plain = {} if wanted.root is None else {"rootDeviceHints": _as_hint(wanted.root)}
    if wanted.arrays:
        for array in wanted.arrays:
            if array.level not in _METAL3_LEVELS:
                losses.refuse(array.space, f"Metal3 makes software RAID of the levels {listed(_METAL3_LEVELS)}, not {array.level}")
        if len(wanted.arrays) > _METAL3_ARRAYS:
            names = listed([array.space for array in wanted.arrays[_METAL3_ARRAYS:]])
            losses.refuse(wanted.arrays[_METAL3_ARRAYS].space, f"Metal3 makes {_METAL3_ARRAYS} arrays at most; plan {names} otherwise")
        made["raid"] = {"softwareRAIDVolumes": [_software_volume(array) for array in wanted.arrays]}
    return made


def _software_volume(array: _Array) -> Plain:
    size = {} if array.gib is None else {"sizeGibibytes": array.gib}
    return {"level": array.level, **size, "physicalDisks": [_as_hint(hint) for hint in array.disks]}


def _as_hint(hint: _Hint) -> Mapping[str, str]:
    return {"wwn": hint.value} if hint.kind == "wwn" else {"deviceName": hint.value}


def _check_order(arrays: Sequence[_Array], losses: Losses, target: str) -> None:
    """Refuse what the agent that makes software RAID refuses: the first array is a mirror, and only the last takes what is left."""
    if arrays and arrays[0].level != _LEVELS[RaidLevel.RAID1]:
        losses.refuse(arrays[0].space, f"the first array that {target} makes must be a raid1")
    for array in arrays[:-1]:
        if array.gib is None:
            losses.refuse(array.space, f"only the last array that {target} makes may take the rest of the disks")


IRONIC = Target("Ironic", write_ironic)
METAL3 = Target("Metal3", write_metal3)
