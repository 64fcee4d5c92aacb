# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What comparing a fleet with its plans costs inside Ansible: CPU seconds of whole playbook runs, parent and workers.

    .venv/bin/python tests/bench/disk_drift.py [--hosts 10000]

Each row is a run that compares all hosts in one task, less a run of the same inventory with a task that does nothing. `folders` has plans
and facts in files, `inventory` has facts in the variables of hosts, and `variables` has the plans in a variable, too, which Ansible
goes through value by value: a tenth of the hosts there. Exits with 1 when a target is missed.
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
FEWER = 10
INVENTORY = """#!{python}
import pathlib
print(pathlib.Path(__file__).with_name("hosts.json").read_text())
"""
PLANS = "{{ lookup('ansible.builtin.file', 'plans.json') | from_json }}"
WAYS = {
    "folders": (1, {"plans": "plans", "hardware": "facts"}),
    "inventory": (1, {"plans": "plans"}),
    "variables": (FEWER, {"plans": PLANS}),
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
    """Write the inventory, the plans and the facts; a hundredth of the hosts has a disk that is larger now."""
    plan, variables, plans = whole_plan(), {}, {}
    for name in ("plans", "facts"):
        (folder / name).mkdir()
    for number in range(hosts):
        name = f"h{number}"
        found = copy.deepcopy(facts(plan))
        found["disks"][0]["size"] += 1024 if number % 100 == 0 else 0
        variables[name] = {"bareon_hardware": found}
        (folder / "plans" / f"{name}.json").write_text(json.dumps(plan), encoding="utf-8")
        (folder / "facts" / name).write_text(json.dumps({"ansible_facts": variables[name], "changed": False}), encoding="utf-8")
        if number < hosts // FEWER:
            plans[name] = plan
    (folder / "hosts.json").write_text(json.dumps({"all": {"hosts": list(variables)}, "_meta": {"hostvars": variables}}), encoding="utf-8")
    (folder / "plans.json").write_text(json.dumps(plans), encoding="utf-8")
    script = folder / "hosts.py"
    script.write_text(INVENTORY.format(python=sys.executable), encoding="utf-8")
    script.chmod(0o755)


def seconds(folder, tasks):
    """Return the CPU seconds of a run, parent and workers."""
    play = [{"hosts": "h0", "gather_facts": False, "connection": "local", "tasks": tasks}]
    (folder / "play.json").write_text(json.dumps(play), encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "--inventory", "hosts.py", "play.json"],
        cwd=folder,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def drift(options, hosts):
    """Return tasks that compare, and look whether that is right: one host in a hundred could grow."""
    expected = {"alike": hosts - len(range(0, hosts, 100)), "could_grow": len(range(0, hosts, 100)), "new": 0, "differs": 0, "gone": 0}
    counted = {"ansible.builtin.assert": {"that": f"found.counts == {expected}", "quiet": True}}
    return [{"bareon.allocator.disk_drift": options, "register": "found"}, counted]


def main():
    """Measure, print, and tell whether the target is met."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, default=10000)
    hosts = parser.parse_args().hosts
    missed = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_fleet(folder, hosts)
        # What else the machine does stretches a run; the shorter of two leaves more to the comparison.
        rest = min(seconds(folder, [{"ansible.builtin.debug": {"msg": "nothing"}}]) for _run in range(2))
        print(f"a run with {hosts} hosts that does nothing: {rest:.1f} s of CPU")
        for way, (divided, options) in WAYS.items():
            compared = hosts // divided
            task = seconds(folder, drift(options, compared)) - rest
            print(f"{way}: {compared} hosts compared in {task:.1f} s of CPU, {task * 1000 / compared:.2f} ms each")
            missed |= way != "variables" and task > TARGET * hosts / 10000
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
