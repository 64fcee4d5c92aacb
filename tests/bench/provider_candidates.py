# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Allocation candidates beside OpenStack Placement, in one process: CPU seconds of both, and how many times faster we are.

    $(tests/peers/placement-venv) tests/bench/provider_candidates.py [--hosts 5000] [--repeat 3] [--json FILE]

Placement answers through its WSGI application (no HTTP server, no Keystone, SQLite file, warm). With a limit, we answer as one task does:
the ledger is opened, read as far as it must be, and searched, all of it counted; importing libraries is not in it, since Ansible imports
them once. A claim by request is one task, too, and two requests to Placement: a search with limit 1, and a PUT. Without a limit, and where
there is nothing to find, an index answers that holds everything already, as a world given inline is searched; `cold` adds reading all of
the ledger and building that index. Exits with 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time
import uuid
from functools import partial

ROOT = pathlib.Path(__file__).resolve().parents[2]
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.arguments import REQUEST_ARGUMENTS
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.find import SearchOptions, find_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.index import build_index
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.import_world import store_world
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import load_world, open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.query import parse_query
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.allocation import run_provider_allocation
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.candidates import run_provider_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world
from ansible_collections.bareon.allocator.tests.support.provider import worlds as made
from ansible_collections.bareon.allocator.tests.support.provider.placement_peer import Placement

ANYTHING = {name: option.get("default") for name, option in REQUEST_ARGUMENTS.items()}
WORLDS = {"flat": (made.flat_world, made.FLAT_QUERIES), "nested": (made.nested_world, made.NESTED_QUERIES)}
TIMES_FASTER = {
    ("flat", "limit 1"): 20,
    ("nested", "limit 1"): 20,
    ("flat", "limit 1000"): 5,
    ("nested", "limit 1000"): 5,
    ("flat", "claim"): 20,
    ("nested", "claim"): 20,
    ("flat", "unlimited"): 15,
    ("nested", "unlimited"): 25,
    ("flat", "none"): 20,
    ("nested", "none"): 1000,
}
LIMITS = (1, 1000)
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


def ask_ledger(url, query, limit):
    """Do what one task does, from opening the ledger to its result."""
    asked = {**ANYTHING, "database": url, "world": None, "timeout": 60.0, "query": query, "limit": limit}
    return run_provider_candidates({**asked, "distinct": "mappings", "explain_below": 0, "summaries": False})["candidates"]


def claim_ours(url, query):
    """Do what one task does that claims what a request asks for, for a new consumer."""
    nothing = (
        "allocations",
        "generations",
        "candidates",
        "inventories",
        "consumers",
        "project",
        "user",
        "consumer_type",
        "consumer_generation",
    )
    asked = {
        **dict.fromkeys(nothing),
        "consumer": str(uuid.uuid4()),
        "state": "present",
        "retries": 40,
        "request": {**ANYTHING, "query": query},
    }
    assert run_provider_allocation({**asked, "database": url, "world": None, "timeout": 60.0}, dry_run=False)["changed"]
    return ["claimed"]


def claim_placement(peer, query):
    """Have Placement find one candidate and take it; return its answer to the search."""
    status, body = peer.ask_text(f"{query}&limit=1")
    (found,) = json.loads(body)["allocation_requests"]
    allocations = {provider: entry["resources"] for provider, entry in found["allocations"].items()}
    assert peer.claim(str(uuid.uuid4()), allocations) == 204
    return status, body


def stored(world, folder):
    """Return the URL of a ledger that holds a world."""
    url = f"sqlite:///{pathlib.Path(folder) / 'ledger.sqlite'}"
    parsed = parse_world(world)
    with open_ledger(url) as ledger:
        ledger.write(lambda connection: store_world(connection, parsed))
    return url


def compare(peer, name, hosts, repeat):
    """Yield a row for each query on one world, limited and not."""
    make, queries = WORLDS[name]
    world = make(hosts)
    peer.load(world)
    with tempfile.TemporaryDirectory() as folder:
        url = stored(world, folder)
        start = time.process_time()
        index = build_index(load_world(url))
        loading = time.process_time() - start
        for kind, query in queries.items():
            for limit in LIMITS if kind != "zero" else ():
                ours, candidates = cpu_seconds(partial(ask_ledger, url, query, limit), max(repeat, 5))
                theirs, answer = cpu_seconds(partial(peer.ask_text, f"{query}&limit={limit}"), repeat)
                yield row_of(name, hosts, kind, limit, candidates, answer, theirs, ours, ours, f"limit {limit}")
            ours, candidates = cpu_seconds(partial(ask_us, index, query), max(repeat, 5))
            theirs, answer = cpu_seconds(partial(peer.ask_text, query), repeat)
            yield row_of(name, hosts, kind, None, candidates, answer, theirs, ours, loading + ours, "unlimited" if candidates else "none")
        for kind, query in queries.items():
            if kind != "zero":
                ours, candidates = cpu_seconds(partial(claim_ours, url, query), max(repeat, 5))
                theirs, answer = cpu_seconds(partial(claim_placement, peer, query), repeat)
                yield row_of(name, hosts, kind, "claim", candidates, answer, theirs, ours, ours, "claim")


def row_of(name, hosts, kind, limit, candidates, answer, theirs, ours, cold, target):
    """Return one row, in seconds."""
    status, body = answer
    return {
        "world": name,
        "hosts": hosts,
        "query": kind,
        "limit": limit,
        "candidates": len(candidates),
        "placement_candidates": len(json.loads(body)["allocation_requests"]) if status == 200 else None,
        "placement_s": theirs,
        "ours_s": ours,
        "cold_s": cold,
        "times": theirs / ours,
        "target": TIMES_FASTER[name, target],
        "met": theirs / ours >= TIMES_FASTER[name, target],
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
