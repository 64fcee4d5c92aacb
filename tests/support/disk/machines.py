# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines as they are met, with the facts of disk_facts that plans depend on: what every profile is planned on."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

Facts = dict[str, t.Any]

ROOT_IN_USE = {
    "in_use": True,
    "empty": False,
    "table": "gpt",
    "content": [{"type": "ext4", "label": "root"}],
    "partitions": [{"number": 1, "name": "root", "start": 1, "size": 40_000, "fs_type": "ext4", "mountpoints": ["/"]}],
}
OLD_WINDOWS = {"empty": False, "table": "dos", "content": [{"type": "ntfs", "label": "Windows"}]}


@dataclass(frozen=True)
class Machine:
    """Hardware with a line about it for people."""

    about: str
    hardware: Facts


def _machine(about: str, *disks: t.Sequence[Facts], ram: int = 65_536, firmware: str = "uefi") -> Machine:
    """Return a machine whose disks are attached in the order given, each with names of its own."""
    numbered = [_named(number, disk) for number, disk in enumerate((disk for some in disks for disk in some), start=1)]
    return Machine(about, {"ram": ram, "firmware": firmware, "disks": numbered})


def _named(number: int, facts: Facts) -> Facts:
    identity = f"0x5000c500a1b2{number:04x}"
    names = {"id": f"/dev/disk/by-id/wwn-{identity}", "path": f"/dev/disk/by-path/pci-0000:03:00.0-port-{number}", "wwn": identity}
    return {**names, "dev": f"/dev/{_letters(number)}", **facts}


def _letters(number: int) -> str:
    """Return the kernel's name of the n-th disk: sda, sdz, sdaa."""
    text = ""
    while number:
        number, letter = divmod(number - 1, 26)
        text = chr(ord("a") + letter) + text
    return f"sd{text}"


def _disks(count: int, kind: str, transport: str, gib: float, **facts: t.Any) -> list[Facts]:
    plain = {"removable": False, "read_only": False, "zoned": False, "multipath": False, "in_use": False, "empty": True}
    size = int(gib * 1024)
    blocks = {"logical_block": 512, "physical_block": 4096}
    return [
        {"type": kind, "transport": transport, "size": size, "rotational": kind == "hdd", **blocks, **plain, **facts}
        for _disk in range(count)
    ]


def ssds(count: int, gib: float, transport: str = "sata", **facts: t.Any) -> list[Facts]:
    """Return solid-state disks."""
    return _disks(count, "ssd", transport, gib, **facts)


def nvmes(count: int, gib: float, **facts: t.Any) -> list[Facts]:
    """Return NVMe drives."""
    return _disks(count, "ssd", "nvme", gib, **facts)


def hdds(count: int, gib: float, transport: str = "sas", **facts: t.Any) -> list[Facts]:
    """Return hard disks."""
    return _disks(count, "hdd", transport, gib, **facts)


def _shelf_with_two_cables(count: int, gib: float) -> list[Facts]:
    """Return disks that are reached by two paths each: the multipath devices, and both paths of every one."""
    found: list[Facts] = []
    for number in range(count):
        wwn = f"0x5000cca2eb{number:06x}"
        holder = {"type": "mpath", "name": f"mpath{number}", "dev": f"/dev/mapper/mpath{number}", "active": True}
        name = f"/dev/disk/by-id/wwn-{wwn}"
        found += hdds(1, gib, wwn=wwn, id=name, dev=f"/dev/dm-{number}", multipath=True)
        for path in (1, 2):
            found += hdds(1, gib, wwn=wwn, id=f"{name}-path-{path}", holders=[holder], in_use=True)
    return found


def _luns(count: int, gib: float, transport: str) -> list[Facts]:
    return [disk | {"wwn": f"0x600a098038{number:06x}"} for number, disk in enumerate(_disks(count, "ssd", transport, gib, multipath=True))]


MACHINES: dict[str, Machine] = {
    "laptop": _machine("a laptop, one NVMe drive and a card in the reader", nvmes(1, 477), ssds(1, 119, "mmc", removable=True), ram=16_384),
    "mini": _machine("a mini computer with soldered eMMC", ssds(1, 58, "mmc"), ram=4096),
    "one-nvme": _machine("a small server, one NVMe drive", nvmes(1, 894)),
    "two-alike": _machine("two SATA SSDs alike", ssds(2, 447)),
    "two-unlike": _machine("two SATA SSDs of different sizes", ssds(1, 224), ssds(1, 894)),
    "ssd-hdd": _machine("a workstation, an SSD and a hard disk", ssds(1, 466), hdds(1, 3726, "sata")),
    "bios-hdds": _machine("a tower of 2011, BIOS, two hard disks", hdds(2, 466, "sata"), ram=8192, firmware="bios"),
    "three-nvme": _machine("three NVMe drives alike", nvmes(3, 1788)),
    "boss-24": _machine("a BOSS card and 24 hard disks", ssds(1, 224, vendor="DELLBOSS", model="VD"), hdds(24, 7452), ram=131_072),
    "nvme-hdd": _machine("two NVMe drives and twelve hard disks", nvmes(2, 2980), hdds(12, 16_764), ram=131_072),
    "jbod-60": _machine("two SATA SSDs and a shelf of sixty hard disks", ssds(2, 447), hdds(60, 14_902), ram=262_144),
    "hdds-60": _machine("sixty hard disks and nothing else", hdds(60, 14_902), ram=262_144),
    "two-cables": _machine("two SSDs and a shelf on two cables, multipath", ssds(2, 447), _shelf_with_two_cables(12, 7452)),
    "san-luns": _machine("two SATA SSDs and four LUNs of a SAN", ssds(2, 224), _luns(4, 2048, "fc")),
    "san-only": _machine("no disk of its own, two LUNs of a SAN", _luns(2, 200, "fc")),
    "iscsi-data": _machine("one NVMe drive and a LUN over iSCSI", nvmes(1, 447), _luns(1, 4096, "iscsi")),
    "usb-stick": _machine("one SATA SSD, a USB stick in it", ssds(1, 894), ssds(1, 29, "usb", removable=True)),
    "usb-ssd": _machine("two hard disks, and an SSD on USB that says it is fixed", ssds(1, 58, "usb"), hdds(2, 1863, "sata")),
    "sd-card": _machine("a board with an SD card and one NVMe drive", ssds(1, 60, "mmc", removable=True), nvmes(1, 238), ram=8192),
    "four-kn": _machine("two SATA SSDs and eight hard disks with sectors of 4 KiB", ssds(2, 224), hdds(8, 11_176, logical_block=4096)),
    "two-blocks": _machine("four NVMe drives, two of them with blocks of 4 KiB", nvmes(2, 894), nvmes(2, 894, logical_block=4096)),
    "in-use": _machine("installed on one of two SSDs, four hard disks", ssds(1, 447, **ROOT_IN_USE), ssds(1, 447), hdds(4, 3726, "sata")),
    "used-before": _machine("two SSDs, an old system on the first", ssds(1, 447, **OLD_WINDOWS), ssds(1, 447)),
    "zoned": _machine("two SSDs, four hard disks, eight written in zones", ssds(2, 447), hdds(4, 14_902), hdds(8, 18_626, zoned=True)),
    "optane": _machine("two SATA SSDs, two small NVMe drives, eight large", ssds(2, 224), nvmes(2, 372), nvmes(8, 2980), ram=524_288),
    "hci": _machine("two small SATA SSDs, two NVMe drives, six large SATA SSDs", ssds(2, 224), nvmes(2, 1490), ssds(6, 894)),
    "all-nvme": _machine("24 NVMe drives", nvmes(24, 7154), ram=524_288),
    "odd-five": _machine("five SAS SSDs alike and one NVMe drive", ssds(5, 894, "sas"), nvmes(1, 372)),
    "vm-tiny": _machine("a virtual machine, one disk of 8 GiB", hdds(1, 8, "virtio"), ram=1024, firmware="bios"),
    "vm-two-tiny": _machine("a virtual machine, two disks of 10 GiB", hdds(2, 10, "virtio"), ram=2048),
    "vm-data": _machine("a virtual machine, a disk of 20 GiB and one of 200", hdds(1, 20, "virtio"), hdds(1, 200, "virtio"), ram=8192),
}
