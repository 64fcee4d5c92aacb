# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records as vendors and versions write them: text for numbers, lists for trees, drives without a size, two paths to one disk."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.recorded import ansible_devices, ironic, lsblk, lshw, maas, redfish
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.recorded.machine import Recorded, hardware_from, to_hardware

Plain = dict[str, t.Any]


def disks(recorded: Recorded) -> tuple[dict[str, Plain], str]:
    """Return disks by their id, and all warnings."""
    facts, warnings = to_hardware(recorded, ram=1024, firmware="uefi")
    return {disk["id"]: disk for disk in facts["disks"]}, "\n".join(warnings)


def drive(**keys: t.Any) -> Plain:
    return {"Id": "0", "CapacityBytes": 480103981056, "MediaType": "SSD", "Status": {"State": "Enabled", "Health": "OK"}, **keys}


def test_redfish_of_a_dell() -> None:
    found, _warnings = disks(
        redfish.read(
            [
                drive(
                    **{
                        "@odata.id": "/redfish/v1/Systems/System.Embedded.1/Storage/Drives/Disk.Bay.0",
                        "Id": "Disk.Bay.0",
                        "Protocol": "SAS",
                    },
                    **{"Identifiers": [{"DurableName": "5002538B00C38D40", "DurableNameFormat": "NAA"}], "BlockSizeBytes": 512},
                    **{"Model": "MZILT480HBHQ0D3", "SerialNumber": "S5G2NE0N400001", "Manufacturer": "SAMSUNG", "RotationSpeedRPM": 0},
                ),
                drive(Id="Disk.Bay.1", CapacityBytes=None, Status={"State": "Absent", "Health": None}, MediaType=None),
            ]
        )
    )
    assert {name: (disk["type"], disk["transport"], disk["size"]) for name, disk in found.items()} == {
        "/dev/disk/by-id/wwn-0x5002538b00c38d40": ("ssd", "sas", 457862)
    }


def test_redfish_drives_without_a_size_are_told() -> None:
    older = {"Id": "4", "CapacityGB": 480, "InterfaceType": "SATA", "MediaType": "SSD", "SerialNumber": "X"}
    found, warnings = disks(redfish.read([older, drive(Id="5")]))
    assert list(found) == ["5"]
    assert "Redfish gives no size for 4, which is left out" in warnings


def test_redfish_drives_of_two_controllers_with_one_number() -> None:
    named = [drive(**{"@odata.id": f"/redfish/v1/Chassis/{at}/Drives/0", "SerialNumber": f"S{at}"}) for at in range(2)]
    unnamed = [drive(**{"@odata.id": f"/redfish/v1/Chassis/{at}/Drives/0", "SerialNumber": ""}) for at in range(2)]
    assert sorted(disks(redfish.read(named))[0]) == ["S0", "S1"]
    assert sorted(disks(redfish.read(unnamed))[0]) == ["redfish/v1/Chassis/0/Drives/0", "redfish/v1/Chassis/1/Drives/0"]


@pytest.mark.parametrize("memory", ["Infinity", "NaN", "1e308", "-1"])
def test_redfish_memory_that_is_no_number_is_a_message(memory: str) -> None:
    system = json.loads(f'{{"MemorySummary": {{"TotalSystemMemoryGiB": {memory}}}}}')
    with pytest.raises(InputError, match="TotalSystemMemoryGiB"):
        to_hardware(redfish.read({"drives": [drive()], "system": system}))


NODE = {
    "id": "disk",
    "class": "disk",
    "logicalname": "/dev/sda",
    "size": 480103981056,
    "serial": "S",
    "configuration": {"sectorsize": "4096"},
}


@pytest.mark.parametrize("data", [[NODE], NODE, {"id": "core", "class": "bus", "children": [NODE]}, [{"id": "x", "children": [NODE]}]])
def test_lshw_of_all_versions(data: t.Any) -> None:
    found, _warnings = disks(lshw.read(data))
    assert {name: (disk["size"], disk["physical_block"]) for name, disk in found.items()} == {"/dev/sda": (457862, 4096)}


def test_lshw_character_devices_of_nvme_are_no_disks() -> None:
    namespaces = [
        {"id": "namespace:0", "class": "disk", "logicalname": "/dev/ng0n1"},
        {"id": "namespace:1", "class": "disk", "logicalname": "/dev/hwmon1"},
        {
            **{"id": "namespace:2", "class": "disk", "logicalname": "/dev/nvme0n1", "size": 960197124096},
            **{"configuration": {"wwid": "eui.0025385b91b00001", "logicalsectorsize": "512", "sectorsize": "512"}},
        },
    ]
    found, warnings = disks(lshw.read({"id": "nvme0", "class": "storage", "children": namespaces}))
    assert list(found) == ["/dev/disk/by-id/nvme-eui.0025385b91b00001"]
    assert "ng0n1" not in warnings
    assert "hwmon" not in warnings


def device(**keys: t.Any) -> Plain:
    return {"name": "sda", "type": "disk", "size": 480103981056, "rota": False, "wwn": "0x5002538f42900001", **keys}


def old(**keys: t.Any) -> Plain:
    """Return a device as lsblk before 2.33 writes it: all is text."""
    return {
        "name": "sda",
        "type": "disk",
        "size": "480103981056",
        "rota": "0",
        "ro": "0",
        "rm": "0",
        "log-sec": "512",
        "phy-sec": "4096",
        **keys,
    }


def test_lsblk_with_text_for_numbers() -> None:
    part = {"name": "sda1", "type": "part", "size": "1048576000", "start": "2048", "mountpoint": None, "fstype": "xfs", "parttype": None}
    found, _warnings = disks(lsblk.read({"blockdevices": [old(children=[part], mountpoint=None)]}))
    (disk,) = found.values()
    assert (disk["size"], disk["rotational"], disk["physical_block"], disk["in_use"]) == (457862, False, 4096, False)
    assert [(one["start"], one["size"], one["fs_type"]) for one in disk["partitions"]] == [(1, 1000, "xfs")]


@pytest.mark.parametrize("kind", ["lvm", "crypt", "raid1", "mpath"])
def test_lsblk_a_disk_below_something_active_is_in_use_though_nothing_is_mounted(kind: str) -> None:
    part = {"name": "sda1", "type": "part", "size": 2**30, "children": [{"name": "x", "type": kind, "size": 2**29, "mountpoints": [None]}]}
    (disk,) = disks(lsblk.read({"blockdevices": [device(children=[part])]}))[0].values()
    assert disk["in_use"] is True


def test_two_paths_to_a_disk_are_one_disk() -> None:
    found, warnings = disks(lsblk.read({"blockdevices": [device(name="sdb"), device(), device(name="sdc", wwn="0x5002538f42900002")]}))
    assert [disk["dev"] for disk in found.values()] == ["/dev/sda", "/dev/sdc"]
    assert "/dev/sdb and /dev/sda are both /dev/disk/by-id/wwn-0x5002538f42900001" in warnings


def test_ironic_with_nothing_told() -> None:
    empty = dict.fromkeys(("model", "vendor", "serial", "wwn", "wwn_with_extension", "wwn_vendor_extension", "hctl", "by_path"))
    data = {"inventory": {"disks": [{"name": "/dev/vda", "size": 2**34, "rotational": True, **empty}], "memory": None, "boot": None}}
    found, warnings = disks(ironic.read({**data, "plugin_data": {}}))
    assert list(found) == ["/dev/vda"]
    assert "gives /dev/vda no durable name" in warnings


def test_maas_with_text_for_numbers() -> None:
    found, _warnings = disks(
        maas.read({"blockdevice_set": [{"name": "sda", "size": "480103981056", "type": "physical"}], "memory": "4096"})
    )
    assert found["/dev/sda"]["size"] == 457862


SDA = {"sectors": "937703088", "sectorsize": "512", "rotational": "0", "holders": [], "partitions": {"sda1": {"holders": []}}}


@pytest.mark.parametrize(
    ("mounts", "in_use", "warns"), [([{"device": "/dev/sda1"}], True, "whether disks without mounts"), ([], None, "without mounts")]
)
def test_mounts_tell_of_ansibles_devices_whether_they_are_in_use(mounts: list[Plain], in_use: bool | None, warns: str) -> None:
    found, warnings = disks(ansible_devices.read({"ansible_devices": {"sda": SDA}, "ansible_mounts": mounts}))
    assert found["/dev/sda"].get("in_use") is in_use
    assert warns in warnings
    assert "whether disks are in use" in disks(ansible_devices.read({"sda": SDA}))[1]


@pytest.mark.parametrize("other", [{"serial": "B"}, {"size": 2**31}])
def test_two_disks_of_one_name_are_not_two_paths_to_one(other: Plain) -> None:
    first = {"name": "sda", "size": 2**30, "serial": "A", "id_path": "/dev/disk/by-id/wwn-0x5002538f42900001"}
    found, warnings = disks(maas.read({"physicalblockdevice_set": [first, {**first, "name": "sdb", **other}]}))
    assert [disk["id"] for disk in found.values()] == ["/dev/sda", "/dev/sdb"]
    assert "wwn-0x5002538f42900001, by which /dev/sda is known, is that of other disks, too" in warnings
    with pytest.raises(InputError, match="two disks are both /dev/sda"):
        disks(maas.read({"physicalblockdevice_set": [{**first, "id_path": None}, {**first, "id_path": None, **other}]}))


def test_disks_without_room_are_told() -> None:
    found, warnings = disks(lsblk.read({"blockdevices": [device(), device(name="sdb", size=0, wwn=None)]}))
    assert len(found) == 1
    assert "lsblk gives no size for /dev/sdb, which is left out" in warnings


@pytest.mark.parametrize("ids", [-1, True, "text", {"x": 1}, [1, None]])
def test_links_of_ansible_that_are_none_are_passed_over(ids: t.Any) -> None:
    found, _warnings = disks(ansible_devices.read({"devices": {"sda": {"sectors": 2**22, "links": {"ids": ids}}}}))
    assert list(found) == ["/dev/sda"]


@pytest.mark.parametrize("text", ["", " ", "{", '{"disks": [', "[" * 100000])
def test_text_that_is_no_json_is_one_message(text: str) -> None:
    with pytest.raises(InputError, match=r"^is (empty; must be|not complete JSON: )"):
        hardware_from(maas.read, text)


def test_text_is_read_as_json() -> None:
    data = {"physicalblockdevice_set": [{"name": "sda", "size": 2**31}]}
    assert hardware_from(maas.read, json.dumps(data)) == hardware_from(maas.read, data)


GIB = 1024**3


def row(name: str, kind: str, gib: int, **more: t.Any) -> Plain:
    return {"name": name, "type": kind, "size": gib * GIB, "mountpoint": None, "fstype": None, **more}


PARTED = [row("sda1", "part", 1, fstype="vfat", mountpoint="/boot/efi"), row("sda2", "part", 400, fstype="LVM2_member")]
LISTS: dict[str, tuple[list[Plain], set[str], set[str]]] = {
    # Rows without a tree, as jc's parser of lsblk gives them (kellyjonbrazil/jc, tests/fixtures/ubuntu-18.04/lsblk-allcols.json).
    "partitions": ([row("sda", "disk", 480), *PARTED[:1], row("sdb", "disk", 480)], {"sda"}, {"sdb"}),
    "numbers after a p": ([row("nvme0n1", "disk", 480), row("nvme0n1p2", "part", 9, mountpoint="/")], {"nvme0n1"}, set()),
    # The same with volumes (tests/fixtures/centos-7.7/lsblk-allcols.json there), by PKNAME of the kernel's names, and without.
    "volumes by name": (
        [row("sda", "disk", 480), *({**one, "pkname": "sda"} for one in PARTED)]
        + [row("centos-root", "lvm", 17, kname="dm-0", pkname="sda2", mountpoint="/"), row("sdb", "disk", 480)],
        {"sda"},
        {"sdb"},
    ),
    "volumes by what holds them": (
        [row("sda", "disk", 480), *PARTED[1:], row("centos-root", "lvm", 17, mountpoint="/"), row("sdb", "disk", 480)],
        {"sda"},
        {"sdb"},
    ),
    # lsblk -P of Rockstor (rockstor/rockstor-core, src/rockstor/system/tests/test_osi.py): mdraid, LUKS on bcache, IMSM.
    "arrays": (
        [row(name, "disk", 8) for name in ("sda", "sdb", "sdc")]
        + [row(f"{name}1", "part", 7, fstype="linux_raid_member") for name in ("sda", "sdb")]
        + [row("md127", "raid1", 7, fstype="btrfs", mountpoint="/"), row("md127", "raid1", 7, fstype="btrfs", mountpoint="/")],
        {"sda", "sdb"},
        {"sdc"},
    ),
    "bcache": (
        [row("sdc", "disk", 2, fstype="bcache"), row("vdb", "disk", 2, fstype="bcache"), row("bcache0", "disk", 2, fstype="crypto_LUKS")]
        + [row("luks-a4", "crypt", 2, fstype="btrfs"), row("sda", "disk", 8)],
        {"sdc", "vdb"},
        {"sda"},
    ),
    "IMSM": (
        [row("sdb", "disk", 149, fstype="isw_raid_member"), row("/dev/md126", "raid1", 149), row("/dev/md126p3", "md", 146, fstype="btrfs")]
        + [row("sdc", "disk", 149, fstype="isw_raid_member"), row("/dev/md126", "raid1", 149), row("sda", "disk", 298)],
        {"md126"},
        {"sda"},
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_lsblk_in_a_list_without_a_tree_tells_which_disks_are_in_use(name: str) -> None:
    rows, in_use, idle = LISTS[name]
    found, _warnings = disks(lsblk.read({"blockdevices": rows}))
    assert {one["dev"].removeprefix("/dev/"): one["in_use"] for one in found.values()} == dict.fromkeys(in_use, True) | dict.fromkeys(
        idle, False
    )


def test_lsblk_that_was_not_asked_for_mounts_does_not_say_that_a_disk_is_idle() -> None:
    """What ironic's agent asks for (openstack/ironic-python-agent, ironic_python_agent/tests/unit/samples/hardware_samples.py)."""
    asked = [{"kname": "sda", "model": "TinyUSB Drive", "size": 3116853504, "rota": False, "type": "disk", "serial": "123", "tran": "usb"}]
    found, warnings = disks(lsblk.read({"blockdevices": asked}))
    assert "in_use" not in found["/dev/sda"]
    assert "whether disks are in use" in warnings


@pytest.mark.parametrize("container", ["0B", 0, "0"])
def test_lsblk_without_bytes_lists_the_arrays_of_a_controller_and_not_their_container(container: t.Any) -> None:
    """IMSM with two arrays in one container, as VROC makes them (canonical/subiquity, examples/machines/imsm.json has one of them)."""
    below = [
        {"name": "md127", "type": "md", "size": container},
        {
            "name": "md126",
            "type": "raid1",
            "size": "100G",
            "children": [{"name": "md126p1", "type": "part", "size": "1G", "mountpoint": "/"}],
        },
        {"name": "md125", "type": "raid0", "size": "1.6T"},
    ]
    members = [{"name": f"nvme{at}n1", "type": "disk", "size": "931.5G", "tran": "nvme", "serial": f"S{at}"} for at in range(2)]
    rows = [{**member, "fstype": "isw_raid_member", "children": below} for member in members]
    found, _warnings = disks(lsblk.read({"blockdevices": rows}))
    assert {name: (one["in_use"], one["drive"]) for name, one in found.items()} == {
        "/dev/md125": (False, ["S0", "S1"]),
        "/dev/md126": (True, ["S0", "S1"]),
    }


def test_lsblk_names_arrays_of_device_mapper_by_their_link() -> None:
    array = {"name": "ddf1_4c53", "type": "dmraid", "size": 10**12}
    rows = [{"name": name, "type": "disk", "size": 10**12, "fstype": "ddf_raid_member", "children": [array]} for name in ("sda", "sdb")]
    assert list(disks(lsblk.read({"blockdevices": rows}))[0]) == ["/dev/mapper/ddf1_4c53"]


def test_lsblk_of_members_without_an_array_is_disks_that_are_not_empty() -> None:
    """Old DDF metadata on drives that a controller passes through one by one."""
    rows = [row("sda", "disk", 1100, fstype="ddf_raid_member"), row("sdb", "disk", 1100)]
    found, _warnings = disks(lsblk.read({"blockdevices": rows}))
    assert {name: one["empty"] for name, one in found.items()} == {"/dev/sda": False, "/dev/sdb": True}
