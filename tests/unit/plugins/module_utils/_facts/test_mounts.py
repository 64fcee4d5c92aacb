# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.module_utils._facts import mounts
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import RecordedHost

MOUNTINFO = r"""
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
28 27 254:0 /data /mnt/with\040blank rw - ext4 /dev/vda rw
29 27 0:45 / /srv/btr rw - btrfs /dev/nvme0n1p2 rw
30 27 0:21 / /proc rw shared:13 master:1 - proc proc rw
broken line
"""
SWAPS = "Filename\tType\tSize\tUsed\tPriority\n/dev/vdc2    partition\t262140\t0\t-2\n/swapfile    file\t1\t0\t-3\n"


def test_mounts_by_number_and_by_source():
    parsed = mounts.parse_mounts(MOUNTINFO)

    assert parsed.targets["254:0"] == ("/", "/mnt/with blank")
    assert parsed.targets["/dev/vda"] == ("/", "/mnt/with blank")
    assert parsed.targets["/dev/nvme0n1p2"] == ("/srv/btr",)
    assert parsed.types["/dev/nvme0n1p2"] == "btrfs"
    assert "proc" not in parsed.targets


def test_swap_is_a_mount_of_its_own_kind():
    host = RecordedHost({"files": {"/proc/self/mountinfo": MOUNTINFO, "/proc/swaps": SWAPS}})

    found = mounts.read_mounts(host)

    assert found.targets["/dev/vdc2"] == ("[SWAP]",)
    assert found.types["/dev/vdc2"] == "swap"
    assert "/swapfile" not in found.targets
    assert found.targets["254:0"] == ("/", "/mnt/with blank")


def test_nothing_can_be_read():
    assert mounts.read_mounts(RecordedHost({})) == mounts.Mounts({}, {})
