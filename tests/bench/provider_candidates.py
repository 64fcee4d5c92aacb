# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Allocation candidates beside OpenStack Placement, in one process: CPU seconds of both, and how many times faster we are.

    $(tests/peers/placement-venv) tests/bench/provider_candidates.py [--hosts 5000] [--repeat 3] [--json FILE]

Placement answers through its WSGI application (no HTTP server, no Keystone, SQLite file, warm), we from an index that is loaded once.
`cold` adds, for us, reading everything from a ledger in SQLite and building the index, which is what one task pays; importing libraries
is not in it, since Ansible imports them once. It must not be slower than Placement warm. Exits with 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
from ansible_collections.bareon.allocator.plugins.plugin_utils.provider.candidates.find import SearchOptions, find_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils.provider.candidates.index import build_index
from ansible_collections.bareon.allocator.plugins.plugin_utils.provider.ledger.import_world import store_world
from ansible_collections.bareon.allocator.plugins.plugin_utils.provider.ledger.open import load_world, open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils.provider.request.query import parse_query
from ansible_collections.bareon.allocator.plugins.plugin_utils.provider.world.parse import parse_world
from ansible_collections.bareon.allocator.tests.support.provider import worlds as made
from ansible_collections.bareon.allocator.tests.support.provider.placement_peer import Placement

WORLDS = {"flat": (made.flat_world, made.FLAT_QUERIES), "nested": (made.nested_world, made.NESTED_QUERIES)}
TIMES_FASTER = {
    ("flat", "limited"): 60,
    ("nested", "limited"): 130,
    ("flat", "unlimited"): 15,
    ("nested", "unlimited"): 25,
    ("flat", "none"): 20,
    ("nested", "none"): 1000,
}
LIMIT = 1000
SECONDS_FOR_DEVICES = 0.050


def cpu_seconds(work, repeat):
    """Return (median CPU seconds, the last result); a first run warms up."""
    result = work()
    seconds = []
    for _unused in range(repeat):
        result = None
        start = time.process_time()
        result = work()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds), result


def ask_us(index, query):
    """Parse a query and return its candidates, every mapping of them, as Placement counts."""
    return find_candidates(index, parse_query(query, index.known), SearchOptions(distinct="mappings")).candidates


def class_of(count):
    """Which target holds for a number of candidates: a limit that cuts nothing off is no limit."""
    return "none" if count == 0 else "limited" if count == LIMIT else "unlimited"


def indexed(world, folder):
    """Return (the index of a world that was kept in SQLite, CPU seconds that reading it and building the index take)."""
    url = f"sqlite:///{pathlib.Path(folder) / 'ledger.sqlite'}"
    parsed = parse_world(world)
    with open_ledger(url) as ledger:
        ledger.write(lambda connection: store_world(connection, parsed))
    start = time.process_time()
    index = build_index(load_world(url))
    return index, time.process_time() - start


def compare(peer, name, hosts, repeat):
    """Yield a row for each query on one world, limited and not."""
    make, queries = WORLDS[name]
    world = make(hosts)
    with tempfile.TemporaryDirectory() as folder:
        index, cold = indexed(world, folder)
    peer.load(world)
    for kind, query in queries.items():
        for limit in (f"&limit={LIMIT}", ""):
            ours, candidates = cpu_seconds(lambda query=query, limit=limit: ask_us(index, query + limit), max(repeat, 5))
            theirs, (status, body) = cpu_seconds(lambda query=query, limit=limit: peer.ask_text(query + limit), repeat)
            count = len(json.loads(body)["allocation_requests"]) if status == 200 else None
            target = TIMES_FASTER[name, class_of(len(candidates))]
            yield {
                "world": name,
                "hosts": hosts,
                "query": kind,
                "limit": LIMIT if limit else None,
                "candidates": len(candidates),
                "placement_candidates": count,
                "placement_s": theirs,
                "ours_s": ours,
                "cold_s": cold + ours,
                "times": theirs / ours,
                "target": target,
                "met": theirs / ours >= target and (class_of(len(candidates)) != "limited" or cold + ours <= theirs),
            }


def devices(groups, repeat):
    """Return a row for equal groups on 8 devices."""
    index = build_index(parse_world(made.devices_world(8)))
    ours, candidates = cpu_seconds(lambda: ask_us(index, made.device_groups(groups) + "&limit=1000"), repeat)
    return {
        "world": "8 devices",
        "query": f"{groups} groups",
        "candidates": len(candidates),
        "ours_s": ours,
        "met": ours <= SECONDS_FOR_DEVICES,
    }


def show(row):
    """Print one row."""
    if "placement_s" in row:
        print(
            f"{row['world']:7}{row['hosts']:6} {row['query']:10} limit {row['limit'] or '-':>5} {row['candidates']:6} candidates "
            f"(Placement {row['placement_candidates']:6})  Placement {row['placement_s']:7.3f} s  ours {row['ours_s'] * 1000:8.2f} ms  "
            f"cold {row['cold_s']:5.2f} s  {row['times']:7.0f}x (at least {row['target']}x)  {'met' if row['met'] else 'MISSED'}",
            flush=True,
        )
    else:
        verdict = "met" if row["met"] else "MISSED"
        print(f"{row['world']}, {row['query']}: {row['candidates']} candidates, ours {row['ours_s'] * 1000:.2f} ms  {verdict}")


def main():
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=5000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        peer = Placement(folder)
        for name in WORLDS:
            for row in compare(peer, name, arguments.hosts, arguments.repeat):
                rows.append(row)
                show(row)
    for groups in (6, 9):
        rows.append(devices(groups, arguments.repeat))
        show(rows[-1])
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["met"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
