# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fair plans beside the seed's program: CPU milliseconds of both, and how many times as long a plan takes.

    PYTHONPATH=.venv/collections .venv/bin/python tests/bench/disk_plan.py [--repeat 15] [--json FILE]     (`make bench` runs it, too)

`program` is one call of scipy.optimize.linprog on the seed's program with dense rows; building these rows is not counted.
`solve` is our solver from models to models; `plan` is all of a plan: facts and schema read and checked, expressions
evaluated, solved, converted. `cold` is the first plan of a process that has just started, its imports apart (they are paid
once per playbook). Without preferences a plan has minimums only; with them every fourth space is best with the ssds, by an expression.
Ratios are to `program`, times medians of CPU time. Exits with 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES = ((1, 5), (4, 10), (8, 10), (12, 20), (24, 20), (60, 5), (60, 20), (60, 40))
QUERY = 'yaql=$.disks.where($.type = "ssd")'


def facts_of(disks):
    """Return a machine with disks of different sizes, every second an ssd (the only one of a single disk is none)."""
    random = np.random.default_rng(disks)
    sizes = random.integers(900_000, 8_000_000, disks).tolist()
    kinds = ["hdd", "ssd"]
    return {
        "ram": 65536,
        "disks": [{"id": f"disk-{at:02}", "dev": f"/dev/disk{at}", "type": kinds[at % 2], "size": size} for at, size in enumerate(sizes)],
    }


def schema_of(spaces, *, preferences):
    """Return a schema with minimums; with preferences every fourth space is best with the ssds."""
    random = np.random.default_rng(spaces)
    schema = [{"id": f"space-{at:02}", "type": "lv", "min_size": int(random.integers(1_000, 40_000))} for at in range(spaces)]
    if preferences:
        for space in schema[::4]:
            space["best_with_disks"] = QUERY
    return schema


def liked_cells(facts, schema):
    """Return (S, D) the disks that the query of a space names."""
    ssds = [disk["type"] == "ssd" for disk in facts["disks"]]
    return np.array([ssds if "best_with_disks" in space else [False] * len(ssds) for space in schema])


def models_of(facts, schema):
    """Return machine and schema as our solver takes them, with expressions evaluated."""
    from ansible_collections.bareon.allocator.tests.support.disk.build import hardware_of, schema_of

    hardware = hardware_of(*(disk["size"] for disk in facts["disks"]))
    ssds = [f"d{at}" for at, disk in enumerate(facts["disks"]) if disk["type"] == "ssd"]
    return hardware, schema_of(hardware, *(space | {"best_with_disks": ssds} if "best_with_disks" in space else space for space in schema))


def seed_program_of(facts, schema):
    """Return the arguments of linprog for the seed's program with dense rows, laid out disk by disk as in the original."""
    liked = liked_cells(facts, schema)
    spaces, disks = liked.shape
    wide = spaces + 1
    of_space = np.tile(np.eye(wide), (1, disks))
    of_disk = np.kron(np.eye(disks), np.ones((1, wide)))
    term = np.arange(2, wide * disks + 2)
    worth = (1 / ((term + 1) // 2 * ((term + 2) // 2))).reshape(disks, wide)
    suits = np.where(liked.any(axis=1)[:, None], liked, ~liked.any(axis=0)[None, :])
    worth[:, :spaces] += 2 * suits.T
    worth[:, spaces] = 1
    low = np.array([space["min_size"] for space in schema] + [0], dtype=float)
    size = np.array([disk["size"] for disk in facts["disks"]], dtype=float)
    return {"c": -worth.ravel(), "A_ub": np.vstack([of_disk, -of_space]), "b_ub": np.concatenate([size, -low])}


def cpu_ms(work, repeat):
    """Return the median CPU milliseconds of `repeat` samples; short work is repeated within a sample. A first run warms up."""
    start = time.process_time()
    work()
    within = max(1, min(50, int(0.01 / max(1e-5, time.process_time() - start))))
    samples = []
    for _unused in range(repeat):
        start = time.process_time()
        for _unused in range(within):
            work()
        samples.append((time.process_time() - start) / within)
    return 1000 * statistics.median(samples)


def measure_cold(disks, spaces, *, preferences):
    """Return the milliseconds of imports and of the first plan in a process that has just started."""
    command = [sys.executable, __file__, "--cold", f"{disks}x{spaces}", *(["--preferences"] if preferences else [])]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def cold(disks, spaces, *, preferences):
    """Import the planner, plan once, and print the milliseconds of both."""
    facts, schema = facts_of(disks), schema_of(spaces, preferences=preferences)
    start = time.process_time()
    from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner

    imported = time.process_time()
    Planner(schema).plan(facts)
    planned = time.process_time()
    print(json.dumps({"import": 1000 * (imported - start), "plan": 1000 * (planned - imported)}))


def measure(disks, spaces, repeat, *, preferences):
    """Return one row of the table."""
    from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.fair.solve import allocate_fair
    from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
    from scipy.optimize import linprog

    facts, schema = facts_of(disks), schema_of(spaces, preferences=preferences)
    models = models_of(facts, schema)
    rows = seed_program_of(facts, schema)
    program = cpu_ms(lambda: linprog(**rows), repeat)
    solve = cpu_ms(lambda: allocate_fair(*models), repeat)
    # A planner knows the answers it has given, so every plan is asked of a new one.
    plan = cpu_ms(lambda: Planner(schema).plan(facts), repeat)
    first = measure_cold(disks, spaces, preferences=preferences)
    return {
        "disks": disks,
        "spaces": spaces,
        "preferences": preferences,
        "program": program,
        "solve": solve,
        "plan": plan,
        "cold_import": first["import"],
        "cold_plan": first["plan"],
        "solve_ratio": solve / program,
        "plan_ratio": plan / program,
        "target": target(disks, preferences=preferences),
    }


def target(disks, *, preferences):
    """Return how many times as long as the seed's program a plan may take."""
    if not preferences:
        return 1.0
    return 8.0 if disks >= 24 else 20.0


def table(rows):
    """Return the rows as text."""
    head = (
        f"{'disks':>5} {'spaces':>6} {'prefs':>5} | {'program':>8} | {'solve':>8} {'ratio':>6} | {'plan':>8} {'ratio':>6} |"
        f" {'target':>6} | {'cold: import':>12} {'plan':>7}"
    )
    lines = [head, "-" * len(head)]
    for row in rows:
        missed = " missed" if row["plan_ratio"] > row["target"] else ""
        lines.append(
            f"{row['disks']:>5} {row['spaces']:>6} {'yes' if row['preferences'] else 'no':>5} | {row['program']:>8.2f} |"
            f" {row['solve']:>8.3f} {row['solve_ratio']:>6.2f} | {row['plan']:>8.2f} {row['plan_ratio']:>6.2f} | {row['target']:>6.1f} |"
            f" {row['cold_import']:>12.0f} {row['cold_plan']:>7.2f}{missed}"
        )
    return "\n".join([*lines, "milliseconds of CPU time; ratios to `program`"])


def main():
    """Measure all sizes; return 1 when a plan takes longer than its target."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--cold", metavar="DxS", help=argparse.SUPPRESS)
    parser.add_argument("--preferences", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cold:
        cold(*map(int, options.cold.split("x")), preferences=options.preferences)
        return 0
    rows = [measure(*size, options.repeat, preferences=preferences) for preferences in (False, True) for size in SIZES]
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return int(any(row["plan_ratio"] > row["target"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
