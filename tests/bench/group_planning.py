# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Capacity, maintenance, squeezing, redistribution and compression: CPU seconds of each, beside Ganeti's program where there is one.

    .venv/bin/python tests/bench/group_planning.py [--json FILE]

A peer's time is that of its whole process. Ours is from the text of the cluster to the answer of the action, in a process that has the
libraries loaded. hroller only colours nodes: it neither seeks places for what leaves nor plans moves, and hbal has nothing like
group_redistribute and group_compress, so that those are measured against a bound. Exits with 1 when one is slower than its peer (and
takes longer than a tenth of a second), or than its bound, or comes to less than its peer.
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
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parents[2]
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.libraries import networkx
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.capacity import run_capacity
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.compress import run_compress
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.maintenance import run_maintenance, run_squeeze
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.redistribute import run_redistribute
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

BOUND = 5.0
"""CPU seconds on 40 nodes for what has no peer."""
UNNOTICED = 0.1
"""CPU seconds that nobody waits for: a peer that takes less, whose process counts in hundredths, is no measure of speed."""
DRBD = {"nodes": 40, "n1ok": True, "seed": 3}
SHARED = {"nodes": 40, "n1ok": True, "template": "ext", "seed": 2}
ROOMY_SHARED = {"nodes": 20, "n1ok": True, "template": "ext", "per_node": 2}
ROOMY_PLAIN = {"nodes": 10, "n1ok": True, "template": "plain", "per_node": 2, "seed": 3}
TIERED = {"tiered": True, "score": "htools"}


def sizes(answer):
    """Return how many copies of the standard size, and of all tiers, fit."""
    return [answer["count"], answer["tiered_count"]] if "tiered_count" in answer else [answer["count"]]


def hspace_sizes(printed):
    """Return the same as hspace tells it."""
    told = {name: int(value) for name, value in re.findall(r"HTS_(\w+)=(\d+)\n", printed)}
    tiers = re.search(r"^HTS_TSPEC='?([^'\n]*)", printed, re.MULTILINE)
    return [told["FIN_INST_CNT"] - told["INI_INST_CNT"], sum(int(one) for one in re.findall(r"=(\d+)", tiers[1]))]


def sets(answer):
    """Return how many sets of nodes there are; fewer are better."""
    return [-len(answer["sets"])]


def hroller_sets(printed):
    """Return the same as hroller tells it."""
    return [-len([line for line in printed.splitlines() if line.strip()])]


def moves(answer):
    """Return the number of moves, to be read only."""
    return [len(answer["plan"]["moves"])]


def switched_off(answer):
    """Return how many nodes go off."""
    return [len(answer["power_off"])]


def hsqueeze_switched_off(printed):
    """Return the same as hsqueeze tells it."""
    return [len(set(re.findall(r"gnt-node power -f off (\S+)", printed)))]


@dataclass(frozen=True)
class Case:
    """What is measured. `peer` is the command without the cluster; None where a bound is to be kept. `loads` are made of the cluster."""

    name: str
    cluster: dict
    plan: object
    read: object
    arguments: dict = field(default_factory=dict)
    peer: tuple[str, ...] | None = None
    read_peer: object = None
    loads: object = None


def heavy_first_group(cluster):
    """Return measured loads: instances of the first group cause three times as much as the others."""
    first = {node.name for node in cluster.nodes if node.group == cluster.groups[0].name}
    return {
        instance.name: dict.fromkeys(("cpu", "memory", "disk", "net"), 3.0 if instance.primary in first else 1.0)
        for instance in cluster.instances
    }


def counting(template, *options):
    """Return hspace's command."""
    return ("hspace", "--machine-readable", f"--disk-template={template}", *options)


def spec(template):
    """Return the arguments for the standard size of a policy."""
    return {"spec": {"disk_template": template}}


CASES = (
    Case("capacity, mirrored", DRBD, run_capacity, sizes, spec("drbd") | TIERED, counting("drbd"), hspace_sizes),
    Case(
        "capacity, plain, 10 nodes",
        ROOMY_PLAIN,
        run_capacity,
        sizes,
        spec("plain") | TIERED,
        counting("plain", "--no-capacity-checks"),
        hspace_sizes,
    ),
    Case("capacity, shared storage", SHARED, run_capacity, sizes, spec("ext") | {"score": "htools"}),
    Case(
        "maintenance, nodes only",
        DRBD,
        run_maintenance,
        sets,
        {"offline_maintenance": True},
        ("hroller", "--no-headers", "--offline-maintenance"),
        hroller_sets,
    ),
    Case("maintenance", DRBD, run_maintenance, sets),
    Case("maintenance, full evacuation", DRBD, run_maintenance, sets, {"full_evacuation": True}),
    Case("maintenance, full, shared storage", SHARED, run_maintenance, sets, {"full_evacuation": True}),
    Case("squeezing", ROOMY_SHARED, run_squeeze, switched_off, {"redundant": False}, ("hsqueeze", "-C"), hsqueeze_switched_off),
    Case("squeezing, restarts kept", ROOMY_SHARED, run_squeeze, switched_off),
    Case("redistribution", {"nodes": 40, "groups": 2, "offline": 2, "n1ok": True}, run_redistribute, moves),
    Case(
        "redistribution by load",
        {"nodes": 40, "groups": 2, "template": "ext", "per_node": 5},
        run_redistribute,
        moves,
        {"by": "load"},
        loads=heavy_first_group,
    ),
    Case("compression", {"nodes": 40, "groups": 4, "per_node": 8, "n1ok": True}, run_compress, moves),
    Case("compression, shared storage", {"nodes": 40, "groups": 4, "per_node": 5, "template": "ext"}, run_compress, moves),
)


def peer_seconds(text, command):
    """Return the CPU seconds of a peer's process, and what it prints."""
    with tempfile.NamedTemporaryFile("w", suffix=".data") as file:
        file.write(text)
        file.flush()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run([*command, "-t", file.name], capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, run.stdout


def measured(case):
    """Return a row: times, what both come to, and whether the target is met."""
    text = generate(**case.cluster).text()
    measured_loads = {"load": case.loads(parse_text(text))} if case.loads else {}
    started = time.process_time()
    answer = case.plan(Loaded(parse_text(text), {}), case.arguments | measured_loads)
    ours = time.process_time() - started
    row = {"name": case.name, "ours": ours, "found": case.read(answer)}
    if case.peer is None:
        return row | {"bound": BOUND, "met": ours <= BOUND}
    theirs, printed = peer_seconds(text, case.peer)
    found = case.read_peer(printed)
    as_good = all(mine >= other for mine, other in zip(row["found"], found))
    return row | {
        "peer": case.peer[0],
        "theirs": theirs,
        "times": theirs / ours,
        "their_found": found,
        "met": as_good and ours <= max(theirs, UNNOTICED),
    }


def told(row):
    """Return a line of the table."""
    target = f"{row['peer']} {row['theirs']:.2f} s ({row['times']:.1f})" if "peer" in row else f"bound {row['bound']:.1f} s"
    found = f"{row['found']}" + (f" / {row['their_found']}" if "peer" in row else "")
    return f"{row['name']:36}{row['ours']:8.2f} s   {target:28}{found:32}{'' if row['met'] else 'missed'}"


def main():
    """Print a row for each case, and tell by the exit status whether every target is met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    # What is first needed is loaded then, which is no part of what is measured.
    networkx.Graph()
    rows = []
    for case in CASES:
        rows.append(measured(case))
        print(told(rows[-1]).rstrip(), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    missed = [row["name"] for row in rows if not row["met"]]
    print("missed:", ", ".join(missed) or "nothing")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
