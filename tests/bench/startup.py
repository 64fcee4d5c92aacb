# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the first use of a process costs: CPU seconds of whole processes, beside what nobody could leave out.

    .venv/bin/python tests/bench/startup.py [--repeat 9]

`allocator` is bareon-iallocator for a new mirrored instance on 100 nodes with 300 instances, beside Python that imports NumPy, and
beside hail where it is installed. `disk_plan` is a playbook whose only task plans a machine by the profile `general`, beside the
same playbook with a task of `debug`. Bytecode is cached, as it is for a user. Processes take turns, and medians are compared.
Exits with 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLLECTIONS = ROOT / ".venv" / "collections"
PROGRAM = COLLECTIONS / "ansible_collections" / "bareon" / "allocator" / "playbooks" / "files" / "bareon-iallocator"
HAIL = pathlib.Path("/usr/lib/ganeti/iallocators/hail")
# On the machine where they were set: 0.12 s beside 0.06 of NumPy in one thread and 0.19 of hail; 0.35 beside 0.2 of Ansible alone.
TARGETS = {("allocator", "numpy"): 2.0, ("allocator", "hail"): 1.0, ("disk_plan", "debug"): 1.75}
NUMPY = "import os; os.environ['OPENBLAS_NUM_THREADS'] = '1'; import numpy"
NEW = {"name": "new", "required_nodes": 2, "disk_space_total": 20480, "disks": [{"size": 20480, "mode": "w"}], "nics": []}
NEW |= {"vcpus": 2, "memory": 2048, "disk_template": "drbd", "spindle_use": 1, "tags": [], "type": "allocate"}
HARDWARE = {
    "ram": 65536,
    "firmware": "uefi",
    "disks": [
        {"id": "fast", "path": "port-1", "dev": "/dev/sda", "type": "ssd", "size": 457862},
        {"id": "slow", "path": "port-2", "dev": "/dev/sdb", "type": "hdd", "size": 3815447},
    ],
}
TASKS = {
    "disk_plan": {"bareon.allocator.disk_plan": {"profile": "general", "hardware": HARDWARE}},
    "debug": {"ansible.builtin.debug": {"msg": "{{ hardware.ram }}"}, "vars": {"hardware": HARDWARE}},
}


def commands(folder: pathlib.Path) -> dict[str, list[str]]:
    """Return what is measured, with its inputs written into a folder."""
    request = folder / "request.json"
    request.write_text(generate(nodes=100, per_node=3, n1ok=True, seed=1).ialloc(NEW), encoding="utf-8")
    found = {"allocator": [sys.executable, str(PROGRAM), str(request)], "numpy": [sys.executable, "-c", NUMPY]}
    if HAIL.exists():
        found["hail"] = [str(HAIL), str(request)]
    for name, task in TASKS.items():
        playbook = folder / f"{name}.yml"
        playbook.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": [task]}]), encoding="utf-8")
        found[name] = [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", "-c", "local", str(playbook)]
    return found


def cpu_seconds(command: list[str], folder: pathlib.Path) -> float:
    """Return the CPU seconds of a process with all of its children."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "PYTHONPATH": str(COLLECTIONS)}
    environment |= {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Print the table, and tell by the exit status whether every target is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=9)
    repeat = parser.parse_args().repeat
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        measured = commands(folder)
        rounds = [{key: cpu_seconds(command, folder) for key, command in measured.items()} for _round in range(repeat + 1)]
    # The first round writes the bytecode.
    median = {key: statistics.median(times[key] for times in rounds[1:]) for key in measured}
    for key, seconds in median.items():
        print(f"{key:12}{seconds:8.3f} s")
    missed = 0
    for (ours, theirs), target in TARGETS.items():
        if theirs not in measured:
            print(f"{ours} / {theirs}: not compared, {theirs} is not installed")
            continue
        ratio = statistics.median(times[ours] / times[theirs] for times in rounds[1:])
        missed += ratio > target
        print(f"{ours} / {theirs}: {ratio:.2f}, target {target}{'  MISSED' if ratio > target else ''}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
