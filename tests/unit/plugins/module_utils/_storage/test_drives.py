# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import itertools
import random

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.drives import domains, drives_of


def fails_with(*disks):
    """By disk the first with which it fails."""
    return domains(drives_of(disks))


NVME = {"transport": "nvme", "serial": "S2045", "model": "M9300"}
WWN = ["0x5000c500a1b2c3d4", "0x5000c500a1b2c3d5"]


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ({**NVME, "wwn": "eui.aa03"}, {**NVME, "wwn": "eui.aa10"}, True),
        ({"dev": "/dev/nvme0n1", "serial": "S1"}, {"dev": "/dev/nvme0n2", "serial": "S1"}, True),
        (NVME, {**NVME, "serial": "S2046"}, False),
        (NVME, {**NVME, "model": "other"}, False),
        # Two actuators of a disk, volumes of a controller that gives all of them its own serial number.
        ({"transport": "sas", "serial": "Z1", "wwn": WWN[0]}, {"transport": "sas", "serial": "Z1", "wwn": WWN[1]}, True),
        ({"transport": "scsi", "serial": "PACCR", "wwn": WWN[0]}, {"transport": "scsi", "serial": "PACCR", "wwn": WWN[1]}, True),
        ({"transport": "fc", "serial": "L7", "wwn": WWN[0]}, {"transport": "fc", "serial": "L7", "wwn": WWN[0]}, True),
        # A SATA disk has one unit; without a name of their own two disks are two.
        ({"transport": "sata", "serial": "Z1", "wwn": WWN[0]}, {"transport": "sata", "serial": "Z1", "wwn": WWN[1]}, False),
        ({"transport": "usb", "serial": "DD5641", "wwn": WWN[0]}, {"transport": "usb", "serial": "DD5641", "wwn": WWN[1]}, False),
        ({"transport": "sas", "serial": "Z1"}, {"transport": "sas", "serial": "Z1"}, False),
        ({"transport": "sas", "serial": "Z1", "wwn": "0x5000000000000000"}, {"transport": "sas", "serial": "Z1", "wwn": WWN[0]}, False),
        *(({**NVME, "serial": text}, {**NVME, "serial": text}, False) for text in ("", "0000000000", "unknown", "0123456789ABCDEF")),
        # What the facts say wins.
        ({"drive": "a"}, {"drive": ["b", " a"]}, True),
        ({**NVME, "drive": "a"}, {**NVME, "drive": "b"}, False),
        ({"drive": None}, {"drive": None}, False),
        ({"drive": []}, {"drive": ""}, False),
    ],
)
def test_which_disks_fail_together(one, other, together):
    assert fails_with(one, other) == ((0, 0) if together else (0, 1))


def test_what_shares_a_drive_with_a_third_fails_with_it():
    assert fails_with({"drive": ["1", "2"]}, {"drive": "9"}, {"drive": ["3", "4"]}, {"drive": ["2", "3"]}) == (0, 1, 0, 0)


def test_domains_are_those_of_a_search_from_each_disk():
    chance = random.Random(7)
    for _round in range(300):
        drives = [tuple(chance.choices("abcdefgh", k=chance.randint(0, 2))) for _disk in range(chance.randint(1, 7))]
        reached = [{at} for at in range(len(drives))]
        for _step in drives:
            for one, other in itertools.permutations(range(len(drives)), 2):
                if set(drives[one]) & set(drives[other]):
                    reached[one] |= reached[other]
        assert domains(drives) == tuple(min(own) for own in reached)
