# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which parts of a layout carry a boot loader."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._schema.starting import Legs, legs_of
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import readable_layout
from ansible_collections.bareon.allocator.plugins.module_utils._storage.gpt import BIOS_BOOT, ESP, LINUX


def disk(name, *guids):
    parts = [{"name": f"{name}-part{number}", "guid": guid} for number, guid in enumerate(guids, start=1)]
    return {"name": name, "partitions": parts}


def fat(device, mount="none"):
    return {"device": device, "mount": mount, "fs_type": "vfat"}


BIOS = {"parteds": [disk("/dev/a", BIOS_BOOT, LINUX), disk("/dev/b", BIOS_BOOT), disk("/dev/c", LINUX)]}
UEFI = {"parteds": [disk("/dev/a", ESP.upper()), disk("/dev/b", ESP)], "fss": [fat("/dev/a-part1", "/boot/efi"), fat("/dev/b-part1")]}


@pytest.mark.parametrize(
    ("schema", "legs"),
    [
        ({}, Legs()),
        (BIOS, Legs(bios=("/dev/a", "/dev/b"))),
        ({**UEFI, "fss": []}, Legs()),
        (UEFI, Legs(esps=("/dev/a-part1", "/dev/b-part1"))),
        ({**UEFI, "fss": [fat("/dev/a-part1", "/efi"), fat("/dev/data", "/srv")]}, Legs(esps=("/dev/a-part1",), esp_place="/efi")),
        ({**UEFI, "fss": [fat("/dev/md/esp", "/boot/efi")]}, Legs(esps=("/dev/md/esp",))),
    ],
)
def test_disks_and_partitions_that_carry_a_boot_loader(schema, legs):
    assert legs_of(readable_layout(schema)) == legs
