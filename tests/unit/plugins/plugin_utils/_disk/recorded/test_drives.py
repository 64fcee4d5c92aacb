# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which of the recorded devices are disks, which of them fail together, and how those are named that share an identifier."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.recorded import ansible_devices, ironic, lsblk, lshw, maas, redfish
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.recorded.machine import Recorded, to_hardware
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.hardware import parse_hardware

Plain = dict[str, t.Any]
SIZE = 480103981056
NO_DISKS = (
    *(
        "loop0",
        "zloop0",
        "ram0",
        "zram0",
        "sr0",
        "fd0",
        "nullb0",
        "ublkb0",
        "nbd0",
        "rnbd0",
        "rbd0",
        "etherd/e0.0",
        "mtdblock0",
        "bcache0",
        "drbd0",
        "zd0",
    ),
    *("md127", "dm-0", "mmcblk0boot0", "mmcblk0rpmb", "nvme0c0n1"),
)


def row(name: str, **more: t.Any) -> Plain:
    return {"name": name, "type": "disk", "size": SIZE, "rota": False, "mountpoint": None, **more}


def read_lsblk(*rows: Plain) -> Recorded:
    return lsblk.read({"blockdevices": list(rows)})


def read_ansible(*names: str) -> Recorded:
    return ansible_devices.read({name: {"sectors": SIZE // 512} for name in names})


def read_lshw(*names: str) -> Recorded:
    disks = [{"id": "disk", "class": "disk", "logicalname": f"/dev/{name}", "size": SIZE} for name in names]
    return lshw.read({"id": "x", "children": disks})


def read_ironic(*names: str) -> Recorded:
    return ironic.read({"disks": [{"name": f"/dev/{name}", "size": SIZE} for name in names]})


def read_maas(*names: str) -> Recorded:
    return maas.read({"physicalblockdevice_set": [{"name": name, "size": SIZE} for name in names]})


READERS = {
    "lsblk": lambda *names: read_lsblk(*map(row, names)),
    "ansible": read_ansible,
    "lshw": read_lshw,
    "ironic": read_ironic,
    "maas": read_maas,
}


def disks(recorded: Recorded) -> tuple[dict[str, Plain], str]:
    facts, warnings = to_hardware(recorded)
    parse_hardware(facts)
    return {disk["dev"]: disk for disk in facts["disks"]}, "\n".join(warnings)


@pytest.mark.parametrize("reader", READERS)
def test_one_table_says_what_is_no_disk(reader: str) -> None:
    found, _warnings = disks(READERS[reader]("sda", *NO_DISKS))
    assert list(found) == ["/dev/sda"]


def nvme(name: str, **more: t.Any) -> Plain:
    return row(name, tran="nvme", model="M9300", serial="S2045", **more)


@pytest.mark.parametrize(
    "recorded",
    [
        read_lsblk(
            nvme("nvme0n1", wwn="eui.36344830525030150025384500000001"), nvme("nvme0n2", wwn="eui.36344830525030150025384500000002")
        ),
        ansible_devices.read({f"nvme0n{at}": {"sectors": 2**22, "serial": "S2045", "model": "M9300"} for at in (1, 2)}),
        ironic.read({"disks": [{"name": f"/dev/nvme0n{at}", "size": SIZE, "serial": "S2045", "model": "M9300"} for at in (1, 2)]}),
        maas.read(
            {"physicalblockdevice_set": [{"name": f"nvme0n{at}", "size": SIZE, "serial": "S2045", "model": "M9300"} for at in (1, 2)]}
        ),
        lshw.read(
            {
                "id": "nvme",
                "serial": "S2045",
                "children": [{"id": "ns", "class": "disk", "logicalname": f"/dev/nvme0n{at}", "size": SIZE} for at in (1, 2)],
            }
        ),
    ],
    ids=["lsblk", "ansible", "ironic", "maas", "lshw"],
)
def test_namespaces_of_one_nvme_are_on_one_drive(recorded: Recorded) -> None:
    one, other = disks(recorded)[0].values()
    assert one["drive"] == other["drive"]
    assert parse_hardware({"disks": [one, other]}).drives == (0, 0)


def test_volumes_on_the_same_drives_are_no_mirror() -> None:
    drives = [
        {"@odata.id": f"/d/{at}", "Id": str(at), "CapacityBytes": SIZE, "MediaType": "HDD", "Model": "M", "SerialNumber": f"S{at}"}
        for at in range(5)
    ]
    volumes = [
        {"@odata.id": f"/v/{name}", "Id": name, "CapacityBytes": SIZE, "Links": {"Drives": [{"@odata.id": f"/d/{at}"} for at in own]}}
        for name, own in (("a", (0, 1)), ("b", (1, 0)), ("c", (2, 3)))
    ]
    facts, _warnings = to_hardware(redfish.read({"drives": drives, "volumes": volumes}))
    found = {disk["dev"]: disk["drive"] for disk in facts["disks"]}
    assert found == {"a": ["M S0", "M S1"], "b": ["M S0", "M S1"], "c": ["M S2", "M S3"], "4": "M S4"}

    plan = Planner([{"id": "data", "type": "raid", "level": "raid1", "legs": "all"}]).plan(facts)
    used = {disk["disk_id"] for disk in plan["disks"] if disk["spaces"]}
    assert len(used) == 3
    assert not {"a", "b"} <= used


def test_redfish_of_hpe_and_nguids() -> None:
    drive = {"Id": "4", "CapacityMiB": 457862, "InterfaceType": "SATA", "MediaType": "SSD", "SerialNumber": "X4"}
    volume = {"Id": "1", "CapacityMiB": 915715, "VolumeUniqueIdentifier": "600508B1001C4DE2"}
    other = {
        "Id": "5",
        "CapacityBytes": SIZE,
        "Protocol": "NVMe",
        "Identifiers": [{"DurableName": "36344830525030150025384500000001", "DurableNameFormat": "NGUID"}],
    }
    found, _warnings = disks(redfish.read({"drives": [drive, other], "volumes": [volume]}))
    assert (found["4"]["size"], found["4"]["transport"]) == (457862, "sata")
    assert found["1"]["id"] == "/dev/disk/by-id/wwn-0x600508b1001c4de2"
    assert found["5"]["id"] == "/dev/disk/by-id/nvme-eui.36344830525030150025384500000001"


def multipath(**more: t.Any) -> list[Plain]:
    part = {"name": "mpatha-part1", "type": "part", "size": 2**30, "start": 2048, "fstype": "ext4", **more}
    child = {"name": "mpatha", "type": "mpath", "size": SIZE, "log-sec": 512, "children": [part]}
    return [row(name, tran="fc", wwn="0x600140512345678a", serial="LUN7", children=[child]) for name in ("sda", "sdb")]


def test_a_multipath_map_of_lsblk_is_a_disk_and_its_paths_are_not() -> None:
    found, _warnings = disks(read_lsblk(*multipath(), row("sdc")))
    disk = found["/dev/mapper/mpatha"]
    assert list(found) == ["/dev/mapper/mpatha", "/dev/sdc"]
    assert (disk["id"], disk["serial"], disk["transport"]) == ("/dev/disk/by-id/wwn-0x600140512345678a", "LUN7", "fc")
    assert (disk["multipath"], disk["path_devices"]) == (True, ["/dev/sda", "/dev/sdb"])
    assert (disk["in_use"], disk["empty"], [part["size"] for part in disk["partitions"]]) == (False, False, [1024])
    assert disks(read_lsblk(*multipath(mountpoints=["/srv"])))[0]["/dev/mapper/mpatha"]["in_use"]


def test_a_multipath_map_of_ansible_is_a_disk_and_its_paths_are_not() -> None:
    path = {"sectors": 2**22, "serial": "LUN7", "wwn": "0x600140512345678a", "links": {"masters": ["dm-0"]}, "holders": ["mpatha"]}
    mapped = {"sectors": 2**22, "links": {"ids": ["dm-name-mpatha", "dm-uuid-mpath-3600140512345678a"]}}
    other = {"sectors": 2**22, "links": {"ids": ["dm-name-vg-lv", "dm-uuid-LVM-x"]}}
    found, _warnings = disks(ansible_devices.read({"sda": path, "sdb": path, "dm-0": mapped, "dm-1": other, "sdc": {"sectors": 2**22}}))
    assert list(found) == ["/dev/mapper/mpatha", "/dev/sdc"]
    assert found["/dev/mapper/mpatha"]["serial"] == "LUN7"
    assert found["/dev/mapper/mpatha"]["path_devices"] == ["/dev/sda", "/dev/sdb"]


def test_a_map_that_ironics_agent_lists_is_a_disk() -> None:
    listed = [{"name": "/dev/dm-0", "size": SIZE, "wwn": "0x600140512345678a", "serial": "LUN7"}, {"name": "/dev/dm-1", "size": SIZE}]
    found, _warnings = disks(ironic.read({"disks": listed}))
    assert [(disk["dev"], disk["multipath"]) for disk in found.values()] == [("/dev/dm-0", True)]


@pytest.mark.parametrize("kind", ["isw_raid_member", "ddf_raid_member"])
def test_arrays_of_a_controller_are_disks_on_the_drives_of_their_members(kind: str) -> None:
    arrays = [
        {"name": "md126", "type": "raid1", "size": SIZE // 2, "children": []},
        {"name": "md125", "type": "raid0", "size": SIZE // 2},
        {"name": "md127", "type": "raid1", "size": 0},
    ]
    members = [row(f"sd{name}", tran="sata", serial=f"Z{name}", fstype=kind, children=arrays) for name in "ab"]
    found, _warnings = disks(read_lsblk(*members, row("sdc", fstype="linux_raid_member", children=[arrays[0]])))
    assert list(found) == ["/dev/md125", "/dev/md126", "/dev/sdc"]
    assert found["/dev/md125"]["drive"] == found["/dev/md126"]["drive"] == ["/dev/sda", "/dev/sdb"]
    assert found["/dev/sdc"]["in_use"]


@pytest.mark.parametrize(
    ("device", "dev"),
    [
        ({"name": "/dev/sda", "type": "disk", "tran": "sata"}, "/dev/sda"),
        ({"path": "/dev/sda", "type": "disk", "tran": "sata"}, "/dev/sda"),
        ({"path": "/dev/sda", "tran": "sata"}, "/dev/sda"),
        ({"kname": "sda", "type": "disk", "tran": "sata"}, "/dev/sda"),
    ],
)
def test_lsblk_with_paths_for_names(device: Plain, dev: str) -> None:
    found, _warnings = disks(read_lsblk({**device, "size": SIZE, "log_sec": 4096, "phy_sec": 4096}, row("/dev/zram0"), row("/dev/nvme0n1")))
    assert list(found) == ["/dev/nvme0n1", dev]
    assert (found[dev]["transport"], found[dev]["logical_block"], found[dev]["physical_block"]) == ("sata", 4096, 4096)
    assert found["/dev/nvme0n1"]["transport"] == "nvme"


@pytest.mark.parametrize("size", [0, 3, 520, 2**40])
@pytest.mark.parametrize(
    "record",
    [
        lambda size: lsblk.read({"blockdevices": [{**row("sda"), "log-sec": size, "phy-sec": size}]}),
        lambda size: lshw.read(
            {
                "id": "disk",
                "class": "disk",
                "logicalname": "/dev/sda",
                "size": SIZE,
                "configuration": {"logicalsectorsize": str(size), "sectorsize": str(size)},
            }
        ),
        lambda size: maas.read({"physicalblockdevice_set": [{"name": "sda", "size": SIZE, "block_size": size}]}),
        lambda size: ansible_devices.read({"sda": {"sectors": SIZE // 512, "sectorsize": size}}),
        lambda size: ironic.read({"disks": [{"name": "/dev/sda", "size": SIZE, "logical_sectors": size, "physical_sectors": size}]}),
        lambda size: redfish.read({"drives": [{"@odata.id": "/Drives/0", "Id": "0", "CapacityBytes": SIZE, "BlockSizeBytes": size}]}),
    ],
    ids=["lsblk", "lshw", "maas", "ansible", "ironic", "redfish"],
)
def test_a_size_of_blocks_that_no_disk_has_is_unknown(record: t.Callable[[int], Recorded], size: int) -> None:
    facts, _warnings = to_hardware(record(size))
    assert {"logical_block", "physical_block"}.isdisjoint(facts["disks"][0])
    (disk,) = parse_hardware(facts).disks
    assert (disk.logical_block, disk.physical_block) == (512, 512)


def test_a_partition_in_a_flat_list_without_types_is_no_disk() -> None:
    flat = [{"name": name, "size": SIZE} for name in ("sda", "sda1", "nvme0n1", "nvme0n1p2", "sdaa")]
    assert list(disks(read_lsblk(*flat))[0]) == ["/dev/nvme0n1", "/dev/sda", "/dev/sdaa"]


@pytest.mark.parametrize(
    ("wwn", "transport", "names"),
    [
        ("eui.0100000000000000", "nvme", ["nvme-K_A1", "nvme-K_A2"]),
        ("0x5000000000000000", "sata", ["ata-K_A1", "ata-K_A2"]),
        ("eui.36344830525030150025384500000001", "nvme", ["nvme-K_A1", "nvme-K_A2"]),
    ],
)
def test_two_disks_of_one_wwn_stay_two(wwn: str, transport: str, names: list[str]) -> None:
    prefix = "nvme{}n1" if transport == "nvme" else "sd{}"
    rows = [row(prefix.format(at), tran=transport, wwn=wwn, serial=f"A{at}", model="K") for at in (1, 2)]
    facts, warnings = to_hardware(read_lsblk(*rows))
    assert [disk["id"] for disk in facts["disks"]] == [f"/dev/disk/by-id/{name}" for name in names]
    assert sum(name in warning for name in names for warning in warnings) == 2
    mirrored = Planner([{"id": "data", "type": "raid", "level": "raid1"}]).plan(facts)
    assert all(disk["spaces"] for disk in mirrored["disks"])


def test_the_wwn_of_one_disk_alone_may_be_bogus_too() -> None:
    found, warnings = disks(read_lsblk(row("nvme0n1", wwn="eui.0100000000000000", serial="A1", model="K one")))
    assert found["/dev/nvme0n1"]["id"] == "/dev/disk/by-id/nvme-K_one_A1"
    assert "cannot be that of one disk alone" in warnings


def test_maas_tells_the_numa_node() -> None:
    listed = [{"name": "sda", "size": SIZE, "numa_node": 1}, {"name": "sdb", "size": SIZE, "numa_node": {"index": 0}}]
    found, _warnings = disks(maas.read({"physicalblockdevice_set": [*listed, {"name": "sdc", "size": SIZE}]}))
    assert [disk.get("numa_node") for disk in found.values()] == [1, 0, None]
