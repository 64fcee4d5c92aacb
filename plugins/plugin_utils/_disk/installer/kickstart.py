# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A layout as Kickstart's commands of storage, for Anaconda: RHEL and its rebuilds from 7 on, Fedora.

After "Kickstart commands in Anaconda" (pykickstart's reference). Anaconda orders partitions itself; sizes are MiB, as here.
"""

from __future__ import annotations

import itertools
import shlex
import typing as t
from collections.abc import Iterator, Sequence

from ....module_utils._schema.model import (
    DesiredArray,
    DesiredContainer,
    DesiredDisk,
    DesiredFilesystem,
    DesiredGroup,
    DesiredPartition,
    DesiredPool,
    DesiredVolume,
    Layout,
    Thing,
)
from ....module_utils._storage import gpt
from ....module_utils._storage.btrfs import make_options
from ....module_utils._storage.units import MIB
from .losses import (
    Losses,
    lose_array_options,
    lose_labels,
    lose_methods,
    lose_options_of_volumes,
    lose_quotas,
    lose_types,
    note_boot_flags,
    note_container_names,
    note_uuids,
)
from .words import make_words, mount_words, subvolume_words
from .write import Target

VERSIONS = ("RHEL7", "RHEL8", "RHEL9", "RHEL10", "Fedora")
_LUKS1_ONLY = ("RHEL7",)
_BTRFS = ("RHEL7", "Fedora")
_FILESYSTEMS = ("ext2", "ext3", "ext4", "xfs", "btrfs", "vfat", "swap")
_ESP_MOUNT = "/boot/efi"
_KIB = 1024


def write(layout: Layout, losses: Losses, *, version: str, passphrase: str | None) -> str:
    """Return the lines of a kickstart file that say how disks are used."""
    return "\n".join([*_Writer(layout, losses, version, passphrase).lines(), ""])


TARGET = Target("Kickstart", write, spreads=True, thin=True)


class _Writer:
    """Writes one layout: partitions have names in Kickstart (`pv.1`) that are counted while they are written."""

    def __init__(self, layout: Layout, losses: Losses, version: str, passphrase: str | None) -> None:
        self._layout, self._losses = layout, losses
        self._version, self._passphrase = version, passphrase
        self._names: dict[str, str] = {}
        self._count = itertools.count(1)
        self._btrfs: dict[DesiredFilesystem, list[str]] = {}

    def lines(self) -> Iterator[str]:
        layout = self._layout
        lose_types(layout, self._losses, "Kickstart has no command for it", (gpt.ESP, gpt.BIOS_BOOT))
        for note in (
            lose_array_options,
            lose_labels,
            lose_methods,
            lose_options_of_volumes,
            lose_quotas,
            note_uuids,
            note_container_names,
            note_boot_flags,
        ):
            note(layout, self._losses, "Anaconda")
        for disk in layout.disks:
            if "," in disk.device:
                self._losses.refuse(disk.id, "Kickstart separates disks by commas, and this name has one")
        drives = ",".join(_drive(disk) for disk in layout.disks)
        yield "zerombr"
        yield _line("ignoredisk", f"--only-use={drives}")
        yield _line("clearpart", "--all", "--initlabel", "--disklabel=gpt", f"--drives={drives}")
        boot = next((disk for disk in layout.disks if disk.boots), None)
        if boot is not None:
            yield _line("bootloader", f"--boot-drive={_drive(boot)}")
        for disk in layout.disks:
            end = gpt.HEAD
            for partition in disk.partitions:
                if partition.begin > end:
                    reason = f"the {partition.begin - end} MiB before it must stay free, but Anaconda chooses where partitions begin"
                    self._losses.lose(partition.space, reason)
                end = partition.begin + partition.mib
                yield from self._partition(disk, partition)
        for array in layout.arrays:
            yield from self._array(array)
        for group in layout.groups:
            yield _line(
                "volgroup", group.name, f"--pesize={group.extent // MIB * _KIB}", *(self._names.get(device, "") for device in group.devices)
            )
            for pool in layout.pools_of(group.name):
                yield self._pool(pool)
            for volume in layout.volumes_of(group.name):
                yield from self._volume(volume)
        for filesystem, names in self._btrfs.items():
            yield from self._btrfs_volume(filesystem, names)

    def _btrfs_volume(self, filesystem: DesiredFilesystem, names: Sequence[str]) -> Iterator[str]:
        """Give the lines of a Btrfs and of its subvolumes, which know it by its label."""
        label = filesystem.label or (filesystem.space if filesystem.subvolumes else "")
        if label != filesystem.label:
            self._losses.note(f"{filesystem.space}: Kickstart finds a Btrfs with subvolumes by its label, so it gets one, {label}")
        data, metadata = make_options(filesystem.level)[1::2] if filesystem.more else ("", "")
        words = (f"--{key}={value}" if value else "" for key, value in (("label", label), ("data", data), ("metadata", metadata)))
        yield _line("btrfs", filesystem.mount_point or "none", *words, *names)
        for subvolume in filesystem.subvolumes:
            if subvolume.mount_point:
                yield _line("btrfs", subvolume.mount_point, "--subvol", f"--name={subvolume.name}", f"LABEL={label}")
            else:
                self._losses.lose(filesystem.space, f"Kickstart makes no subvolume without a mount point, such as {subvolume.name}")

    def _partition(self, disk: DesiredDisk, partition: DesiredPartition) -> Iterator[str]:
        size = (f"--size={partition.mib}", f"--ondisk={_drive(disk)}")
        if partition.type == gpt.BIOS_BOOT:
            yield _line("part", "biosboot", "--fstype=biosboot", *size)
            return
        use = self._use(partition)
        if use is not None:
            yield _line("part", use[0], *size, *use[1])

    def _array(self, array: DesiredArray) -> Iterator[str]:
        use = self._use(array)
        if use is None:
            return
        if array.asked_metadata == "1.0" and not self._is_esp(array):
            self._losses.note(f"{array.space}: Anaconda chooses the version of an array's metadata; 1.0 was asked for")
        spares = (f"--spares={len(array.spares)}",) if array.spares else ()
        members = [self._names.get(device, "") for device in (*array.members, *array.spares)]
        yield _line("raid", use[0], f"--device={array.title}", f"--level={array.level.upper()}", *spares, *use[1], *members)

    def _pool(self, pool: DesiredPool) -> str:
        size = (
            f"--size={pool.size // MIB}",
            *([] if pool.default_metadata else [f"--metadatasize={pool.metadata // MIB}"]),
            f"--chunksize={pool.chunk // _KIB}",
        )
        return _line("logvol", "none", f"--vgname={pool.group}", f"--name={pool.name}", "--thinpool", *size)

    def _volume(self, volume: DesiredVolume) -> Iterator[str]:
        use = self._use(volume)
        if use is not None:
            named = (f"--vgname={volume.group}", f"--name={volume.name}", f"--size={volume.size // MIB}")
            inside = ("--thin", f"--poolname={volume.pool}") if volume.pool else ()
            yield _line("logvol", use[0], *named, *inside, *use[1])

    def _use(self, carrier: Thing) -> tuple[str, list[str]] | None:
        """Return where a device is mounted, in Kickstart's sense, and options; None where Kickstart has no words for it."""
        user = self._layout.lies_on(carrier.device)
        options: list[str] = []
        if isinstance(user, DesiredContainer):
            if self._passphrase is None:
                self._losses.note(f"{user.space}: without a passphrase Anaconda asks for one")
            if self._version in _LUKS1_ONLY:
                self._losses.note(f"{user.space}: {self._version} makes LUKS1, which leaves 14 MiB more than LUKS2")
            version = [] if self._version in _LUKS1_ONLY else ["--luks-version=luks2"]
            options += ["--encrypted", *version, *([f"--passphrase={self._passphrase}"] if self._passphrase is not None else [])]
            inner = self._layout.lies_on(user.device)
            name = self._name_of(inner, user.device)
        else:
            inner, name = user, self._name_of(user, carrier.device)
        if isinstance(inner, DesiredFilesystem):
            return self._filesystem(carrier, inner, options)
        if name is None:
            self._losses.lose(carrier.space, "Kickstart makes no device that nothing uses")
            return None
        return name, options

    def _name_of(self, user: object, device: str) -> str | None:
        kind = {DesiredArray: "raid", DesiredGroup: "pv"}.get(type(user))
        if kind is None:
            return None
        self._names[device] = f"{kind}.{next(self._count)}"
        return self._names[device]

    def _filesystem(self, carrier: Thing, filesystem: DesiredFilesystem, options: list[str]) -> tuple[str, list[str]] | None:
        if filesystem.type not in _FILESYSTEMS or (filesystem.type == "btrfs" and self._version not in _BTRFS):
            self._losses.lose(filesystem.space, f"Anaconda of {self._version} cannot make {filesystem.type}")
            return None
        if not filesystem.mount_point and not filesystem.is_swap and not filesystem.subvolumes:
            self._losses.lose(filesystem.space, _without_mount(carrier, filesystem))
            return None
        if filesystem.type == "btrfs":
            if isinstance(carrier, DesiredVolume):
                self._losses.lose(filesystem.space, "Kickstart cannot make Btrfs on a logical volume")
                return None
            options_of_mounts = dict.fromkeys(
                [mount_words(filesystem), *(subvolume_words(filesystem, one) for one in filesystem.subvolumes)]
            )
            for what, words in (*(("mount options", words) for words in options_of_mounts), ("options of mkfs", make_words(filesystem))):
                if words:
                    self._losses.lose(filesystem.space, f"Kickstart's command btrfs takes no {what}, such as {words}")
            name = f"btrfs.{next(self._count)}"
            self._btrfs.setdefault(filesystem, []).append(name)
            return name, options
        esp = self._is_esp(carrier)
        if esp and mount_words(filesystem):
            self._losses.lose(filesystem.space, f"Anaconda mounts the ESP with options of its own, not with {mount_words(filesystem)}")
        found = [f"--fstype={'efi' if esp else filesystem.type}"]
        found += [f"--label={filesystem.label}"] if filesystem.label else []
        found += [f"--fsoptions={mount_words(filesystem)}"] if mount_words(filesystem) and not esp else []
        found += [f"--mkfsoptions={make_words(filesystem)}"] if make_words(filesystem) else []
        return "swap" if filesystem.is_swap else filesystem.mount_point, [*options, *found]

    def _is_esp(self, carrier: Thing) -> bool:
        filesystem = self._layout.filesystem_on(carrier.device)
        return filesystem is not None and filesystem.mount_point == _ESP_MOUNT


def _without_mount(carrier: Thing, filesystem: DesiredFilesystem) -> str:
    if isinstance(carrier, DesiredPartition) and carrier.type == gpt.ESP:
        return (
            f"Kickstart makes one ESP, not that on {filesystem.device} as well; a raid1 with boot: true and mount: /boot/efi is one on both"
            " disks, as in the profile software-raid-boot"
        )
    return f"Kickstart cannot make a file system without a mount point, as on {filesystem.device}"


def _drive(disk: DesiredDisk) -> str:
    return disk.device.removeprefix("/dev/")


def _line(*words: t.Any) -> str:
    return " ".join(shlex.quote(str(word)) for word in words if word)
