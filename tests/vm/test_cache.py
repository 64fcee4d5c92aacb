# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cache in a real machine: cut off while it is made and completed, as planned, mounted by the start, taken over, changed and grown."""

from __future__ import annotations

import time
import typing as t
from pathlib import Path

from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk, machine
from ansible_collections.bareon.allocator.tests.vm.layout_host import LayoutHost

GIB = 1024**3
SLOW, FAST = Disk("SLOW", 3 * GIB, "scsi", rotational=True), Disk("FAST", GIB, "nvme")
DISKS = [SLOW, FAST]
IN_THE_WAY = "umount /mnt/mail; sed -i '/vg0/d' /etc/fstab"

Plain = dict[str, t.Any]


def schema(mail: str = "500 MiB", mode: str = "writethrough", *, cached: bool = True) -> list[Plain]:
    cache = {"id": "fast", "type": "partition", "size": "512 MiB", "cache_of": "mail", "cache_mode": mode, "disks": [FAST.link]}
    return [
        {"id": "vg0", "type": "vg", "contains": ["mail"], "disks": [SLOW.link]},
        {"id": "mail", "type": "lv", "size": mail, "mount": "/mail", "fs_type": "ext4"},
        *([cache] if cached else []),
    ]


def kinds(result: Plain) -> list[str]:
    return [step["kind"] for step in result["steps"]]


def test_a_cache_is_made_and_what_is_cached_grows(image: Path, layout_start: Path, tmp_path: Path) -> None:
    with machine(image, tmp_path, [], layout_start) as started:
        for disk in DISKS:
            started.plug(disk)
        host = LayoutHost(started)
        without, plan = host.plan(schema(cached=False)), host.plan(schema())
        host.apply(without["schema"])
        host.shell("mkdir /mnt/mail; mount /dev/vg0/mail /mnt/mail; echo kept >/mnt/mail/file; sync")
        # The volume is mounted while it gets its cache, and the power goes before that is done.
        for writes in (20, 60):
            began = started.written(DISKS)
            run = host.begin(plan["schema"])
            while run.poll() is None and started.written(DISKS) - began < writes:
                time.sleep(0.002)
            started.cut_power()
            run.communicate()
            started.resume(DISKS, layout_start)
        host.apply(plan["schema"])
        host.shell("mkdir /mnt/mail; mount /dev/vg0/mail /mnt/mail; grep kept /mnt/mail/file")
        assert host.foresee(plan["schema"])["steps"] == []
        host.check(plan)
        host.shell("echo '/dev/vg0/mail /mnt/mail auto x-systemd.device-timeout=300 0 0' >>/etc/fstab")

        started.restart()
        host.shell("systemctl is-system-running --wait || { systemctl --failed; journalctl --boot --priority=err; lvs --all; false; } >&2")
        host.shell("mountpoint /mnt/mail; grep kept /mnt/mail/file")
        assert host.apply(plan["schema"])["steps"] == []
        adopted = host.adopt(DISKS)
        assert adopted["steps"] == [], adopted
        assert [cache["origin"] for cache in adopted["schema"]["caches"]] == ["mail"], adopted
        assert kinds(host.apply(host.plan(schema(mode="writeback"))["schema"])) == ["change_cache_mode"]
        larger = host.plan(schema("700 MiB", "writeback"))
        assert kinds(host.apply(larger["schema"])) == ["extend_logical_volume", "grow_filesystem"]
        host.check(larger)
        assert host.apply(larger["schema"])["steps"] == []
        host.shell(f"grep kept /mnt/mail/file; {IN_THE_WAY}")

        # What takes the place of all this closes it, and names what was in it, but not what nobody ever saw of it.
        alone = host.plan([{"id": f"alone{number}", "type": "partition", "disks": [disk.link]} for number, disk in enumerate(DISKS)])
        said = host.refuse(alone["schema"])
        assert "vg0/mail" in said, said
        assert not any(part in said for part in ("cvol", "corig")), said
        host.apply(alone["schema"], wipe=[disk.link for disk in DISKS])
