# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What people have on disks that nobody named: each is made with the tools that people use, and says itself whether it is still whole.

In the scripts `$A` and `$B` are the disks that a layout asks for, and `$MARK` is a file of random data to compare with. None of them
destroys a partition table of ours that lies below by a word of its own: what a tool leaves of it stays, as it does on servers.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Foreign:
    """Content of others: the script that makes it, the one that fails unless all of it is still whole, and whether it rests meanwhile.

    What does not rest (md that cleans its bitmap, a mounted file system) is written by the kernel, whoever looks.
    """

    name: str
    make: str
    whole: str
    rests: bool = True


def _file_system(kind: str, make: str) -> Foreign:
    return Foreign(
        f"{kind} on the whole disk",
        f"{make} $A; mount $A /mnt; cp $MARK /mnt/mark; umount /mnt",
        "mount -o ro $A /mnt; cmp $MARK /mnt/mark; umount /mnt",
        rests=False,
    )


def _array(metadata: str, running: bool) -> Foreign:
    stop = "" if running else "mdadm --stop /dev/md/theirs; udevadm settle"
    start = "" if running else "mdadm --assemble /dev/md/theirs $A $B; udevadm settle"
    return Foreign(
        f"{'running' if running else 'stopped'} array of whole disks, metadata {metadata}",
        f"""
mdadm --create /dev/md/theirs --run --homehost=any --name=theirs --level=1 --raid-devices=2 --metadata={metadata} --bitmap=none \
    --assume-clean $A $B
udevadm settle
dd if=$MARK of=/dev/md/theirs bs=1M seek=5 conv=fsync status=none
{stop}""",
        f"""{start}
dd if=/dev/md/theirs bs=1M skip=5 count=4 status=none | cmp $MARK -
for disk in $A $B; do wipefs --noheadings --output TYPE $disk | grep -q linux_raid_member; done""",
        rests=False,
    )


def _container(metadata: str, signature: str, environment: str) -> Foreign:
    """Metadata of firmware RAID, which mdadm writes without such firmware where it is told so; its arrays are stopped."""
    return Foreign(
        f"member of a container of {metadata}",
        f"""
export {environment}
mdadm --create /dev/md/container --run --metadata={metadata} --raid-devices=2 $A $B
mdadm --create /dev/md/theirs --run --level=1 --raid-devices=2 --assume-clean /dev/md/container || test {metadata} = imsm
udevadm settle
mdadm --stop /dev/md12[0-9]
mdadm --stop /dev/md12[0-9] || true
udevadm settle""",
        f"for disk in $A $B; do wipefs --noheadings --output TYPE $disk | grep -q {signature}; done",
    )


FOREIGN = (
    _file_system("ext4", "mkfs.ext4 -q -F"),
    _file_system("xfs", "mkfs.xfs -q -f"),
    _file_system("btrfs", "mkfs.btrfs -q -f"),
    _file_system("vfat", "mkfs.vfat -I -F 32"),
    *(_array(metadata, running) for metadata in ("1.0", "1.1", "1.2") for running in (True, False)),
    _container("ddf", "ddf_raid_member", "NONE=1"),
    _container("imsm", "isw_raid_member", "IMSM_NO_PLATFORM=1 IMSM_DEVNAME_AS_SERIAL=1"),
    Foreign("idle swap on the whole disk", "mkswap -q -L theirs $A", "blkid -p $A | grep -q theirs"),
    Foreign(
        "disk exported by LIO",
        "modprobe target_core_mod; modprobe target_core_iblock;"
        " mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config;"
        " mkdir -p /sys/kernel/config/target/core/iblock_0/theirs;"
        " echo udev_path=$(readlink -f $A) >/sys/kernel/config/target/core/iblock_0/theirs/control;"
        " echo 1 >/sys/kernel/config/target/core/iblock_0/theirs/enable",
        "grep -q $(basename $(readlink -f $A)) /sys/kernel/config/target/core/iblock_0/theirs/info",
    ),
)
