# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where stripes find room, asked of LVM's own allocator, which needs no device-mapper for that: on fresh and on fragmented volumes."""

from __future__ import annotations

import json
import random
import subprocess
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.lvm import stripe_options, stripe_segments
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner

MIB = 1024**2
EXTENT = 4 * MIB
UNMADE = ("--activate=n", "--wipesignatures=n", "--zero=n")
"""What LVM cannot do without device-mapper."""


class Lvm:
    """LVM's tools that see nothing but some devices, without device-mapper."""

    def __init__(self, devices: t.Sequence[str]) -> None:
        own = "|".join(devices)
        settings = f'devices{{scan=["/dev"] filter=["a#^({own})$#","r#.*#"] use_devicesfile=0}} backup{{backup=0 archive=0}}'
        self._how = ("--driverloaded=n", "--config", settings)

    def attempt(self, tool: str, *words: str) -> bool:
        return subprocess.run([tool, *self._how, *words], capture_output=True, check=False).returncode == 0

    def __call__(self, tool: str, *words: str) -> str:
        return subprocess.run([tool, *self._how, *words], capture_output=True, text=True, check=True).stdout

    def rows(self, tool: str, columns: str) -> list[dict[str, str]]:
        output = self(tool, "--reportformat=json", "--units=b", "--nosuffix", f"--options={columns}")
        return t.cast("list[dict[str, str]]", json.loads(output)["report"][0][tool[:-1]])

    def make(self, group: str, name: str, stripes: int, segments: t.Iterable[tuple[tuple[str, ...], int]]) -> None:
        """Make a striped volume as a step of disk_layout does: one command for each segment, which names its physical volumes."""
        size = 0
        for nodes, extents in segments:
            program, *words = ("lvextend", f"{group}/{name}") if size else ("lvcreate", *UNMADE, f"--name={name}", group)
            size += extents * stripes * EXTENT
            self(program, "--yes", *stripe_options(stripes, 0), f"--size={size}b", *words, *nodes)


@pytest.mark.parametrize("seed", range(6))
def test_lvm_makes_every_segment_where_it_is_said_to_have_room(loops, seed):
    chance = random.Random(seed)
    devices = [disk["dev"] for disk in loops.hardware([96 * MIB] * 4)["disks"]]
    lvm, group = Lvm(devices), f"stripes{seed}"
    for device in devices:
        lvm("pvcreate", "--yes", f"--setphysicalvolumesize={chance.randint(5, 20) * 4 + 1}m", device)
    lvm("vgcreate", "--yes", group, *devices)
    # Pieces of what was there before lie between those of what is free.
    made = [f"old{at}" for at in range(12)]
    made = [
        name
        for name in made
        if lvm.attempt("lvcreate", "--yes", *UNMADE, f"--extents={chance.randint(1, 4)}", f"--name={name}", group, chance.choice(devices))
    ]
    for name in made:
        if chance.random() < 0.6:
            lvm("lvremove", "--yes", f"{group}/{name}")
    room = {row["pv_name"]: int(row["pv_free"]) // EXTENT for row in lvm.rows("pvs", "pv_name,pv_free")}
    stripes = chance.randint(2, 3)
    most = max(count for count in range(1 + sum(room.values())) if stripe_segments(room, stripes, count) is not None)
    assert most > 0
    lvm.make(group, "wide", stripes, stripe_segments(room, stripes, most) or [])
    found = [row for row in lvm.rows("lvs", "lv_name,lv_size,stripes") if row["lv_name"] == "wide"]
    assert {row["stripes"] for row in found} == {str(stripes)}
    assert int(found[0]["lv_size"]) == most * stripes * EXTENT
    # And LVM finds no room for one extent more in each stripe, wherever it looks.
    assert not lvm.attempt("lvextend", "--yes", *stripe_options(stripes, 0), f"--extents=+{stripes}", f"{group}/wide")


@pytest.mark.parametrize("objective", list(Objective))
def test_a_plan_with_stripes_is_made_to_the_extent(loops, objective):
    hardware = loops.hardware([203 * MIB, 203 * MIB, 103 * MIB])
    schema = [
        {"id": "os", "type": "vg", "contains": ["root", "wide"]},
        {"id": "root", "type": "lv", "size": 100 + 60},
        {"id": "wide", "type": "lv", "stripes": 2, "size": 320},
    ]
    plan = Planner(schema, objective, 0).plan(hardware)
    root, wide = plan["schema"]["lvs"]
    devices = plan["schema"]["vgs"][0]["pvnames"]
    disks = {table["partitions"][0]["name"]: table for table in plan["schema"]["parteds"]}
    lvm = Lvm([table["name"] for table in disks.values()])
    for table in disks.values():
        (part,) = table["partitions"]
        lvm("pvcreate", "--yes", "--dataalignment=1m", f"--setphysicalvolumesize={part['end'] - part['begin']}m", table["name"])
    group = f"planned{objective}"
    lvm("vgcreate", "--yes", group, *(disks[device]["name"] for device in devices))
    lvm.make(group, "wide", wide["stripes"], [(tuple(disks[device]["name"] for device in wide["devices"]), wide["size"] // 8)])
    assert lvm.attempt("lvcreate", "--yes", *UNMADE, f"--size={root['size']}m", "--name=root", group)
