# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What planning a fleet costs inside Ansible: CPU seconds of whole playbook runs, parent and workers.

    PYTHONPATH=.venv/collections .venv/bin/python tests/bench/disk_fleet.py [--hosts 10000] [--files 1000] [--each 200]

`fleet` plans all hosts, of 20 shapes, in one task; the cost per host is that of the run less a run of the same inventory
with a debug in the place of the plan. `files` is the same with `plans_to`, so that files carry the plans and not the result.
`each` plans host by host; the cost of a host is what the run grows by from a tenth of the hosts to all of them, less what a run of
ansible.builtin.debug grows by, so that imports, which are paid once, stand apart.
Results are shown as Ansible shows them by default. `solving` is what 20 new problems take in this process, imports apart.
Exits with 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPES = 20
SOLVING_SECONDS, FLEET_MILLISECONDS, EACH_MILLISECONDS = 1.0, 6.0, 15.0
FILES_SHARE, FILES_OVER_DEBUG = 0.75, 1.45
"""Of the CPU of a run whose plans are in its result, both without what the inventory costs; and over a whole run with a debug."""
INVENTORY = """#!{python}
import pathlib
print(pathlib.Path(__file__).with_name("hosts.json").read_text())
"""


def shape(number):
    """Return the disks of one kind of server: 1 to 12 hard disks and up to 4 ssds."""
    rng = random.Random(number)
    hdds = [("hdd", rng.choice([953869, 1907729, 3815447, 7630885])) for _disk in range(rng.randint(1, 12))]
    ssds = [("ssd", rng.choice([228936, 457862, 915715])) for _disk in range(rng.randint(0, 4))]
    return ssds + hdds


def facts(number, kinds):
    """Return the facts of one host, as many as hosts give: those of its shape, with serials and a little RAM of its own."""
    ids = [f"/dev/disk/by-id/wwn-0x5000c500{number:06x}{at:02x}" for at in range(len(kinds))]
    disks = [
        {
            "id": name,
            "path": f"/dev/disk/by-path/pci-0000:00:17.0-ata-{at + 1}",
            "dev": f"/dev/sd{chr(97 + at)}",
            "type": kind,
            "size": size,
        }
        | {"size_bytes": size * 1024**2, "logical_block": 512, "physical_block": 4096, "serial": f"S{number}-{at}", "wwn": name[-18:]}
        | {"links": [name], "transport": "sas", "vendor": "SEAGATE", "model": "ST4000NM000A-2HZ100", "firmware_revision": "TN02"}
        | {"optimal_io": 0, "rotational": kind == "hdd", "table": None, "drive": f"S{number}-{at}", "numa_node": 0}
        | dict.fromkeys(("removable", "read_only", "zoned", "multipath", "in_use"), False)
        | {"partitions": [], "content": [], "holders": [], "empty": True, "enclosure": "0x500304801e9a8d3f", "slot": str(at)}
        for at, (name, (kind, size)) in enumerate(zip(ids, kinds, strict=True))
    ]
    return {"ram": 65536 - number % 7, "firmware": "uefi", "disks": disks}


def fleet(hosts):
    """Return facts by host."""
    shapes = [shape(number) for number in range(SHAPES)]
    return {f"node{number:05}": facts(number, shapes[number % SHAPES]) for number in range(hosts)}


def play(folder, hosts, tasks, pattern):
    """Return the CPU seconds of a run of `tasks` on the hosts of a pattern."""
    inventory = folder / "inventory.py"
    inventory.write_text(INVENTORY.format(python=sys.executable), encoding="utf-8")
    inventory.chmod(0o755)
    variables = {host: {"bareon_hardware": found} for host, found in hosts.items()}
    everything = {"fleet": {"hosts": list(hosts), "vars": {"ansible_connection": "local"}}, "_meta": {"hostvars": variables}}
    (folder / "hosts.json").write_text(json.dumps(everything), encoding="utf-8")
    (folder / "play.yml").write_text(json.dumps([{"hosts": pattern, "gather_facts": False, "tasks": tasks}]), encoding="utf-8")
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (folder / "output").open("w", encoding="utf-8") as output:
        done = subprocess.run(
            [sys.executable, "-m", "ansible", "playbook", "-i", "inventory.py", "play.yml"],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode != 0:
        raise SystemExit((folder / "output").read_text(encoding="utf-8")[-3000:])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def growth(folder, hosts, task):
    """Return the CPU seconds that one more host adds to a run of a task; of three runs of each length the least counts."""
    less = dict(list(hosts.items())[: len(hosts) // 10])
    most, least = (min(play(folder, some, [task], "fleet") for _run in range(3)) for some in (hosts, less))
    return (most - least) / (len(hosts) - len(less))


def share_of_files(folder, hosts, debug, plan_all, plan_to_files):
    """Return what a run that writes plans costs of one that returns them, and of a run with a debug; of three rounds the middle counts."""
    shares, times = [], []
    for _round in range(3):
        ground, returned, written = (play(folder, hosts, [task], "fleet[0]") for task in (debug, plan_all, plan_to_files))
        shares.append((written - ground) / (returned - ground))
        times.append(written / ground)
    return statistics.median(shares), statistics.median(times)


def solving(hosts):
    """Return the CPU seconds of the first plan of every shape, in a process that has its imports behind it."""
    from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner
    from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.profiles import PROFILES, load_profile

    planner = Planner(load_profile(PROFILES / "general.yml"), Objective.FAIR, 0)
    begin = time.process_time()
    found = planner.plan_fleet(dict(list(hosts.items())[:SHAPES]))
    if found.failures:
        raise SystemExit(f"no plan: {found.failures}")
    return time.process_time() - begin


def main():
    """Print the figures and return whether a target was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=10000)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--each", type=int, default=200)
    options = parser.parse_args()
    many, few = fleet(options.hosts), fleet(options.each)
    debug = {"ansible.builtin.debug": {"msg": "planned"}}
    plan = {"bareon.allocator.disk_plan": {"profile": "general"}}
    plan_all = {"bareon.allocator.disk_plan": {"profile": "general", "hosts": "{{ groups.fleet }}"}, "register": "planned", "no_log": True}
    plan_to_files = {"bareon.allocator.disk_plan": {**plan_all["bareon.allocator.disk_plan"], "plans_to": "layouts"}}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        share, times = share_of_files(folder, fleet(options.files), debug, plan_all, plan_to_files)
        ground = play(folder, many, [debug], "fleet[0]")
        whole = play(folder, many, [plan_all], "fleet[0]")
        each_ground = growth(folder, few, debug)
        each_plan = growth(folder, few, plan)
    figures = [
        (f"solving {SHAPES} shapes", solving(many), "s", SOLVING_SECONDS),
        (f"one task for {options.hosts} hosts, per host", (whole - ground) / options.hosts * 1000, "ms", FLEET_MILLISECONDS),
        (f"{options.files} hosts into files, share of one task", share, "", FILES_SHARE),
        (f"{options.files} hosts into files, whole run over debug", times, "", FILES_OVER_DEBUG),
        (f"host by host ({options.each}), per host over debug", (each_plan - each_ground) * 1000, "ms", EACH_MILLISECONDS),
    ]
    for name, value, unit, target in figures:
        print(f"{name:46} {value:7.2f} {unit:2}  target {target:g} {'met' if value <= target else 'MISSED'}")
    print(f"whole runs: {whole:.1f} s with the plan, {ground:.1f} s without (CPU of the playbook and its workers)")
    return any(value > target for _name, value, _unit, target in figures)


if __name__ == "__main__":
    sys.exit(main())
