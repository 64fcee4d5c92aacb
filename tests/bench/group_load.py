# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Loading a cluster of 1000 nodes and 10,000 instances and judging every place of a new one: CPU seconds and memory.

    .venv/bin/python tests/bench/group_load.py [--nodes 1000] [--groups 1] [--json FILE]

`load` is text to a checked cluster, `place` is what group_place does for one mirrored instance with that cluster: arrays, every pair of
nodes checked against all limits and scored, the answer. `found` is how many pairs there were, `info` is the whole report. `imports`,
told apart, is what NumPy, HiGHS and the collection take to load. `hinfo` is what Ganeti's program takes to load the same file and
print its score, where it is installed. Each row is a process of its own, so that its memory is its own. Exits with 1 when a target is
missed: 2 s to load, 1 s to place, 300 MiB.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGETS = {"load": 2.0, "place": 1.0, "MiB": 300.0}
KIB_PER_MIB = 1024
NEW = {"name": "new", "memory": 2048, "disk": 20480, "vcpus": 2, "disk_template": "drbd"}


def measure(path):
    """Return what the steps take in this process."""

    def spent(since):
        return round(time.process_time() - since, 3)

    start = time.process_time()
    from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster import state
    from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics import score
    from ansible_collections.bareon.allocator.plugins.plugin_utils._group.place import placement
    from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources import inline, loaded, text
    from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks import info as report
    from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks import place as place_report

    took = {"imports": spent(start)}
    start = time.process_time()
    cluster = text.parse_text(path.read_text())
    took |= {"load": spent(start)}
    start = time.process_time()
    place_report.place(loaded.Loaded(cluster, {}), {"instances": [NEW]})
    took |= {"place": spent(start), "MiB": round(peak(resource.RUSAGE_SELF))}
    start = time.process_time()
    report.report(cluster, score.ScoreMode.CAPACITY)
    took |= {"info": spent(start), "MiB with info": round(peak(resource.RUSAGE_SELF))}
    arrays = state.ClusterState.from_cluster(cluster, inline.parse_new_instances([NEW], cluster))
    groups = [arrays.group_nodes(group) for group in range(len(cluster.groups))]
    found = sum(int(placement.candidates(arrays, len(cluster.instances), nodes).fits.sum()) for nodes in groups)
    return took | {"found": found}


def peak(who):
    return resource.getrusage(who).ru_maxrss / KIB_PER_MIB


def measure_hinfo(path):
    """Return the CPU seconds and MiB of hinfo on the same file."""
    if shutil.which("hinfo") is None:
        return {}
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(["hinfo", "-t", str(path)], stdout=subprocess.DEVNULL, check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"hinfo": round(used.ru_utime - before, 3), "hinfo MiB": round(used.ru_maxrss / KIB_PER_MIB)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--groups", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--measure", type=pathlib.Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure)))
        return 0
    from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cluster.data"
        path.write_text(generate(nodes=arguments.nodes, groups=arguments.groups, extags=True, loctags=True).text())
        theirs = measure_hinfo(path)  # first: the memory of children is told as the largest of all so far
        own = subprocess.run([sys.executable, __file__, "--measure", str(path)], capture_output=True, text=True, check=True)
        took = json.loads(own.stdout) | theirs
    print("  ".join(f"{name} {value}" for name, value in took.items()))
    if arguments.json:
        arguments.json.write_text(json.dumps(took))
    missed = [name for name, most in TARGETS.items() if took[name] > most]
    if missed:
        print(f"missed: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
