# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.attached import read_attachment, read_slots
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import RecordedHost

NVME = "/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/nvme/nvme0/nvme0n1"
SAS = "/devices/pci0000:00/0000:00:01.0/0000:02:00.0/host0/port-0:0/end_device-0:0/target0:0:1/0:0:1:0/block/sda"


def attachment(name, devpath, **record):
    host = RecordedHost(record)
    return read_attachment(host, name, devpath, read_slots(host))


@pytest.mark.parametrize(
    ("text", "node"),
    [("1", 1), ("0", 0), ("-1", None), ("many", None)],
)
def test_the_numa_node_is_that_of_the_nearest_device_that_names_one(text, node):
    found = attachment("nvme0n1", NVME, files={"/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/numa_node": text})

    assert found["numa_node"] == node


def test_an_nvme_is_in_the_pci_slot_with_its_address():
    slots = {"directories": {"/sys/bus/pci/slots": ["12", "13"]}}
    files = {"/sys/bus/pci/slots/12/address": "0000:3b:00", "/sys/bus/pci/slots/13/address": "0000:3c:00"}

    assert attachment("nvme0n1", NVME, files=files, **slots) == {"numa_node": None, "enclosure": None, "slot": "12"}


def test_a_disk_behind_a_controller_is_not_in_the_slot_of_the_controller():
    slots = {"directories": {"/sys/bus/pci/slots": ["2"]}, "files": {"/sys/bus/pci/slots/2/address": "0000:02:00"}}

    assert attachment("sda", SAS, **slots)["slot"] is None


@pytest.mark.parametrize(("number", "slot"), [("7", "7"), (None, "Slot 07")])
def test_a_disk_in_an_enclosure(number, slot):
    device, bay = "/sys/class/block/sda/device", "/sys/devices/pci0000:00/host0/0:0:9:0/enclosure/0:0:9:0/Slot 07"
    files = {f"{bay.rpartition('/')[0]}/id": "0x500304801f123abf"} | ({f"{bay}/slot": number} if number else {})

    found = attachment(
        "sda",
        SAS,
        files=files,
        directories={device: ["block", "enclosure_device:Slot 07"]},
        links={f"{device}/enclosure_device:Slot 07": bay},
    )

    assert (found["enclosure"], found["slot"]) == ("0x500304801f123abf", slot)


def test_nothing_is_known_of_what_is_attached_to_nothing():
    assert attachment("loop0", "/devices/virtual/block/loop0") == {"numa_node": None, "enclosure": None, "slot": None}
    assert attachment("loop0", None) == {"numa_node": None, "enclosure": None, "slot": None}
