# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Uses that no mount point and no holder shows, on hosts whose kernel is written down: what it says in /proc, configfs and sysfs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.reader import read_claims
from ansible_collections.bareon.allocator.plugins.module_utils._facts.signatures import TablePartition
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import Device, Filesystem, Tree
from ansible_collections.bareon.allocator.plugins.module_utils._facts.uses import read_uses
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import RecordedHost

NVMET = "/sys/kernel/config/nvmet/subsystems"
LIO = "/sys/kernel/config/target/core"
NQN = "nqn.2014-08.org.example:data"


def device(name, number, **more):
    return Device(name, f"/dev/{name}", "part" if name[-1].isdigit() else "disk", 1 << 30, row={"maj:min": number}, **more)


TREE = Tree(
    {
        each.name: each
        for each in (
            device("sda", "8:0"),
            device("sda1", "8:1", parents=("sda",), mountpoints=("/srv",)),
            device("sda2", "8:2", parents=("sda",)),
            device("sdb", "8:16", filesystem=Filesystem("btrfs", "u")),
            device("sdc", "8:32", filesystem=Filesystem("btrfs", "u")),
            device("sdd", "8:48"),
        )
    }
)


def uses(record):
    tree = read_uses(RecordedHost(record), TREE)
    return {name: found.uses for name, found in tree.devices.items() if found.uses}


def test_a_mount_in_another_namespace_is_a_use_and_a_copy_of_one_here_is_not():
    mounts = "30 1 8:1 / /srv rw - ext4 /dev/sda1 rw\n31 1 8:2 / /var/lib/db rw - ext4 /dev/sda2 rw"
    record = {
        "directories": {"/proc": ["1", "10", "9", "cpuinfo", "self"]},
        "links": {
            "/proc/self/ns/mnt": "/proc/20/ns/mnt:[1]",
            "/proc/1/ns/mnt": "/proc/1/ns/mnt:[1]",
            "/proc/9/ns/mnt": "/proc/9/ns/mnt:[2]",
            "/proc/10/ns/mnt": "/proc/10/ns/mnt:[2]",
        },
        "files": {"/proc/9/mountinfo": mounts, "/proc/9/comm": "postgres", "/proc/10/mountinfo": mounts.replace("8:2", "8:48")},
    }
    assert uses(record) == {"sda2": ("mounted on /var/lib/db in the mount namespace of postgres (9)",)}
    assert uses({**record, "links": {}}) == {}


def test_a_btrfs_in_another_namespace_is_in_use_on_all_its_disks():
    record = {
        "directories": {"/proc": ["9"]},
        "links": {"/proc/self/ns/mnt": "/proc/20/ns/mnt:[1]", "/proc/9/ns/mnt": "/proc/9/ns/mnt:[2]"},
        "files": {"/proc/9/mountinfo": "30 1 0:40 / /data rw - btrfs /dev/sdb rw\n31 1 0:41 / /x rw - tmpfs /dev/sdd rw"},
    }
    assert set(uses(record)) == {"sdb", "sdc"}


@pytest.mark.parametrize(("enable", "expected"), [("1", {"sdd": (f"exported by nvmet as namespace 1 of {NQN}",)}), ("0", {})])
def test_what_nvmet_exports(enable, expected):
    folder = f"{NVMET}/{NQN}/namespaces/1"
    record = {
        "directories": {NVMET: [NQN], f"{NVMET}/{NQN}/namespaces": ["1"]},
        "links": {"/dev/disk/by-id/wwn-d": "/dev/sdd"},
        "files": {f"{folder}/device_path": "/dev/disk/by-id/wwn-d", f"{folder}/enable": enable},
    }
    assert uses(record) == expected


@pytest.mark.parametrize(
    "files",
    [
        {"udev_path": "/dev/sdd", "info": "Status: ACTIVATED"},
        {"info": "        iBlock device: sdd  UDEV PATH: /dev/sdd  readonly: 0\n        Major: 8 Minor: 48  CLAIMED: IBLOCK"},
        {"info": "        TCM FILEIO ID: 0        File: /dev/sdd  Size: 1073741824  Mode: O_DSYNC"},
    ],
)
def test_what_lio_exports(files):
    folder = f"{LIO}/iblock_0/data"
    record = {
        "directories": {LIO: ["alua", "iblock_0"], f"{LIO}/iblock_0": ["data", "hba_info"]},
        "files": {f"{folder}/enable": "1", **{f"{folder}/{name}": text for name, text in files.items()}},
    }
    assert uses(record) == {"sdd": ("exported by LIO as iblock_0/data",)}
    assert uses({**record, "files": {**record["files"], f"{folder}/enable": "0"}}) == {}


def test_journals_and_logs_on_other_disks():
    record = {
        "directories": {"/sys/fs/ext4": ["features", "sda1"]},
        "files": {
            "/sys/fs/ext4/sda1/journal_task": "77",
            "/proc/77/comm": "jbd2/sda2",
            "/proc/self/mountinfo": "30 1 8:99 / /xfs rw,noatime - xfs /dev/sde1 rw,logdev=/dev/sdd,rtdev=/dev/sdc,noquota",
        },
    }
    assert uses(record) == {
        "sda2": ("the journal of the ext4 on /dev/sda1, which is mounted on /srv",),
        "sdd": ("the log of the xfs that is mounted on /xfs",),
        "sdc": ("the realtime section of the xfs that is mounted on /xfs",),
    }
    inside = {**record, "files": {"/sys/fs/ext4/sda1/journal_task": "77", "/proc/77/comm": "jbd2/sda1-8"}}
    assert uses(inside) == {}


def test_what_bcache_has_registered_is_in_use():
    assert uses({"directories": {"/sys/class/block/sdd/bcache": ["set"]}}) == {"sdd": ("registered with bcache",)}


def test_claims_are_asked_for_each_partition_that_nothing_visible_uses():
    host = RecordedHost({"claimed": {"/dev/sda": True, "/dev/sda1": True, "/dev/sda2": True, "/dev/sdb": False, "/dev/sdd": True}})
    found = read_claims(host, TREE, ["sda", "sdb", "sdd"]).devices
    # The mount explains why the first partition, and with it the disk, is held.
    assert {name: each.claimed for name, each in found.items()} == {
        "sda": None,
        "sda1": None,
        "sda2": True,
        "sdb": False,
        "sdc": None,
        "sdd": True,
    }


def crypttab(*lines, **more):
    return {"files": {"/etc/crypttab": "\n".join(lines), **more.pop("files", {})}, **more}


LINKS = {"/dev/disk/by-id/wwn-d": "/dev/sdd"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("vault /dev/disk/by-id/wwn-d none luks,header=/boot/vault.img", {"sdd"}),
        ("vault PARTUUID=ABC none header=/boot/vault.img,luks", {"sda2"}),
        ('vault PARTLABEL="vault" none header=/boot/vault.img', {"sda2"}),
        ("vault /dev/disk/by-id/wwn-d none luks", set()),
        ("vault /dev/sdb none luks,header=/boot/vault.img", set()),
        ("vault /dev/none none luks,header=/boot/vault.img", set()),
        ("# vault /dev/sdd none luks,header=/boot/vault.img", set()),
    ],
)
def test_data_whose_header_is_elsewhere_are_known_by_crypttab(line, expected):
    part = replace(TREE.devices["sda2"], partition=TablePartition(2, 0, 1 << 20, "t", "vault", "abc"))
    tree = read_uses(RecordedHost(crypttab(line, links=LINKS)), TREE.with_devices([part]))
    found = {name: device.uses for name, device in tree.devices.items() if device.uses}
    assert set(found) == expected
    for words in found.values():
        assert words == ("the data of the LUKS container vault, whose header is /boot/vault.img by /etc/crypttab",)


@pytest.mark.parametrize(("uuid", "is_data"), [("CRYPT-LUKS2-0b0fd0e8-vault", True), ("CRYPT-PLAIN-vault", False), ("LVM-x", False)])
def test_data_whose_header_is_elsewhere_are_known_by_the_kernel(uuid, is_data):
    parent = replace(TREE.devices["sdd"], read=True)
    opened = Device("dm-0", "/dev/mapper/vault", "crypt", 1 << 30, parents=("sdd",), row={})
    host = RecordedHost({"files": {"/sys/class/block/dm-0/dm/uuid": uuid}})
    found = read_uses(host, Tree({"sdd": parent, "dm-0": opened})).devices["sdd"].uses
    assert found == (("the data of the open LUKS container /dev/mapper/vault, whose header is elsewhere",) if is_data else ())
    with_header = replace(parent, filesystem=Filesystem("crypto_LUKS", "u"))
    assert read_uses(host, Tree({"sdd": with_header, "dm-0": opened})).devices["sdd"].uses == ()
