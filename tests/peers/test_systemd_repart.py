# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On one disk with partitions, weights, minima and maxima, systemd-repart and disk_plan give the same sizes.

systemd-repart shares in grains of 4 KiB and disk_plan in MiB, so that a size may differ by less than a MiB from
rounding, and by a grain of each partition that was rounded before it. A minimum is given to every partition, since
systemd-repart takes 10 MiB where there is none.

One difference is left, and it is the peer's: systemd-repart settles all minima before it looks at any maximum. What a
maximum then sets free does not reach the partitions that it has settled at their minimum, though they are the poorest.
Where sizes differ, the test shows just this: theirs has a poorer partition that could grow at the cost of a richer
one, ours has none.
"""

from __future__ import annotations

import json
import pathlib
import random
import shutil
import subprocess
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner

MIB = 1024**2
GRAIN = 4096
BACKUP_TABLE = 5 * GRAIN
"""What systemd-repart keeps at the end of a disk; disk_plan keeps a MiB."""

Wish = dict[str, t.Any]


@pytest.fixture(scope="module")
def repart() -> str:
    found = shutil.which("systemd-repart")
    if found is None:
        pytest.fail("systemd-repart is not installed; on Debian: apt-get install systemd")
    return found


def wishes(rng: random.Random) -> tuple[int, list[Wish]]:
    """Return a disk's size in MiB and partitions for it, some of which fill it and some of which do not fit."""
    size = rng.choice([300, 1000, 4096, 20000, 100000])
    count = rng.randint(1, 8)
    found = []
    for number in range(count):
        low = rng.randint(1, max(1, int(size * 1.6 / count)))
        high = rng.choice([None, None, low, low + rng.randint(1, size)])
        found.append(
            {
                "id": f"p{number}",
                "type": "partition",
                "min_size": low,
                "weight": rng.choice([1, 1, 2, 3, 0.5, 7.25]),
                **({"max_size": high} if high else {}),
            }
        )
    return size, found


def by_repart(repart: str, size: int, partitions: list[Wish], folder: pathlib.Path) -> dict[str, int] | None:
    """Return the bytes of each partition, or None where systemd-repart finds that they do not fit."""
    for place, wish in enumerate(partitions):
        lines = [
            "[Partition]",
            "Type=linux-generic",
            f"Label={wish['id']}",
            f"Weight={round(wish['weight'] * 1000)}",
            f"SizeMinBytes={wish['min_size'] * MIB}",
        ]
        if "max_size" in wish:
            lines.append(f"SizeMaxBytes={wish['max_size'] * MIB}")
        (folder / f"{place:02d}.conf").write_text("\n".join([*lines, ""]), encoding="utf-8")
    room = (size - 1) * MIB + BACKUP_TABLE
    image = folder / "image.raw"
    call = [
        repart,
        "--dry-run=yes",
        "--empty=create",
        f"--size={room}",
        f"--definitions={folder}",
        "--json=short",
        "--seed=4dd4b1dcfae24e69bb90d0dd3f2aeb1d",
        str(image),
    ]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        assert "fit" in done.stderr, done.stderr
        return None
    return {entry["label"]: entry["raw_size"] for entry in json.loads(done.stdout)}


def by_us(size: int, partitions: list[Wish]) -> dict[str, int] | None:
    """Return the MiB of each partition, or None without a plan."""
    hardware = {"disks": [{"id": "disk", "size": size}]}
    try:
        plan = Planner(partitions, Objective.FAIR, 0).plan(hardware)
    except NoSolution:
        return None
    return {space["space_id"]: space["size"] for disk in plan["disks"] for space in disk["spaces"]}


def unfair(sizes: dict[str, int], partitions: list[Wish], tolerance: int) -> list[tuple[str, str]]:
    """Return the pairs (poor, rich) in which the poor one could still grow by shrinking the rich one; sizes in bytes."""
    by_id = {wish["id"]: wish for wish in partitions}
    can_grow = [name for name, wish in by_id.items() if "max_size" not in wish or sizes[name] + tolerance < wish["max_size"] * MIB]
    can_shrink = [name for name, wish in by_id.items() if sizes[name] - tolerance > wish["min_size"] * MIB]

    def level(name: str, change: int) -> float:
        return (sizes[name] + change) / by_id[name]["weight"]

    return [(poor, rich) for poor in can_grow for rich in can_shrink if poor != rich and level(poor, tolerance) < level(rich, -tolerance)]


def compare(repart: str, seed: int, folder: pathlib.Path) -> str:
    """Return how the two answers to one problem relate: none, equal, or peer-settles-minima-first; anything else fails."""
    size, partitions = wishes(random.Random(seed))
    theirs = by_repart(repart, size, partitions, folder)
    ours = by_us(size, partitions)
    assert (ours is None) == (theirs is None)
    if ours is None or theirs is None:
        return "none"
    tolerance = MIB + len(partitions) * GRAIN
    in_bytes = {name: mib * MIB for name, mib in ours.items()}
    assert set(in_bytes) == set(theirs)
    assert not unfair(in_bytes, partitions, tolerance)
    if all(abs(in_bytes[name] - theirs[name]) <= tolerance for name in theirs):
        return "equal"
    assert unfair(theirs, partitions, tolerance), (ours, theirs)
    return "peer-settles-minima-first"


def test_the_same_sizes_but_for_what_the_peer_settles_too_early(repart: str, tmp_path: pathlib.Path) -> None:
    relations = []
    for seed in range(200):
        folder = tmp_path / str(seed)
        folder.mkdir()
        relations.append(compare(repart, seed, folder))
    assert relations.count("equal") >= 100
    assert relations.count("none") >= 20


@pytest.mark.parametrize("seed", range(40))
def test_always_the_same_without_maxima(repart: str, seed: int, tmp_path: pathlib.Path) -> None:
    size, partitions = wishes(random.Random(1000 + seed))
    free = [{key: value for key, value in wish.items() if key != "max_size"} for wish in partitions]
    theirs, ours = by_repart(repart, size, free, tmp_path), by_us(size, free)
    assert (ours is None) == (theirs is None)
    if ours is not None and theirs is not None:
        assert all(abs(ours[name] * MIB - theirs[name]) <= MIB + len(free) * GRAIN for name in ours)
