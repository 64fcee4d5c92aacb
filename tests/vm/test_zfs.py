# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ZFS pools in a real machine, of zfs-fuse: cut off, completed, changed, with logs, caches and spares, after a restart, destroyed."""

from __future__ import annotations

import time
import typing as t
from pathlib import Path

from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.drift.zpools import compare_zpools
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk, machine
from ansible_collections.bareon.allocator.tests.vm.layout_host import LayoutHost

GIB = 1024**3
MIB = 1024**2
# Debian's unit does not wait for disks, as that of OpenZFS which imports pools does.
WAITS = """
mkdir -p /etc/systemd/system/zfs-fuse.service.d
cat >/etc/systemd/system/zfs-fuse.service.d/disks.conf <<'UNIT'
[Unit]
Wants=systemd-udev-settle.service
After=systemd-udev-settle.service
[Service]
ExecStartPre=/usr/sbin/modprobe fuse
UNIT
sync
"""
DISKS = [Disk(f"Z{number}", GIB, "scsi") for number in range(4)]

Plain = dict[str, t.Any]


def schema(quota: str = "100 MiB", *more: Plain, parts: t.Sequence[Plain] = ()) -> list[Plain]:
    return [
        {"id": "system", "type": "partition", "size": "100 MiB", "fs_type": "ext4", "mount": "/mnt/plain"},
        {
            "id": "tank",
            "type": "zpool",
            "vdev": "raidz1",
            "legs": 3,
            "spares": 1,
            "size": "400 MiB",
            "mount": "/tank",
            "properties": {"compression": "gzip", "atime": False},
            "datasets": [
                {"name": "home/a", "reservation": "20 MiB"},
                {"name": "home", "mount": "/tank-home", "quota": quota, "properties": {"recordsize": "16K"}},
                *more,
            ],
        },
        {"id": "tank_log", "type": "partition", "log_of": "tank", "size": "64 MiB", "mirror": "required"},
        {"id": "tank_cache", "type": "partition", "cache_of": "tank", "size": "64 MiB"},
        {"id": "pair", "type": "zpool", "legs": 4, "size": "300 MiB"},
        *parts,
    ]


PARTS = [
    {"id": "pair_log", "type": "partition", "log_of": "pair", "size": "64 MiB"},
    {"id": "pair_cache", "type": "partition", "cache_of": "pair", "size": "64 MiB", "count": 2},
]


def test_zfs_pools_are_made_changed_and_mounted_again(image: Path, layout_start: Path, tmp_path: Path) -> None:
    with machine(image, tmp_path, [], layout_start) as started:
        for disk in DISKS:
            started.plug(disk)
        host = LayoutHost(started)
        plan = host.plan(schema())
        for writes in (150, 400):
            began = started.written(DISKS)
            run = host.begin(plan["schema"])
            while run.poll() is None and started.written(DISKS) - began < writes:
                time.sleep(0.002)
            started.cut_power()
            run.communicate()
            started.resume(DISKS, layout_start)
            # What a machine that is no test remembers of its pools it remembers after a cut as well.
            host.shell("zpool import -f -a || true")
        host.apply(plan["schema"])
        assert host.foresee(plan["schema"])["steps"] == []
        for pool, room in (("tank", 400), ("pair", 300)):
            sizes = [int(size) for size in host.shell(f"zfs get -H -p -o value used,available {pool}").split()]
            # An old ZFS keeps less of it free.
            assert room * MIB <= sum(sizes) < 2 * room * MIB

        assert shape(host, "tank") == ["raidz1-0", "logs mirror-1", "cache", "spares"]
        host.shell("echo kept >/tank-home/file; sync")
        without = host.plan(schema("150 MiB", {"name": "new"}))
        steps = host.apply(without["schema"])["steps"]
        assert [step["kind"] for step in steps] == ["set_properties", "create_dataset"], steps
        changed = host.plan(schema("150 MiB", {"name": "new"}, parts=PARTS))
        steps = host.apply(changed["schema"])["steps"]
        assert [step["kind"] for step in steps].count("extend_zpool") == 3, steps
        assert shape(host, "pair") == ["mirror-0", "mirror-1", "logs", "cache", "cache"]
        assert host.foresee(changed["schema"])["steps"] == []

        host.shell(WAITS)
        started.restart()
        host.shell("systemctl is-system-running --wait || systemctl --failed")
        host.shell("for name in /tank /tank-home /tank-home/a /tank/new; do mountpoint $name; done; grep kept /tank-home/file")
        assert host.apply(changed["schema"])["steps"] == []

        wipe = [disk.link for disk in DISKS]
        # Taken over as if it were made by hand: there is nothing to do, and nothing differs.
        adopted = host.adopt(DISKS)["schema"]
        assert sorted(pool["name"] for pool in adopted["zpools"]) == ["pair", "tank"]
        assert host.foresee(adopted)["steps"] == []
        facts = host.facts()
        assert [pool["health"] for pool in facts["zpools"]] == ["ONLINE"] * 2
        for planned in (changed["schema"], adopted):
            assert list(compare_zpools(planned, facts)) == []
        # What the schema has no more stays, and goes where that is asked for; the pool keeps its data.
        assert host.apply(without["schema"], wipe=wipe)["steps"] == []
        steps = host.apply(without["schema"], wipe=wipe, keep_unlisted=False)["steps"]
        assert [step["kind"] for step in steps].count("shrink_zpool") == 3, steps
        assert shape(host, "pair") == ["mirror-0", "mirror-1"]
        assert shape(host, "tank") == ["raidz1-0", "logs mirror-1", "cache", "spares"]
        host.shell("grep kept /tank-home/file")
        assert host.foresee(without["schema"])["steps"] == []

        alone = host.plan([{"id": "alone", "type": "partitions", "per_disk": True, "fs_type": "ext4"}])
        assert "is mounted on /tank" in host.refuse(alone["schema"], wipe=wipe)
        host.shell("zpool export tank")
        assert "which is not imported on this host" in host.refuse(without["schema"], wipe=wipe)
        host.apply(alone["schema"], wipe=wipe)


def shape(host: LayoutHost, pool: str) -> list[str]:
    """Return the vdevs of a pool as ZFS has them; those of one device have no name."""
    found: list[str] = []
    section = ""
    for line in host.shell(f"zpool status {pool}").splitlines():
        depth, name = len(line.removeprefix("\t")) - len(line.removeprefix("\t").lstrip()), line.strip().partition(" ")[0]
        if line.startswith("\t") and depth == 0:
            section = name if name in ("logs", "cache", "spares") else ""
        elif line.startswith("\t") and depth == 2:
            found.append(f"{section} {'' if name.startswith('disk') else name}".strip())
    return found
