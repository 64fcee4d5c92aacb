# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which partitions of an explicit static schema carry a boot loader, by what a firmware looks for."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping
from dataclasses import dataclass

from .gpt import BIOS_BOOT, ESP

ESP_PLACES = ("/boot/efi", "/efi", "/boot")
"""Where an EFI system partition is mounted."""


@dataclass(frozen=True)
class Legs:
    """What carries a boot loader: disks with a BIOS boot partition, and the devices of EFI system partitions, mounted at `esp_place`."""

    bios: tuple[str, ...] = ()
    esps: tuple[str, ...] = ()
    esp_place: str = ESP_PLACES[0]


def legs_of(schema: Mapping[str, t.Any]) -> Legs:
    """Return what of an explicit static schema carries a boot loader; an EFI system partition without a FAT cannot."""
    parts = [(str(table["name"]), part) for table in schema.get("parteds") or () for part in table.get("partitions") or ()]
    esps = [str(part["name"]) for _disk, part in parts if str(part.get("guid")).lower() == ESP]
    fats = [entry for entry in schema.get("fss") or () if entry.get("fs_type") == "vfat" and entry.get("mount") in ESP_PLACES]
    mirrored = [str(entry["device"]) for entry in fats if entry["device"] not in esps]
    bios = tuple(disk for disk, part in parts if str(part.get("guid")).lower() == BIOS_BOOT)
    made = {str(entry["device"]) for entry in schema.get("fss") or () if entry.get("fs_type") == "vfat"}
    place = str(fats[0]["mount"]) if fats else ESP_PLACES[0]
    return Legs(tuple(dict.fromkeys(bios)), tuple(dict.fromkeys((*mirrored, *(esp for esp in esps if esp in made)))), place)
