# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bareon's hand-written schemas for tests: the example of its user guide, disks, and readings of both."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.module_utils._schema.bareon.convert import read_bareon_list

MIB = 1024**2
LINUX = "0fc63daf-8483-4772-8e79-3d69d8477de4"

GUIDE = [
    {
        "type": "disk",
        "id": {"type": "name", "value": "sda"},
        "size": "10000 MiB",
        "volumes": [
            {"type": "partition", "mount": "/", "file_system": "ext4", "size": "4976 MiB"},
            {"type": "partition", "mount": "/opt", "file_system": "ext4", "size": "2000 MiB"},
            {"type": "pv", "size": "3000 MiB", "vg": "home"},
        ],
    },
    {
        "type": "vg",
        "id": "home",
        "volumes": [{"type": "lv", "name": "home", "mount": "/home", "size": "2936 MiB", "file_system": "ext3"}],
    },
]
"""The example of the user guide: it takes all of the declared size."""


def disk(dev, size, **more):
    facts = {"id": f"/dev/disk/by-id/ata-{dev}", "dev": f"/dev/{dev}", "path": f"/dev/disk/by-path/pci-{dev}", "links": [], "size": size}
    return {**facts, "size_bytes": size * MIB, "serial": dev, "wwn": None, "partitions": [], "holders": [], **more}


def hardware(*disks):
    return {"ram": 1024, "firmware": "bios", "disks": list(disks)}


def read(entries, *disks):
    reading = read_bareon_list(entries, hardware(*(disks or [disk("sda", 20000)])))
    assert reading.mistakes == ()
    return reading


def mistakes(entries, *disks):
    reading = read_bareon_list(entries, hardware(*(disks or [disk("sda", 20000)])))
    assert reading.schema == {}
    return list(reading.mistakes)


def one_disk(*volumes, size="remaining", name="sda"):
    return {"type": "disk", "id": {"type": "name", "value": name}, "size": size, "volumes": list(volumes)}


def partitions(reading, number=0):
    return [(part["space_id"], part["begin"], part["end"]) for part in reading.schema["parteds"][number]["partitions"]]
