# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ganeti's hail and we choose the same places, and we find those that it misses; `make peers-ganeti` installs it and runs this.

Without it every test here fails: that nothing was compared must not look like agreement.
"""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "peers"))

from ansible_collections.bareon.allocator.plugins.plugin_utils.group.place_report import place
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.sources.iallocator import parse_iallocator
from gencluster import generate

PRINTED = 1e-8
HAIL = "/usr/lib/ganeti/iallocators/hail"
CLUSTERS = {
    "drbd": {"nodes": 40, "n1ok": True},
    "drbd, alike": {"nodes": 40, "n1ok": True, "homog": True, "memscale": 1.4},
    "drbd, 3 groups": {"nodes": 60, "groups": 3, "n1ok": True, "seed": 2},
    "plain": {"nodes": 40, "template": "plain", "n1ok": True},
    "shared": {"nodes": 20, "template": "ext", "n1ok": True, "seed": 4},
    "100 nodes": {"nodes": 100, "groups": 5, "n1ok": True, "seed": 3},
    "400 nodes": {"nodes": 400, "n1ok": True, "seed": 5},
}
UNCHECKED = {
    "mixed, tags": {"nodes": 40, "template": "mixed", "extags": True, "loctags": True},
    "mixed, tags, 3 groups": {"nodes": 60, "groups": 3, "template": "mixed", "extags": True, "loctags": True, "n1ok": True, "seed": 8},
    "offline, 2 groups": {"nodes": 40, "groups": 2, "offline": 3, "n1ok": True, "seed": 2},
}
"""Clusters in which hail refuses everything unless it is told to check nothing."""
SIZES = ((2048, 20480, 2), (8192, 102400, 4))


@pytest.fixture(scope="module", autouse=True)
def program():
    assert shutil.which(HAIL), f"{HAIL} is not installed; run `make peers-ganeti`"


def asked(template: str, memory: int, disk: int, cpus: int) -> dict:
    return {
        "type": "allocate",
        "name": "new.example.com",
        "required_nodes": 2 if template == "drbd" else 1,
        "disk_space_total": disk,
        "disks": [{"size": disk, "mode": "w"}],
        "nics": [],
        "vcpus": cpus,
        "memory": memory,
        "disk_template": template,
        "spindle_use": 1,
        "tags": ["service:s1"],
        "os": "linux",
        "hypervisor": "xen-pvm",
    }


def hail(path: pathlib.Path, message: str, *options: str) -> dict:
    path.write_text(message)
    return json.loads(subprocess.run([HAIL, *options, str(path)], capture_output=True, text=True, check=False, timeout=600).stdout)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", [*CLUSTERS, *UNCHECKED])
def test_same_nodes_and_score(name, size, tmp_path):
    arguments = {**CLUSTERS, **UNCHECKED}[name]
    template = arguments.get("template", "drbd")
    message = generate(**arguments).ialloc(asked(template if template != "mixed" else "drbd", *size))
    theirs = hail(tmp_path / "message.json", message, *(["--no-capacity-checks"] if name in UNCHECKED else []))
    assert theirs["success"], theirs["info"]
    told = re.findall(r"Group (\S+) \(\w+\): score: ([\d.]+), .*? for node\(s\) (\S+)", theirs["info"].replace(", Group", "\nGroup"))
    ours = place(parse_iallocator(json.loads(message)), {})["solutions"][0]
    assert ours["groups"][0]["nodes"] == theirs["result"]
    scores = {found["group"]: found["score"] for found in ours["groups"]}
    assert scores == pytest.approx({group: float(score) for group, score, _nodes in told}, abs=PRINTED)
