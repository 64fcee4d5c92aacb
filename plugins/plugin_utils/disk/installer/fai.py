# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A layout as FAI's disk_config, which setup-storage carries out: for Debian and what is built on it.

After setup-storage(8). Sizes are MiB; partitions follow each other from 1 MiB on, as in plans.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....module_utils.storage import gpt
from ....module_utils.storage.filesystems import FILESYSTEMS
from ....module_utils.storage.identity import BY_PATH
from .layout import Array, Carrier, Container, Disk, Filesystem, Layout, Partition
from .losses import Losses
from .write import Target

_BIOS_BOOT_SIZE = 1


def write(layout: Layout, losses: Losses, *, passphrase: str | None) -> str:
    """Return a disk_config; without a passphrase setup-storage makes key files for LUKS."""
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


def _nodes(layout: Layout) -> dict[str, str]:
    """Return what setup-storage calls partitions and arrays: BIOS boot partitions, which it makes last, have no number of their own."""
    nodes = {array.device: f"/dev/md{number}" for number, array in enumerate(layout.arrays)}
    for disk in layout.disks:
        others = [partition for partition in disk.partitions if partition.guid != gpt.BIOS_BOOT]
        nodes |= {partition.device: gpt.partition_node(disk.device, number) for number, partition in enumerate(others, start=1)}
    return nodes


def _disk(disk: Disk, layout: Layout, losses: Losses) -> Iterator[str]:
    bios = [partition for partition in disk.partitions if partition.guid == gpt.BIOS_BOOT]
    others = [partition for partition in disk.partitions if partition.guid != gpt.BIOS_BOOT]
    esp = next((number for number, partition in enumerate(others, start=1) if partition.guid == gpt.ESP), None)
    bootable = f" bootable:{esp}" if esp is not None else ""
    for partition in bios:
        if partition.size != _BIOS_BOOT_SIZE:
            losses.lose(partition.space, f"setup-storage makes BIOS boot partitions of 1 MiB, not of {partition.size}")
        if partition is not disk.partitions[0]:
            losses.note(f"{partition.space}: setup-storage puts the BIOS boot partition before all others")
    if disk.device.startswith(BY_PATH) and any(layout.user(part.device) and not layout.filesystem(part.device) for part in others):
        losses.refuse(others[0].space, f"setup-storage finds partitions by /dev/disk/by-id, which {disk.device} is not")
    yield f"disk_config {disk.device} disklabel:{'gpt-bios' if bios else 'gpt'} fstabkey:uuid align-at:1M{bootable}"
    cursor = gpt.HEAD + sum(partition.size for partition in bios)
    for partition in others:
        if partition.begin > cursor and partition.number > 1:
            losses.note(f"{partition.space}: setup-storage leaves no gaps between partitions; it begins at {cursor} MiB")
        cursor += partition.size
        yield f"p={_label(layout, partition)} {_use(partition, layout, losses, str(partition.size))}"


def _label(layout: Layout, partition: Partition) -> str:
    return layout.title(partition)[: gpt.LONGEST_NAME].replace("=", "_")


def _use(carrier: Carrier, layout: Layout, losses: Losses, size: str) -> str:
    """Return what stands behind the name of a device: mount point, size, file system, options."""
    filesystem = layout.filesystem(carrier.device)
    if filesystem is None:
        return f"- {size} - -"
    return _filesystem(filesystem, losses, size)


def _filesystem(filesystem: Filesystem, losses: Losses, size: str) -> str:
    mount = "swap" if filesystem.is_swap else filesystem.mount or "-"
    options = filesystem.options or ("sw" if filesystem.is_swap else "defaults")
    row = FILESYSTEMS[filesystem.type]
    make = [row.label_option, filesystem.label] if filesystem.label else []
    words = " ".join([*make, *([filesystem.make_options] if filesystem.make_options else [])])
    if '"' in words:
        losses.lose(filesystem.space, f"setup-storage takes no quotation marks in {words}")
        words = ""
    return " ".join([mount, size, filesystem.type, options, *([f'createopts="{words}"'] if words else [])])


def _array(array: Array, layout: Layout, losses: Losses, numbers: dict[str, str]) -> str:
    devices = ",".join([*(numbers[device] for device in array.members), *(f"{numbers[device]}:spare" for device in array.spares)])
    metadata = [] if array.metadata == "default" else [f"--metadata={array.metadata}"]
    options = f'mdcreateopts="{" ".join([*metadata, f"--name={array.name}"])}"'
    filesystem = layout.filesystem(array.device)
    if filesystem is None:
        return f"{array.level} - {devices} - - {options}"
    mount, _size, kind, mount_options, *make = _filesystem(filesystem, losses, "0").split(" ", 4)
    return " ".join([array.level, mount, devices, kind, mount_options, options, *make])


def _container(container: Container, layout: Layout, losses: Losses, numbers: dict[str, str], passphrase: str | None) -> str:
    mode = "luks" if passphrase is None else f'luks:"{passphrase}"'
    if passphrase is not None and '"' in passphrase:
        losses.refuse(container.space, "setup-storage takes no quotation marks in a passphrase")
    below = numbers.get(container.below, container.below)
    filesystem = layout.filesystem(container.device)
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
        for volume in layout.volumes_of(group.name):
            yield f"{name}-{_plain_name(volume.name, volume.space, losses)} {_use(volume, layout, losses, str(volume.size))}"


def _plain_name(name: str, space: str, losses: Losses) -> str:
    """Return a name without dashes: setup-storage tells volumes from groups by them."""
    if "-" not in name:
        return name
    losses.lose(space, f"setup-storage takes no dash in {name}, which is {name.replace('-', '_')} then")
    return name.replace("-", "_")
