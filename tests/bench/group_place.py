# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Placement and evacuation beside Ganeti's hail: CPU seconds of both, and how many times faster we are.

    .venv/bin/python tests/bench/group_place.py [--repeat 3] [--json FILE]

hail's time is that of its whole process. Of ours, `whole` is parsing the same message, building the state and answering, and `decide`
leaves the parsing out; starting Python and importing libraries is in neither, since Ansible imports them once. The targets are for
`decide`: parsing JSON takes most of the rest, and a task pays it once for any number of instances. Exits with 1 when one is missed.
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
sys.path[:0] = [str(ROOT / ".venv" / "collections"), str(ROOT / "tests" / "peers")]

from ansible_collections.bareon.allocator.plugins.plugin_utils.group.iallocator_answer import answer
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.place_report import place
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.sources.iallocator import Message, parse_iallocator
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.sources.text import parse_text
from gencluster import generate

HAIL = "/usr/lib/ganeti/iallocators/hail"
TIMES_FASTER = {"allocate, 400 nodes": 50, "evacuate all, 100 nodes": 50}
LOAD_SECONDS, PLACE_SECONDS, MOST_MIB = 2.0, 1.0, 300
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


def hail_seconds(message):
    """Return hail's CPU seconds and its answer."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(message)
        file.flush()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run([HAIL, file.name], capture_output=True, text=True, check=True)
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
        theirs, their_answer = hail_seconds(text)
        whole, ours_answer = cpu_seconds(lambda text=text: answer(parse_iallocator(json.loads(text)), ScoreMode.HTOOLS), repeat)
        message = parse_iallocator(json.loads(text))
        decide, _answer = cpu_seconds(lambda message=message: answer(message, ScoreMode.HTOOLS), repeat)
        row = {
            "request": name,
            "hail": theirs,
            "whole": whole,
            "decide": decide,
            "times_whole": theirs / whole,
            "times_decide": theirs / decide,
        }
        if name.startswith("evacuate"):
            row |= {"hail_failed": len(their_answer["result"][1]), "ours_failed": len(ours_answer["result"][1])}
        rows.append(row)
    return rows


def large(repeat):
    """Return what 1000 nodes with 10000 instances cost: load from text, and place one mirrored instance."""
    text = generate(nodes=1000, groups=5, n1ok=True, seed=2).text()
    load, cluster = cpu_seconds(lambda: parse_text(text), repeat)
    wanted = [{"name": "new", "memory": 2048, "disk": 20480, "vcpus": 2, "disk_template": "drbd"}]
    decide, _found = cpu_seconds(lambda: place(Message(cluster, {}), {"instances": wanted}), repeat)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"instances": len(cluster.instances), "load": load, "place": decide, "mib": most}


def main():
    """Print the table, and tell by the exit status whether every target is met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    thousand = large(options.repeat)
    rows = compare(options.repeat)
    for row in rows:
        print("  ".join(f"{key} {value:.3f}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()))
    print("1000 nodes:", "  ".join(f"{key} {value:.2f}" for key, value in thousand.items()))
    if options.json:
        options.json.write_text(json.dumps({"requests": rows, "large": thousand}, indent=2) + "\n")
    missed = [row["request"] for row in rows if row["times_decide"] < TIMES_FASTER[row["request"]]]
    missed += [name for name, most in (("load", LOAD_SECONDS), ("place", PLACE_SECONDS), ("mib", MOST_MIB)) if thousand[name] > most]
    print("missed:", ", ".join(missed) or "nothing")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
