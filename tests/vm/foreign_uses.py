# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What others have on disks and how they use them, as `foreign_content` has it, in a machine whose disks are many and cheap.

In the scripts `$A` and `$B` are the disks that a layout asks for, `$T` is a name that nothing else has, `$M` an empty directory, and
`$MARK` a file of random data to compare with. No script destroys a partition table of ours on its own account: what a tool leaves of one
stays, as it does on servers. LVM and bcache refuse a disk with a table, so people zero its first MiB first, which leaves the copy at its
end.
"""

from __future__ import annotations

from .foreign_content import Foreign

_KEY = "--batch-mode --key-file /root/layout-key"
_LUKS = f"{_KEY} --pbkdf pbkdf2 --pbkdf-force-iterations 1000"
_ZERO = (
    "dd if=/dev/zero of=$A bs=1M count=1 conv=fsync status=none; dd if=/dev/zero of=$B bs=1M count=1 conv=fsync status=none; udevadm settle"
)
_SAME = "cmp -n 4194304 $MARK"

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


FOREIGN = (
    Foreign(
        "active swap on the whole disk",
        "mkswap -q $A; swapon $A",
        "grep -q $(readlink -f $A) /proc/swaps",
        rests=False,
    ),
    Foreign(
        "volume group that is not active",
        f"""{_ZERO}
pvcreate -qq --yes $A; vgcreate -qq $T $A; lvcreate -qq --yes -n data -L 100m $T
dd if=$MARK of=/dev/$T/data conv=fsync status=none; vgchange -qq -an $T; udevadm settle""",
        f"vgchange -qq -ay $T; udevadm settle; {_SAME} /dev/$T/data",
    ),
    Foreign(
        "volume group that lacks a disk",
        f"""{_ZERO}
modprobe loop; truncate -s 256M /root/$T; LOOP=$(losetup -f --show /root/$T); pvcreate -qq --yes $A $LOOP; vgcreate -qq $T $A $LOOP
lvcreate -qq --yes -n data -L 100m $T $A; dd if=$MARK of=/dev/$T/data conv=fsync status=none; vgchange -qq -an $T
losetup -d $LOOP; udevadm settle; pvscan --cache -qq >/dev/null""",
        "pvs --noheadings -o vg_name $A | grep $T >/dev/null; vgs --noheadings -o vg_attr $T | grep p >/dev/null;"
        f" vgchange -qq -ay --activationmode partial $T; {_SAME} /dev/$T/data",
    ),
    Foreign(
        "two physical volumes of one identity",
        f"""{_ZERO}
pvcreate -qq --yes $A; vgcreate -qq $T $A; lvcreate -qq --yes -n data -L 100m $T
dd if=$MARK of=/dev/$T/data conv=fsync status=none; vgchange -qq -an $T; udevadm settle
dd if=$A of=$B bs=4M count=40 conv=fsync status=none; udevadm settle""",
        "blkid -p $A | grep LVM2 >/dev/null; blkid -p $B | grep LVM2 >/dev/null; cmp -n 160000000 $A $B",
    ),
    Foreign(
        "closed LUKS container",
        f"cryptsetup luksFormat --type luks2 {_LUKS} $A",
        "cryptsetup open --test-passphrase --key-file /root/layout-key $A",
    ),
    Foreign(
        "LUKS 1 container that is open",
        f"cryptsetup luksFormat --type luks1 {_LUKS} $A; cryptsetup open {_KEY} $A $T;"
        " dd if=$MARK of=/dev/mapper/$T conv=fsync status=none",
        f"{_SAME} /dev/mapper/$T",
    ),
    Foreign(
        "open LUKS container whose header is elsewhere",
        f"truncate -s 16M /root/$T; cryptsetup luksFormat --type luks2 {_LUKS} --header /root/$T $A;"
        f" cryptsetup open {_KEY} --header /root/$T $A $T; dd if=$MARK of=/dev/mapper/$T conv=fsync status=none",
        f"{_SAME} /dev/mapper/$T",
    ),
    Foreign(
        "closed LUKS container whose header is elsewhere",
        f"truncate -s 16M /root/$T; cryptsetup luksFormat --type luks2 {_LUKS} --header /root/$T $A;"
        f" cryptsetup open {_KEY} --header /root/$T $A $T; dd if=$MARK of=/dev/mapper/$T conv=fsync status=none;"
        " cryptsetup close $T; udevadm settle",
        f"cryptsetup open {_KEY} --header /root/$T $A $T; {_SAME} /dev/mapper/$T",
    ),
    Foreign(
        "file system with an active swap file",
        "mkfs.ext4 -q -F $A; mount $A $M; cp $MARK $M/mark; dd if=/dev/zero of=$M/swap bs=1M count=40 status=none;"
        " chmod 600 $M/swap; mkswap -q $M/swap; swapon $M/swap",
        "cmp $MARK $M/mark; swapoff $M/swap; umount $M",
        rests=False,
    ),
    Foreign(
        "loop device on a file of a file system that is no longer in the tree of mounts",
        "mkfs.ext4 -q -F $A; mount $A $M; cp $MARK $M/mark; modprobe loop;"
        " LOOP=$(losetup -f --show $M/mark); echo $LOOP >/root/$T; umount --lazy $M",
        "cmp $MARK $(cat /root/$T); losetup -d $(cat /root/$T)",
        rests=False,
    ),
    Foreign(
        "file system mounted in another namespace",
        """mkfs.ext4 -q -F $A
setsid unshare --mount --propagation private sh -c "mount $A $M; cp $MARK $M/mark; sync; echo \\$\\$ >/root/$T; exec sleep 100000" \
    </dev/null >/dev/null 2>&1 &
until [ -s /root/$T ]; do sleep 0.1; done""",
        "nsenter --target $(cat /root/$T) --mount cmp $MARK $M/mark",
        rests=False,
    ),
    Foreign(
        "map of several paths",
        "mkfs.ext4 -q -F $A; modprobe dm-multipath; modprobe dm-round-robin; SIZE=$(blockdev --getsz $A);"
        ' dmsetup create $T --uuid mpath-$T --table "0 $SIZE multipath 0 0 1 1 round-robin 0 1 1 $(readlink -f $A) 1";'
        " udevadm settle; mount /dev/mapper/$T $M; cp $MARK $M/mark; umount $M",
        "mount /dev/mapper/$T $M; cmp $MARK $M/mark; umount $M",
        rests=False,
    ),
    Foreign(
        "running bcache",
        f"""{_ZERO}
modprobe bcache; make-bcache -B $A -C $B --wipe-bcache --writeback; udevadm settle; sleep 1
DISK=$(basename $(readlink -f $A))
for each in $A $B; do test -e /sys/block/$(basename $(readlink -f $each))/bcache || echo $(readlink -f $each) >/sys/fs/bcache/register; done
until [ -e /sys/block/$DISK/bcache/dev ]; do sleep 0.1; done
basename $(readlink -f /sys/block/$DISK/bcache/dev) >/root/$T; dd if=$MARK of=/dev/$(cat /root/$T) conv=fsync status=none""",
        f"{_SAME} /dev/$(cat /root/$T)",
        rests=False,
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
)
