# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A server with two disks laid out by the role, and by community.general's and ansible.posix's modules, on one machine in one run.

    .venv/bin/python tests/bench/disk_layout.py [--suite trixie] [--json FILE]

Both make an ESP, /boot, a volume group over both disks and six volumes, make all eight file systems and mount them, on two disks each of
the same kind, over ssh with pipelining. A run counts from the start of ansible-playbook to its end; `modules` is how many modules ran on
the machine, items of loops included. Exits with 1 when a target is missed: at most half of their time for the first run and a quarter
for the second, which finds nothing to do.

The machine comes from tests/vm/build-image, the collections from tests/utils/fetch-collections.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
from ansible_collections.bareon.allocator.tests.support.vm.ansible_run import Played, play
from ansible_collections.bareon.allocator.tests.support.vm.machine import Disk, Machine, machine

GIB = 1024**3
HERE = pathlib.Path(__file__).parent
DISKS = {name: [Disk(f"{name}-{number}".upper(), 16 * GIB, "scsi") for number in (1, 2)] for name in ("peer", "ours")}
TARGETS = {"first": 0.5, "second": 0.25}
LOCAL = {
    "ansible.builtin.debug",
    "ansible.builtin.set_fact",
    "ansible.builtin.assert",
    "ansible.builtin.include_tasks",
    "bareon.allocator.disk_plan",
}


def timed(started: Machine, folder: pathlib.Path, name: str) -> Played:
    return play(started, folder, HERE / f"disk_layout_{name}.yml", {"disks": [disk.link for disk in DISKS[name]]})


def modules(played: Played) -> int:
    """Count the modules that ran on the machine."""
    results = [
        result for task in json.loads(played.output)["tasks"] for result in task["hosts"].values() if result.get("action") not in LOCAL
    ]
    items = [item for result in results for item in result.get("results", [result])]
    return sum(not item.get("skipped") for item in items)


def mounted(started: Machine, name: str) -> dict[str, str]:
    """Return file systems by their mount points."""
    found = json.loads(started.run("findmnt", "--json", "--list", "--real", "--output", "TARGET,FSTYPE"))["filesystems"]
    root = f"/srv/{name}"
    return {entry["target"].removeprefix(root): entry["fstype"] for entry in found if entry["target"].startswith(root)}


def figures_of(played: Played) -> dict[str, float]:
    return {"seconds": round(played.seconds, 1), "modules": modules(played), "changed": played.changed}


def ratio_of(run: str, both: dict[str, dict[str, float]]) -> float:
    """Print what came of a run, and return our time as a share of the peer's."""
    ratio = both["ours"]["seconds"] / both["peer"]["seconds"]
    words = "; ".join(f"{name} {figure['seconds']:.1f} s, {figure['modules']} modules" for name, figure in both.items())
    print(f"{run} run: {words}; ratio {ratio:.2f}, target {TARGETS[run]}")
    return ratio


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suite", default="trixie")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    runs: dict[str, dict[str, Played]] = {}
    with tempfile.TemporaryDirectory() as folder:
        image = ROOT / ".build" / "vm" / options.suite
        with machine(image, pathlib.Path(folder), [disk for disks in DISKS.values() for disk in disks]) as started:
            for run in TARGETS:
                runs[run] = {name: timed(started, pathlib.Path(folder), name) for name in DISKS}
            if mounted(started, "ours") != mounted(started, "peer"):
                sys.exit(f"not the same: {mounted(started, 'ours')}, {mounted(started, 'peer')}")
    figures = {run: {name: figures_of(played) for name, played in both.items()} for run, both in runs.items()}
    missed = [run for run, both in figures.items() if ratio_of(run, both) > TARGETS[run]]
    if figures["second"]["ours"]["changed"]:
        missed.append("the second run changed something")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")
    print(f"missed: {', '.join(missed)}" if missed else "all targets met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
