# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What people have on disks that nobody named: each is made with the tools that people use, and says itself whether it is still whole.

In the scripts `$A` and `$B` are the disks that a layout asks for, and `$MARK` is a file of random data to compare with. None of them
destroys a partition table of ours that lies below by a word of its own: what a tool leaves of it stays, as it does on servers.
"""

from __future__ import annotations

from dataclasses import dataclass

_LUKS = "--batch-mode --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file /root/layout-key"


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
    *(_array(metadata, running) for metadata in ("0.90", "1.0", "1.1", "1.2") for running in (True, False)),
    _container("ddf", "ddf_raid_member", "NONE=1"),
    _container("imsm", "isw_raid_member", "IMSM_NO_PLATFORM=1 IMSM_DEVNAME_AS_SERIAL=1"),
    Foreign("idle swap on the whole disk", "mkswap -q -L theirs $A", "blkid -p $A | grep -q theirs"),
    Foreign("active swap on the whole disk", "mkswap -q $A; swapon $A", "grep -q $(readlink -f $A) /proc/swaps; swapoff $A", rests=False),
    Foreign(
        "volume group that is not active",
        "pvcreate -qq --yes $A; vgcreate -qq theirs $A; lvcreate -qq --yes -n data -L 100m theirs;"
        " dd if=$MARK of=/dev/theirs/data conv=fsync status=none; vgchange -qq -an theirs; udevadm settle",
        "vgchange -qq -ay theirs; udevadm settle; cmp -n 4194304 $MARK /dev/theirs/data; vgchange -qq -an theirs",
    ),
    Foreign(
        "volume group that lacks a disk",
        "pvcreate -qq --yes $A; cp /dev/null /root/lost; truncate -s 256M /root/lost; LOOP=$(losetup -f --show /root/lost);"
        " pvcreate -qq --yes $LOOP; vgcreate -qq theirs $A $LOOP; lvcreate -qq --yes -n data -L 100m theirs $A;"
        " dd if=$MARK of=/dev/theirs/data conv=fsync status=none; vgchange -qq -an theirs; losetup -d $LOOP; udevadm settle",
        "pvs --noheadings -o vg_name $A | grep -q theirs; vgs --noheadings -o vg_attr theirs | grep -q p",
    ),
    Foreign(
        "two physical volumes of one identity",
        "pvcreate -qq --yes $A; vgcreate -qq theirs $A; lvcreate -qq --yes -n data -L 100m theirs;"
        " dd if=$MARK of=/dev/theirs/data conv=fsync status=none; vgchange -qq -an theirs; udevadm settle;"
        " dd if=$A of=$B bs=4M count=40 conv=fsync status=none; udevadm settle",
        "blkid -p $A | grep -q LVM2; blkid -p $B | grep -q LVM2; cmp -n 160000000 $A $B",
        rests=False,
    ),
    Foreign(
        "thin pool with a cache",
        "pvcreate -qq --yes $A $B; vgcreate -qq theirs $A $B; lvcreate -qq --yes --type thin-pool -n pool -L 100m theirs $A;"
        " lvcreate -qq --yes -n fast -L 60m theirs $B; lvconvert -qq --yes --type cache --cachevol fast theirs/pool;"
        " lvcreate -qq --yes -V 64m -n thin --thinpool pool theirs; dd if=$MARK of=/dev/theirs/thin conv=fsync status=none",
        "cmp -n 4194304 $MARK /dev/theirs/thin",
        rests=False,
    ),
    Foreign(
        "closed LUKS container",
        f"cryptsetup luksFormat --type luks2 {_LUKS} $A",
        "cryptsetup open --test-passphrase --key-file /root/layout-key $A",
    ),
    Foreign(
        "LUKS 1 container that is open",
        f"cryptsetup luksFormat --type luks1 {_LUKS} $A; cryptsetup open --key-file /root/layout-key $A theirs;"
        " dd if=$MARK of=/dev/mapper/theirs conv=fsync status=none",
        "cmp -n 4194304 $MARK /dev/mapper/theirs",
    ),
    Foreign(
        "open LUKS container whose header is elsewhere",
        f"truncate -s 16M /root/header; cryptsetup luksFormat --type luks2 {_LUKS} --header /root/header $A;"
        " cryptsetup open --key-file /root/layout-key --header /root/header $A theirs;"
        " dd if=$MARK of=/dev/mapper/theirs conv=fsync status=none",
        "cmp -n 4194304 $MARK /dev/mapper/theirs",
    ),
    Foreign(
        "closed LUKS container whose header is elsewhere",
        f"truncate -s 16M /root/header; cryptsetup luksFormat --type luks2 {_LUKS} --header /root/header $A;"
        " cryptsetup open --key-file /root/layout-key --header /root/header $A theirs;"
        " dd if=$MARK of=/dev/mapper/theirs conv=fsync status=none; cryptsetup close theirs; udevadm settle",
        "cryptsetup open --key-file /root/layout-key --header /root/header $A theirs; cmp -n 4194304 $MARK /dev/mapper/theirs",
    ),
    Foreign(
        "journal of a mounted ext4 on another disk",
        "mke2fs -q -F -b 4096 -O journal_dev $A; mkfs.ext4 -q -F -b 4096 -J device=$A $B; mount $B /mnt; cp $MARK /mnt/mark",
        "cmp $MARK /mnt/mark; umount /mnt; blkid -p $A | grep -q jbd",
        rests=False,
    ),
    Foreign(
        "log of a mounted xfs on another disk",
        "mkfs.xfs -q -f -l logdev=$A,size=70m $B; mount -o logdev=$A $B /mnt; cp $MARK /mnt/mark; sync",
        "umount /mnt; mount -o logdev=$A $B /mnt; cmp $MARK /mnt/mark; umount /mnt",
        rests=False,
    ),
    Foreign(
        "file system with an active swap file",
        "mkfs.ext4 -q -F $A; mount $A /mnt; cp $MARK /mnt/mark; dd if=/dev/zero of=/mnt/swap bs=1M count=40 status=none;"
        " chmod 600 /mnt/swap; mkswap -q /mnt/swap; swapon /mnt/swap",
        "cmp $MARK /mnt/mark; swapoff /mnt/swap; umount /mnt",
        rests=False,
    ),
    Foreign(
        "loop device on a file of a file system that is no longer in the tree of mounts",
        "mkfs.ext4 -q -F $A; mount $A /mnt; cp $MARK /mnt/mark; losetup /dev/loop6 /mnt/mark; umount --lazy /mnt",
        "cmp $MARK /dev/loop6; losetup -d /dev/loop6",
        rests=False,
    ),
    Foreign(
        "file system mounted in another namespace",
        "mkfs.ext4 -q -F $A; unshare --mount --propagation private sh -c 'mount '$A' /mnt; cp '$MARK' /mnt/mark; sync;"
        " exec sleep 100000' >/dev/null 2>&1 & sleep 3",
        "nsenter --target $(pgrep -f 'sleep 100000' | head -n 1) --mount cmp $MARK /mnt/mark",
        rests=False,
    ),
    Foreign(
        "map of several paths",
        "mkfs.ext4 -q -F $A; modprobe dm-multipath dm-round-robin; SIZE=$(blockdev --getsz $A);"
        ' dmsetup create theirs --uuid mpath-theirs --table "0 $SIZE multipath 0 0 1 1 round-robin 0 1 1 $(readlink -f $A) 1";'
        " udevadm settle; mount /dev/mapper/theirs /mnt; cp $MARK /mnt/mark; umount /mnt",
        "mount /dev/mapper/theirs /mnt; cmp $MARK /mnt/mark; umount /mnt",
        rests=False,
    ),
    Foreign(
        "disk exported by LIO",
        "modprobe target_core_mod; modprobe target_core_iblock;"
        " mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config;"
        " mkdir -p /sys/kernel/config/target/core/iblock_0/theirs;"
        " echo udev_path=$(readlink -f $A) >/sys/kernel/config/target/core/iblock_0/theirs/control;"
        " echo 1 >/sys/kernel/config/target/core/iblock_0/theirs/enable",
        "grep -q $(basename $(readlink -f $A)) /sys/kernel/config/target/core/iblock_0/theirs/info",
    ),
    Foreign(
        "disk exported by nvmet",
        "modprobe nvmet; mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config;"
        " S=/sys/kernel/config/nvmet/subsystems/theirs; mkdir -p $S/namespaces/1;"
        " printf %s $(readlink -f $A) >$S/namespaces/1/device_path; echo 1 >$S/namespaces/1/enable",
        "grep -q 1 /sys/kernel/config/nvmet/subsystems/theirs/namespaces/1/enable",
    ),
    Foreign(
        "running bcache, backing device",
        "modprobe bcache; make-bcache -B $A -C $B --wipe-bcache --writeback; udevadm settle; sleep 1;"
        " test -e /dev/bcache0 || { echo $(readlink -f $A) >/sys/fs/bcache/register; echo $(readlink -f $B) >/sys/fs/bcache/register; };"
        " udevadm settle; dd if=$MARK of=/dev/bcache0 conv=fsync status=none",
        "cmp -n 4194304 $MARK /dev/bcache0",
        rests=False,
    ),
    Foreign(
        "bcache that is not running, cache device",
        "modprobe bcache; make-bcache -C $A -B $B --wipe-bcache --writeback; udevadm settle; sleep 1;"
        " test ! -e /sys/block/bcache0/bcache/stop || echo 1 >/sys/block/bcache0/bcache/stop;"
        " for set in /sys/fs/bcache/*-*/stop; do test ! -e $set || echo 1 >$set; done; sleep 2; udevadm settle",
        "blkid -p $A | grep -q bcache; blkid -p $B | grep -q bcache",
        rests=False,
    ),
    Foreign(
        "member of a btrfs that is here alone",
        "mkfs.btrfs -q -f -d raid1 -m raid1 $A $B; mount $A /mnt; cp $MARK /mnt/mark; umount /mnt;"
        " dd if=/dev/zero of=$B bs=1M count=1 conv=fsync status=none; udevadm settle",
        "mount -o degraded,ro $A /mnt; cmp $MARK /mnt/mark; umount /mnt",
        rests=False,
    ),
    Foreign(
        "member of a ZFS pool of another host",
        """python3 - $A <<'LABEL'
import os, struct, sys
with open(sys.argv[1], "r+b") as disk:
    size = disk.seek(0, os.SEEK_END) // 262144 * 262144
    for label in (0, 262144, size - 524288, size - 262144):
        for slot in range(128):
            disk.seek(label + 131072 + slot * 1024)
            disk.write(struct.pack("<QQQQQ", 0x00BAB10C, 5000, slot + 1, 77, 1700000000 + slot))
LABEL
udevadm settle""",
        "wipefs --noheadings $A | grep -q zfs_member",
    ),
    Foreign(
        "label of Ceph's bluestore",
        "printf 'bluestore block device\\n1ff3b2d4-66ad-4aee-8d63-3e3a5d6b7c11\\n' | dd of=$A conv=notrunc,fsync status=none",
        "head -c 22 $A | grep -q 'bluestore block device'",
    ),
    Foreign(
        "hybrid table with a file system",
        "sgdisk --zap-all $A >/dev/null 2>&1 || true; sgdisk -n 1:2048:+150M -n 2:0:+100M --hybrid=1:EE $A >/dev/null; partx --update $A;"
        " udevadm settle; mkfs.ext4 -q -F $A-part1; mount $A-part1 /mnt; cp $MARK /mnt/mark; umount /mnt",
        "mount -o ro $A-part1 /mnt; cmp $MARK /mnt/mark; umount /mnt",
        rests=False,
    ),
    Foreign(
        "extended partition",
        "printf 'label: dos\\n,100M,L\\n,200M,Ex\\n,100M,L\\n' | sfdisk --quiet --wipe always $A; partx --update $A; udevadm settle;"
        " mkfs.ext4 -q -F $A-part5; mount $A-part5 /mnt; cp $MARK /mnt/mark; umount /mnt",
        "mount -o ro $A-part5 /mnt; cmp $MARK /mnt/mark; umount /mnt",
        rests=False,
    ),
    Foreign(
        "raw data without a signature",
        "dd if=$MARK of=$A bs=1M seek=70 conv=notrunc,fsync status=none",
        "cmp -i 73400320:0 -n 4194304 $A $MARK",
    ),
    Foreign(
        "raw data at the very beginning",
        "dd if=$MARK of=$A bs=1M conv=notrunc,fsync status=none",
        "cmp -n 4194304 $A $MARK",
    ),
    Foreign(
        "read-only disk",
        "mkfs.ext4 -q -F -L theirs $A; blockdev --setro $A",
        "blkid -p $A | grep -q theirs; blockdev --setrw $A",
    ),
    Foreign(
        "disk that a process has open for itself",
        "dd if=$MARK of=$A bs=1M seek=200 conv=notrunc,fsync status=none;"
        """ setsid python3 -c 'import os, sys, time; os.open(sys.argv[1], os.O_RDWR | os.O_EXCL); time.sleep(100000)' $A >/dev/null 2>&1 &
sleep 3""",
        "cmp -i 209715200:0 -n 4194304 $A $MARK",
    ),
)
