# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How others use disks, as `foreign_content` has what they have on them: what is mounted, open, running, exported or held.

Here the kernel writes on its own account: the data are looked at, and not whether there were writes, unless nothing can write.
"""

from __future__ import annotations

from .foreign_content import KEY, LUKS, SAME, ZERO, Foreign, array

USES = (
    *(array(metadata, running=True) for metadata in ("0.90", "1.0", "1.1", "1.2")),
    Foreign(
        "active swap on the whole disk",
        "mkswap -q $A; swapon $A",
        "grep -q $(readlink -f $A) /proc/swaps",
        rests=False,
    ),
    Foreign(
        "LUKS 1 container that is open",
        f"cryptsetup luksFormat --type luks1 {LUKS} $A; cryptsetup open {KEY} $A $T; dd if=$MARK of=/dev/mapper/$T conv=fsync status=none",
        f"{SAME} /dev/mapper/$T",
    ),
    Foreign(
        "open LUKS container whose header is elsewhere",
        f"truncate -s 16M /root/$T; cryptsetup luksFormat --type luks2 {LUKS} --header /root/$T $A;"
        f" cryptsetup open {KEY} --header /root/$T $A $T; dd if=$MARK of=/dev/mapper/$T conv=fsync status=none",
        f"{SAME} /dev/mapper/$T",
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
        # multipathd takes down a map of paths that it does not know.
        "map of several paths",
        "systemctl stop multipathd.socket multipathd.service; mkfs.ext4 -q -F $A;"
        " modprobe dm-multipath; modprobe dm-round-robin; SIZE=$(blockdev --getsz $A);"
        ' dmsetup create $T --uuid mpath-$T --table "0 $SIZE multipath 0 0 1 1 round-robin 0 1 1 $(readlink -f $A) 1";'
        " udevadm settle; mount /dev/mapper/$T $M; cp $MARK $M/mark; umount $M",
        "mount /dev/mapper/$T $M; cmp $MARK $M/mark; umount $M",
        rests=False,
    ),
    Foreign(
        "running bcache",
        f"""{ZERO}
modprobe bcache; make-bcache -B $A -C $B --wipe-bcache --writeback; udevadm settle; sleep 1
DISK=$(basename $(readlink -f $A))
for each in $A $B; do test -e /sys/block/$(basename $(readlink -f $each))/bcache || echo $(readlink -f $each) >/sys/fs/bcache/register; done
until [ -e /sys/block/$DISK/bcache/dev ]; do sleep 0.1; done
basename $(readlink -f /sys/block/$DISK/bcache/dev) >/root/$T; dd if=$MARK of=/dev/$(cat /root/$T) conv=fsync status=none""",
        f"{SAME} /dev/$(cat /root/$T)",
        rests=False,
    ),
    Foreign(
        "thin pool with a cache",
        f"""{ZERO}
pvcreate -qq --yes $A $B; vgcreate -qq $T $A $B; lvcreate -qq --yes --type thin-pool -n pool -L 100m $T $A
lvcreate -qq --yes -n fast -L 60m $T $B; lvconvert -qq --yes --type cache --cachevol fast $T/pool
lvcreate -qq --yes -V 64m -n thin --thinpool pool $T; dd if=$MARK of=/dev/$T/thin conv=fsync status=none""",
        f"{SAME} /dev/$T/thin",
        rests=False,
    ),
    Foreign(
        "journal of a mounted ext4 on another disk",
        "mke2fs -q -F -b 4096 -O journal_dev $A; mkfs.ext4 -q -F -b 4096 -J device=$A $B; mount $B $M; cp $MARK $M/mark; sync",
        "cmp $MARK $M/mark; umount $M; mount $B $M; cmp $MARK $M/mark; umount $M",
        rests=False,
    ),
    Foreign(
        "log of a mounted xfs on another disk",
        "mkfs.xfs -q -f -l logdev=$A,size=70m $B; mount -o logdev=$A $B $M; cp $MARK $M/mark; sync",
        "umount $M; mount -o logdev=$A $B $M; cmp $MARK $M/mark; umount $M",
        rests=False,
    ),
    Foreign(
        "disk exported by LIO",
        """
modprobe target_core_mod; modprobe target_core_iblock; mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
mkdir -p /sys/kernel/config/target/core/iblock_0/$T; cd /sys/kernel/config/target/core/iblock_0/$T
echo udev_path=$(readlink -f $A) >control; echo 1 >enable""",
        "grep $(basename $(readlink -f $A)) /sys/kernel/config/target/core/iblock_0/$T/info >/dev/null",
    ),
    Foreign("read-only disk", "mkfs.ext4 -q -F -L theirs $A; blockdev --setro $A", "blkid -p $A | grep theirs >/dev/null"),
    Foreign(
        "disk that a process has open for itself",
        """
setsid python3 -c 'import os, sys, time
os.open(sys.argv[1], os.O_RDWR | os.O_EXCL)
open(sys.argv[2], "w").close()
time.sleep(100000)' $A /root/$T </dev/null >/dev/null 2>&1 &
until [ -e /root/$T ]; do sleep 0.1; done""",
        """
python3 -c 'import errno, os, sys
try:
    os.open(sys.argv[1], os.O_RDWR | os.O_EXCL)
except OSError as error:
    sys.exit(error.errno != errno.EBUSY)
sys.exit(1)' $A""",
    ),
)
"""What is in use."""
