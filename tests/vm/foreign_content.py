# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What people have on disks that nobody named: each is made with the tools that people use, and says itself whether it is still whole.

In the scripts `$A` and `$B` are the disks that a layout asks for, `$T` is a name that nothing else has, `$M` an empty directory, and
`$MARK` a file of random data to compare with. No script destroys a partition table of ours on its own account: what a tool leaves of one
stays, as it does on servers. LVM and bcache refuse a disk with a table, so people zero its first MiB first, which leaves the copy at its
end.
"""

from __future__ import annotations

from dataclasses import dataclass

KEY = "--batch-mode --key-file /root/layout-key"
LUKS = f"{KEY} --pbkdf pbkdf2 --pbkdf-force-iterations 1000"
ZERO = (
    "dd if=/dev/zero of=$A bs=1M count=1 conv=fsync status=none; dd if=/dev/zero of=$B bs=1M count=1 conv=fsync status=none; udevadm settle"
)
SAME = "cmp -n 4194304 $MARK"

_ZFS_LABELS = r"""import os, struct, sys

def text(value):
    return struct.pack(">I", len(value)) + value.encode().ljust(-(-len(value) // 4) * 4, b"\0")

def pair(name, value):
    if isinstance(value, int):
        kind, data = 8, struct.pack(">Q", value)
    else:
        kind, data = (9, text(value)) if isinstance(value, str) else (19, pairs(value))
    body = text(name) + struct.pack(">II", kind, 1) + data
    return struct.pack(">II", len(body) + 8, len(body) + 24) + body

def pairs(values):
    return struct.pack(">II", 0, 1) + b"".join(pair(*each) for each in values.items()) + bytes(8)

tree = {"type": "disk", "id": 0, "guid": 78, "path": "/dev/sda1", "whole_disk": 0, "ashift": 12, "asize": 400 << 20, "is_log": 0}
pool = {"version": 5000, "name": "tank", "state": 0, "txg": 77, "pool_guid": 79, "hostid": 80, "hostname": "elsewhere"}
label = b"\1\1\0\0" + pairs({**pool, "top_guid": 78, "guid": 78, "vdev_children": 1, "vdev_tree": tree})
with open(sys.argv[1], "r+b") as disk:
    size = disk.seek(0, os.SEEK_END) // 262144 * 262144
    for place in (0, 262144, size - 524288, size - 262144):
        disk.seek(place + 16384)
        disk.write(label)
        for slot in range(128):
            disk.seek(place + 131072 + slot * 1024)
            disk.write(struct.pack("<QQQQQ", 0x00BAB10C, 5000, slot + 1, 77, 1700000000 + slot))
"""
"""Labels of a pool that another host has: the list of names and values, which newer libblkid looks for, and the uberblocks."""


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
        f"{make} $A; mount $A $M; cp $MARK $M/mark; umount $M",
        "mount -o ro $A $M; cmp $MARK $M/mark; umount $M",
    )


def array(metadata: str, running: bool) -> Foreign:
    stop = "" if running else "mdadm --stop /dev/md/$T; udevadm settle"
    start = "" if running else "mdadm --assemble /dev/md/$T $A $B; udevadm settle"
    return Foreign(
        f"{'running' if running else 'stopped'} array of whole disks, metadata {metadata}",
        f"""
mdadm --create /dev/md/$T --run --homehost=any --name=$T --level=1 --raid-devices=2 --metadata={metadata} --bitmap=none \
    --assume-clean $A $B
udevadm settle
dd if=$MARK of=/dev/md/$T bs=1M seek=5 conv=fsync status=none
{stop}""",
        f"""{start}
dd if=/dev/md/$T bs=1M skip=5 count=4 status=none | cmp $MARK -
for disk in $A $B; do wipefs --noheadings --output TYPE $disk | grep linux_raid_member >/dev/null; done""",
        rests=not running,
    )


def _container(metadata: str, signature: str, environment: str) -> Foreign:
    """Metadata of firmware RAID, which mdadm writes without such firmware where it is told so; its arrays are stopped."""
    return Foreign(
        f"member of a container of {metadata}",
        f"""
export {environment}
mdadm --create /dev/md/c$T --run --metadata={metadata} --raid-devices=2 $A $B
mdadm --create /dev/md/$T --run --level=1 --raid-devices=2 --assume-clean /dev/md/c$T || test {metadata} = imsm
udevadm settle
for attempt in 1 2 3 4 5; do
    mdadm --stop /dev/md12[0-9] 2>/dev/null || true
    udevadm settle
    grep ^md /proc/mdstat >/dev/null || break
done
! grep ^md /proc/mdstat""",
        f"for disk in $A $B; do wipefs --noheadings --output TYPE $disk | grep {signature} >/dev/null; done",
    )


CONTENTS = (
    _file_system("ext4", "mkfs.ext4 -q -F"),
    _file_system("xfs", "mkfs.xfs -q -f"),
    _file_system("btrfs", "mkfs.btrfs -q -f"),
    _file_system("vfat", "mkfs.vfat -I -F 32"),
    *(array(metadata, running=False) for metadata in ("0.90", "1.0", "1.1", "1.2")),
    _container("ddf", "ddf_raid_member", "NONE=1"),
    _container("imsm", "isw_raid_member", "IMSM_NO_PLATFORM=1 IMSM_DEVNAME_AS_SERIAL=1"),
    Foreign("idle swap on the whole disk", "mkswap -q -L theirs $A", "blkid -p $A | grep theirs >/dev/null"),
    Foreign(
        "volume group that is not active",
        f"""{ZERO}
pvcreate -qq --yes $A; vgcreate -qq $T $A; lvcreate -qq --yes -n data -L 100m $T
dd if=$MARK of=/dev/$T/data conv=fsync status=none; vgchange -qq -an $T; udevadm settle""",
        f"vgchange -qq -ay $T; udevadm settle; {SAME} /dev/$T/data",
    ),
    Foreign(
        "volume group that lacks a disk",
        f"""{ZERO}
modprobe loop; truncate -s 256M /root/$T; LOOP=$(losetup -f --show /root/$T); pvcreate -qq --yes $A $LOOP; vgcreate -qq $T $A $LOOP
lvcreate -qq --yes -n data -L 100m $T $A; dd if=$MARK of=/dev/$T/data conv=fsync status=none; vgchange -qq -an $T
losetup -d $LOOP; udevadm settle; pvscan --cache -qq >/dev/null""",
        "pvs --noheadings -o vg_name $A | grep $T >/dev/null; vgs --noheadings -o vg_attr $T | grep p >/dev/null;"
        f" vgchange -qq -ay --activationmode partial $T; {SAME} /dev/$T/data",
    ),
    Foreign(
        "two physical volumes of one identity",
        f"""{ZERO}
pvcreate -qq --yes $A; vgcreate -qq $T $A; lvcreate -qq --yes -n data -L 100m $T
dd if=$MARK of=/dev/$T/data conv=fsync status=none; vgchange -qq -an $T; udevadm settle
dd if=$A of=$B bs=4M count=40 conv=fsync status=none; udevadm settle""",
        "blkid -p $A | grep LVM2 >/dev/null; blkid -p $B | grep LVM2 >/dev/null; cmp -n 160000000 $A $B",
    ),
    Foreign(
        "closed LUKS container",
        f"cryptsetup luksFormat --type luks2 {LUKS} $A",
        "cryptsetup open --test-passphrase --key-file /root/layout-key $A",
    ),
    Foreign(
        "closed LUKS container whose header is elsewhere",
        f"truncate -s 16M /root/$T; cryptsetup luksFormat --type luks2 {LUKS} --header /root/$T $A;"
        f" cryptsetup open {KEY} --header /root/$T $A $T; dd if=$MARK of=/dev/mapper/$T conv=fsync status=none;"
        " cryptsetup close $T; udevadm settle",
        f"cryptsetup open {KEY} --header /root/$T $A $T; {SAME} /dev/mapper/$T",
    ),
    Foreign(
        "member of a btrfs that is alone",
        "mkfs.btrfs -q -f -d raid1 -m raid1 $A $B; mount $A $M; cp $MARK $M/mark; umount $M;"
        " dd if=/dev/zero of=$B bs=1M count=1 conv=fsync status=none; udevadm settle",
        "mount -o degraded,ro $A $M; cmp $MARK $M/mark; umount $M",
        rests=False,
    ),
    Foreign(
        "member of a ZFS pool of another host",
        f"python3 - $A <<'LABEL'\n{_ZFS_LABELS}LABEL\nudevadm settle",
        "wipefs --noheadings $A | grep zfs_member >/dev/null",
    ),
    Foreign(
        "label of Ceph's bluestore",
        "printf 'bluestore block device\\n1ff3b2d4-66ad-4aee-8d63-3e3a5d6b7c11\\n' | dd of=$A conv=notrunc,fsync status=none",
        "head -c 22 $A | grep 'bluestore block device' >/dev/null",
    ),
    Foreign(
        "hybrid table with a file system",
        "sgdisk --zap-all $A >/dev/null 2>&1 || true; sgdisk -n 1:2048:+150M -n 2:0:+100M --hybrid=1:EE $A >/dev/null; partx --update $A;"
        " udevadm settle; mkfs.ext4 -q -F $A-part1; mount $A-part1 $M; cp $MARK $M/mark; umount $M",
        "mount -o ro $A-part1 $M; cmp $MARK $M/mark; umount $M",
        rests=False,
    ),
    Foreign(
        "extended partition",
        "printf 'label: dos\\n1 : size=100M, type=L\\n2 : size=200M, type=Ex\\n5 : size=100M, type=L\\n'"
        " | sfdisk --quiet --wipe always $A; partx --update $A; udevadm settle;"
        " mkfs.ext4 -q -F $A-part5; mount $A-part5 $M; cp $MARK $M/mark; umount $M",
        "mount -o ro $A-part5 $M; cmp $MARK $M/mark; umount $M",
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
        "journal of an ext4 on another disk",
        "mke2fs -q -F -b 4096 -O journal_dev $A; mkfs.ext4 -q -F -b 4096 -J device=$A $B; mount $B $M; cp $MARK $M/mark; umount $M",
        "blkid -p $A | grep jbd >/dev/null; mount -o ro $B $M; cmp $MARK $M/mark; umount $M",
    ),
    Foreign(
        "log of an xfs on another disk",
        "mkfs.xfs -q -f -l logdev=$A,size=70m $B; mount -o logdev=$A $B $M; cp $MARK $M/mark; umount $M",
        "mount -o logdev=$A $B $M; cmp $MARK $M/mark; umount $M",
    ),
    Foreign(
        "bcache that is not running",
        f"""{ZERO}
make-bcache -C $A -B $B --wipe-bcache --writeback; udevadm settle
for name in $(basename --multiple $(readlink -f $A $B)); do
    test ! -e /sys/block/$name/bcache/stop || echo 1 >/sys/block/$name/bcache/stop
    test ! -e /sys/block/$name/bcache/set || echo 1 >/sys/block/$name/bcache/set/stop
done
for name in $(basename --multiple $(readlink -f $A $B)); do while test -e /sys/block/$name/bcache; do sleep 0.1; done; done
udevadm settle""",
        "for disk in $A $B; do blkid -p $disk | grep bcache >/dev/null; done",
    ),
)
"""What is at rest."""
