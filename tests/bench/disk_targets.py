# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What it costs to turn recorded machines into the input of installers: CPU seconds from JSON texts to JSON texts, for each target.

    PYTHONPATH=.venv/collections .venv/bin/python tests/bench/disk_targets.py [--machines 10000]

The machines are those of a fleet of 20 shapes, as MAAS records them. A record is parsed, becomes hardware, is planned with the others of
the fleet, and its plan is written by the filter, which gets everything as plain data of Ansible's. Imports are apart.
Exits with 1 when a target takes more than 90 s for 10,000 machines, or a share of that for fewer.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource

from ansible_collections.bareon.allocator.plugins.filter.hardware_from_maas import hardware_from_maas
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.plain import plain_input
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.profiles import PROFILES, load_profile
from disk_fleet import fleet

SECONDS, MACHINES = 90.0, 10000
SYSTEM = {"id": "root", "type": "partition", "size": 51200, "fs_type": "ext4", "mount": "/", "disks": "yaql=$.disks.take(1)"}
SCHEMAS = {
    "general": load_profile(PROFILES / "general.yml"),
    "image": [SYSTEM],
    "osds": [{"id": "osd", "type": "disk"}],
}
TARGETS = {
    "kickstart": ("general", {}),
    "curtin": ("general", {}),
    "fai": ("general", {}),
    "disko": ("general", {}),
    "maas": ("general", {}),
    "ignition": ("image", {}),
    "butane": ("image", {}),
    "repart": ("image", {}),
    "talos": ("image", {}),
    "warewulf": ("image", {}),
    "ironic": ("image", {}),
    "metal3": ("image", {}),
    "ceph": ("osds", {"host": "node"}),
}
"""The schema of each target, and options of its filter beyond hardware and lossy."""


def record(name, facts):
    """Return what MAAS has of a machine, as text."""
    disks = [
        {
            "name": disk["dev"].removeprefix("/dev/"),
            "type": "physical",
            "id_path": disk["id"],
            "size": disk["size_bytes"],
            "block_size": 512,
            "serial": disk["serial"],
            "tags": ["ssd"] if disk["type"] == "ssd" else ["rotary"],
        }
        for disk in facts["disks"]
    ]
    return json.dumps({"hostname": name, "memory": facts["ram"], "bios_boot_method": "uefi", "physicalblockdevice_set": disks})


def spent():
    """Return the CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


FILTERS = {
    name: getattr(importlib.import_module(f"ansible_collections.bareon.allocator.plugins.filter.plan_to_{name}"), f"plan_to_{name}")
    for name in TARGETS
}


def written(target, plans, machines):
    """Return how many bytes a filter made of plans."""
    _schema, options = TARGETS[target]
    lossy = {} if target == "ceph" else {"lossy": True}
    size = 0
    for plan, machine in zip(plans, machines, strict=True):
        # The filter itself shows each warning; what it wraps returns them.
        value, _warnings = FILTERS[target].__wrapped__(plain_input(plan), hardware=plain_input(machine), **lossy, **options)
        size += len(json.dumps(value))
    return size


def main():
    """Print a table; exit with 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machines", type=int, default=MACHINES)
    count = parser.parse_args().machines
    records = [record(name, facts) for name, facts in fleet(count).items()]
    begin = spent()
    machines = [hardware_from_maas.__wrapped__(plain_input(json.loads(text)))[0] for text in records]
    reading = spent() - begin
    print(f"{count} machines; reading their records: {reading:.1f} s")
    failed = False
    for schema, spaces in SCHEMAS.items():
        begin = spent()
        planner = Planner(spaces, Objective.FAIR, 0)
        plans = [planner.plan(machine) for machine in machines]
        planning = spent() - begin
        for target in [name for name, (own, _options) in TARGETS.items() if own == schema]:
            begin = spent()
            size = written(target, plans, machines)
            writing = spent() - begin
            whole = reading + planning + writing
            missed = whole > SECONDS * count / MACHINES
            failed = failed or missed
            note = ", missed" if missed else ""
            print(
                f"{target:10} {schema:8} plan {planning:5.1f} s, write {writing:5.1f} s, {size // count:5} bytes, all {whole:5.1f} s{note}"
            )
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
