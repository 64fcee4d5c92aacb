# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What MAAS, Ironic and BMCs say of disks that people have shown in public, with other serial numbers: kinds, sizes and durable names."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.recorded import ironic, maas, redfish
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.recorded.machine import to_hardware

Plain = dict[str, t.Any]
KEYS = ("id", "type", "transport", "size")


def facts(recorded: t.Any, *keys: str) -> list[tuple[t.Any, ...]]:
    found, _warnings = to_hardware(recorded, ram=1024, firmware="uefi")
    return [tuple(disk.get(key) for key in keys or KEYS) for disk in found["disks"]]


def warnings(recorded: t.Any) -> str:
    return "\n".join(to_hardware(recorded, ram=1024, firmware="uefi")[1])


def links(*addresses: str) -> list[Plain]:
    return [{"@odata.id": address} for address in addresses]


def drive(address: str, **keys: t.Any) -> Plain:
    found = {"@odata.id": address, "Id": address.rsplit("/", 1)[-1], "Model": "M", "SerialNumber": address, "MediaType": "SSD"}
    return {**found, "CapacityBytes": 240057409536, "Status": {"State": "Enabled"}, **keys}


MAAS: dict[str, tuple[t.Any, list[tuple[t.Any, ...]]]] = {
    "a desktop": (
        {
            "memory": 16384,
            "physicalblockdevice_set": [
                {
                    "name": "sda",
                    "tags": ["rotary", "sata", "7200rpm"],
                    "id_path": "/dev/disk/by-id/wwn-0x5000cca85e000001",
                    "model": "HGST HTS725050A7",
                    "block_size": 4096,
                    "serial": "RC250000000001",
                    "size": 500107862016,
                }
            ],
        },
        [("/dev/disk/by-id/wwn-0x5000cca85e000001", "hdd", "sata", 476940)],
    ),
    "a virtual machine that is being commissioned": (
        {
            "physicalblockdevice_set": [],
            "storage": 5368.70912,
            "blockdevice_set": [
                {
                    "name": "sda",
                    "type": "physical",
                    "id_path": "/dev/disk/by-id/ata-QEMU_HARDDISK_QM00001",
                    "path": "/dev/disk/by-dname/sda",
                    "tags": ["ssd"],
                    "numa_node": 0,
                    "uuid": None,
                    "filesystem": None,
                    "partitions": [],
                    "block_size": 512,
                    "size": 5368709120,
                }
            ],
        },
        [("/dev/disk/by-id/ata-QEMU_HARDDISK_QM00001", "ssd", None, 5120)],
    ),
    "disks without links": (
        {
            "physicalblockdevice_set": [
                {"name": "sda", "tags": ["ssd", "sata"], "id_path": None, "serial": "S21N00000000001", "size": 250059350016},
                {"name": "sdb", "tags": ["ssd", "sata"], "serial": "S21N00000000002", "size": 500059350016},
            ]
        },
        [("/dev/sda", "ssd", "sata", 238475), ("/dev/sdb", "ssd", "sata", 476893)],
    ),
    "a container's root": (
        {
            "physicalblockdevice_set": [
                {"name": "sda", "id_path": "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_lxd_root", "serial": "", "size": 10000007168}
            ]
        },
        [("/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_lxd_root", "hdd", None, 9536)],
    ),
    "little about an NVMe drive": (
        {"physicalblockdevice_set": [{"name": "nvme0n1", "model": "Dell Ent NVMe", "serial": "S1A2B3", "size": 1920383410176}]},
        [("/dev/nvme0n1", "ssd", "nvme", 1831420)],
    ),
    "block devices alone": (
        [
            {"name": "vda", "type": "physical", "id_path": "/dev/vda", "serial": "", "model": "", "tags": ["rotary"], "size": 8589934592},
            {"name": "md0", "type": "virtual", "id_path": None, "serial": None, "model": None, "tags": [], "size": 8589934592},
        ],
        [("/dev/vda", "ssd", "virtio", 8192)],
    ),
}
NO_WWN: Plain = {"wwn": None, "wwn_vendor_extension": None, "wwn_with_extension": None}
IRONIC: dict[str, tuple[list[Plain], list[tuple[t.Any, ...]]]] = {
    "a USB stick with a path that is none": (
        [
            {
                **NO_WWN,
                "name": "/dev/sdb",
                "model": "Flash Drive FIT",
                "vendor": "Samsung",
                "size": 256641603584,
                "rotational": True,
                "serial": "0330110000000001",
                "hctl": "3:0:0:0",
                "by_path": "/dev/disk/by-path/fc---lun-0",
            }
        ],
        [("/dev/sdb", "hdd", None, 244752)],
    ),
    "a virtual machine": (
        [
            {**NO_WWN, "name": "/dev/vda", "model": "", "vendor": "0x1af4", "size": 64424509440, "rotational": True, "serial": None}
            | {"hctl": None, "by_path": "/dev/disk/by-path/pci-0000:08:00.0"}
        ],
        [("/dev/disk/by-path/pci-0000:08:00.0", "ssd", "virtio", 61440)],
    ),
    "two volumes of a controller with one WWN": (
        [
            {
                "name": f"/dev/sd{letter}",
                "model": "ServeRAID M5210",
                "vendor": "IBM",
                "size": 298999349248,
                "rotational": True,
                "wwn": "0x600605b00d890000",
                "serial": f"600605b00d890000{more}",
                "wwn_with_extension": f"0x600605b00d890000{more}",
                "wwn_vendor_extension": f"0x{more}",
                "by_path": f"/dev/disk/by-path/pci-0000:0b:00.0-scsi-0:2:{at}:0",
            }
            for at, (letter, more) in enumerate([("a", "2de2e52400000001"), ("b", "2de2e52600000002")])
        ],
        [
            ("/dev/disk/by-id/wwn-0x600605b00d8900002de2e52400000001", "hdd", None, 285148),
            ("/dev/disk/by-id/wwn-0x600605b00d8900002de2e52600000002", "hdd", None, 285148),
        ],
    ),
    "a WWN that many have": (
        [
            {"name": "/dev/sda", "size": 64424509440, "rotational": True, "vendor": "QEMU", "wwn": "0x0000000000000001"}
            | {"wwn_with_extension": "0x0000000000000001", "serial": "0000000000000001"}
        ],
        [("/dev/sda", "hdd", None, 61440)],
    ),
    "NVMe behind a SCSI controller": (
        [
            {**NO_WWN, "name": "/dev/sda", "model": "SAMSUNG MZTL21T9", "vendor": "NVMe", "rotational": False, "size": 1920383410176}
            | {"serial": "S6RCNG00000001", "by_path": "/dev/disk/by-path/pci-0006:01:00.0-scsi-0:2:0:0"}
        ],
        [("/dev/disk/by-path/pci-0006:01:00.0-scsi-0:2:0:0", "ssd", None, 1831420)],
    ),
}


@pytest.mark.parametrize(("record", "expected"), MAAS.values(), ids=MAAS.keys())
def test_maas(record: t.Any, expected: list[tuple[t.Any, ...]]) -> None:
    assert facts(maas.read(record)) == expected


@pytest.mark.parametrize(("disks", "expected"), IRONIC.values(), ids=IRONIC.keys())
def test_ironic(disks: list[Plain], expected: list[tuple[t.Any, ...]]) -> None:
    inventory = {"disks": disks, "memory": {"total": 4294967296}, "boot": {"current_boot_mode": "bios", "pxe_interface": None}}
    assert facts(ironic.read({"cpu_arch": "x86_64", "root_disk": disks[0], "inventory": inventory})) == expected


def test_redfish_eui_in_pairs() -> None:
    identifiers = [{"DurableName": "01:CF:53:21:E2:8E:00:01", "DurableNameFormat": "EUI"}]
    assert facts(redfish.read([drive("/d/0", Protocol="NVMe", Identifiers=identifiers)])) == [
        ("/dev/disk/by-id/nvme-eui.01cf5321e28e0001", "ssd", "nvme", 228936)
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("425380001", "NAA"),
        ("VMware-vm1-Volume-1", "NAA"),
        ("0000000000000000db040e9f00010001 ", "UUID"),
        ("nqn.2014-08.org:uuid:1", "NQN"),
    ],
)
def test_redfish_numbers_of_a_controller_are_no_world_wide_names(name: str, kind: str) -> None:
    volume = {"@odata.id": "/v/1", "Id": "1", "CapacityBytes": 42949672960, "Links": {"Drives": links("/d/8")}}
    recorded = redfish.read({"volumes": [{**volume, "Identifiers": [{"DurableName": name, "DurableNameFormat": kind}]}]})
    assert facts(recorded, "id", "wwn", "drive") == [("1", None, "/d/8")]
    assert "no durable name" in warnings(recorded)


def test_redfish_drives_that_name_their_volume_are_behind_it() -> None:
    behind = [drive(f"/d/{at}", MediaType="HDD", Links={"Volumes": links("/v/0")}) for at in range(2)]
    recorded = redfish.read(
        {"drives": [*behind, drive("/d/2")], "volumes": [{"@odata.id": "/v/0", "Id": "v", "CapacityBytes": 240057409536}]}
    )
    assert facts(recorded, "id", "type") == [("v", "hdd"), ("2", "ssd")]
    assert facts(recorded, "drive")[0] == (["M /d/0", "M /d/1"],)


def test_redfish_volumes_with_what_is_provisioned() -> None:
    capacity = {"Data": {"ConsumedBytes": 0, "AllocatedBytes": 1073741824, "ProvisionedBytes": 10737418240}}
    volumes = [{"Id": "1", "BlockSizeBytes": 4096, "Capacity": capacity}, {"Id": "2", "Capacity": [capacity]}, {"Id": "3"}]
    recorded = redfish.read({"volumes": volumes})
    assert facts(recorded, "id", "size", "logical_block") == [("1", 10240, 4096)]
    assert "no size for 2" in warnings(recorded)
    assert "no size for 3" in warnings(recorded)
