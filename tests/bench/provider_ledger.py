# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Claims a second on SQLite beside OpenStack Placement, in one run.

    $(tests/peers/placement-venv) tests/bench/provider_ledger.py [--seconds 6] [--json FILE]

Both claim two classes for new consumers from one provider, first one claimer alone, then 8 processes at once. Placement runs in process
(no HTTP server, no Keystone) with its own settings for SQLite, which wait for the disk at every commit; ours waits at every checkpoint
of the write-ahead log, and `no sync` never. Both comparisons are printed, and the processor's time, which other load hardly changes.
The rate counts the claims that were granted; what was answered otherwise is counted beside it. Exits with 1 when the target is missed:
50 times Placement's rate with one claimer, where both do nothing but claim. With 8 on few processors it is the machine that is
measured.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from functools import partial

ROOT = pathlib.Path(__file__).resolve().parents[2]
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claim_plan import Claim
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.import_world import store_world
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world
from ansible_collections.bareon.allocator.tests.support.provider.placement_peer import Placement

TIMES_FASTER = 50
CLAIMERS = 8
PROVIDER = "11111111-2222-4333-8444-555555555555"
AMOUNTS = {PROVIDER: {"VCPU": 1, "MEMORY_MB": 1}}
UNLIMITED = {"total": 2**31 - 1, "reserved": 0, "min_unit": 1, "max_unit": 10, "step_size": 1, "allocation_ratio": 1.0}
WORLD = {
    "providers": [
        {
            "uuid": PROVIDER,
            "name": "host",
            "parent": None,
            "inventories": {"VCPU": UNLIMITED, "MEMORY_MB": UNLIMITED},
            "traits": [],
            "aggregates": [],
        }
    ]
}


def ours(folder, load):
    """Return the database's URL, filled when asked to."""
    url = f"sqlite:///{folder}/ledger.sqlite"
    if load:
        with open_ledger(url) as ledger:
            ledger.write(partial(store_world, world=parse_world(WORLD)))
    return url


def claim_ours(folder, seconds):
    """Claim for so many seconds; return answers and the seconds of each."""
    with open_ledger(ours(folder, load=False)) as ledger:

        def claim():
            try:
                make_claims(ledger, [Claim(str(uuid.uuid4()), AMOUNTS, "project", "user")])
            except NoSolution:
                return "refused"
            return "granted"

        return repeat_claim(claim, seconds)


def claim_placement(folder, seconds, synchronous):
    """The same by Placement; its answers by HTTP status."""
    peer = Placement(folder, synchronous)

    def claim():
        status = peer.claim(str(uuid.uuid4()), AMOUNTS)
        return "granted" if status == 204 else f"HTTP {status}"

    return repeat_claim(claim, seconds)


def repeat_claim(claim, seconds):
    """Call `claim` for so many seconds, after one call to warm up."""
    claim()
    answers, took = collections.Counter(), []
    end, before = time.perf_counter() + seconds, time.process_time()
    while (start := time.perf_counter()) < end:
        answers[claim()] += 1
        took.append(time.perf_counter() - start)
    spent = (time.process_time() - before) / len(took)
    return {"answers": answers, "median_s": statistics.median(took), "worst_s": max(took), "cpu_s": spent}


CLAIMING = {
    "ours": claim_ours,
    "placement": partial(claim_placement, synchronous=True),
    "placement, no sync": partial(claim_placement, synchronous=False),
}


def measure(who, claimers, seconds):
    """Return a row: claims that so many processes were granted in all, on a database of their own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--folder", folder, "--seconds", str(seconds), "--worker", who]
        subprocess.run([*command, "--load"], check=True)
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _unused in range(claimers)]
        results = [json.loads(process.communicate()[0]) for process in started]
        with open_ledger(ours(folder, load=False)) as ledger:
            findings = ledger.read(audit)
    answers = collections.Counter()
    for result in results:
        answers.update(result["answers"])
    return {
        "who": who,
        "claimers": claimers,
        "claims_per_s": answers["granted"] / seconds,
        "median_ms": statistics.median(result["median_s"] for result in results) * 1000,
        "cpu_ms": statistics.mean(result["cpu_s"] for result in results) * 1000,
        "worst_ms": max(result["worst_s"] for result in results) * 1000,
        "otherwise": {answer: count for answer, count in answers.items() if answer != "granted"},
        "findings": len(findings),
    }


def show(row):
    """Print one row."""
    print(
        f"{row['who']:18} {row['claimers']} claimers  {row['claims_per_s']:8.1f} claims/s  median {row['median_ms']:7.2f} ms  "
        f"worst {row['worst_ms']:7.0f} ms  processor {row['cpu_ms']:6.2f} ms  otherwise {row['otherwise'] or '-'}",
        flush=True,
    )


def compare(seconds):
    """Measure everybody, print, and return the rows with our target met or missed."""
    rows = []
    for claimers in (1, CLAIMERS):
        rates = {}
        for who in CLAIMING:
            row = measure(who, claimers, seconds)
            rates[who] = row["claims_per_s"]
            rows.append(row)
            show(row)
        times = rates["ours"] / max(rates["placement"], 1e-9)
        clean = not rows[-len(CLAIMING)]["otherwise"] and not rows[-len(CLAIMING)]["findings"]
        least = TIMES_FASTER if claimers == 1 else 1
        unsynced = rates["ours"] / max(rates["placement, no sync"], 1e-9)
        rows.append({"claimers": claimers, "times": times, "times_no_sync": unsynced, "met": times >= least and clean})
        says = "met" if rows[-1]["met"] else "MISSED"
        print(
            f"{times:.0f} times Placement's with {claimers} claimers (at least {least}, without any error)  {says}; "
            f"{unsynced:.0f} times when it never waits for the disk",
            flush=True,
        )
    return rows


def work(who, folder, seconds, load):
    """One process of `measure`."""
    if not load:
        print(json.dumps(CLAIMING[who](folder, seconds)))
    elif who == "ours":
        ours(folder, load=True)
    else:
        Placement(folder).load(WORLD)


def main():
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--worker", choices=list(CLAIMING), help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--load", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.worker, arguments.folder, arguments.seconds, arguments.load)
        return 0
    rows = compare(arguments.seconds)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row.get("met", True) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
