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
        "file system with an active swap file",
        "mkfs.ext4 -q -F $A; mount $A $M; cp $MARK $M/mark; dd if=/dev/zero of=$M/swap bs=1M count=40 status=none;"
        " chmod 600 $M/swap; mkswap -q $M/swap; swapon $M/swap",
        "cmp $MARK $M/mark; swapoff $M/swap; umount $M",
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
        "member of a btrfs that is alone",
        "mkfs.btrfs -q -f -d raid1 -m raid1 $A $B; mount $A $M; cp $MARK $M/mark; umount $M;"
        " dd if=/dev/zero of=$B bs=1M count=1 conv=fsync status=none; udevadm settle",
        "mount -o degraded,ro $A $M; cmp $MARK $M/mark; umount $M",
        rests=False,
    ),
    Foreign(
        "label of Ceph's bluestore",
        "printf 'bluestore block device\\n1ff3b2d4-66ad-4aee-8d63-3e3a5d6b7c11\\n' | dd of=$A conv=notrunc,fsync status=none",
        "head -c 22 $A | grep 'bluestore block device' >/dev/null",
    ),
)
