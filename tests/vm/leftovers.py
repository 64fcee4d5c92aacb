# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What former lives leave on disks: md, LVM, thin pools, LUKS, btrfs, ZFS labels, tables at both ends. Made with the standard tools."""

from __future__ import annotations

from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk

from .layout_host import LayoutHost

_LUKS = "--batch-mode --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file /root/old-key"


def volumes_on_mirror(host: LayoutHost, first: Disk, second: Disk) -> None:
    """A mirror with a volume group on it, and in the group a volume and a thin pool."""
    tables = "\n".join(_table(disk, "size=900MiB, type=R", "type=R") for disk in (first, second))
    host.shell(f"""
{tables}
mdadm --create /dev/md/old --run --homehost=any --name=old --level=1 --raid-devices=2 --metadata=1.2 --bitmap=internal --assume-clean \
    {first.link}-part1 {second.link}-part1
udevadm settle
pvcreate --yes -qq /dev/md/old
vgcreate -qq oldgroup /dev/md/old
lvcreate --yes -qq --name=data --size=200m oldgroup
lvcreate --yes -qq --type=thin-pool --name=pool --size=200m oldgroup
lvcreate --yes -qq --virtualsize=1g --thinpool=pool --name=thin oldgroup
mkfs.ext4 -q /dev/oldgroup/data
mkfs.xfs -q /dev/oldgroup/thin
mount /dev/oldgroup/thin /mnt; echo old >/mnt/file; umount /mnt
""")


def mirror_of_whole_disks(host: LayoutHost, first: Disk, second: Disk) -> None:
    """btrfs on an array of whole disks, with its superblocks at the end, so that the disks seem to have the btrfs themselves."""
    host.shell(f"""
mdadm --create /dev/md/whole --run --homehost=any --name=whole --level=1 --raid-devices=2 --metadata=1.0 --bitmap=internal --assume-clean \
    {first.link} {second.link}
udevadm settle
mkfs.btrfs -q -f /dev/md/whole
""")


def sealed_volumes(host: LayoutHost, disk: Disk) -> None:
    """A volume group in an open LUKS container, beside a partition with swap."""
    host.shell(f"""
head -c 64 /dev/urandom >/root/old-key
{_table(disk, "size=600MiB", "size=100MiB")}
cryptsetup luksFormat {_LUKS} {disk.link}-part1
cryptsetup open --key-file /root/old-key {disk.link}-part1 oldsealed
pvcreate --yes -qq /dev/mapper/oldsealed
vgcreate -qq oldsecret /dev/mapper/oldsealed
lvcreate --yes -qq --name=data --size=100m oldsecret
mkfs.ext4 -q /dev/oldsecret/data
mkswap -q {disk.link}-part2
""")


def whole_disk_volumes(host: LayoutHost, *disks: Disk) -> None:
    """A volume group on disks without any table, and in it a mirrored volume."""
    names = " ".join(disk.link for disk in disks)
    host.shell(f"""
pvcreate --yes -qq {names}
vgcreate -qq oldwhole {names}
lvcreate --yes -qq --name=data --size=300m oldwhole
mkfs.ext4 -q /dev/oldwhole/data
""")


def backup_table_only(host: LayoutHost, disk: Disk) -> None:
    """A table of which only the backup at the end of the disk is left, and a file system's signature in the middle of the first MiB."""
    host.shell(f"""
{_table(disk, "size=500MiB", "size=500MiB")}
mkfs.xfs -q -f {disk.link}-part1
dd if=/dev/zero of={disk.link} bs=1MiB count=1 conv=fsync status=none
partx --delete {disk.link} || true
udevadm settle
""")


def bystander(host: LayoutHost, disk: Disk) -> None:
    """A disk that nothing is to do with: a volume group, a LUKS container and a file system, with data."""
    host.shell(f"""
{_table(disk, "size=100MiB", "size=40MiB", "size=40MiB")}
head -c 64 /dev/urandom >/root/bystander-key
pvcreate --yes -qq {disk.link}-part1
vgcreate -qq bystander {disk.link}-part1
lvcreate --yes -qq --name=data --size=60m bystander
mkfs.ext4 -q /dev/bystander/data
mount /dev/bystander/data /mnt; head -c 20000000 /dev/urandom >/mnt/precious; umount /mnt
cryptsetup luksFormat {_LUKS.replace("old-key", "bystander-key")} {disk.link}-part2
mkfs.ext4 -q {disk.link}-part3
mount {disk.link}-part3 /mnt; head -c 10000000 /dev/urandom >/mnt/precious; umount /mnt
sync
""")


def _table(disk: Disk, *partitions: str) -> str:
    lines = "\n".join(["label: gpt", *partitions])
    return f"sfdisk --quiet {disk.link} <<'TABLE'\n{lines}\nTABLE\npartx --update {disk.link}\nudevadm settle"
