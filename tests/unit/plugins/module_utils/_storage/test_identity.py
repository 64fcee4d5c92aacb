# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import random

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage import identity

BY_ID, BY_PATH = "/dev/disk/by-id/", "/dev/disk/by-path/"


@pytest.mark.parametrize(
    ("names", "best"),
    [
        (["ata-ST4000_ZC1", "scsi-35000c500a1b2c3d4", "wwn-0x5000c500a1b2c3d4"], "wwn-0x5000c500a1b2c3d4"),
        (["nvme-eui.0025385b71b0f1a2", "nvme-Samsung_S5_1", "nvme-nvme.144d-53-1"], "nvme-eui.0025385b71b0f1a2"),
        (["nvme-uuid.9d1e6b1e", "nvme-QEMU_NVMe_Ctrl_X"], "nvme-uuid.9d1e6b1e"),
        (["nvme-QEMU_X", "nvme-QEMU_X_1", "nvme-nvme.1b36-4e-51-00000001"], "nvme-nvme.1b36-4e-51-00000001"),
        (["nvme-QEMU_X", "nvme-QEMU_X_1"], "nvme-QEMU_X_1"),
        (["ata-WDC_WD10_WX1", "scsi-0ATA_WDC_WD10_WX1_and_more"], "ata-WDC_WD10_WX1"),
        (["scsi-0QEMU_QEMU_HARDDISK_drive-scsi0"], "scsi-0QEMU_QEMU_HARDDISK_drive-scsi0"),
        (["virtio-ROOT0"], "virtio-ROOT0"),
        (["dm-name-mpatha", "dm-uuid-mpath-3600140", "scsi-3600140"], "dm-uuid-mpath-3600140"),
        (["wwn-0x0000000000000000", "ata-GOOD_1"], "ata-GOOD_1"),
        (["lvm-pv-uuid-abc", "virtio-A"], "virtio-A"),
    ],
)
def test_the_most_durable_name(names, best):
    links = [BY_ID + name for name in names] + [BY_PATH + "pci-0000:00:01.0"]
    random.Random(1).shuffle(links)

    assert identity.best_id(links, "/dev/sda") == BY_ID + best


def test_without_a_serial_the_place_without_links_the_node():
    assert identity.best_id([BY_ID + "md-uuid-1", BY_PATH + "pci-0000:00:04.0"], "/dev/vda") == BY_PATH + "pci-0000:00:04.0"
    assert identity.best_id([], "/dev/vda") == "/dev/vda"


def test_the_path_that_udev_means():
    links = [BY_PATH + name for name in ("virtio-pci-0000:00:04.0", "pci-0000:00:1f.2-ata-1", "pci-0000:00:1f.2-ata-1.0")]

    assert identity.best_path(links, "pci-0000:00:1f.2-ata-1.0") == BY_PATH + "pci-0000:00:1f.2-ata-1.0"
    assert identity.best_path(links, None) == BY_PATH + "pci-0000:00:1f.2-ata-1"
    assert identity.best_path([BY_PATH + "virtio-pci-0000:00:04.0", BY_PATH + "pci-0000:00:04.0"], None) == BY_PATH + "pci-0000:00:04.0"
    assert identity.best_path([BY_ID + "wwn-0x1"], None) is None


@pytest.mark.parametrize(
    ("name", "kind", "said", "devpath", "transport"),
    [
        ("loop3", "loop", None, None, "loop"),
        ("zram0", "disk", None, None, "zram"),
        ("ram0", "disk", None, None, "ram"),
        ("sr0", "rom", "sata", None, "optical"),
        ("fd0", "disk", None, None, "floppy"),
        ("nvme0n1", "disk", None, "/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1", "nvme"),
        ("mmcblk0", "disk", None, None, "mmc"),
        ("vda", "disk", None, "/devices/pci0000:00/0000:00:04.0/virtio3/block/vda", "virtio"),
        ("xvda", "disk", None, "/devices/vbd-51712/block/xvda", "xen"),
        ("sda", "disk", "SATA", "/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda", "sata"),
        ("sda", "disk", None, "/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda", "sata"),
        ("sda", "disk", None, "/devices/pci0000:00/0000:03:00.0/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/block/sda", "sas"),
        ("sda", "disk", None, "/devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host4/target4:0:0/4:0:0:0/block/sda", "usb"),
        ("sda", "disk", None, "/devices/platform/host5/session1/target5:0:0/5:0:0:1/block/sda", "iscsi"),
        ("sda", "disk", None, "/devices/pci0000:00/0000:05:00.0/host2/rport-2:0-0/target2:0:0/2:0:0:0/block/sda", "fc"),
        ("sda", "disk", None, "/devices/pci0000:00/0000:02:00.0/host0/target0:2:0/0:2:0:0/block/sda", "scsi"),
        ("sda", "disk", None, None, None),
    ],
)
def test_transport(name, kind, said, devpath, transport):
    assert identity.transport(name, kind, said, devpath) == transport


@pytest.mark.parametrize(
    ("transport", "rotational", "media"),
    [
        ("sata", True, "hdd"),
        ("sata", False, "ssd"),
        ("nvme", True, "ssd"),
        ("virtio", True, "ssd"),
        ("xen", True, "ssd"),
        ("scsi", True, "hdd"),
        ("scsi", None, "hdd"),
        (None, False, "ssd"),
    ],
)
def test_media(transport, rotational, media):
    assert identity.media(transport, rotational) == media


@pytest.mark.parametrize(
    ("name", "kind", "disk"),
    [
        ("sda", "disk", True),
        ("nvme0n1", "disk", True),
        ("mmcblk0", "disk", True),
        ("loop0", "loop", True),
        ("sr0", "rom", True),
        ("mmcblk0boot0", "disk", False),
        ("mmcblk0rpmb", "disk", False),
        ("zd16", "disk", False),
        ("drbd0", "disk", False),
        ("md127", "disk", False),
        ("dm-0", "disk", False),
        ("dm-0", "dm", False),
    ],
)
def test_what_is_a_disk(name, kind, disk):
    assert identity.is_disk(name, kind) is disk


def test_the_place_in_the_device_tree_stands_in_for_a_missing_link():
    devpath = "/devices/pci0000:00/0000:00:1c.0/0000:00:06.0/virtio5/host3/target3:0:1/3:0:1:0/block/sdb"

    assert identity.attachment(BY_PATH + "pci-0000:00:06.0-scsi-0:0:1:0", None) == "pci-0000:00:06.0-scsi-0:0:1:0"
    assert identity.attachment(None, devpath) == "pci-0000:00:06.0-scsi-0:0:1:0"
    assert identity.attachment(None, "/devices/pci0000:00/0000:00:07.0/nvme/nvme0/nvme0n2") == "pci-0000:00:07.0-nvme-2"
    assert identity.attachment(None, "/devices/virtual/block/loop0") is None
    assert identity.attachment(None, None) is None


def test_places_sort_as_people_count_and_pci_addresses_as_hexadecimal():
    places = [
        "pci-0000:00:04.0",
        "pci-0000:00:0a.0-scsi-0:0:2:0",
        "pci-0000:00:0a.0-scsi-0:0:10:0",
        "pci-0000:00:10.0",
        "pci-0000:00:1f.2-ata-2",
        "pci-0000:00:1f.2-ata-10",
        "pci-0000:01:00.0-nvme-1",
    ]
    shuffled = random.Random(7).sample(places, len(places))

    assert sorted(shuffled, key=identity.natural_key) == places


def test_disks_attached_to_nothing_come_last_by_name():
    keys = [
        identity.order_key(place, dev) for place, dev in [("pci-0000:00:04.0", "/dev/sdz"), (None, "/dev/loop2"), (None, "/dev/loop10")]
    ]

    assert sorted(keys) == keys


def test_every_text_has_a_key_that_compares_with_every_other():
    generator = random.Random(3)
    texts = ["".join(generator.choice("ab-:.019 pci") for _unused in range(generator.randint(0, 20))) for _unused in range(300)]

    keys = [identity.natural_key(text) for text in sorted(texts, key=identity.natural_key)]

    assert keys == sorted(map(identity.natural_key, reversed(texts)))
