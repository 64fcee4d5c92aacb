# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans to try targets with: every profile on hardware that it fits, and one plan that has all kinds of things in it."""

from __future__ import annotations

import functools
import typing as t

from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.profiles import PROFILES, load_profile

Plain = dict[str, t.Any]

GIB = 1024
_SYSTEM, _SSDS, _HDDS = [("ssd", 48)], [("ssd", 72)] * 4, [("hdd", 120)] * 6
_NVMES = [("nvme", 80)] * 2
_SHAPES = {
    "ceph-osd": [*_SYSTEM, *_HDDS[:3], *_NVMES],
    "ceph-osd-nvme": _NVMES,
    "database": [*_SYSTEM, *_SSDS, *_NVMES],
    "elasticsearch-hot": [*_SYSTEM, *_NVMES],
    "elasticsearch-warm": [*_SYSTEM, *_HDDS],
    # Without an ssd: it would become a cache, and no installer makes one.
    "file-server": _HDDS,
    "hadoop-jbod": [*_SYSTEM, *_HDDS[:4]],
    "kafka-jbod": [*_SYSTEM, *_HDDS[:3]],
    "kubernetes-node": [*_SYSTEM, _SSDS[0]],
    "kvm-host": [*_SYSTEM, *_SSDS],
    "lab-host": [*_SYSTEM, *_SSDS],
    "software-raid-boot": _SSDS[:2],
}


def profiles() -> list[str]:
    """Return the names of all profiles."""
    return sorted(path.stem for path in PROFILES.glob("*.yml"))


def profiles_of_all_targets() -> list[str]:
    """Return the names of the profiles that every target can make: not those with thin pools."""
    return [name for name in profiles() if name != "lab-host"]


def hardware(shape: t.Sequence[tuple[str, int]], firmware: str = "uefi") -> Plain:
    """Return hardware with disks of these kinds and sizes in GiB."""
    disks = [
        {
            "id": f"/dev/disk/by-id/wwn-0x5000c500a1b2{number:04x}",
            "dev": f"/dev/sd{chr(ord('a') + number)}",
            "type": "hdd" if kind == "hdd" else "ssd",
            "transport": "nvme" if kind == "nvme" else "sata",
            "size": size * GIB,
            "rotational": kind == "hdd",
        }
        for number, (kind, size) in enumerate(shape)
    ]
    return {"ram": 32768, "firmware": firmware, "disks": disks}


def make_plan(schema: t.Sequence[Plain], facts: Plain) -> Plain:
    """Return the fair plan of a schema."""
    return Planner(list(schema), Objective.FAIR, 0).plan(facts)


def profile_hardware(profile: str, firmware: str = "uefi") -> Plain:
    """Return hardware that a profile fits."""
    return hardware(_SHAPES.get(profile, _SYSTEM), firmware)


@functools.cache
def profile_plan(profile: str, firmware: str = "uefi") -> Plain:
    """Return the plan of a profile on hardware that it fits."""
    return make_plan(load_profile(PROFILES / f"{profile}.yml"), profile_hardware(profile, firmware))


@functools.cache
def data_plan() -> Plain:
    """Return a plan for disks that nothing starts from: partitions, swap, a mirror, LUKS, labels and options; no LVM."""
    schema = [
        {"id": "logs", "type": "partition", "size": 2000, "fs_type": "ext4", "mount": "/var/log", "mount_options": "nodev,noexec"},
        {"id": "data", "type": "partition", "size": 3000, "fs_type": "xfs", "mount": "/srv", "fs_label": "data", "fs_options": "-m crc=1"},
        {"id": "paging", "type": "partition", "size": 512, "fs_type": "swap", "fs_label": "paging"},
        {"id": "secret", "type": "partition", "size": 1000, "fs_type": "ext4", "mount": "/secret", "encrypt": True},
        {"id": "pair", "type": "raid", "level": "raid1", "legs": 2, "size": 1500, "fs_type": "btrfs", "mount": "/pair"},
        {"id": "plain", "type": "partition", "size": 700},
        {"id": "spare-room", "type": "partition", "size": 300, "fs_type": "ext4"},
    ]
    return make_plan(schema, hardware([("ssd", 10), ("ssd", 10)]))


@functools.cache
def whole_plan(firmware: str = "uefi") -> Plain:
    """Return a plan for a machine that starts from two disks: mirrors, LUKS below LVM, volumes."""
    schema = [
        {"id": "boot", "type": "raid", "level": "raid1", "legs": 2, "size": 1024, "fs_type": "ext4", "mount": "/boot", "boot": True},
        {"id": "mirror", "type": "raid", "level": "raid1", "legs": 2, "min_size": 4000},
        {"id": "os", "type": "vg", "contains": ["mirror", "root", "home"], "encrypt": True},
        {"id": "root", "type": "lv", "size": 4096, "fs_type": "ext4", "mount": "/", "fs_label": "root"},
        {"id": "home", "type": "lv", "min_size": 1024, "fs_type": "xfs", "mount": "/home", "mount_options": "nodev,nosuid"},
    ]
    return make_plan(schema, hardware([("ssd", 20), ("ssd", 20)], firmware))
