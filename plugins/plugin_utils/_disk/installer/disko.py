# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A layout as a NixOS module for disko.

After disko's types: disk, gpt, mdadm and mdraid, lvm_vg and lvm_pv, luks, filesystem, btrfs, swap, zfs, zpool and zfs_fs. Sizes are
sgdisk's, LVM's and ZFS's, where M is MiB.
"""

from __future__ import annotations

import re
import shlex
import typing as t
from collections.abc import Sequence

from ....module_utils._data.errors import InputError, Mistake
from ....module_utils._schema.model import (
    DesiredArray,
    DesiredContainer,
    DesiredDataset,
    DesiredDisk,
    DesiredFilesystem,
    DesiredGroup,
    DesiredPool,
    DesiredSubvolume,
    DesiredVdev,
    DesiredZpool,
    Layout,
)
from ....module_utils._storage.filesystems import FILESYSTEMS
from ....module_utils._storage.units import KIB, MIB
from ....module_utils._storage.zfs import NOT_MOUNTED, Vdev
from .losses import Losses, lose_array_options, lose_extents, lose_methods, lose_quotas, note_boot_flags, note_uuids
from .words import label_of, make_words, mount_words, subvolume_words
from .write import Target

Nix = t.Union[str, int, bool, list["Nix"], dict[str, "Nix"]]
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_'-]*")
_RESERVED = frozenset({"assert", "else", "if", "in", "inherit", "let", "or", "rec", "then", "with"})
_INDENT = "  "
_FIRST = 100
"""Of volumes; disko's own default is 1000."""
_IN_MIB = ("quota", "reservation")
_IN_LINKS = "#+-.:=@_"
"""Characters that links of udev keep, in addition to letters and digits."""


def write(layout: Layout, losses: Losses, *, password_file: str | None) -> str:
    """Return the module; `password_file` holds the passphrase of LUKS where disko runs, which asks for it otherwise."""
    lose_extents(layout, losses, "disko")
    lose_array_options(layout, losses, "disko")
    lose_quotas(layout, losses, "disko")
    lose_methods(layout, losses, "disko")
    for note in (note_uuids, note_boot_flags):
        note(layout, losses, "disko")
    devices: dict[str, Nix] = {"disk": {disk.name: _disk(disk, layout, losses, password_file) for disk in layout.disks}}
    if layout.arrays:
        devices["mdadm"] = {array.title: _array(array, layout, losses, password_file) for array in layout.arrays}
    if layout.groups:
        devices["lvm_vg"] = {group.name: _group(group, layout, losses, password_file) for group in layout.groups}
    if layout.zpools:
        devices["zpool"] = {pool.name: _zpool(pool, layout) for pool in layout.zpools}
    return f"{to_nix({'disko': {'devices': devices}})}\n"


TARGET = Target("disko", write, thin=True, zfs=True)


def to_nix(value: Nix, depth: int = 0) -> str:
    """Return plain data as a Nix expression."""
    inner, outer = _INDENT * (depth + 1), _INDENT * depth
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("${", "\\${").replace("\n", "\\n")
        return f'"{escaped}"'
    if isinstance(value, list):
        return f"[ {' '.join(to_nix(item, depth) for item in value)} ]" if value else "[ ]"
    lines = "".join(f"{inner}{_name(key)} = {to_nix(item, depth + 1)};\n" for key, item in value.items())
    return f"{{\n{lines}{outer}}}"


def _name(key: str) -> str:
    return key if _PLAIN_NAME.fullmatch(key) and key not in _RESERVED else to_nix(key)


def _disk(disk: DesiredDisk, layout: Layout, losses: Losses, password_file: str | None) -> Nix:
    partitions: dict[str, Nix] = {}
    for at, partition in enumerate(disk.partitions, start=1):
        made: dict[str, Nix] = {
            "priority": at,
            "label": label_of(layout, partition),
            "type": partition.type.upper(),
            "start": f"{partition.begin}M",
            "size": f"{partition.mib}M",
        }
        partitions[layout.title(partition)] = made | _content(partition.device, layout, losses, password_file)
    return {"type": "disk", "device": disk.device, "content": {"type": "gpt", "partitions": partitions}}


def _array(array: DesiredArray, layout: Layout, losses: Losses, password_file: str | None) -> Nix:
    if array.spares:
        losses.lose(array.space, f"disko cannot make spares such as {', '.join(array.spares)}")
    level = int(array.level.removeprefix("raid"))
    made: dict[str, Nix] = {"type": "mdadm", "level": level, "metadata": array.asked_metadata}
    return made | _content(array.device, layout, losses, password_file)


def _group(group: DesiredGroup, layout: Layout, losses: Losses, password_file: str | None) -> Nix:
    volumes: dict[str, Nix] = {pool.name: _pool(pool) for pool in layout.pools_of(group.name)}
    for volume in layout.volumes_of(group.name):
        size: dict[str, Nix] = {"size": f"{volume.size // MIB}M"}
        size |= {"lvm_type": "thinlv", "pool": volume.pool} if volume.pool else {}
        # They are made before those that may lie anywhere, which could take the room that they need.
        size |= {"priority": _FIRST, "extraArgs": list(volume.options)} if volume.options else {}
        volumes[volume.name] = size | _content(volume.device, layout, losses, password_file)
    return {"type": "lvm_vg", "lvs": volumes}


def _zpool(pool: DesiredZpool, layout: Layout) -> Nix:
    """Return a ZFS pool, whose members are named as disko names partitions: by their labels."""
    names = {partition.device: f"/dev/disk/by-partlabel/{_escaped(label_of(layout, partition))}" for partition in layout.partitions()}

    def vdevs(those: Sequence[DesiredVdev]) -> list[Nix]:
        return [
            {"mode": "" if one.type == Vdev.STRIPE else one.type, "members": [names.get(device, device) for device in one.devices]}
            for one in those
        ]

    lists: dict[str, list[Nix]] = {
        "vdev": vdevs(pool.vdevs),
        "log": vdevs(pool.logs),
        "cache": [names.get(device, device) for device in pool.caches],
        "spare": [names.get(device, device) for device in pool.spares],
    }
    topology: dict[str, Nix] = {"type": "topology", **{key: members for key, members in lists.items() if members}}
    mounts = _mount_points(pool)
    made: dict[str, Nix] = {"type": "zpool", "mode": {"topology": topology}, "options": {"ashift": str(pool.ashift)}}
    made |= {"rootFsOptions": _properties(pool.root), **({"mountpoint": mounts[""]} if mounts[""] else {})}
    return made | {"datasets": {dataset.name: _dataset(dataset, mounts[dataset.name]) for dataset in pool.datasets}}


def _mount_points(pool: DesiredZpool) -> dict[str, str]:
    """Return where each dataset is mounted, by its path below the pool, empty for nowhere; by default that is below what it lies in."""
    mounts: dict[str, str] = {}
    datasets = {dataset.name: dataset for dataset in (pool.root, *pool.datasets)}
    for name in sorted(datasets, key=lambda name: (name.count("/"), name)):
        given = dict(datasets[name].properties).get("mountpoint")
        above = max((outer for outer in mounts if name.startswith(f"{outer}/" if outer else "")), key=len, default="")
        inherited = f"{mounts[above].rstrip('/')}/{name[len(above) :].lstrip('/')}" if mounts.get(above) else ""
        mounts[name] = inherited if given is None else "" if given == NOT_MOUNTED else given
    return mounts


def _properties(dataset: DesiredDataset) -> dict[str, Nix]:
    return {key: f"{int(value) // MIB}M" if key in _IN_MIB else value for key, value in dataset.properties}


def _dataset(dataset: DesiredDataset, mount: str) -> Nix:
    made: dict[str, Nix] = {"type": "zfs_fs", "options": _properties(dataset)}
    # What is mounted nowhere says so itself: disko goes by the option.
    own: dict[str, Nix] = {"mountpoint": mount} if mount else {"options": {**_properties(dataset), "mountpoint": "none"}}
    return made | own


def _escaped(label: str) -> str:
    """Return a label as udev has it in a link."""
    return "".join(letter if letter.isalnum() or letter in _IN_LINKS else _as_bytes(letter) for letter in label)


def _as_bytes(letter: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in letter.encode())


def _pool(pool: DesiredPool) -> Nix:
    metadata: list[Nix] = [] if pool.default_metadata else [f"--poolmetadatasize={pool.metadata // MIB}m"]
    return {"size": f"{pool.size // MIB}M", "lvm_type": "thin-pool", "extraArgs": [f"--chunksize={pool.chunk // KIB}k", *metadata]}


def _content(device: str, layout: Layout, losses: Losses, password_file: str | None) -> dict[str, Nix]:
    """Return `{content: ...}` of a device, nothing where nothing lies on it."""
    user = layout.lies_on(device)
    if isinstance(user, DesiredZpool):
        return {"content": {"type": "zfs", "pool": user.name}}
    if isinstance(user, DesiredArray):
        return {} if device in user.spares else {"content": {"type": "mdraid", "name": user.title}}
    if isinstance(user, DesiredGroup):
        return {"content": {"type": "lvm_pv", "vg": user.name}}
    if isinstance(user, DesiredContainer):
        key: dict[str, Nix] = {"passwordFile": password_file} if password_file is not None else {"askPassword": True}
        made: dict[str, Nix] = {"type": "luks", "name": user.name}
        return {"content": made | key | _content(user.device, layout, losses, password_file)}
    return {} if user is None else {"content": _filesystem(user, losses)}


def _filesystem(filesystem: DesiredFilesystem, losses: Losses) -> Nix:
    label = [FILESYSTEMS[filesystem.type].label_option, filesystem.label] if filesystem.label else []
    try:
        words: list[Nix] = [*label, *shlex.split(make_words(filesystem))]
    except ValueError as error:
        raise InputError(
            [Mistake(filesystem.space, f"fs_options is {make_words(filesystem)!r}, which is no list of words: {error}")]
        ) from error
    extra: dict[str, Nix] = {"extraArgs": words} if words else {}
    if filesystem.is_swap:
        options: dict[str, Nix] = {"mountOptions": list(mount_words(filesystem).split(","))} if mount_words(filesystem) else {}
        return {"type": "swap", **options, **extra}
    if mount_words(filesystem) and not filesystem.mount_point:
        losses.note(f"{filesystem.space}: it is not mounted, so its mount options have no effect")
    mounted: dict[str, Nix] = {"mountpoint": filesystem.mount_point} if filesystem.mount_point else {}
    if filesystem.mount_point and mount_words(filesystem):
        mounted["mountOptions"] = list(mount_words(filesystem).split(","))
    if filesystem.subvolumes:
        subvolumes: dict[str, Nix] = {f"/{subvolume.name}": _subvolume(filesystem, subvolume) for subvolume in filesystem.subvolumes}
        return {"type": "btrfs", **mounted, **extra, "subvolumes": subvolumes}
    return {"type": "filesystem", "format": filesystem.type, **mounted, **extra}


def _subvolume(filesystem: DesiredFilesystem, subvolume: DesiredSubvolume) -> Nix:
    if not subvolume.mount_point:
        return {}
    words = subvolume_words(filesystem, subvolume)
    options: dict[str, Nix] = {"mountOptions": list(words.split(","))} if words else {}
    return {"mountpoint": subvolume.mount_point, **options}
