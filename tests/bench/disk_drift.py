# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What comparing a fleet with its plans costs inside Ansible: CPU seconds of whole playbook runs, parent and workers.

    .venv/bin/python tests/bench/disk_drift.py [--hosts 10000]

`task` is a run that compares all hosts in one task, less a run of the same inventory that reads the same plans and counts them.
Exits with 1 when the target is missed.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

from ansible_collections.bareon.allocator.tests.support.disk.planned import whole_plan

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = 30.0
INVENTORY = """#!{python}
import pathlib
print(pathlib.Path(__file__).with_name("hosts.json").read_text())
"""
PLANS = "{{ lookup('ansible.builtin.file', 'plans.json') | from_json }}"
TASKS = {
    "count": {"ansible.builtin.debug": {"msg": "{{ plans | length }}"}},
    "drift": {"bareon.allocator.disk_drift": {"plans": "{{ plans }}"}, "no_log": True},
}


def facts(plan):
    """Return facts of a host on which the plan was carried out, as far as they are compared."""
    tables = {table["disk_id"]: table["partitions"] for table in plan["schema"]["parteds"]}
    volumes = [{"type": "lvm", "name": one["name"], "volume_group": one["vgname"], "size": one["size"]} for one in plan["schema"]["lvs"]]
    arrays = [{"type": one["level"], "name": one["name"].rsplit("/", 1)[-1], "members": one["devices"]} for one in plan["schema"]["mds"]]
    disks = [
        {
            **{"id": disk["disk_id"], "links": [disk["disk_id"]], "size": disk["size"], "holders": [*volumes, *arrays]},
            "partitions": [
                {
                    "number": part["count"],
                    "uuid": part["uuid"],
                    "type": part["guid"],
                    "start": part["begin"],
                    "size": part["end"] - part["begin"],
                }
                for part in tables.get(disk["disk_id"], [])
            ],
        }
        for disk in plan["disks"]
    ]
    return {"disks": disks}


def write_fleet(folder, hosts):
    """Write the inventory and the plans; a hundredth of the hosts has a disk that is larger now."""
    plan, variables, plans = whole_plan(), {}, {}
    for number in range(hosts):
        name = f"h{number}"
        plans[name] = plan
        found = copy.deepcopy(facts(plan))
        found["disks"][0]["size"] += 1024 if number % 100 == 0 else 0
        variables[name] = {"bareon_hardware": found}
    (folder / "hosts.json").write_text(json.dumps({"all": {"hosts": list(plans)}, "_meta": {"hostvars": variables}}), encoding="utf-8")
    (folder / "plans.json").write_text(json.dumps(plans), encoding="utf-8")
    script = folder / "hosts.py"
    script.write_text(INVENTORY.format(python=sys.executable), encoding="utf-8")
    script.chmod(0o755)


def seconds(folder, name):
    """Return the CPU seconds of a run with one task."""
    play = [{"hosts": "h0", "gather_facts": False, "connection": "local", "vars": {"plans": PLANS}, "tasks": [TASKS[name]]}]
    (folder / f"{name}.json").write_text(json.dumps(play), encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "--inventory", "hosts.py", f"{name}.json"],
        cwd=folder,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    """Measure, print, and tell whether the target is met."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, default=10000)
    hosts = parser.parse_args().hosts
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_fleet(folder, hosts)
        whole, rest = seconds(folder, "drift"), seconds(folder, "count")
    task = whole - rest
    print(f"{hosts} hosts: whole run {whole:.1f} s, without the comparison {rest:.1f} s, task {task:.1f} s of CPU")
    return int(task > TARGET * hosts / 10000)


if __name__ == "__main__":
    sys.exit(main())
