# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A layout as documents of Talos Linux' machine configuration: the disk to install on, and volumes, each a partition.

Talos brings its own system partitions, mounts the volume EPHEMERAL at /var and those of users below /var/mnt, and makes neither arrays nor
LVM. After its "config.schema.json" and what its volume manager does: a volume whose least and largest sizes are equal has that size.
"""

from __future__ import annotations

import json
import re
import typing as t
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ....module_utils._data.words import listed
from ....module_utils._schema.model import DesiredContainer, DesiredDisk, DesiredFilesystem, DesiredPartition, Layout
from ....module_utils._storage import gpt
from ....module_utils._storage.unlock import PASSPHRASE, TPM2
from .durable import DURABLE, world_wide_name
from .losses import Losses, lose_labels, lose_subvolumes, lose_types, note_uuids
from .words import make_words, mount_words
from .write import Target

Plain = dict[str, t.Any]

_ROOT, _OF_IMAGE, _EPHEMERAL, _USERS = "/", "/boot", "/var", "/var/mnt/"
_BY_FIRMWARE = (gpt.ESP, gpt.BIOS_BOOT)
_FILESYSTEMS = ("ext4", "xfs", "btrfs")
_SYSTEM = 2202
"""MiB of BIOS, EFI, BOOT, META and STATE, since Talos 1.11; before that 1000 less."""
_LEAST_EPHEMERAL = 2048
_LONGEST_NAME = 34
_SECURE = ("nodev", "noexec", "nosuid")
_NO_ACCESS_TIME = "noatime"


@dataclass(frozen=True)
class _Volume:
    """A partition that Talos makes, with what lies on it, perhaps in a LUKS container."""

    partition: DesiredPartition
    disk: DesiredDisk
    container: DesiredContainer | None
    filesystem: DesiredFilesystem | None


def write(layout: Layout, losses: Losses, *, passphrase: str | None) -> list[Plain]:
    """Return the documents; `passphrase` opens LUKS, and stands in them in clear."""
    lose_types(layout, losses, "Talos gives partitions the type of Linux data", _BY_FIRMWARE)
    lose_labels(layout, losses, "Talos")
    lose_subvolumes(layout, losses, "Talos")
    note_uuids(layout, losses, "Talos")
    installed = _installed(layout, losses)
    system = set(_system_partitions(layout, installed))
    volumes = [_volume(part, disk, layout) for disk in layout.disks for part in disk.partitions if part not in system]
    made = [volume for volume in volumes if _is_written(volume, layout)]
    _lose_rest(layout, made, system, losses)
    ephemeral = next((volume for volume in made if _path(volume) == _EPHEMERAL), None)
    documents = [{"machine": {"install": _installation(installed)}}] if installed is not None else []
    if ephemeral is not None:
        documents.append(_ephemeral(ephemeral, losses, passphrase))
    if installed is not None:
        documents += _rest_of_system(installed, system, losses, planned=ephemeral is not None)
    names: dict[str, str] = {}
    documents += [_document(volume, layout, names, losses, passphrase) for volume in made if volume is not ephemeral]
    return documents


TARGET = Target("Talos", write)


def _installed(layout: Layout, losses: Losses) -> DesiredDisk | None:
    """Return the disk of the system, on which `/` lies."""
    root = next((filesystem for filesystem in layout.filesystems if _ROOT in (mount.path for mount in filesystem.mounts)), None)
    if root is None:
        losses.note("nothing is mounted at /, so no disk to install on is written")
        return None
    below = set(layout.partitions_below(root.device))
    on = [disk for disk in layout.disks if set(disk.partitions) & below]
    if len(on) != 1:
        losses.refuse(root.space, f"Talos installs on one disk, and / lies on {listed([disk.id for disk in on])}; plan it on one")
        return None
    losses.note("the file system at / is Talos' own, and so are the partitions that firmware starts from")
    return on[0]


def _system_partitions(layout: Layout, installed: DesiredDisk | None) -> Iterator[DesiredPartition]:
    """Give the partitions that Talos' own take the place of: of firmware, of `/` and of `/boot`."""
    for filesystem in layout.filesystems:
        paths = [mount.path for mount in filesystem.mounts]
        if any(path in (_ROOT, _OF_IMAGE) or path.startswith(f"{_OF_IMAGE}/") for path in paths):
            yield from layout.partitions_below(filesystem.device)
    if installed is not None:
        yield from (part for part in layout.partitions() if part.type in _BY_FIRMWARE)


def _volume(part: DesiredPartition, disk: DesiredDisk, layout: Layout) -> _Volume:
    container = layout.container_on(part.device)
    return _Volume(part, disk, container, layout.filesystem_on(part.device if container is None else container.device))


def _is_written(volume: _Volume, layout: Layout) -> bool:
    """Return whether a partition has something that Talos makes, or nothing."""
    if volume.filesystem is not None:
        return volume.filesystem.is_swap or volume.filesystem.type in _FILESYSTEMS
    device = volume.partition.device if volume.container is None else volume.container.device
    return layout.is_bare(device) and volume.partition.type not in _BY_FIRMWARE


def _path(volume: _Volume) -> str:
    return "" if volume.filesystem is None else volume.filesystem.mount_point


def _lose_rest(layout: Layout, made: Sequence[_Volume], system: set[DesiredPartition], losses: Losses) -> None:
    """Lose what is neither a volume of Talos nor of its system."""
    parts = {volume.partition for volume in made}
    there = {volume.filesystem for volume in made}
    lost = [part.space for part in layout.partitions() if part not in parts and part not in system]
    lost += [array.space for array in layout.arrays] + [group.space for group in layout.groups]
    lost += [volume.space for volume in layout.volumes if not _is_of_system(layout.filesystem_on(volume.device))]
    opened = {volume.container for volume in made}
    lost += [container.space for container in layout.containers if container not in opened]
    lost += [one.space for one in layout.filesystems if one not in there and not _is_of_system(one) and not _on(layout, one, system)]
    for space in dict.fromkeys(lost):
        losses.lose(space, "Talos makes volumes of ext4, xfs, btrfs and swap, or with nothing on them, each on a partition of its own")


def _is_of_system(filesystem: DesiredFilesystem | None) -> bool:
    return filesystem is not None and (filesystem.mount_point == _ROOT or filesystem.mount_point.startswith(_OF_IMAGE))


def _on(layout: Layout, filesystem: DesiredFilesystem, system: set[DesiredPartition]) -> bool:
    """Return whether a file system lies on a partition of firmware."""
    return any(part in system and part.type in _BY_FIRMWARE for part in layout.partitions_below(filesystem.device))


def _installation(disk: DesiredDisk) -> Plain:
    """Return `install`: the kernel calls a WWN naa.NUMBER; other links are followed."""
    name = world_wide_name(disk.device)
    return {"diskSelector": {"wwid": f"naa.{name[len('0x') :]}" if name.startswith("0x") else name}} if name else {"disk": disk.device}


def _rest_of_system(installed: DesiredDisk, system: set[DesiredPartition], losses: Losses, *, planned: bool) -> Iterator[Plain]:
    """Give EPHEMERAL the room of the system that Talos' own partitions leave, unless it is `planned`; refuse too little room."""
    parts = [part for part in installed.partitions if part in system]
    room = sum(part.mib for part in parts)
    least = _SYSTEM if planned else _SYSTEM + _LEAST_EPHEMERAL
    if room < least:
        losses.refuse(parts[-1].space, f"Talos' system needs {least} MiB of the disk that / lies on, and the plan has {room} for it")
    if not planned:
        yield {**_head("VolumeConfig", "EPHEMERAL"), "provisioning": {**_provisioning("system_disk", room - _SYSTEM), "grow": False}}


def _head(kind: str, name: str) -> Plain:
    return {"apiVersion": "v1alpha1", "kind": kind, "name": name}


def _provisioning(match: str, mib: int) -> Plain:
    return {"diskSelector": {"match": match}, "minSize": f"{mib}MiB", "maxSize": f"{mib}MiB"}


def _on_disk(volume: _Volume) -> Plain:
    device = json.dumps(volume.disk.device)
    match = f"{device} in disk.symlinks" if volume.disk.device.startswith(DURABLE) else f"disk.dev_path == {device}"
    return {"provisioning": _provisioning(match, volume.partition.mib)}


def _ephemeral(volume: _Volume, losses: Losses, passphrase: str | None) -> Plain:
    filesystem = volume.filesystem
    if filesystem is not None and filesystem.type != "xfs":
        losses.lose(filesystem.space, f"Talos makes /var an xfs, not {filesystem.type}")
    if volume.partition.mib < _LEAST_EPHEMERAL:
        losses.refuse(volume.partition.space, f"Talos needs {_LEAST_EPHEMERAL} MiB at /var, not {volume.partition.mib}")
    _lose_mount_options(filesystem, _SECURE, losses)
    made = {**_head("VolumeConfig", "EPHEMERAL"), **_on_disk(volume), **_encryption(volume, losses, passphrase)}
    made["provisioning"]["grow"] = False
    return made


def _document(volume: _Volume, layout: Layout, names: dict[str, str], losses: Losses, passphrase: str | None) -> Plain:
    filesystem, space = volume.filesystem, volume.partition.space
    path = _path(volume)
    own = path.removeprefix(_USERS) if path.startswith(_USERS) else layout.title(volume.partition)
    name = re.sub(r"[^A-Za-z0-9-]", "-", own)[:_LONGEST_NAME]
    if name in names:
        losses.refuse(space, f"Talos would call it {name}, as {names[name]}; names have letters, digits and -, {_LONGEST_NAME} at most")
    names[name] = space
    if filesystem is None:
        return {**_head("RawVolumeConfig", name), **_on_disk(volume), **_encryption(volume, losses, passphrase)}
    if filesystem.is_swap:
        _lose_identity(filesystem, losses)
        return {**_head("SwapVolumeConfig", name), **_on_disk(volume), **_encryption(volume, losses, passphrase)}
    if path != f"{_USERS}{name}":
        losses.lose(space, f"Talos mounts it at {_USERS}{name}{f', not at {path}' if path else ', and the plan does not'}")
    words = _lose_mount_options(filesystem, (*_SECURE, _NO_ACCESS_TIME), losses)
    mount = {"mount": {"disableAccessTime": True}} if _NO_ACCESS_TIME in words else {}
    kind = {"filesystem": {"type": filesystem.type}}
    return {**_head("UserVolumeConfig", name), **_on_disk(volume), **kind, **_encryption(volume, losses, passphrase), **mount}


def _lose_identity(filesystem: DesiredFilesystem, losses: Losses) -> None:
    if filesystem.label:
        losses.lose(filesystem.space, f"Talos labels file systems itself, so not {filesystem.label}")
    if make_words(filesystem):
        losses.lose(filesystem.space, f"Talos makes file systems without options, so not with {make_words(filesystem)}")


def _lose_mount_options(filesystem: DesiredFilesystem | None, able: Sequence[str], losses: Losses) -> Sequence[str]:
    """Return the options that a file system is mounted with; lose those that Talos is not `able` to mount with."""
    if filesystem is None:
        return ()
    _lose_identity(filesystem, losses)
    words = [word for word in mount_words(filesystem).split(",") if word]
    others = [word for word in words if word not in able]
    if others:
        losses.lose(filesystem.space, f"Talos mounts it with {listed(able)} alone, and not with {','.join(others)}")
    if not set(words).issuperset(_SECURE):
        losses.note(
            f"{filesystem.space}: Talos mounts it with nodev and nosuid, and volumes of users with noexec; mount.secure says otherwise"
        )
    return words


def _encryption(volume: _Volume, losses: Losses, passphrase: str | None) -> Plain:
    container = volume.container
    if container is None:
        return {}
    sealed = [method for method in container.unlock if method.kind == TPM2 and not method.pin]
    others = [method.words for method in container.unlock if method.kind != PASSPHRASE and method not in sealed]
    if others:
        losses.lose(container.space, f"Talos opens LUKS by a passphrase or a TPM, not by {listed(others)}")
    keys: list[Plain] = [{"tpm": {"options": {"pcrs": list(method.pcrs)}}} for method in sealed]
    if passphrase is not None:
        keys.append({"static": {"passphrase": passphrase}})
    if not keys:
        losses.refuse(container.space, "LUKS needs a key in Talos; give passphrase, or plan unlock with method: tpm2")
    return {"encryption": {"provider": "luks2", "keys": [{"slot": slot, **key} for slot, key in enumerate(keys)]}}
