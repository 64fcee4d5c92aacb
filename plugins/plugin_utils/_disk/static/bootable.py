# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a static schema lacks for the firmware of its host to start a system from it, with the line that would add it."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping
from dataclasses import dataclass

from ....module_utils._schema.model import Layout
from ....module_utils._schema.starting import ESP_PLACES, legs_of
from ....module_utils._schema.static import readable_layout
from ....module_utils._storage import gpt

Plain = Mapping[str, t.Any]

_STARTS_FROM = ("/boot", "/")
"""Where that is mounted which a boot loader reads: the first of these that there is."""


@dataclass(frozen=True)
class _Need:
    """What a firmware starts from: both `firmware` and `part` in words, a line of a dynamic schema, and what is so of a static one."""

    firmware: str
    part: str
    line: str
    static: str


_NEEDS: Mapping[str, _Need] = {
    "uefi": _Need(
        "UEFI",
        "EFI system partition",
        f"{{id: esp, type: esp, size: 512, mount: {ESP_PLACES[0]}}}",
        f"a partition with guid {gpt.ESP} and a vfat on it that is mounted at {ESP_PLACES[0]}",
    ),
    "bios": _Need(
        "BIOS",
        "BIOS boot partition, which GRUB needs on disks with a GPT",
        "{id: bios-boot, type: bios_grub, size: 1}",
        f"a partition of 1 MiB with guid {gpt.BIOS_BOOT}",
    ),
}


def why_not_bootable(schema: Plain, hardware: Plain) -> list[str]:
    """Return why the firmware of the host would find nothing to start on the disks of the layout: one sentence, or none when it would."""
    layout = readable_layout(schema)
    legs = legs_of(layout)
    firmware = str(hardware.get("firmware"))
    if firmware not in _NEEDS:
        known = bool(legs.bios or legs.esps)
        return [] if known else ["starts by a firmware that is not known. Add firmware: bios or firmware: uefi to its hardware"]
    if legs.esps if firmware == "uefi" else legs.bios:
        return []
    need = _NEEDS[firmware]
    return [
        f"starts by {need.firmware}, and the layout has no {need.part}. This line of the profile or of its overrides adds what it lacks: "
        f"- {_line(layout, need)} (of a static schema: {need.static})"
    ]


def _line(layout: Layout, need: _Need) -> str:
    """Return the line of a dynamic schema; by the space that the boot loader reads, every disk below that gets a partition."""
    spaces = {filesystem.mount: filesystem.space for filesystem in layout.filesystems}
    space = next((spaces[mount] for mount in _STARTS_FROM if spaces.get(mount)), None)
    return f"{{id: {space}, boot: true}}" if space else need.line
