# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans made in a real machine with md, LUKS and LVM: arrays, containers and volumes have the sizes that were counted on.

All layouts are made in one go, for the machine is emulated and slow; then every test looks at its report. Disks are files
with holes: nothing but metadata is ever written, so that they can be as large as overheads want them.
"""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner
from ansible_collections.bareon.allocator.tests.support.host.layout_checks import check_all
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk, machine

MIB = 1024**2
GIB = 1024 * MIB

Plain = dict[str, t.Any]

VIRTIO = [Disk(f"VIRTIO-{number}", 500 * GIB + number * 4096) for number in range(4)]
NATIVE = [Disk(f"NATIVE-{number}", 301 * GIB + MIB - 4096, block=4096) for number in range(2)]
NVME = [Disk(f"NVME-{number}", 500_107_862_016, bus="nvme") for number in range(2)]
# A controller with four disks in its RAID 5, and what bridges to USB say.
ODD = [Disk("ODD-0", 40 * GIB, optimal_io=3 * 512 * 1024), Disk("ODD-1", 40 * GIB, optimal_io=33_553_920)]
DISKS = [*VIRTIO, *NATIVE, *NVME, *ODD]

# Where mdadm doubles its headroom, a MiB beside it, and what is between.
LEGS = [200, 1023, 1024, 2047, 2048, 4097, 10240, 65535, 65536]


def on_array(name: str, level: str, legs: int, size: int, **keys: t.Any) -> list[Plain]:
    """Return an array of so many MiB of legs' data with a group and a volume that fills it."""
    return [
        {"id": name, "type": "raid", "level": level, "legs": legs, "size": size},
        {"id": f"vg-{name}", "type": "vg", "contains": [name, f"lv-{name}"]},
        {"id": f"lv-{name}", "type": "lv", "min_size": 100, **keys},
    ]


LAYOUTS: dict[str, tuple[list[Disk], list[Plain]]] = {
    "volumes over disks of every bus": (
        [*VIRTIO[:2], *NVME],
        [
            {"id": "os", "type": "vg", "contains": ["root", "var-log"]},
            {"id": "root", "type": "lv", "min_size": 10001, "max_size": 50001, "mount": "/", "boot": True},
            {"id": "var-log", "type": "lv", "weight": 3, "mount": "/var/log"},
        ],
    ),
    "sectors of 4096 bytes": (
        NATIVE,
        [
            {"id": "esp", "type": "esp", "size": 260},
            {"id": "boot", "type": "partition", "size": 511, "mount": "/boot", "boot": True},
            {"id": "os", "type": "vg", "contains": ["root"]},
            {"id": "root", "type": "lv", "min_size": 10001, "mount": "/"},
            {"id": "mirror", "type": "raid", "level": "raid1", "legs": 2, "size": 3333},
            {"id": "early", "type": "raid", "level": "raid1", "legs": 2, "size": 555, "boot": True},
        ],
    ),
    "disks that ask for odd alignment": (
        ODD,
        [
            {"id": "boot", "type": "partition", "size": 511, "mount": "/boot", "boot": True},
            {"id": "os", "type": "vg", "contains": ["root"], "disks": [ODD[0].link]},
            {"id": "root", "type": "lv", "min_size": 1001, "mount": "/"},
            {"id": "secret", "type": "vg", "contains": ["keys"], "encrypt": True},
            {"id": "keys", "type": "lv", "min_size": 1001},
        ],
    ),
    "mirrors of many sizes": (
        VIRTIO[:2],
        [{"id": f"mirror{size}", "type": "raid", "level": "raid1", "legs": 2, "size": size} for size in LEGS]
        + [{"id": "large", "type": "raid", "level": "raid1", "legs": 2, "min_size": 131072}],
    ),
    "mirrors that firmware reads": (
        VIRTIO[:2],
        [
            {"id": "boot", "type": "raid", "level": "raid1", "legs": 2, "size": 300, "boot": True, "mount": "/boot/efi", "fs_type": "vfat"},
            {"id": "middle", "type": "raid", "level": "raid1", "legs": 2, "size": 10240, "boot": True},
            {"id": "large", "type": "raid", "level": "raid1", "legs": 2, "min_size": 210000, "boot": True},
            {"id": "vg-large", "type": "vg", "contains": ["large", "root"]},
            {"id": "root", "type": "lv", "min_size": 1000},
        ],
    ),
    "every level": (
        [*VIRTIO, *NATIVE, *NVME],
        [
            {"id": "stripes", "type": "raid", "level": "raid0", "legs": 3, "size": 3 * 1001},
            {"id": "parity", "type": "raid", "level": "raid5", "legs": 3, "size": 2 * 2049},
            {"id": "parities", "type": "raid", "level": "raid6", "legs": 5, "size": 3 * 777},
            {"id": "both", "type": "raid", "level": "raid10", "legs": 4, "size": 2 * 140001},
            {"id": "mirrors", "type": "raid", "level": "raid1", "legs": 3, "size": 1234},
        ],
    ),
    "volumes on arrays": (
        [*VIRTIO[:2], *NVME],
        [
            *on_array("mirror", "raid1", 2, 5001),
            *on_array("stripes2", "raid0", 2, 6002),
            *on_array("parity3", "raid5", 3, 4002),
            *on_array("both4", "raid10", 4, 4002),
        ],
    ),
    "volumes on wide arrays": (
        [*VIRTIO, *NVME],
        [
            *on_array("parity4", "raid5", 4, 6003),
            *on_array("parity6", "raid5", 6, 5005),
            *on_array("parities6", "raid6", 6, 8004),
            *on_array("both6", "raid10", 6, 3003),
        ],
    ),
    "encrypted": (
        [VIRTIO[0], NVME[0]],
        [
            {"id": "root", "type": "partition", "size": 4001, "encrypt": True, "mount": "/"},
            {"id": "secret", "type": "vg", "contains": ["keys", "more"]},
            {"id": "keys", "type": "lv", "min_size": 1001, "encrypt": True},
            {"id": "more", "type": "lv", "min_size": 777},
            {"id": "sealed", "type": "raid", "level": "raid1", "legs": 2, "size": 999, "encrypt": True},
        ],
    ),
    "encrypted on arrays": (
        [*VIRTIO, *NVME],
        [
            *on_array("mirror", "raid1", 2, 3001, encrypt=True),
            *on_array("parity4", "raid5", 4, 6003, encrypt=True),
            *on_array("stripes6", "raid0", 6, 6006, encrypt=True),
        ],
    ),
}


def facts(disks: t.Sequence[Disk]) -> Plain:
    return {
        "ram": 8192,
        "firmware": "uefi",
        "disks": [
            {"id": disk.link, "path": f"port-{at}", "type": "ssd", "size": disk.size // MIB, "logical_block": disk.block}
            for at, disk in enumerate(disks)
        ],
    }


@pytest.fixture(scope="module")
def plans() -> dict[str, Plain]:
    return {name: Planner(schema, Objective.FAIR, 0).plan(facts(disks)) for name, (disks, schema) in LAYOUTS.items()}


@pytest.fixture(scope="module")
def reports(image: Path, plans: dict[str, Plain], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Plain]:
    task = json.dumps({"stacked": True, "schemas": [plan["schema"] for plan in plans.values()]})
    maker = (Path(__file__).parent / "make_layout.py").read_text(encoding="utf-8")
    with machine(image, tmp_path_factory.mktemp("machine"), DISKS) as started:
        started.run("tee", "/root/make_layout.py", text=maker)
        found = json.loads(started.run("python3", "/root/make_layout.py", text=task))
    return dict(zip(plans, found, strict=True))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_plan_is_made_as_it_is_written(layout: str, plans: dict[str, Plain], reports: dict[str, Plain]) -> None:
    plan, report = plans[layout], reports[layout]
    check_all(plan, report)
    assert plan["warnings"] == []
    assert set(report["arrays"]) == {array["name"] for array in plan["schema"]["mds"]}
    assert set(report["containers"]) == {container["device"] for container in plan["schema"]["luks"]}
    assert {group["vg_name"] for group in report["vgs"]} == {group["name"] for group in plan["schema"]["vgs"]}
