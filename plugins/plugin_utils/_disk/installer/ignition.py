# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A layout as an Ignition configuration, for Fedora CoreOS and Flatcar; and as the Butane configuration that makes the same one.

After Ignition's configuration specification 3.3.0 and Butane's of `fcos` 1.4.0 and `flatcar` 1.0.0. Ignition cannot make LVM, and the
image of such a system brings its own boot partitions.
"""

from __future__ import annotations

import re
import shlex
import typing as t

from ....module_utils._data.errors import InputError, Mistake
from ....module_utils._schema.model import DesiredArray, DesiredContainer, DesiredDisk, DesiredFilesystem, DesiredPartition, Layout
from ....module_utils._storage import gpt
from ....module_utils._storage.identity import BY_ID
from ....module_utils._storage.unit_file import unit_name, unit_text
from ....module_utils._storage.unlock import TANG, TPM2
from .losses import Losses, lose_methods, lose_subvolumes, note_boot_flags
from .words import label_of, make_words, mount_words
from .write import Target

Json = dict[str, t.Any]

VERSION = "3.3.0"
BUTANE = {"fcos": "1.4.0", "flatcar": "1.0.0"}
"""Butane's versions that make this version of Ignition's."""
_FILESYSTEMS = ("ext4", "btrfs", "xfs", "vfat", "swap")
_BOOT = ("/boot", "/boot/efi", "/efi")
_BY_PARTUUID = "/dev/disk/by-partuuid/"


def write(layout: Layout, losses: Losses, *, key_file: str | None, tpm2: bool) -> Json:
    """Return the configuration; `key_file` is the URL of a key of LUKS, with `tpm2` the machine's TPM opens it."""
    storage = _storage(layout, losses, key_file, tpm2)
    units = [_unit(entry) for entry in storage["filesystems"] if entry.get("path") != "/" and (entry.get("path") or _is_swap(entry))]
    return {
        "ignition": {"version": VERSION},
        "storage": {key: value for key, value in storage.items() if value},
        **({"systemd": {"units": units}} if units else {}),
    }


def write_butane(layout: Layout, losses: Losses, *, variant: str, key_file: str | None, tpm2: bool) -> Json:
    """Return the Butane configuration of a variant."""
    storage = _storage(layout, losses, key_file, tpm2)
    for entry in storage["filesystems"]:
        if entry.get("path") != "/" and (entry.get("path") or _is_swap(entry)):
            entry["with_mount_unit"] = True
    for entry in storage["luks"]:
        if "keyFile" in entry:
            entry["keyFile"] = {"source": entry["keyFile"]["source"]}
    return {"variant": variant, "version": BUTANE[variant], "storage": {key: _snake(value) for key, value in storage.items() if value}}


TARGET = Target("Ignition", write, keeps_data=True)
BUTANE_TARGET = Target("Butane", write_butane, keeps_data=True)


def _storage(layout: Layout, losses: Losses, key_file: str | None, tpm2: bool) -> dict[str, list[Json]]:
    nodes = _nodes(layout)
    note_boot_flags(layout, losses, "Ignition")
    lose_subvolumes(layout, losses, "Ignition")
    lose_methods(layout, losses, "Ignition", (TANG, TPM2))
    for space in dict.fromkeys([group.space for group in layout.groups] + [volume.space for volume in layout.volumes]):
        losses.lose(space, "Ignition cannot make LVM")
    filesystems = [entry for filesystem in layout.filesystems for entry in _filesystem(filesystem, layout, nodes, losses)]
    for partition in layout.partitions():
        if partition.type in (gpt.ESP, gpt.BIOS_BOOT):
            losses.lose(partition.space, "Ignition's systems start from the boot partitions of their image; leave it out of the schema")
    return {
        "disks": [_disk(disk, layout) for disk in layout.disks],
        "raid": [_array(array, nodes, losses) for array in layout.arrays],
        "luks": [_container(container, nodes, losses, key_file, tpm2) for container in layout.containers if container.below in nodes],
        "filesystems": filesystems,
    }


def _nodes(layout: Layout) -> dict[str, str]:
    """Return how Ignition is to find each device that it can make: partitions by their UUID."""
    nodes = {part.device: f"{_BY_PARTUUID}{part.own_uuid}" if part.own_uuid else part.device for part in layout.partitions()}
    nodes |= {array.device: f"/dev/md/{array.title}" for array in layout.arrays}
    return nodes | {container.device: f"{BY_ID}dm-name-{container.name}" for container in layout.containers if container.below in nodes}


def _disk(disk: DesiredDisk, layout: Layout) -> Json:
    kept = any(partition.keep_data for partition in disk.partitions)
    return {"device": disk.device, "wipeTable": not kept, "partitions": [_partition(partition, layout) for partition in disk.partitions]}


def _partition(partition: DesiredPartition, layout: Layout) -> Json:
    return {
        "number": partition.number,
        "label": label_of(layout, partition),
        "startMiB": partition.begin,
        "sizeMiB": partition.mib,
        "typeGuid": partition.type,
        **({"guid": partition.own_uuid} if partition.own_uuid else {}),
        **({} if partition.keep_data else {"wipePartitionEntry": True}),
    }


def _array(array: DesiredArray, nodes: dict[str, str], losses: Losses) -> Json:
    if array.keep_data:
        losses.refuse(array.space, "its data must be kept, but Ignition always makes new arrays")
    options = [] if array.asked_metadata == "default" else [f"--metadata={array.asked_metadata}"]
    options += array.options.words()
    return {
        "name": array.title,
        "level": array.level,
        "devices": [nodes[device] for device in (*array.members, *array.spares)],
        **({"spares": len(array.spares)} if array.spares else {}),
        **({"options": options} if options else {}),
    }


def _container(container: DesiredContainer, nodes: dict[str, str], losses: Losses, key_file: str | None, tpm2: bool) -> Json:
    if container.keep_data:
        losses.refuse(container.space, "its data must be kept, and Ignition would need the key that opens it now")
    # The Clevis methods that open a container in addition to a key; any one is enough.
    servers = [{"url": method.url, "thumbprint": method.thumbprint} for method in container.unlock if method.kind == TANG]
    sealed = [method for method in container.unlock if method.kind == TPM2 and not method.pin]
    for method in sealed:
        if method.pcrs:
            losses.note(f"{container.space}: Ignition binds to the TPM whatever its registers are, not to {method.words}")
    clevis = {**({"tpm2": True} if tpm2 or sealed else {}), **({"tang": servers} if servers else {})}
    if key_file is None and not clevis:
        losses.note(f"{container.space}: without key_file or tpm2 Ignition keeps the key of LUKS in the root file system")
    return {
        "name": container.name,
        "device": nodes[container.below],
        "wipeVolume": True,
        **({"keyFile": {"source": key_file}} if key_file is not None else {}),
        **({"clevis": clevis} if clevis else {}),
    }


def _filesystem(filesystem: DesiredFilesystem, layout: Layout, nodes: dict[str, str], losses: Losses) -> list[Json]:
    if filesystem.device not in nodes:
        return []
    if filesystem.type not in _FILESYSTEMS:
        losses.lose(filesystem.space, f"Ignition cannot make {filesystem.type}")
        return []
    boots = any(part.device == filesystem.device and part.type == gpt.ESP for part in layout.partitions())
    if filesystem.mount_point in _BOOT or boots:
        if not boots:
            losses.lose(filesystem.space, f"the image brings its own {filesystem.mount_point}; leave it out of the schema")
        return []
    options = mount_words(filesystem).split(",") if mount_words(filesystem) else []
    return [
        {
            "device": nodes[filesystem.device],
            "format": filesystem.type,
            "wipeFilesystem": not filesystem.keep_data,
            **({"path": filesystem.mount_point} if filesystem.mount_point else {}),
            **({"label": filesystem.label} if filesystem.label else {}),
            **({"options": shlex.split(make_words(filesystem))} if make_words(filesystem) else {}),
            **({"mountOptions": options} if options and (filesystem.mount_point or filesystem.is_swap) else {}),
        }
    ]


def _is_swap(entry: Json) -> bool:
    return entry["format"] == "swap"


def _unit(entry: Json) -> Json:
    """Return the unit by which systemd mounts a file system, or uses swap, at every start: Ignition itself only makes it."""
    device = entry["device"]
    options = ",".join(entry.get("mountOptions", ()))
    if _is_swap(entry):
        lines = ["[Swap]", f"What={device}", *([f"Options={options}"] if options else []), "", "[Install]", "RequiredBy=swap.target", ""]
        return {"name": f"{unit_name(device)}.swap", "enabled": True, "contents": _contents(lines)}
    check = f"systemd-fsck@{unit_name(device)}.service"
    lines = [
        *("[Unit]", f"Requires={check}", f"After={check}", ""),
        *("[Mount]", f"Where={entry['path']}", f"What={device}", f"Type={entry['format']}"),
        *([f"Options={options}"] if options else []),
        *("", "[Install]", "RequiredBy=local-fs.target", ""),
    ]
    return {"name": f"{unit_name(entry['path'])}.mount", "enabled": True, "contents": _contents(lines)}


def _contents(lines: list[str]) -> str:
    try:
        return unit_text(lines)
    except ValueError as error:
        raise InputError([Mistake("fss", f"{error}; choose another mount point or other options")]) from error


def _snake(value: t.Any) -> t.Any:
    """Return a part of a configuration with keys as Butane writes them: `sizeMiB` is `size_mib`."""
    if isinstance(value, list):
        return [_snake(item) for item in value]
    if isinstance(value, dict):
        return {re.sub(r"(?<=[a-z])([A-Z])", r"_\1", key.replace("MiB", "Mib")).lower(): _snake(item) for key, item in value.items()}
    return value
