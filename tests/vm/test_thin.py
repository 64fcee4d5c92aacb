# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Thin pools in a real machine: cut off while they are made and completed, as planned, back after a restart, and grown with all data."""

from __future__ import annotations

import time
import typing as t
from pathlib import Path

from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk, machine
from ansible_collections.bareon.allocator.tests.vm.layout_host import LayoutHost

GIB = 1024**3
FAST = Disk("FAST", 6 * GIB, "scsi")

MOUNTED_AT_START = """
for name in plain web db; do
  mkdir /mnt/$name
  echo "/dev/vg0/$name /mnt/$name auto x-systemd.device-timeout=300 0 0" >>/etc/fstab
done
"""

Plain = dict[str, t.Any]


def schema(pool: str, web: str, **more: t.Any) -> list[Plain]:
    return [
        {"id": "vg0", "type": "vg", "contains": ["plain", "pool"]},
        {"id": "plain", "type": "lv", "size": "500 MiB", "mount": "/plain", "fs_type": "ext4"},
        {"id": "pool", "type": "thin_pool", "size": pool, "overcommit": 4, "contains": ["web", "db"], **more},
        {"id": "web", "type": "thin", "size": web, "mount": "/web", "fs_type": "ext4"},
        {"id": "db", "type": "thin", "size": "2 GiB", "mount": "/db", "fs_type": "xfs"},
    ]


def test_thin_pools_are_made_and_grow(image: Path, layout_start: Path, tmp_path: Path) -> None:
    with machine(image, tmp_path, [], layout_start) as started:
        started.plug(FAST)
        host = LayoutHost(started)
        plan = host.plan(schema("1 GiB", "2 GiB"))
        for writes in (60, 140, 220):
            began = started.written([FAST])
            run = host.begin(plan["schema"])
            while run.poll() is None and started.written([FAST]) - began < writes:
                time.sleep(0.002)
            started.cut_power()
            run.communicate()
            started.resume([FAST], layout_start)
        host.apply(plan["schema"])
        started.cut_power()
        started.resume([FAST], layout_start)
        assert host.foresee(plan["schema"])["steps"] == []
        host.check(plan)
        host.shell(MOUNTED_AT_START)
        host.shell("mount --all; echo kept >/mnt/web/file; sync")

        started.restart()
        # Groups are activated while the machine starts, each as soon as its disks are there; the mounts have the start wait for that.
        host.shell("systemctl is-system-running --wait || { systemctl --failed; journalctl --boot --priority=err; lvs --all; false; } >&2")
        host.shell("for name in plain web db; do mountpoint /mnt/$name; done; grep kept /mnt/web/file")
        assert host.apply(plan["schema"])["steps"] == []
        larger = host.plan(schema("2 GiB", "3 GiB", metadata_size="8 MiB"))
        grown = host.apply({**larger["schema"], "fss": plan["schema"]["fss"]})
        assert [step["kind"] for step in grown["steps"]] == [
            "extend_pool_metadata",
            "extend_logical_volume",
            "extend_logical_volume",
            "grow_filesystem",
        ]
        host.check(larger)
        assert host.apply(larger["schema"])["steps"] == []
        assert int(host.shell("df --output=size -m /mnt/web | tail -1")) > 2900
        host.shell("grep kept /mnt/web/file")

        # What takes the place of all this closes the pool, too, and names what was in it.
        host.shell("umount /mnt/*")
        alone = host.plan([{"id": "alone", "type": "partition", "fs_type": "ext4"}])
        said = host.refuse(alone["schema"])
        assert all(f"vg0/{name}" in said for name in ("plain", "web", "db")), said
        assert "tdata" not in said, said
        host.apply(alone["schema"], wipe=[FAST.link])
