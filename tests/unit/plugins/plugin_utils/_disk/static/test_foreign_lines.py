# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of others in fstab, crypttab and mdadm.conf stand in the way; those of the layout, or of what its disks had, do not."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.static.foreign_lines import foreign_lines

PLANNED = "8c2f2a9e-9a4c-5f0e-8a0e-5d4b6e1b7f10"
BY_CHANCE = "8c2f2a9e-9a4c-4f0e-8a0e-5d4b6e1b7f10"

SCHEMA = {
    "parteds": [{"disk_id": "/dev/disk/by-id/wwn-1"}],
    "mds": [{"name": "/dev/md/data", "level": "raid1", "devices": ["/dev/sda1", "/dev/sdb1"]}],
    "luks": [{"name": "srv-crypt", "device": "/dev/md/data"}],
    "lvs": [{"vgname": "my-os", "name": "root", "size": 8}],
    "fss": [
        {"device": "/dev/mapper/srv-crypt", "mount": "/srv", "fs_type": "xfs"},
        {"device": "/dev/disk/by-id/wwn-1-part2", "mount": "/with blank", "fs_type": "ext4"},
        {"device": "/dev/disk/by-id/wwn-1-part3", "mount": "swap", "fs_type": "swap"},
        {"device": "/dev/disk/by-id/wwn-1-part4", "mount": "/unlisted", "fs_type": "ext4", "fstab_enabled": False},
    ],
}
HARDWARE = {
    "disks": [
        {
            "id": "/dev/disk/by-id/wwn-1",
            "dev": "/dev/sda",
            "links": ["/dev/disk/by-id/wwn-1", "/dev/disk/by-id/ata-1"],
            "partitions": [
                {"number": 1, "dev": "/dev/sda1", "name": "part", "uuid": "p-1", "fs_type": "ext4", "fs_uuid": "12AB-34CD", "label": "mine"}
            ],
            "holders": [
                {"dev": "/dev/dm-0", "name": "old", "volume_group": "vg-0", "fs_uuid": "fs-2", "uuid": "lv-uuid", "label": None},
                {"dev": "/dev/md127", "name": "data", "uuid": "01234567-89ab-cdef-0011-223344556677"},
            ],
            "content": [{"fs_type": "vfat", "uuid": None}, {"fs_type": "crypto_LUKS"}, {"uuid": "luks-1"}],
        },
        {"id": "/dev/disk/by-id/wwn-2", "dev": "/dev/sdb", "partitions": [{"number": 1, "dev": "/dev/sdb1", "fs_uuid": PLANNED}]},
    ]
}


def found(table: str, line: str, root: str = "/") -> bool:
    lines = foreign_lines(SCHEMA, HARDWARE, root, {table: f"# {line}\n{line}\n"})
    assert lines in ([], [f"{table}: {line}"])
    return bool(lines)


@pytest.mark.parametrize(
    "source",
    [
        "LABEL=olddata",
        f"UUID={BY_CHANCE}",
        f"UUID={PLANNED}",
        "/dev/sdb1",
        "/dev/mapper/other",
        "server:/export",
        "/elsewhere",
        "PARTLABEL=mine",
    ],
)
def test_what_lies_elsewhere_or_is_not_known_is_somebody_elses(source):
    assert found("/etc/fstab", f"{source} /srv ext4 noauto 0 0")


@pytest.mark.parametrize(
    "source",
    [
        "LABEL=mine",
        '"LABEL=mine"'[1:-1],
        'LABEL="mine"',
        "UUID=12AB-34CD",
        "UUID=FS-2",
        f"UUID={PLANNED.replace('8c2f', '8c2e')}",
        "PARTUUID=p-1",
        "PARTLABEL=part",
        "/dev/sda1",
        "/dev/disk/by-id/ata-1-part1",
        "/dev/mapper/vg--0-old",
        "/dev/vg-0/old",
        "/dev/mapper/srv-crypt",
        "/dev/my-os/root",
        "/dev/mapper/my--os-root",
    ],
)
def test_what_is_on_the_layouts_disks_or_follows_from_a_plan_and_is_gone_is_not(source):
    assert not found("/etc/fstab", f"{source} /srv ext4 defaults 0 0")


@pytest.mark.parametrize("place", ["/other", "none", "/srv/deeper", "/unlisted"])
def test_other_mount_points_are_none_of_our_business(place):
    assert not found("/etc/fstab", f"LABEL=olddata {place} ext4 defaults 0 0")


def test_mount_points_are_compared_as_they_are_meant():
    assert found("/etc/fstab", "LABEL=olddata /with\\040blank/ ext4 defaults 0 0")
    assert found("/etc/fstab", "LABEL=olddata /target/srv ext4 defaults 0 0", root="/target")
    assert not found("/etc/fstab", "LABEL=olddata /srv ext4 defaults 0 0", root="/target")


def test_containers_and_arrays_of_others():
    assert found("/etc/crypttab", f"srv-crypt UUID={BY_CHANCE} none luks")
    assert not found("/etc/crypttab", "srv-crypt UUID=luks-1 none luks")
    assert not found("/etc/crypttab", "other /dev/sdb2 none luks")
    assert found("/etc/mdadm/mdadm.conf", "ARRAY /dev/md/data metadata=1.2 UUID=11111111:22222222:33333333:44444444")
    assert not found("/etc/mdadm/mdadm.conf", "ARRAY /dev/md/data metadata=1.2 UUID=01234567:89abcdef:00112233:44556677")
    assert not found("/etc/mdadm/mdadm.conf", "ARRAY /dev/md/other UUID=11111111:22222222:33333333:44444444")
    assert not found("/etc/mdadm/mdadm.conf", "DEVICE partitions")
