# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A layout as FAI's disk_config, which setup-storage carries out: for Debian and what is built on it.

After setup-storage(8). Sizes are MiB; partitions follow each other from 1 MiB on, as in plans.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from ....module_utils._schema.model import (
    DesiredArray,
    DesiredContainer,
    DesiredDisk,
    DesiredFilesystem,
    DesiredGroup,
    DesiredPartition,
    DesiredVolume,
    Layout,
    Thing,
)
from ....module_utils._storage import gpt
from ....module_utils._storage.filesystems import FILESYSTEMS
from ....module_utils._storage.identity import BY_PATH
from ....module_utils._storage.raid import RaidLevel, data_legs
from ....module_utils._storage.units import MIB
from .losses import Losses, lose_extents, lose_methods, lose_subvolumes, lose_types, note_boot_flags, note_container_names, note_uuids
from .words import label_of, make_words, mount_words
from .write import Target

_BIOS_BOOT_SIZE = 1
_SHELL_READS = re.compile(r"[^\w@%+=:,./^\s-]|(?:^|\s)~", re.ASCII)
"""What a shell takes for more than a letter of a word; setup-storage runs its commands in one, with names and options as they are."""
_OVERHEAD = 100
"""setup-storage takes this fraction (1/N) of a volume group for overhead, and refuses volumes that need it."""


def write(layout: Layout, losses: Losses, *, passphrase: str | None) -> str:
    """Return a disk_config; without a passphrase setup-storage makes key files for LUKS."""
    lose_types(layout, losses, "setup-storage sets types by what lies on a partition", (gpt.ESP, gpt.BIOS_BOOT))
    lose_extents(layout, losses, "setup-storage")
    lose_subvolumes(layout, losses, "setup-storage")
    lose_methods(layout, losses, "setup-storage")
    for note in (note_uuids, note_container_names, note_boot_flags):
        note(layout, losses, "setup-storage")
    for space, what, text in _run_in_a_shell(layout):
        if _SHELL_READS.search(text):
            losses.refuse(space, f"setup-storage runs commands in a shell, which would read more than a word in {what} {text}")
    sections = [list(_disk(disk, layout, losses)) for disk in layout.disks]
    numbers = _nodes(layout)
    if layout.arrays:
        sections.append(["disk_config raid fstabkey:uuid", *(_array(array, layout, losses, numbers) for array in layout.arrays)])
    if layout.containers:
        lines = [_container(container, layout, losses, numbers, passphrase) for container in layout.containers]
        sections.append(["disk_config cryptsetup", *lines])
    if layout.groups:
        sections.append(["disk_config lvm fstabkey:uuid", *_groups(layout, losses, numbers)])
    return "\n".join(line for section in sections for line in (*section, ""))


TARGET = Target("FAI", write)


def _run_in_a_shell(layout: Layout) -> Iterator[tuple[str, str, str]]:
    """Give what setup-storage puts into its commands: the space, what it is, and the text. Labels are quoted."""
    # A disk's name is resolved before: of a link of udev's, with the backslashes and hashes that it may have, its node is left.
    yield from ((disk.id, "the name", re.sub(r"[\\#]", "", disk.device)) for disk in layout.disks)
    # Letters of other alphabets are letters to a shell.
    named = ((partition.space, _label(layout, partition)) for disk in layout.disks for partition in disk.partitions)
    yield from ((space, "the name", re.sub(r"[^\x00-\x7f]", "", label)) for space, label in named)
    yield from ((array.space, "the array", array.title) for array in layout.arrays)
    yield from ((group.space, "the vg", group.name) for group in layout.groups)
    yield from ((volume.space, "the volume", volume.name) for volume in layout.volumes)
    for filesystem in layout.filesystems:
        yield filesystem.space, "the options of mkfs", make_words(filesystem)
        yield filesystem.space, "the mount point", filesystem.mount_point
        yield filesystem.space, "the mount options", mount_words(filesystem)


def _nodes(layout: Layout) -> dict[str, str]:
    """Return what setup-storage calls partitions and arrays: BIOS boot partitions, which it makes last, have no number of their own."""
    nodes = {array.device: f"/dev/md{number}" for number, array in enumerate(layout.arrays)}
    for disk in layout.disks:
        others = [partition for partition in disk.partitions if partition.type != gpt.BIOS_BOOT]
        nodes |= {partition.device: gpt.partition_node(disk.device, number) for number, partition in enumerate(others, start=1)}
    return nodes


def _disk(disk: DesiredDisk, layout: Layout, losses: Losses) -> Iterator[str]:
    bios = [partition for partition in disk.partitions if partition.type == gpt.BIOS_BOOT]
    others = [partition for partition in disk.partitions if partition.type != gpt.BIOS_BOOT]
    esp = next((number for number, partition in enumerate(others, start=1) if partition.type == gpt.ESP), None)
    bootable = f" bootable:{esp}" if esp is not None else ""
    for partition in bios:
        if partition.mib != _BIOS_BOOT_SIZE:
            losses.lose(partition.space, f"setup-storage makes BIOS boot partitions of 1 MiB, not of {partition.mib}")
        if partition is not disk.partitions[0]:
            losses.note(f"{partition.space}: setup-storage puts the BIOS boot partition before all others")
    carries = any(layout.lies_on(part.device) and not layout.filesystem_on(part.device) for part in others)
    if carries and disk.device.startswith(BY_PATH):
        losses.refuse(others[0].space, f"setup-storage finds partitions by their links in /dev/disk/by-id, and {disk.device} is not one")
    if re.search(r"[\s*?\[{~]", disk.device) or (carries and re.search("[:,]", disk.device)):
        losses.refuse(others[0].space if others else disk.id, f"setup-storage cannot read the name {disk.device}")
    yield f"disk_config {disk.device} disklabel:{'gpt-bios' if bios else 'gpt'} fstabkey:uuid align-at:1M{bootable}"
    cursor = gpt.HEAD + sum(partition.mib for partition in bios)
    for partition in others:
        if partition.begin != cursor:
            losses.lose(partition.space, f"setup-storage leaves no gaps, so it begins at {cursor} MiB, not at {partition.begin}")
        cursor += partition.mib
        yield f"p={_label(layout, partition)} {_use(partition, layout, losses, str(partition.mib))}"


def _label(layout: Layout, partition: DesiredPartition) -> str:
    return re.sub(r"[\s=]", "_", label_of(layout, partition))


def _use(carrier: Thing, layout: Layout, losses: Losses, size: str) -> str:
    """Return what stands behind the name of a device: mount point, size, file system, options."""
    filesystem = layout.filesystem_on(carrier.device)
    if filesystem is None:
        return f"- {size} - -"
    return _filesystem(filesystem, losses, size)


def _filesystem(filesystem: DesiredFilesystem, losses: Losses, size: str) -> str:
    mount = "swap" if filesystem.is_swap else filesystem.mount_point or "-"
    options = mount_words(filesystem) or ("sw" if filesystem.is_swap else "defaults")
    row = FILESYSTEMS[filesystem.type]
    make = [row.label_option, shlex.quote(filesystem.label)] if filesystem.label else []
    if re.search(r"[\s:]", mount):
        losses.lose(filesystem.space, f"setup-storage allows no colon and no space in {mount}, so it is not mounted there")
        mount = "-"
    if re.search(r"\s", options):
        losses.lose(filesystem.space, f"setup-storage allows no spaces in the mount options {options}")
        options = "defaults"
    words = " ".join([*make, *([make_words(filesystem)] if make_words(filesystem) else [])])
    if '"' in words:
        losses.lose(filesystem.space, f"setup-storage allows no quotation marks in {words}")
        words = ""
    return " ".join([mount, size, filesystem.type, options, *([f'createopts="{words}"'] if words else [])])


def _array(array: DesiredArray, layout: Layout, losses: Losses, numbers: dict[str, str]) -> str:
    devices = ",".join([*(numbers[device] for device in array.members), *(f"{numbers[device]}:spare" for device in array.spares)])
    metadata = [] if array.asked_metadata == "default" else [f"--metadata={array.asked_metadata}"]
    options = f'mdcreateopts="{" ".join([*metadata, *array.options.words(), f"--name={array.title}"])}"'
    filesystem = layout.filesystem_on(array.device)
    if filesystem is None:
        return f"{array.level} - {devices} - - {options}"
    mount, _size, kind, mount_options, *make = _filesystem(filesystem, losses, "0").split(" ", 4)
    return " ".join([array.level, mount, devices, kind, mount_options, options, *make])


def _container(container: DesiredContainer, layout: Layout, losses: Losses, numbers: dict[str, str], passphrase: str | None) -> str:
    mode = "luks" if passphrase is None else f'luks:"{passphrase}"'
    if passphrase is not None and re.search("[\"'\n]", passphrase):
        losses.refuse(container.space, "setup-storage allows no quotation marks and no line breaks in a passphrase")
    below = numbers.get(container.below, container.below)
    filesystem = layout.filesystem_on(container.device)
    if any(volume.device == container.below for volume in layout.volumes):
        below = next(f"/dev/{volume.group}/{volume.name}" for volume in layout.volumes if volume.device == container.below)
        losses.refuse(container.space, "setup-storage encrypts what lies below volume groups, and this is a logical volume")
    if filesystem is None:
        return f"{mode} - {below} - -"
    mount, _size, kind, options, *make = _filesystem(filesystem, losses, "0").split(" ", 4)
    return " ".join([mode, mount, below, kind, options, *make])


def _groups(layout: Layout, losses: Losses, numbers: dict[str, str]) -> Iterator[str]:
    below = {container.device: container.below for container in layout.containers}
    for group in layout.groups:
        name = _plain_name(group.name, group.space, losses)
        devices = [below.get(device, device) for device in group.devices]
        yield f"vg {name} {','.join(numbers.get(device, device) for device in devices)}"
        volumes = layout.volumes_of(group.name)
        room = _room(group, layout)
        excess = sum(volume.size // MIB for volume in volumes) - room
        largest = max(volumes, key=lambda volume: volume.size, default=None)
        for volume in volumes:
            size = str(volume.size // MIB)
            if volume is largest and excess > 0:
                size = f"{_least(volume, excess, room, losses)}-{volume.size // MIB}"
            mount, size, kind, options, *make = _use(volume, layout, losses, size).split(" ", 4)
            create = [f'lvcreateopts="{" ".join(volume.options)}"'] if volume.options else []
            words = [mount, size, kind, options, *create, *make]
            yield " ".join([f"{name}-{_plain_name(volume.name, volume.space, losses)}", *words])


def _room(group: DesiredGroup, layout: Layout) -> int:
    """Return the MiB that the volumes of a group may take: setup-storage guesses the size of what it lies on, and leaves 1 % of that."""
    below = {container.device: container.below for container in layout.containers}
    guessed = sum(_guessed(below.get(device, device), layout) for device in group.devices)
    return (guessed * (_OVERHEAD - 1) - 1) // _OVERHEAD


def _guessed(device: str, layout: Layout) -> int:
    """Return the MiB that setup-storage takes a partition or an array for; the overhead of arrays and LUKS is not in it."""
    sizes = {partition.device: partition.mib for partition in layout.partitions()}
    array = next((array for array in layout.arrays if array.device == device), None)
    if array is None:
        return sizes[device]
    return data_legs(RaidLevel(array.level), len(array.members)) * min(sizes[member] for member in array.members)


def _least(volume: DesiredVolume, excess: int, room: int, losses: Losses) -> int:
    """Return the least size of the volume that has to give way, in a group that is full."""
    says = f"setup-storage keeps 1 % of a volume group to itself, so volumes get {room} MiB of {volume.group}, not {room + excess}"
    if volume.size // MIB <= excess:
        losses.refuse(volume.space, f"{says}; leave room in the group")
        return volume.size // MIB
    losses.lose(volume.space, f"{says}; leave room in the group, or {excess} MiB of {volume.name} are missing")
    return volume.size // MIB - excess


def _plain_name(name: str, space: str, losses: Losses) -> str:
    """Return a name without dashes: in setup-storage a dash separates group and volume."""
    if "-" not in name:
        return name
    losses.lose(space, f"setup-storage allows no dash in {name}, which becomes {name.replace('-', '_')} then")
    return name.replace("-", "_")
