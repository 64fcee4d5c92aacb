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

from ....module_utils._data.errors import InputError, Mistake
from ....module_utils._storage.filesystems import FILESYSTEMS
from ....module_utils._storage.zfs import Vdev
from .layout import Array, Container, Dataset, Disk, Filesystem, Group, Layout, Pool, Subvolume, Vdevs, Zpool
from .losses import Losses, lose_extents, lose_methods, lose_quotas, note_boot_flags, note_uuids
from .write import Target

Nix = t.Union[str, int, bool, list["Nix"], dict[str, "Nix"]]
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_'-]*")
_RESERVED = frozenset({"assert", "else", "if", "in", "inherit", "let", "or", "rec", "then", "with"})
_INDENT = "  "
_IN_LINKS = "#+-.:=@_"
"""What stands in links of udev as it is, beside letters and digits."""


def write(layout: Layout, losses: Losses, *, password_file: str | None) -> str:
    """Return the module; `password_file` holds the passphrase of LUKS where disko runs, which asks for it otherwise."""
    lose_extents(layout, losses, "disko")
    lose_quotas(layout, losses, "disko")
    lose_methods(layout, losses, "disko")
    for note in (note_uuids, note_boot_flags):
        note(layout, losses, "disko")
    devices: dict[str, Nix] = {"disk": {disk.name: _disk(disk, layout, losses, password_file) for disk in layout.disks}}
    if layout.arrays:
        devices["mdadm"] = {array.name: _array(array, layout, losses, password_file) for array in layout.arrays}
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


def _disk(disk: Disk, layout: Layout, losses: Losses, password_file: str | None) -> Nix:
    partitions: dict[str, Nix] = {}
    for at, partition in enumerate(disk.partitions, start=1):
        made: dict[str, Nix] = {
            "priority": at,
            "label": layout.label(partition),
            "type": partition.guid.upper(),
            "start": f"{partition.begin}M",
            "size": f"{partition.size}M",
        }
        partitions[layout.title(partition)] = made | _content(partition.device, layout, losses, password_file)
    return {"type": "disk", "device": disk.device, "content": {"type": "gpt", "partitions": partitions}}


def _array(array: Array, layout: Layout, losses: Losses, password_file: str | None) -> Nix:
    if array.spares:
        losses.lose(array.space, f"disko cannot make spares such as {', '.join(array.spares)}")
    level = int(array.level.removeprefix("raid"))
    made: dict[str, Nix] = {"type": "mdadm", "level": level, "metadata": array.metadata}
    return made | _content(array.device, layout, losses, password_file)


def _group(group: Group, layout: Layout, losses: Losses, password_file: str | None) -> Nix:
    volumes: dict[str, Nix] = {pool.name: _pool(pool) for pool in layout.pools_of(group.name)}
    for volume in layout.volumes_of(group.name):
        size: dict[str, Nix] = {"size": f"{volume.size}M"}
        size |= {"lvm_type": "thinlv", "pool": volume.pool} if volume.pool else {}
        volumes[volume.name] = size | _content(volume.device, layout, losses, password_file)
    return {"type": "lvm_vg", "lvs": volumes}


def _zpool(pool: Zpool, layout: Layout) -> Nix:
    """Return a ZFS pool, whose members are named as disko names partitions: by their labels."""
    names = {partition.device: f"/dev/disk/by-partlabel/{_escaped(layout.label(partition))}" for partition in layout.partitions()}

    def vdevs(those: Vdevs) -> list[Nix]:
        return [
            {"mode": "" if kind == Vdev.STRIPE else kind, "members": [names.get(device, device) for device in devices]}
            for kind, devices in those
        ]

    lists: dict[str, list[Nix]] = {
        "vdev": vdevs(pool.vdevs),
        "log": vdevs(pool.logs),
        "cache": [names.get(device, device) for device in pool.caches],
        "spare": [names.get(device, device) for device in pool.spares],
    }
    topology: dict[str, Nix] = {"type": "topology", **{key: members for key, members in lists.items() if members}}
    root, *datasets = pool.datasets
    made: dict[str, Nix] = {"type": "zpool", "mode": {"topology": topology}, "options": {"ashift": str(pool.ashift)}}
    made |= {"rootFsOptions": dict(root.own), **({"mountpoint": root.mount} if root.mount else {})}
    return made | {"datasets": {dataset.name: _dataset(dataset) for dataset in datasets}}


def _dataset(dataset: Dataset) -> Nix:
    made: dict[str, Nix] = {"type": "zfs_fs", "options": dict(dataset.own)}
    # What is mounted nowhere says so itself: disko goes by the option.
    own: dict[str, Nix] = {"mountpoint": dataset.mount} if dataset.mount else {"options": {**dataset.own, "mountpoint": "none"}}
    return made | own


def _escaped(label: str) -> str:
    """Return a label as udev has it in a link."""
    return "".join(letter if letter.isalnum() or letter in _IN_LINKS else _as_bytes(letter) for letter in label)


def _as_bytes(letter: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in letter.encode())


def _pool(pool: Pool) -> Nix:
    metadata: list[Nix] = [f"--poolmetadatasize={pool.metadata}m"] if pool.metadata else []
    return {"size": f"{pool.size}M", "lvm_type": "thin-pool", "extraArgs": [f"--chunksize={pool.chunk}k", *metadata]}


def _content(device: str, layout: Layout, losses: Losses, password_file: str | None) -> dict[str, Nix]:
    """Return `{content: ...}` of a device, nothing where nothing lies on it."""
    user, zpool = layout.user(device), layout.zpool_on(device)
    if zpool is not None:
        return {"content": {"type": "zfs", "pool": zpool.name}}
    if isinstance(user, Array):
        return {} if device in user.spares else {"content": {"type": "mdraid", "name": user.name}}
    if isinstance(user, Group):
        return {"content": {"type": "lvm_pv", "vg": user.name}}
    if isinstance(user, Container):
        key: dict[str, Nix] = {"passwordFile": password_file} if password_file is not None else {"askPassword": True}
        made: dict[str, Nix] = {"type": "luks", "name": user.name}
        return {"content": made | key | _content(user.device, layout, losses, password_file)}
    return {} if user is None else {"content": _filesystem(user, losses)}


def _filesystem(filesystem: Filesystem, losses: Losses) -> Nix:
    label = [FILESYSTEMS[filesystem.type].label_option, filesystem.label] if filesystem.label else []
    try:
        words: list[Nix] = [*label, *shlex.split(filesystem.make_options)]
    except ValueError as error:
        raise InputError(
            [Mistake(filesystem.space, f"fs_options is {filesystem.make_options!r}, which is no list of words: {error}")]
        ) from error
    extra: dict[str, Nix] = {"extraArgs": words} if words else {}
    if filesystem.is_swap:
        options: dict[str, Nix] = {"mountOptions": list(filesystem.options.split(","))} if filesystem.options else {}
        return {"type": "swap", **options, **extra}
    if filesystem.options and not filesystem.mount:
        losses.note(f"{filesystem.space}: it is not mounted, so its mount options have no effect")
    mounted: dict[str, Nix] = {"mountpoint": filesystem.mount} if filesystem.mount else {}
    if filesystem.mount and filesystem.options:
        mounted["mountOptions"] = list(filesystem.options.split(","))
    if filesystem.subvolumes:
        subvolumes: dict[str, Nix] = {f"/{subvolume.name}": _subvolume(subvolume) for subvolume in filesystem.subvolumes}
        return {"type": "btrfs", **mounted, **extra, "subvolumes": subvolumes}
    return {"type": "filesystem", "format": filesystem.type, **mounted, **extra}


def _subvolume(subvolume: Subvolume) -> Nix:
    if not subvolume.mount:
        return {}
    options: dict[str, Nix] = {"mountOptions": list(subvolume.mount_options.split(","))} if subvolume.mount_options else {}
    return {"mountpoint": subvolume.mount, **options}
