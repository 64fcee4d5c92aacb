# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stacks beyond what the recorded hosts have."""

from __future__ import annotations

import json

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts import stacks
from ansible_collections.bareon.allocator.plugins.module_utils._facts.assembled import read_stacks, split_mapper_name, volume_uuid
from ansible_collections.bareon.allocator.plugins.module_utils._facts.reader import is_visibly_used
from ansible_collections.bareon.allocator.plugins.module_utils._facts.signatures import Signature
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import Device, Filesystem, Tree, share_btrfs_mounts
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import RecordedHost


def tree(*devices):
    return Tree({device.name: device for device in devices})


def disk(name="sda", *signatures, **more):
    return Device(name, f"/dev/{name}", "disk", 2**30, signatures=tuple(signatures), **more)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("vg0-data", ("vg0", "data")),
        ("my--vg-a--b--c", ("my-vg", "a-b-c")),
        ("vg-lv_rimage_0", ("vg", "lv_rimage_0")),
        ("secret", (None, "secret")),
    ],
)
def test_names_of_the_mapper(name, parts):
    assert split_mapper_name(name) == parts


def test_the_uuid_of_a_volume_that_runs():
    mapper = "LVM-w58J9cSNJFohY7Lb8Gz9xIVz7LSZ4NlbqI23COQQbrXEkOLkIu9HSCG5Uu3pLrzS"

    assert volume_uuid(mapper) == "qI23CO-QQbr-XEkO-LkIu-9HSC-G5Uu-3pLrzS"
    assert volume_uuid(mapper + "-real") == "qI23CO-QQbr-XEkO-LkIu-9HSC-G5Uu-3pLrzS"
    assert volume_uuid("CRYPT-LUKS2-abc-secret") is None


def test_a_stopped_array_on_whole_disks_is_one_for_all_its_members():
    members = [disk(name, Signature("linux_raid_member", "c872-1", "any:r1")) for name in ("sda", "sdb")]
    host = RecordedHost({}).with_command(
        "mdadm --examine --export /dev/sda", "MD_LEVEL=raid5\nMD_DEVICES=3\nMD_UUID=c872fca4:84f41c22:a569e897:0f9a3eed\nMD_NAME=any:r1\n"
    )
    notes = []

    found = read_stacks(host, tree(*members), ["sda", "sdb"], notes)

    (array,) = [device for device in found.devices.values() if device.kind == "raid5"]
    assert (array.parents, array.title, array.running) == (("sda", "sdb"), "any:r1", False)
    assert notes == []


def test_a_container_that_shows_through_the_members_of_an_array_is_on_the_array():
    """Metadata 1.0 lies at the end of the members, so that whoever looks at their beginning sees what is on the array."""
    container = Signature("crypto_LUKS", "c0-1")
    members = [disk(name, Signature("linux_raid_member", "c872-1"), container) for name in ("sda", "sdb")]
    array = Device("md0", "/dev/md0", "raid1", 2**29, ("sda", "sdb"), signatures=(container,))

    found = read_stacks(RecordedHost({}), tree(*members, array), ["sda", "sdb"], [])

    assert [(device.name, device.parents) for device in found.devices.values() if device.kind == "crypt"] == [("luks:md0", ("md0",))]


def test_two_groups_of_one_name_are_kept_apart_by_their_disks():
    """Disks of another machine bring a group whose name is taken: LVM reports both."""
    members = [disk(name, Signature("LVM2_member", f"pv-{name}")) for name in ("sda", "sdb")]
    physical = [
        {
            "pv_name": f"/dev/{name}",
            "pv_uuid": f"pv-{name}",
            "pv_size": "1",
            "pv_free": "0",
            "pe_start": "1",
            "vg_name": "vg0",
            "vg_uuid": f"vg-{name}",
            "vg_extent_size": "4",
        }
        for name in ("sda", "sdb")
    ]
    logical = [
        {
            "vg_name": "vg0",
            "vg_uuid": f"vg-{name}",
            "lv_name": "root",
            "lv_uuid": f"lv-{name}",
            "lv_size": "4194304",
            "lv_layout": "linear",
            "lv_dm_path": "/dev/mapper/vg0-root",
            "devices": f"/dev/{name}(0)",
            "metadata_devices": "",
            "metadata_lv": "",
            "pool_lv": "",
            "origin": "",
        }
        for name in ("sda", "sdb")
    ]
    host = (
        RecordedHost({})
        .with_command(" ".join(stacks.PHYSICAL_VOLUMES_COMMAND), json.dumps({"report": [{"pv": physical}]}))
        .with_command(" ".join(stacks.LOGICAL_VOLUMES_COMMAND), json.dumps({"report": [{"lv": logical}]}))
    )

    found = read_stacks(host, tree(*members), ["sda", "sdb"], [])
    running = Device("dm-0", "/dev/mapper/vg0-root", "lvm", 2**22, ("sda",), title="vg0-root", uuid="LVM-" + "g" * 32 + "v" * 32)
    with_one_running = read_stacks(host, tree(*members, running), ["sda", "sdb"], [])

    assert [device.uuid for device in found.descendants("sda")] == ["lv-sda"]
    assert [device.uuid for device in found.descendants("sdb")] == ["lv-sdb"]
    assert [device.running for device in with_one_running.descendants("sdb")] == [False]


def test_an_array_that_is_a_physical_volume_keeps_its_own_identity():
    member = disk("sda", Signature("linux_raid_member", "array-1", "any:r1"))
    array = Device("md0", "/dev/md0", "raid1", 2**30, ("sda",), signatures=(Signature("LVM2_member", "pv-1"),))
    physical = {"pv_name": "/dev/md0", "pv_uuid": "pv-1", "pv_size": "1", "pv_free": "0", "pe_start": "1"}
    report = {"report": [{"pv": [{**physical, "vg_name": "vg0", "vg_uuid": "vg-1", "vg_extent_size": "4"}]}]}
    host = (
        RecordedHost({})
        .with_command(" ".join(stacks.PHYSICAL_VOLUMES_COMMAND), json.dumps(report))
        .with_command(" ".join(stacks.LOGICAL_VOLUMES_COMMAND), '{"report": [{"lv": []}]}')
    )

    found = read_stacks(host, tree(member, array), ["sda"], []).devices["md0"]

    assert (found.uuid, found.title, found.group) == ("array-1", "any:r1", "vg0")


def test_a_volume_whose_disks_are_not_looked_at_is_left_out():
    assert read_stacks(RecordedHost({}), tree(disk()), ["sda"], []).descendants("sda") == ()


def test_a_btrfs_of_two_disks_is_mounted_on_both():
    mounted = disk("sda", filesystem=Filesystem("btrfs", "u1"), mountpoints=("/srv",))
    second = disk("sdb", filesystem=Filesystem("btrfs", "u1"))
    stranger = disk("sdc", filesystem=Filesystem("btrfs", "u2"))
    found = share_btrfs_mounts(tree(mounted, second, stranger))

    assert found.devices["sdb"].mountpoints == ("/srv",)
    assert found.devices["sdc"].mountpoints == ()


def test_what_uses_a_disk_visibly():
    part = Device("sda1", "/dev/sda1", "part", 1, ("sda",))
    volume = Device("dm-0", "/dev/mapper/vg0-data", "lvm", 1, ("sda1",))
    stopped = Device("lv:vg0/data", None, "lvm", 1, ("sda1",))

    assert not is_visibly_used(disk(), [part])
    assert not is_visibly_used(disk(), [part, stopped])
    assert is_visibly_used(disk(), [part, volume])
    assert is_visibly_used(disk(mountpoints=("/",)), [])
    assert is_visibly_used(disk(), [Device("sda1", "/dev/sda1", "part", 1, ("sda",), mountpoints=("[SWAP]",))])


def test_descendants_of_a_diamond_come_after_all_they_lie_on():
    devices = tree(
        disk(),
        Device("dm-1", "/dev/dm-1", "lvm", 1, ("sda",)),
        Device("dm-2", "/dev/dm-2", "lvm", 1, ("sda",)),
        Device("dm-3", "/dev/dm-3", "lvm", 1, ("dm-2",)),
        Device("dm-4", "/dev/dm-4", "lvm", 1, ("dm-1", "dm-3")),
        Device("dm-5", "/dev/dm-5", "lvm", 1, ("dm-4",)),
    )

    names = [device.name for device in devices.descendants("sda")]

    assert sorted(names) == ["dm-1", "dm-2", "dm-3", "dm-4", "dm-5"]
    assert names.index("dm-4") > max(names.index("dm-1"), names.index("dm-3"))
    assert names[-1] == "dm-5"


@pytest.mark.parametrize(
    ("files", "legs"),
    [
        ({"component_size": "523264\n", "dev-sda1/offset": "2048\n", "dev-sdb1/offset": "4096\n"}, stacks.Legs(523264 * 1024, 4096 * 512)),
        ({"component_size": "523264\n", "dev-sda1/offset": "2048\n"}, None),
        ({"component_size": "0\n", "dev-sda1/offset": "2048\n", "dev-sdb1/offset": "2048\n"}, None),
        ({}, None),
    ],
)
def test_what_an_array_takes_of_its_members(files, legs):
    array = Device("md127", "/dev/md127", "raid1", 2**29, ("sda1", "sdb1"))
    parts = [Device(f"{name}1", f"/dev/{name}1", "part", 2**29, (name,)) for name in ("sda", "sdb")]
    detail = "MD_LEVEL=raid1\nMD_UUID=c872fca4:84f41c22:84f41c22:84f41c22\nMD_DEVICES=2\nMD_METADATA=1.2\n"
    said = {"mdadm --detail --export /dev/md127": {"code": 0, "stdout": detail, "stderr": ""}}
    host = RecordedHost({"commands": said, "files": {f"/sys/block/md127/md/{name}": text for name, text in files.items()}})
    found = read_stacks(host, tree(disk("sda"), disk("sdb"), *parts, array), ["sda", "sdb"], [])
    assert found.devices["md127"].legs == legs
    assert found.devices["md127"].slots == 2
