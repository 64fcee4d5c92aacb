# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks that are reached on several paths. Made by hand after sysfs of multipath hosts, for no virtual machine at hand has them."""

from __future__ import annotations

import json

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.hardware import read_hardware
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import RecordedHost

B = "/sys/class/block"
PCI = "/devices/pci0000:00/0000:05:00.0"
WWID = "naa.600140512345678"


def path(name, host, wwid=WWID, sectors="8388608", serial="LUN7", rport="rport"):
    """The sysfs files of one path to a disk."""
    place = f"{PCI}/host{host}/{rport}-{host}:0-0/target{host}:0:0/{host}:0:0:7/block/{name}"
    files = {
        f"{B}/{name}/size": sectors,
        f"{B}/{name}/dev": "8:0",
        f"{B}/{name}/queue/rotational": "1",
        f"{B}/{name}/queue/logical_block_size": "512",
        f"{B}/{name}/device/wwid": wwid,
        f"{B}/{name}/device/vpd_pg80": f"\ufffd\0\x04{serial}",
    }
    return files, {f"{B}/{name}": f"/sys{place}"}


def machine(*paths, files=None, directories=None, links=None, claimed=None):
    all_files = {key: value for part, _links in paths for key, value in part.items()} | (files or {})
    names = sorted({key[len(B) + 1 :].split("/")[0] for key in all_files})
    record = {
        "files": all_files,
        "directories": {B: names, **(directories or {})},
        "links": {key: value for _files, part in paths for key, value in part.items()} | (links or {}),
        "claimed": claimed or {},
    }
    host = RecordedHost(record)
    return (
        host.with_command("wipefs --parsable /dev/mapper/mpatha")
        .with_command("wipefs --parsable /dev/sda")
        .with_command("wipefs --parsable /dev/sdb")
    )


def multipath(**more):
    return machine(
        path("sda", 2),
        path("sdb", 3),
        files={
            f"{B}/dm-0/dm/name": "mpatha",
            f"{B}/dm-0/dm/uuid": "mpath-3600140512345678",
            f"{B}/dm-0/size": "8388608",
            f"{B}/dm-0/dev": "253:0",
        },
        directories={
            f"{B}/dm-0/slaves": ["sda", "sdb"],
            "/dev/disk/by-id": ["dm-name-mpatha", "dm-uuid-mpath-3600140512345678", "wwn-0x600140512345678"],
            "/dev/disk/by-path": ["pci-0000:05:00.0-fc-0x5006-lun-7", "pci-0000:05:00.0-fc-0x5007-lun-7"],
        },
        links={
            "/dev/disk/by-id/dm-name-mpatha": "/dev/dm-0",
            "/dev/disk/by-id/dm-uuid-mpath-3600140512345678": "/dev/dm-0",
            "/dev/disk/by-id/wwn-0x600140512345678": "/dev/dm-0",
            "/dev/disk/by-path/pci-0000:05:00.0-fc-0x5006-lun-7": "/dev/sdb",
            "/dev/disk/by-path/pci-0000:05:00.0-fc-0x5007-lun-7": "/dev/sda",
        },
        **more,
    )


def test_a_multipath_device_is_one_disk_with_the_identity_of_its_paths():
    (disk,) = read_hardware(multipath(claimed={"/dev/mapper/mpatha": False}))[0]["disks"]

    assert (disk["dev"], disk["multipath"], disk["path_devices"]) == ("/dev/mapper/mpatha", True, ["/dev/sdb", "/dev/sda"])
    assert disk["id"] == "/dev/disk/by-id/wwn-0x600140512345678"
    assert disk["path"] == "/dev/disk/by-path/pci-0000:05:00.0-fc-0x5006-lun-7"
    assert (disk["serial"], disk["wwn"], disk["transport"], disk["size"]) == ("LUN7", "0x600140512345678", "fc", 4096)
    assert (disk["in_use"], disk["empty"]) == (False, True)
    assert len(disk["links"]) == 5


@pytest.mark.parametrize("pattern", ["/dev/sda", "/dev/mapper/mpath*", "*lun-7"])
def test_every_name_of_a_multipath_disk_finds_it(pattern):
    (disk,) = read_hardware(multipath(), patterns=[pattern])[0]["disks"]

    assert disk["dev"] == "/dev/mapper/mpatha"


def test_partitions_on_a_multipath_device():
    host = multipath().with_files(
        files={
            f"{B}/dm-0/dm/name": "mpatha",
            f"{B}/dm-1/dm/name": "mpatha-part1",
            f"{B}/dm-1/dm/uuid": "part1-mpath-3600140512345678",
            f"{B}/dm-1/size": "2048",
            f"{B}/dm-1/dev": "253:1",
        },
        directories={B: ["dm-0", "dm-1", "sda", "sdb"], f"{B}/dm-1/slaves": ["dm-0"]},
        claimed={"/dev/mapper/mpatha": True, "/dev/mapper/mpatha-part1": False},
    )
    partition = {"node": "/dev/mapper/mpatha-part1", "start": 2048, "size": 2048, "type": "83"}
    table = json.dumps({"partitiontable": {"label": "gpt", "id": "A", "sectorsize": 512, "partitions": [partition]}})

    hardware, warnings = read_hardware(host.with_command("sfdisk --json /dev/mapper/mpatha", table))

    (disk,) = hardware["disks"]
    assert [(part["number"], part["dev"], part["start"], part["size"]) for part in disk["partitions"]] == [
        (1, "/dev/mapper/mpatha-part1", 1, 1)
    ]
    assert not disk["in_use"], "that its partitions hold a multipath device does not mean that anybody uses them"
    assert not any("start or size in the kernel" in warning for warning in warnings)


PLACES = {
    "directories": {"/dev/disk/by-id": ["wwn-0x600140512345678"], "/dev/disk/by-path": ["pci-1-fc-0x5006-lun-7", "pci-1-fc-0x5007-lun-7"]},
    "links": {
        "/dev/disk/by-id/wwn-0x600140512345678": "/dev/sda",
        "/dev/disk/by-path/pci-1-fc-0x5006-lun-7": "/dev/sda",
        "/dev/disk/by-path/pci-1-fc-0x5007-lun-7": "/dev/sdb",
    },
}


def test_two_disks_of_one_identity_are_named_by_their_places_with_a_warning():
    hardware, warnings = read_hardware(machine(path("sda", 2), path("sdb", 3), **PLACES))

    assert [(disk["dev"], disk["id"], disk["multipath"]) for disk in hardware["disks"]] == [
        ("/dev/sda", "/dev/disk/by-path/pci-1-fc-0x5006-lun-7", False),
        ("/dev/sdb", "/dev/disk/by-path/pci-1-fc-0x5007-lun-7", False),
    ]
    assert [(twin["kind"], twin["dev"], twin["other"]) for twin in hardware["disks"][0]["twins"]] == [("disk", "/dev/sda", "/dev/sdb")]
    assert any(warning.startswith("/dev/sda, /dev/sdb have the same WWN") for warning in warnings)


def test_two_paths_to_a_namespace_of_one_nvme_subsystem_are_one_disk():
    def nvme(name, controller, subsystem):
        files = {
            f"{B}/{name}/size": "8388608",
            f"{B}/{name}/wwid": "eui.0025385b71b00001",
            f"{B}/{name}/nsid": "1",
            f"{B}/{name}/device/subsysnqn": subsystem,
        }
        return files, {f"{B}/{name}": f"/sys{PCI}/nvme/nvme{controller}/{name}"}

    (disk,) = read_hardware(machine(nvme("nvme0n1", 0, "nqn.a"), nvme("nvme1n1", 1, "nqn.a")))[0]["disks"]
    assert (disk["multipath"], disk["path_devices"]) == (True, ["/dev/nvme0n1", "/dev/nvme1n1"])
    assert len(read_hardware(machine(nvme("nvme0n1", 0, "nqn.a"), nvme("nvme1n1", 1, "nqn.b")))[0]["disks"]) == 2


def test_namespaces_of_one_controller_without_world_wide_names_are_disks_of_their_own():
    def namespace(number):
        name = f"nvme0n{number}"
        files = {f"{B}/{name}/size": "8388608", f"{B}/{name}/nsid": str(number), f"{B}/{name}/device/serial": "S1"}
        return files, {f"{B}/{name}": f"/sys{PCI}/nvme/nvme0/{name}"}

    hardware, warnings = read_hardware(machine(namespace(1), namespace(2)))
    assert [(disk["serial"], disk["twins"]) for disk in hardware["disks"]] == [("S1", []), ("S1", [])]
    assert not any("the same WWN" in warning for warning in warnings)


def test_where_one_of_two_is_in_use_the_other_counts_as_in_use():
    host = machine(path("sda", 2), path("sdb", 3)).with_files(files={"/proc/self/mountinfo": "27 1 9:9 / /mnt rw - ext4 /dev/sdb rw"})

    one, other = read_hardware(host)[0]["disks"]

    assert (one["in_use"], other["in_use"]) == (True, True)
    assert [use["dev"] for use in one["used_by"]] == ["/dev/sda"]
    assert not one["empty"]


@pytest.mark.parametrize(
    "other",
    [{"wwid": "naa.600140599999999"}, {"serial": "LUN8"}, {"sectors": "4194304"}],
    ids=["another name", "another serial", "another size"],
)
def test_disks_that_differ_are_two(other):
    hardware, warnings = read_hardware(machine(path("sda", 2), path("sdb", 3, **other)))

    assert [disk["multipath"] for disk in hardware["disks"]] == [False, False]
    assert not any("one disk reached" in warning for warning in warnings)


def test_equal_names_behind_usb_bridges_are_two_disks():
    disks = [path(name, host) for name, host in (("sda", 2), ("sdb", 3))]
    on_usb = [(files, {key: value.replace(f"{PCI}/", f"{PCI}/usb1/") for key, value in links.items()}) for files, links in disks]

    assert len(read_hardware(machine(*on_usb))[0]["disks"]) == 2


def test_disks_without_a_world_wide_name_are_never_joined():
    assert len(read_hardware(machine(path("sda", 2, wwid=""), path("sdb", 3, wwid="")))[0]["disks"]) == 2
