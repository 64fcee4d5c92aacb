# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Claims a second beside the same six bare statements, on PostgreSQL, MariaDB, Galera and SQLite, in one run.

    .venv/bin/python tests/bench/provider_claims.py [--seconds 1] [--rounds 9] [--database postgresql] [--json FILE]

The servers are those of tests/database, which `make test-databases` installs; of Galera's two nodes all claimers use the same one.
A claim takes two classes from one provider for a new consumer. Bare are a look at the provider, a look at the consumer, and four writes:
the consumer, the provider's generation, the inventories as far as there is room, and the allocations; sent by the driver alone. One
process, 8 processes on providers of their own, and 8 on one provider claim now the one way, now the other, round after round, all of
them from the same moment on; the figure is the median of the rounds' ratios, which other work on the machine hardly moves. Exits with 1
below 0.8 on PostgreSQL, or half on the others.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from functools import partial

ROOT = pathlib.Path(__file__).resolve().parents[2]
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.at_once import make_claims
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.claim_plan import Claim
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.import_world import store_world
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world
from ansible_collections.bareon.allocator.tests.support.provider.servers import galera, mariadb, postgresql

LEAST = {"postgresql": 0.8, "mariadb": 0.5, "galera": 0.5, "sqlite": 0.5}
CLAIMERS = 8
WARM_UP = 10
CASES = {"one alone": (1, False), "8 on own providers": (CLAIMERS, False), "8 on one provider": (CLAIMERS, True)}
CLASSES = ("MEMORY_MB", "VCPU")
UNLIMITED = {"total": 2**31 - 1, "max_unit": 10}
WORLD = {"providers": [{"name": f"host{number}", "inventories": dict.fromkeys(CLASSES, UNLIMITED)} for number in range(CLAIMERS)]}

LOOK = "SELECT id, generation FROM resource_providers WHERE name = {0}"
LOOK_FOR = "SELECT id, generation FROM consumers WHERE uuid = {0}"
MAKE = "INSERT INTO consumers (uuid, generation, project) VALUES ({0}, 1, {0})"
RAISE = "UPDATE resource_providers SET generation = generation + 1 WHERE id = {0}"
COUNT = "UPDATE inventories SET used = used + {0} WHERE provider_id = {0} AND resource_class IN ({0}, {0}) AND used + {0} <= capacity"
TAKE = "INSERT INTO allocations (consumer_id, provider_id, resource_class, used) VALUES ({0}, {0}, {0}, {0}), ({0}, {0}, {0}, {0})"


@contextlib.contextmanager
def claiming_bare(url, host):
    """Yield a function that claims once, with six statements."""
    with open_ledger(url) as ledger, ledger.engine.connect() as opened:
        driver = opened.connection.driver_connection
        kind = ledger.engine.dialect.name
        mark = "?" if kind == "sqlite" else "%s"
        look, look_for, make, bump, count, take = (text.format(mark) for text in (LOOK, LOOK_FOR, MAKE, RAISE, COUNT, TAKE))
        if kind == "postgresql":
            make += " RETURNING id"
        cursor = driver.cursor()

        def claim():
            who = str(uuid.uuid4())
            if kind == "sqlite":
                _begin(cursor)
            cursor.execute(look, (host,))
            number = cursor.fetchone()[0]
            cursor.execute(look_for, (who,))
            assert cursor.fetchone() is None
            cursor.execute(make, (who, "project"))
            consumer = cursor.fetchone()[0] if kind == "postgresql" else cursor.lastrowid
            cursor.execute(bump, (number,))
            cursor.execute(count, (1, number, *CLASSES, 1))
            assert cursor.rowcount == len(CLASSES)
            cursor.execute(take, tuple(value for name in CLASSES for value in (consumer, number, name, 1)))
            driver.commit()

        yield claim


def _begin(cursor):
    while True:
        try:
            cursor.execute("BEGIN IMMEDIATE")
        except Exception:
            time.sleep(random.uniform(0, 0.004))
        else:
            return


@contextlib.contextmanager
def claiming_ours(url, host):
    """Yield a function that does the same by the ledger."""
    amounts = {host: dict.fromkeys(CLASSES, 1)}
    with open_ledger(url, timeout=3600) as ledger:
        yield lambda: make_claims(ledger, [Claim(str(uuid.uuid4()), amounts, "project")])


CLAIMING = {"ours": claiming_ours, "bare": claiming_bare}


def work(url, host):
    """Claim as each line of the input says, `who begin end`; answer with how often, and the seconds of the processor."""
    with contextlib.ExitStack() as opened:
        ways = {who: opened.enter_context(claiming(url, host)) for who, claiming in CLAIMING.items()}
        for claim in ways.values():
            for _unused in range(WARM_UP):
                claim()
        print("ready", flush=True)
        for line in sys.stdin:
            who, begin, end = line.split()
            time.sleep(max(0.0, float(begin) - time.time()))
            print(json.dumps(repeat(ways[who], float(end))), flush=True)


def repeat(claim, end):
    """Call `claim` until a moment; return how often, and the seconds of the processor."""
    done, before = 0, time.process_time()
    while time.time() < end:
        claim()
        done += 1
    return done, time.process_time() - before


@contextlib.contextmanager
def workers(url, claimers, together):
    """Yield so many processes that wait for work."""
    command = [sys.executable, __file__, "--worker", "--url", url, "--host"]
    hosts = [f"host{0 if together else number}" for number in range(claimers)]
    with contextlib.ExitStack() as opened:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        started = [opened.enter_context(subprocess.Popen([*command, host], **pipes)) for host in hosts]
        for process in started:
            assert process.stdout.readline() == "ready\n"
        yield started


def measure(started, who, seconds):
    """Return claims a second of the processes together, and the milliseconds of their processor that one took."""
    begin = time.time() + 0.05
    for process in started:
        process.stdin.write(f"{who} {begin} {begin + seconds}\n")
        process.stdin.flush()
    results = [json.loads(process.stdout.readline()) for process in started]
    done = sum(result[0] for result in results)
    return done / seconds, sum(result[1] for result in results) / max(1, done) * 1000


@contextlib.contextmanager
def server(name):
    """Yield the URL of an empty database."""
    if name == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:///{folder}/ledger.sqlite"
    else:
        with {"postgresql": postgresql, "mariadb": mariadb, "galera": galera}[name]() as opened:
            yield opened if isinstance(opened, str) else opened[0]


def compare(name, seconds, rounds):
    """Measure all cases on one database, print, and return a row for each."""
    rows = []
    with server(name) as url:
        with open_ledger(url) as ledger:
            ledger.write(partial(store_world, world=parse_world(WORLD)))
        for case, (claimers, together) in CASES.items():
            with workers(url, claimers, together) as started:
                pairs = [{who: measure(started, who, seconds) for who in CLAIMING} for _unused in range(rounds)]
            ratio = statistics.median(pair["ours"][0] / pair["bare"][0] for pair in pairs)
            row = {"database": name, "case": case, "ratio": ratio, "least": LEAST[name], "met": ratio >= LEAST[name]}
            for who in CLAIMING:
                row[who] = statistics.median(pair[who][0] for pair in pairs)
                row[f"{who}_ms"] = statistics.median(pair[who][1] for pair in pairs)
            rows.append(row)
            print(
                f"{name:10} {case:18} ours {row['ours']:6.0f}/s ({row['ours_ms']:.2f} ms)  bare {row['bare']:6.0f}/s "
                f"({row['bare_ms']:.2f} ms)  {ratio:.2f} of bare, at least {LEAST[name]}  {'met' if row['met'] else 'MISSED'}",
                flush=True,
            )
        with open_ledger(url) as ledger:
            findings = [finding for finding in ledger.read(audit) if finding.kind != "piece"]
        print(f"{name:10} the audit finds {len(findings) or 'nothing'}", flush=True)
        rows.append({"database": name, "findings": len(findings), "met": not findings})
    return rows


def main():
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--database", choices=list(LEAST), action="append")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--host", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.url, arguments.host)
        return 0
    rows = [row for name in arguments.database or LEAST for row in compare(name, arguments.seconds, arguments.rounds)]
    if arguments.json:
        arguments.json.write_text(json.dumps({"cores": os.cpu_count(), "rows": rows}, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["met"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
