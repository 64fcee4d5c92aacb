# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts import sysfs
from ansible_collections.bareon.allocator.plugins.module_utils._facts.mounts import read_mounts
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import build_tree, merge_rows
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import RecordedHost

B = "/sys/class/block"


def host(files, places=None, directories=None):
    names = sorted({path.split("/")[0] for path in files})
    return RecordedHost(
        {
            "files": {f"{B}/{path}": text for path, text in files.items()},
            "directories": {B: names, **(directories or {})},
            "links": {f"{B}/{name}": f"/sys{place}" for name, place in (places or {}).items()},
        }
    )


def only(rows):
    assert len(rows) == 1
    return next(iter(rows.values()))


def test_a_disk_with_sectors_of_4_kib_and_its_partition():
    place = "/devices/pci0000:00/0000:00:06.0/virtio5/host0/target0:0:0/0:0:0:0/block/sda"
    machine = host(
        {
            "sda/size": "6291456",
            "sda/dev": "8:0",
            "sda/ro": "0",
            "sda/removable": "0",
            "sda/queue/rotational": "1",
            "sda/queue/logical_block_size": "4096",
            "sda/queue/physical_block_size": "4096",
            "sda/queue/optimal_io_size": "0",
            "sda/queue/zoned": "host-managed",
            "sda/device/vendor": "SEAGATE",
            "sda/device/model": "ST4000NM",
            "sda/device/rev": "2.5+",
            "sda/device/wwid": "naa.5000C500a1b2c3d4",
            "sda/device/vpd_pg80": "\ufffd\0\x0cHDD0001     ",
            "sda1/size": "2097152",
            "sda1/start": "2048",
            "sda1/partition": "1",
            "sda1/dev": "8:1",
        },
        {"sda": place, "sda1": f"{place}/sda1"},
    )
    machine = machine.with_files(files={f"/sys{place}/queue/logical_block_size": "4096"})

    rows = sysfs.read_rows(machine)

    disk, partition = rows["sda"], rows["sda1"]
    assert (disk["type"], disk["size"], disk["log-sec"], disk["rota"], disk["zoned"]) == ("disk", 3221225472, 4096, True, "host-managed")
    assert (disk["serial"], disk["wwn"], disk["rev"], disk["devpath"]) == ("HDD0001", "0x5000c500a1b2c3d4", "2.5+", place)
    assert (partition["type"], partition["partn"], partition["start"], partition["size"]) == ("part", 1, 2048, 1073741824)
    assert (partition["parents"], partition["path"], partition["log-sec"]) == (("sda",), "/dev/sda1", 4096)


@pytest.mark.parametrize(
    ("files", "kind", "node"),
    [
        ({"dm-0/dm/name": "vg0-data", "dm-0/dm/uuid": "LVM-abc"}, "lvm", "/dev/mapper/vg0-data"),
        ({"dm-0/dm/name": "secret", "dm-0/dm/uuid": "CRYPT-LUKS2-abc-secret"}, "crypt", "/dev/mapper/secret"),
        ({"dm-0/dm/name": "mpatha", "dm-0/dm/uuid": "mpath-3600"}, "mpath", "/dev/mapper/mpatha"),
        ({"dm-0/dm/name": "mpatha-part2", "dm-0/dm/uuid": "part2-mpath-3600"}, "part", "/dev/mapper/mpatha-part2"),
        ({"dm-0/dm/name": "flakey", "dm-0/dm/uuid": ""}, "dm", "/dev/mapper/flakey"),
        ({"md127/md/level": "raid1"}, "raid1", "/dev/md127"),
        ({"md127/md/level": ""}, "md", "/dev/md127"),
        ({"loop0/size": "8"}, "loop", "/dev/loop0"),
        ({"sr0/size": "8"}, "rom", "/dev/sr0"),
        ({"cciss!c0d0/size": "8"}, "disk", "/dev/cciss/c0d0"),
    ],
)
def test_kinds_and_nodes(files, kind, node):
    row = only(sysfs.read_rows(host(files)))

    assert (row["type"], row["path"]) == (kind, node)


def test_a_partition_on_multipath_has_its_number():
    row = only(
        sysfs.read_rows(
            host({"dm-3/dm/name": "mpatha-part2", "dm-3/dm/uuid": "part2-mpath-3600"}, directories={f"{B}/dm-3/slaves": ["dm-0"]})
        )
    )

    assert (row["partn"], row["parents"]) == (2, ("dm-0",))


def test_what_a_device_is_built_on():
    row = only(sysfs.read_rows(host({"md0/md/level": "raid1"}, directories={f"{B}/md0/slaves": ["cciss!c0d0", "sdb"]})))

    assert row["parents"] == ("cciss/c0d0", "sdb")


def test_hidden_paths_of_an_nvme_are_left_out():
    assert list(sysfs.read_rows(host({"nvme0c0n1/hidden": "1", "nvme0n1/hidden": "0"}))) == ["nvme0n1"]


def test_nvme_tells_its_identity_elsewhere():
    files = {"nvme0n1/wwid": "eui.0025385b71b0f1a2", "nvme0n1/device/serial": "S5", "nvme0n1/device/firmware_rev": "GXA7"}

    row = sysfs.read_rows(host(files))["nvme0n1"]

    assert (row["wwn"], row["serial"], row["rev"]) == ("eui.0025385b71b0f1a2", "S5", "GXA7")


@pytest.mark.parametrize(
    ("wwid", "nvme", "wwn"),
    [
        ("naa.5000c5", False, "0x5000c5"),
        ("eui.00AB", False, "0x00ab"),
        ("t10.ATA     QEMU", False, None),
        ("", False, None),
        ("", True, None),
        ("nvme.1b36-1", True, "nvme.1b36-1"),
    ],
)
def test_world_wide_names(wwid, nvme, wwn):
    assert sysfs.parse_wwid(wwid, nvme=nvme) == wwn


def test_memory_is_rounded_down_and_may_be_unknown():
    assert sysfs.read_memory(RecordedHost({"files": {"/proc/meminfo": "MemTotal:       24684092 kB\nMemFree: 1 kB"}})) == 24105
    assert sysfs.read_memory(RecordedHost({})) is None


def test_firmware():
    assert sysfs.read_firmware(RecordedHost({"directories": {"/sys/firmware/efi": ["efivars"]}})) == "uefi"
    assert sysfs.read_firmware(RecordedHost({})) == "bios"


def test_a_loop_device_lies_on_the_disk_that_it_shows_a_part_of():
    block = "/sys/class/block/loop3"
    files = {f"{block}/size": "2048", f"{block}/loop/backing_file": "/dev/disk/by-id/wwn-1", "/sys/class/block/sda/size": "4096"}
    record = {"files": files, "directories": {"/sys/class/block": ["loop3"]}, "links": {"/dev/disk/by-id/wwn-1": "/dev/sda"}}
    assert sysfs.read_rows(RecordedHost(record))["loop3"]["parents"] == ("sda",)
    for file in ("/srv/disk.img", "/dev/shm/disk.img"):
        files[f"{block}/loop/backing_file"] = file
        assert sysfs.read_rows(RecordedHost(record))["loop3"]["parents"] == ()


@pytest.mark.parametrize(("members", "seen"), [(("sda1", "sdb1"), True), ((), False)])
def test_an_array_that_holds_members_without_being_started_is_seen(members, seen):
    block = "/sys/class/block/md127"
    files = {f"{block}/size": "0", f"{block}/md/level": "", f"{block}/md/array_state": "inactive"}
    host = RecordedHost({"files": files, "directories": {"/sys/class/block": ["md127"], f"{block}/slaves": list(members)}})
    tree = build_tree(merge_rows({}, {}, sysfs.read_rows(host)), {}, read_mounts(host))
    assert [(device.dev, device.parents, device.inactive) for device in tree.devices.values()] == (
        [("/dev/md127", members, True)] if seen else []
    )
