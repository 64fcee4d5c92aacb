# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans of typical typed servers and of the worst case: CPU milliseconds, first plan and median of the next ones.

    .venv/bin/python tests/bench/disk_placement.py [--repeat 5]

A server is typical with up to 3 raids, 4 partitions on one disk each, and LVM or one partition per disk on the rest. The worst
case is 60 disks of different sizes with 40 spaces. Imports are not counted. Exits with 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.fair.solve import allocate_fair
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.model import Hardware, Schema
from ansible_collections.bareon.allocator.tests.support.disk.build import hardware_of, schema_of
from ansible_collections.bareon.allocator.tests.support.disk.rules import broken

TYPICAL_MILLISECONDS, WORST_MILLISECONDS = 150.0, 2000.0
DISKS = (2, 4, 12, 24)
ESP = {"id": "esp", "type": "esp", "size": 512}
BOOT = {"id": "boot", "type": "raid", "level": "raid1", "legs": 2, "size": 1024, "boot": True}
ROOT_MIRROR = {"id": "root", "type": "raid", "level": "raid1", "legs": 2, "min_size": 30_000, "max_size": 60_000}
STRIPE = {"id": "stripe", "type": "raid", "level": "raid5", "legs": 3, "min_size": 100_000}
OSD = {"id": "osd", "type": "partition", "per_disk": True, "min_size": 20_000}
GROUP = [
    {"id": "data", "type": "vg", "contains": ["a", "b"]},
    {"id": "a", "type": "lv", "min_size": 1000},
    {"id": "b", "type": "lv", "min_size": 1000, "weight": 2},
]


def servers(disks: int, alike: bool) -> dict[str, tuple[Hardware, list[dict]]]:
    """Return machines with as many disks, alike or all different, and their schemas."""
    chance = random.Random(disks)
    hardware = hardware_of(*(3_815_447 if alike else chance.randint(200_000, 4_000_000) for _unused in range(disks)))
    parts = [{"id": f"p{at}", "type": "partition", "min_size": 5000 * at + 1000} for at in range(4)]
    found = {
        "mirror + vg": [BOOT, ROOT_MIRROR, ESP, *GROUP],
        "4 partitions + vg": [{**parts[0], "boot": True}, *parts[1:], ESP, *GROUP],
        "mirrors + one per disk": [ESP, BOOT, {**ROOT_MIRROR, "max_size": 30_000}, OSD],
    }
    if disks > 2:
        found["3 raids, 4 partitions, vg"] = [ESP, BOOT, ROOT_MIRROR, STRIPE, *parts, *GROUP]
    return {f"{name}, {disks} {'like' if alike else 'different'} disks": (hardware, entries) for name, entries in found.items()}


def worst() -> dict[str, tuple[Hardware, list[dict]]]:
    """Return 60 different disks with 40 spaces: whole partitions only, and everything mixed."""
    chance = random.Random(60)
    hardware = hardware_of(*(chance.randint(200_000, 4_000_000) for _unused in range(60)))
    partitions = [{"id": f"p{at}", "type": "partition", "min_size": 1000 * (at + 1)} for at in range(40)]
    mixed = [ESP, {**partitions[0], "boot": True}, *partitions[1:11]]
    mixed += [{"id": f"r{at}", "type": "raid", "level": "raid1", "legs": 2, "min_size": 9000 * (at + 1)} for at in range(4)]
    for group in range(4):
        names = [f"l{group}{at}" for at in range(5)]
        mixed += [{"id": f"g{group}", "type": "vg", "contains": names}]
        mixed += [{"id": name, "type": "lv", "min_size": 1000 * (at + 1), "weight": at + 1} for at, name in enumerate(names)]
    return {"40 partitions, 60 disks": (hardware, partitions), "40 mixed spaces, 60 disks": (hardware, mixed)}


def measured(hardware: Hardware, schema: Schema, repeat: int) -> tuple[float, float, str]:
    """Return CPU milliseconds of the first plan and of the next ones, and what it says about its quality."""
    times = []
    for _unused in range(repeat + 1):
        start = time.process_time()
        allocation = allocate_fair(hardware, schema)
        times.append((time.process_time() - start) * 1000)
    faults = broken(hardware, schema, allocation)
    return times[0], statistics.median(times[1:]), str(faults or ("proven" if allocation.proven else f"gap {allocation.gap:.1%}"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    typical = {name: server for disks in DISKS for alike in (True, False) for name, server in servers(disks, alike).items()}
    missed = 0
    for limit, problems in ((TYPICAL_MILLISECONDS, typical), (WORST_MILLISECONDS, worst())):
        for name, (hardware, entries) in problems.items():
            first, next_ones, says = measured(hardware, schema_of(hardware, *entries), repeat)
            missed += first > limit
            print(f"{name:48} first {first:7.1f} ms  next {next_ones:7.1f} ms  {says}{'  MISSED' if first > limit else ''}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
