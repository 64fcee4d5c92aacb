# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Uses that take a kernel with all of its drivers: exports to other hosts, journals and logs of file systems on other disks."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk
from ansible_collections.bareon.allocator.tests.vm.layout_host import LayoutHost

GIB = 1024**3
USED, OTHER = Disk("USED", GIB, "scsi"), Disk("OTHER", GIB, "scsi")

NVMET = """
modprobe nvmet; mount -t configfs none /sys/kernel/config 2>/dev/null || true
cd /sys/kernel/config/nvmet/subsystems && mkdir nqn.2014-08.org.example:data && cd nqn.2014-08.org.example:data
echo 1 >attr_allow_any_host; mkdir namespaces/1; echo {used} >namespaces/1/device_path; echo 1 >namespaces/1/enable
"""
LIO = """
modprobe target_core_iblock; mount -t configfs none /sys/kernel/config 2>/dev/null || true
cd /sys/kernel/config/target/core && mkdir -p iblock_0/data && cd iblock_0/data
echo udev_path={used} >control; echo {used} >udev_path; echo 1 >enable
"""
JOURNAL = """
mke2fs -q -O journal_dev {used}; mkfs.ext4 -q -J device={used} {other}; mkdir -p /mnt/other; mount {other} /mnt/other
"""
LOG = """
mkfs.xfs -q -l logdev={used},size=64m {other}; mkdir -p /mnt/other; mount -o logdev={used} {other} /mnt/other
"""
NAMESPACE = """
mkfs.ext4 -q {used}; mkdir -p /mnt/used
script='mount {used} /mnt/used; touch /run/mounted; exec sleep 100000'
setsid unshare --mount --propagation private sh -c "$script" </dev/null >/dev/null 2>&1 &
until [ -e /run/mounted ]; do sleep 0.1; done
"""


@pytest.mark.parametrize(
    ("script", "use"),
    [
        pytest.param(NVMET, "exported by nvmet as namespace 1 of nqn.2014-08.org.example:data", id="nvmet"),
        pytest.param(LIO, "exported by LIO as iblock_0/data", id="LIO"),
        pytest.param(JOURNAL, "the journal of the ext4 on", id="an external journal"),
        pytest.param(LOG, "the log of the xfs that is mounted on /mnt/other", id="the log of an XFS"),
        pytest.param(NAMESPACE, "mounted on /mnt/used in the mount namespace of sleep", id="another mount namespace"),
    ],
)
def test_a_disk_in_use_out_of_sight_is_not_written_to_and_called_by_its_use(
    layout_host: t.Callable[[t.Sequence[Disk]], LayoutHost], script: str, use: str
) -> None:
    host = layout_host([USED, OTHER])
    plan = host.plan([{"id": "data", "type": "partition", "size": "100 MiB", "fs_type": "ext4", "mount": "/data", "disks": [USED.link]}])
    used, other = (host.shell(f"readlink -f {disk.link}").strip() for disk in (USED, OTHER))
    host.shell(script.format(used=used, other=other))
    before = host.shell(f"wipefs --parsable {used}")
    (disk,) = [disk for disk in host.facts()["disks"] if disk["id"] == USED.link]
    assert disk["in_use"]
    assert use in " ".join(each["use"] for each in disk["used_by"])
    for wipe in ([], [USED.link]):
        assert use in host.refuse(plan["schema"], wipe=wipe)
    assert use in host.refuse(plan["schema"], wipe=[USED.link], _ansible_check_mode=True)
    assert host.shell(f"wipefs --parsable {used}") == before
