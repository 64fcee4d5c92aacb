# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ironic's own code takes what plan_to_ironic writes of every profile, and refuses what it should."""

from __future__ import annotations

import json
import pathlib
import subprocess
import typing as t

from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer import bare_metal
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.installer.write import write_plan
from ansible_collections.bareon.allocator.tests.support.disk.planned import hardware, make_plan, profile_plan, profiles_of_all_targets

Plain = dict[str, t.Any]
HERE = pathlib.Path(__file__).resolve().parent


def read_by_ironic(nodes: list[Plain]) -> subprocess.CompletedProcess[str]:
    python = subprocess.run([str(HERE / "ironic-venv")], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    call = [python, str(HERE / "read_ironic_configuration.py")]
    return subprocess.run(call, input=json.dumps(nodes), capture_output=True, text=True, check=False)


def test_ironic_reads_arrays_and_hints_of_plans() -> None:
    arrays = [
        {"id": "root", "type": "raid", "level": "raid1", "legs": 4, "size": "8 GiB", "fs_type": "ext4", "mount": "/"},
        {"id": "data", "type": "raid", "level": "raid10", "legs": 4},
    ]
    plans = [make_plan(arrays, hardware([("ssd", 48)] * 4)), *(profile_plan(name) for name in profiles_of_all_targets())]
    nodes = [write_plan(bare_metal.IRONIC, plan, None, lossy=True).value for plan in plans]
    done = read_by_ironic(nodes)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts[0] == 8
    assert all(counts)
    nodes[0]["target_raid_config"]["logical_disks"][1]["raid_level"] = "7"
    assert read_by_ironic(nodes[:1]).returncode != 0
