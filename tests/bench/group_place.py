# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Placement and evacuation beside Ganeti's hail: CPU seconds of both, and how many times faster we are.

    .venv/bin/python tests/bench/group_place.py [--repeat 5] [--json FILE]

hail's time is that of its whole process. `whole` is all that we do for the same request once libraries are there: parsing the JSON,
checking and building the cluster, deciding, and making the answer. The targets are for it. `decide` leaves parsing and checking of the
message out, which a task that asks several questions does once. `process` is the whole process of the allocator that Ganeti would
call, with the start of Python and the import of NumPy; Ansible imports them once for all tasks of a play. Exits with 1 when
a target is missed.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.iallocator import parse_iallocator, parse_json
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.iallocator import answer
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

HAIL = "/usr/lib/ganeti/iallocators/hail"
TIMES_FASTER = {"allocate, 400 nodes": 50, "evacuate all, 100 nodes": 50}
PROGRAM = ROOT / ".venv" / "collections" / "ansible_collections" / "bareon" / "allocator" / "playbooks" / "files" / "bareon-iallocator"
NEW = {
    "name": "new.example.com",
    "required_nodes": 2,
    "disk_space_total": 20480,
    "disks": [{"size": 20480, "mode": "w"}],
    "nics": [],
    "vcpus": 2,
    "memory": 2048,
    "disk_template": "drbd",
    "spindle_use": 1,
    "tags": [],
}


def cpu_seconds(work, repeat):
    """Return (median CPU seconds, the last result)."""
    seconds = []
    for _run in range(repeat):
        started = time.process_time()
        result = work()
        seconds.append(time.process_time() - started)
    return statistics.median(seconds), result


def process_seconds(message, *program):
    """Return the CPU seconds of a program that is given the message as a file, and its answer."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(message)
        file.flush()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run([*program, file.name], capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, json.loads(run.stdout)


def requests():
    """Yield a name and a message for each request that is compared."""
    yield "allocate, 400 nodes", generate(nodes=400, n1ok=True, seed=5).ialloc({"type": "allocate", **NEW})
    cluster = generate(nodes=100, n1ok=True, seed=1)
    node = max((node["name"] for node in cluster.nodes), key=lambda name: sum(name == i["pnode"] for i in cluster.instances))
    instances = [i["name"] for i in cluster.instances if i["pnode"] == node]
    yield "evacuate all, 100 nodes", cluster.ialloc({"type": "node-evacuate", "instances": instances, "evac_mode": "all"})


def compare(repeat):
    """Return a row for each request."""
    rows = []
    for name, text in requests():
        theirs, their_answer = process_seconds(text, HAIL)
        process, _answer = process_seconds(text, sys.executable, str(PROGRAM))
        whole, our_answer = cpu_seconds(lambda text=text: answer(parse_iallocator(parse_json(text)), ScoreMode.HTOOLS), repeat)
        message = parse_iallocator(parse_json(text))
        decide, _answer = cpu_seconds(lambda message=message: answer(message, ScoreMode.HTOOLS), repeat)
        row = {"request": name, "hail": theirs, "whole": whole, "decide": decide, "process": process}
        row |= {f"times_{part}": theirs / row[part] for part in ("whole", "decide", "process")}
        if name.startswith("evacuate"):
            row |= {"hail_failed": len(their_answer["result"][1]), "ours_failed": len(our_answer["result"][1])}
        rows.append(row)
    return rows


def main():
    """Print the table, and tell by the exit status whether every target is met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    rows = compare(options.repeat)
    for row in rows:
        print("  ".join(f"{key} {value:.3f}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    missed = [row["request"] for row in rows if row["times_whole"] < TIMES_FASTER[row["request"]]]
    print("missed:", ", ".join(missed) or "nothing")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
