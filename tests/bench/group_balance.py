# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Balancing beside Ganeti's hbal: CPU seconds of both, how many times faster we are, and what both come to.

    .venv/bin/python tests/bench/group_balance.py [--full] [--large] [--json FILE]

hbal's time is that of its whole process, of which reading the cluster is a few hundredths of a second. Ours is that of planning from the
model to the ordered plan. `step` is the first move of 100 nodes. `moves` compares hbal's first ten moves of 40 nodes with ours in its
manner. With --full hbal runs to its end on several kinds of clusters of 40 nodes, which takes it up to ten minutes of CPU each, and is
compared with our whole plan at default settings: that must end at a score no worse with at least 15 % less data copied, or at a better one
with no more data. With --large 400 nodes with 4000 instances, and 1000 nodes with 10000 in one group, are planned at default settings; hbal
would take weeks. Exits with 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.group import Assignment, plan_group
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.hbal import HbalOptions, steps_like_hbal
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.model import BalanceOptions
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

STEP_TIMES, MOVES_TIMES, WHOLE_TIMES = 300, 100, 100
MOST_SECONDS = {400: 90.0, 1000: 600.0}
FORTY = {"nodes": 40, "n1ok": True, "memscale": 2.2, "homog": True}
WHOLE = {
    "drbd, failing N+1": {},
    "drbd": {"n1ok": True},
    "drbd, nearly full": {"n1ok": True, "memscale": 2.2, "homog": True},
    "drbd, offline": {"offline": 2},
    "shared": {"template": "ext"},
    "mixed, tags": {"template": "mixed", "extags": True, "loctags": True},
}


def hbal(text, *options):
    """Return hbal's CPU seconds, and of each of its moves the instance, the nodes and the score."""
    with tempfile.NamedTemporaryFile("w", suffix=".data") as file:
        file.write(text)
        file.flush()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = ["hbal", "-t", file.name, "-v", "-v", "-v", *options]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    moves = re.findall(r"^ +\d+\. (\S+) +\S+ +=> (\S+) +([\d.]+) a=", run.stdout, re.MULTILINE)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, moves


def cpu_seconds(work):
    """Return (CPU seconds, the result)."""
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def like_hbal(text, most):
    """Return our CPU seconds for as many moves in hbal's manner, and the moves; the best of three."""
    state = ClusterState.from_cluster(parse_text(text))
    tries = [cpu_seconds(lambda: list(steps_like_hbal(state.copy(), 0, HbalOptions(max_moves=most)))) for _try in range(3)]
    return min(tries, key=lambda one: one[0])


def compare_moves(name, arguments, most, times):
    """Return a row for the first moves of a cluster, which must be the same."""
    text = generate(**arguments).text()
    theirs, moves = hbal(text, "-l", str(most))
    ours, steps = like_hbal(text, most)
    same = [round(step.score, 6) for step in steps] == [round(float(score), 6) for _instance, _nodes, score in moves]
    return {"name": name, "hbal": theirs, "ours": ours, "times": theirs / ours, "same": same, "met": same and theirs / ours >= times}


def compare_whole(name):
    """Return a row for balancing 40 nodes of a kind to the end at default settings."""
    text = generate(nodes=40, **WHOLE[name]).text()
    cluster = parse_text(text)
    theirs, moves = hbal(text)
    ours, found = cpu_seconds(lambda: plan_group(Assignment(cluster, 0, BalanceOptions())))
    alike, copied = cpu_seconds(lambda: plan_group(Assignment(cluster, 0, HbalOptions())))
    score = float(moves[-1][2])
    same = abs(copied.score_after - score) < 1e-6 and len(copied.plan.moves) == len(moves)
    better = found.score_after < score and found.data <= copied.data
    less = found.score_after <= score and found.data <= 0.85 * copied.data
    row = {"name": f"whole, {name}", "hbal": theirs, "hbal_moves": len(moves), "like_hbal": alike, "same": same}
    row |= {"ours": ours, "times": theirs / ours, "hbal_score": score, "score": found.score_after}
    row |= {"hbal_gib": copied.data / 1024, "gib": found.data / 1024}
    return row | {"met": same and (better or less) and not found.blocked and theirs / ours >= WHOLE_TIMES}


def large(nodes):
    """Return a row for a group of many nodes with ten instances each at default settings."""
    cluster = parse_text(generate(nodes=nodes, n1ok=True).text())
    ours, found = cpu_seconds(lambda: plan_group(Assignment(cluster, 0, BalanceOptions())))
    row = {"name": f"{nodes} nodes", "ours": ours, "score_before": found.score_before, "score": found.score_after}
    return row | {"moves": len(found.plan.moves), "gib": found.data / 1024, "met": ours <= MOST_SECONDS[nodes]}


def measured(full, with_large):
    """Give a row for each comparison as it is made: some of them take hbal many minutes."""
    yield compare_moves("step, 100 nodes", {"nodes": 100, "n1ok": True}, 1, STEP_TIMES)
    yield compare_moves("10 moves, 40 nodes", FORTY, 10, MOVES_TIMES)
    yield from (compare_whole(name) for name in WHOLE if full)
    yield from (large(nodes) for nodes in MOST_SECONDS if with_large)


def main():
    """Print a row for each comparison, and tell by the exit status whether every target is met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    rows = []
    for row in measured(options.full, options.large):
        print("  ".join(f"{key} {value:.3f}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()), flush=True)
        rows.append(row)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    missed = [row["name"] for row in rows if not row["met"]]
    print("missed:", ", ".join(missed) or "nothing")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
