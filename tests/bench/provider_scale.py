# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A large ledger, cold, as a task meets it: milliseconds from the start of reading to the result, each in a new process.

    .venv/bin/python tests/bench/provider_scale.py [--providers 1000000] [--shapes flat nested] [--database URL] [--json FILE]

A made-up fleet is written by the import of worlds (an SQLite file by default; give an empty database of PostgreSQL or MariaDB else, and
one shape, as a database holds one fleet).
Each question is then asked by a process of its own, whose imports are not counted: Ansible has made them before it forks. Exits with 1
when a target is missed, which are those for a million providers.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from functools import partial
from itertools import chain

from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.arguments import REQUEST_ARGUMENTS
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.import_world import store_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.allocation import run_provider_allocation
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.candidates import run_provider_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.info import look_up_usages
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.model import Inventory, Provider
from ansible_collections.bareon.allocator.tests.support.provider.worlds import made_uuid

ZONES = [made_uuid(f"zone{number}") for number in range(3)]
ANYTHING = {name: option.get("default") for name, option in REQUEST_ARGUMENTS.items()}
FLAT = {"groups": {"": {"resources": {"VCPU": 2, "MEMORY_MB": 4096}, "required": ["HW_CPU_X86_AVX2"], "member_of": [ZONES[0]]}}}
NUMA = {"resources": {"VCPU": 2, "MEMORY_MB": 4096}}
NESTED = {
    "groups": {"N": NUMA, "V1": {"resources": {"SRIOV_NET_VF": 1}}, "V2": {"resources": {"SRIOV_NET_VF": 1}}},
    "group_policy": "isolate",
}
BOTH = {"groups": {"": {"resources": {"CUSTOM_EVEN": 1, "CUSTOM_ODD": 1}}}}
QUESTIONS = {
    "limit 1": (0.020, {"limit": 1}),
    "limit 1000": (0.300, {"limit": 1000}),
    "rare trait, limit 1": (0.150, {"limit": 1, "groups": {"": {"resources": {"VCPU": 2}}}, "root_required": ["CUSTOM_RARE"]}),
    "one class impossible": (0.150, {"limit": 1, "groups": {"": {"resources": {"VCPU": 100000, "MEMORY_MB": 1}}}}),
    "jointly impossible": (1.000, {"limit": 1, **BOTH}),
    "one provider": (0.010, None),
    "claim by request": (0.050, {}),
}
MEGABYTES = 150


def flat(number):
    """Yield one host."""
    inventories = {"VCPU": _VCPU, "MEMORY_MB": _MEMORY, "CUSTOM_ODD" if number % 2 else "CUSTOM_EVEN": _ONE}
    yield Provider(made_uuid(f"host{number}"), f"host{number:07}", None, inventories, _traits(number), frozenset([ZONES[number % 3]]))


def nested(number):
    """Yield one host of five providers."""
    name = f"host{number:07}"
    root = made_uuid(name)
    own = {"DISK_GB": _DISK, "CUSTOM_ODD" if number % 2 else "CUSTOM_EVEN": _ONE}
    yield Provider(root, name, None, own, _traits(number), frozenset([ZONES[number % 3]]))
    for child in range(2):
        yield Provider(made_uuid(f"{name} numa{child}"), f"{name} numa{child}", root, {"VCPU": _VCPU, "MEMORY_MB": _MEMORY}, _NUMA_TRAITS)
        yield Provider(made_uuid(f"{name} nic{child}"), f"{name} nic{child}", root, {"SRIOV_NET_VF": _VFS})


SHAPES = {"flat": (flat, 1, FLAT), "nested": (nested, 5, NESTED)}
_VCPU, _MEMORY, _DISK, _VFS, _ONE = (
    Inventory(32, allocation_ratio=4.0),
    Inventory(131072, reserved=512),
    Inventory(2000),
    Inventory(8),
    Inventory(1),
)
_NUMA_TRAITS = frozenset(["HW_NUMA_ROOT"])


def _traits(number):
    return frozenset([*(["HW_CPU_X86_AVX2"] if number % 3 == 0 else []), *(["CUSTOM_RARE"] if number % 10_000 == 777 else [])])


def fill(url, shape, count):
    """Write a fleet of so many providers."""
    make, each, _request = SHAPES[shape]
    with open_ledger(url, timeout=3600) as ledger:
        ledger.write(lambda connection: store_providers(connection, chain.from_iterable(map(make, range(count // each)))))
        if ledger.engine.dialect.name != "sqlite":
            tables = ("resource_providers", "inventories", "provider_traits", "provider_aggregates")
            analyse = "ANALYZE {}" if ledger.engine.dialect.name == "postgresql" else "ANALYZE TABLE {}"
            for table in tables:
                ledger.write(lambda connection, table=table: connection.exec_driver_sql(analyse.format(table)))


def ask(url, shape, question):
    """Ask one question in this process; return milliseconds, megabytes and what was found."""
    asked = QUESTIONS[question][1]
    database = {"database": url, "world": None, "timeout": 60.0}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, spent = time.perf_counter(), time.process_time()
    if question == "one provider":
        name = "host0000777"
        found = len(look_up_usages([name], url))
    elif question == "claim by request":
        request = {**ANYTHING, **SHAPES[shape][2]}
        whose = ("project", "user", "consumer_type", "consumer_generation")
        owned = dict.fromkeys((*whose, "allocations", "generations", "candidates", "inventories", "consumers"))
        arguments = {**database, **owned, "consumer": str(uuid.uuid4()), "state": "present", "retries": 40, "request": request}
        found = int(run_provider_allocation(arguments, dry_run=False)["changed"])
    else:
        found = len(run_provider_candidates({**database, **ANYTHING, **SHAPES[shape][2], **asked, "summaries": False})["candidates"])
    seconds, spent = time.perf_counter() - start, time.process_time() - spent
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"ms": seconds * 1000, "cpu_ms": spent * 1000, "mb": peak / 1024, "mb_before": before / 1024, "found": found}


def measure(url, shape, repeat):
    """Yield a row for each question, the median of some processes."""
    for question, (target, _arguments) in QUESTIONS.items():
        command = [sys.executable, __file__, "--database", url, "--shapes", shape, "--ask", question]
        # What names the ledger for a whole play has its driver loaded before Ansible forks.
        asking = partial(subprocess.run, command, check=True, capture_output=True, text=True, env={**os.environ, "BAREON_DATABASE": url})
        runs = [json.loads(asking().stdout) for _unused in range(repeat)]
        middle = sorted(runs, key=lambda run: run["ms"])[len(runs) // 2]
        yield {"shape": shape, "question": question, **middle, "met": middle["ms"] <= target * 1000 and middle["mb"] <= MEGABYTES}


def show(row):
    """Print one row."""
    print(
        f"{row['shape']:7} {row['question']:22} {row['ms']:9.1f} ms  processor {row['cpu_ms']:7.1f} ms  {row['mb']:4.0f} MB "
        f"({row['mb_before']:.0f} before)  {row['found']:5} found  {'met' if row['met'] else 'MISSED'}",
        flush=True,
    )


def main():
    """Fill, measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--providers", type=int, default=1_000_000)
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--database", help="an empty database; by default an SQLite file that is removed afterwards")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--filled", action="store_true", help="the database holds the fleet already")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--ask", choices=list(QUESTIONS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ask:
        print(json.dumps(ask(arguments.database, arguments.shapes[0], arguments.ask)))
        return 0
    if arguments.database and len(arguments.shapes) > 1:
        parser.error("--database holds one fleet: name one of --shapes flat nested, and another empty database for the other")
    rows = []
    for shape in arguments.shapes:
        with tempfile.TemporaryDirectory() as folder:
            url = arguments.database or f"sqlite:///{folder}/ledger.sqlite"
            if not arguments.filled:
                start = time.perf_counter()
                subprocess.run([sys.executable, "-c", _FILL, url, shape, str(arguments.providers)], check=True)
                print(f"{shape}: {arguments.providers} providers written in {time.perf_counter() - start:.0f} s", flush=True)
            for row in measure(url, shape, arguments.repeat):
                rows.append(row)
                show(row)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["met"] for row in rows) else 1


_FILL = f"import runpy, sys; bench = runpy.run_path({__file__!r}); bench['fill'](sys.argv[1], sys.argv[2], int(sys.argv[3]))"


if __name__ == "__main__":
    sys.exit(main())
