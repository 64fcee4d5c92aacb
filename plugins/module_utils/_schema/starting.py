# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a layout a machine starts from: devices of boot loaders, by what a firmware looks for, and what opens the root file system."""

from __future__ import annotations

from dataclasses import dataclass

from .._storage.gpt import BIOS_BOOT, ESP
from .model import Layout

ESP_PLACES = ("/boot/efi", "/efi", "/boot")
"""Where an EFI system partition is mounted."""


@dataclass(frozen=True)
class Legs:
    """What carries a boot loader: disks with a BIOS boot partition, and the devices of EFI system partitions, mounted at `esp_place`."""

    bios: tuple[str, ...] = ()
    esps: tuple[str, ...] = ()
    esp_place: str = ESP_PLACES[0]


def legs_of(layout: Layout) -> Legs:
    """Return what of a layout carries a boot loader; an EFI system partition without a FAT cannot."""
    bios = tuple(disk.device for disk in layout.disks if any(part.type == BIOS_BOOT for part in disk.partitions))
    esps = [part.device for part in layout.partitions() if part.type == ESP]
    fats = [filesystem for filesystem in layout.filesystems if filesystem.type == "vfat"]
    mounted = [filesystem for filesystem in fats if filesystem.mount in ESP_PLACES]
    made = {filesystem.device for filesystem in fats}
    carrying = (*(filesystem.device for filesystem in mounted if filesystem.device not in esps), *(esp for esp in esps if esp in made))
    return Legs(bios, tuple(dict.fromkeys(carrying)), mounted[0].mount if mounted else ESP_PLACES[0])


def methods_of_root(layout: Layout) -> frozenset[str]:
    """Return the methods that a layout has for what the root file system lies on; none where it says nothing of them."""
    devices = {each.device for each in layout.filesystems if "/" in (each.mount, *(subvolume.mount for subvolume in each.subvolumes))}
    groups = {volume.group for volume in layout.volumes if volume.device in devices}
    devices |= {device for group in layout.groups if group.name in groups for device in group.devices}
    return frozenset(method.kind for each in layout.containers if each.device in devices for method in each.unlock)
