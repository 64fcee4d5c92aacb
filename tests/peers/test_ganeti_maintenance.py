# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No more sets of nodes than Ganeti's hroller, no fewer nodes off than its hsqueeze; `make peers-ganeti` installs them and runs this.

Without them every test here fails: that nothing was compared must not look like agreement.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.maintenance import run_maintenance, run_squeeze
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate
from ansible_collections.bareon.allocator.tests.support.group.htools_differences import Difference, excused

CLUSTERS = {
    "drbd": {"nodes": 20, "n1ok": True, "seed": 3},
    "drbd, 2 groups": {"nodes": 20, "groups": 2, "n1ok": True, "seed": 4},
    "drbd, few instances": {"nodes": 40, "per_node": 4, "n1ok": True, "seed": 3},
    "mixed": {"nodes": 12, "per_node": 5, "template": "mixed", "n1ok": True},
    "shared": {"nodes": 12, "per_node": 5, "template": "ext", "n1ok": True},
}
OPTIONS = {
    "": {},
    "--offline-maintenance": {"offline_maintenance": True},
    "--skip-non-redundant": {"non_redundant": "skip"},
}
SQUEEZED = {
    "shared": {"nodes": 10, "per_node": 2, "template": "ext", "n1ok": True},
    "shared, few": {"nodes": 12, "per_node": 1, "template": "ext", "n1ok": True, "seed": 2},
    "shared, fuller": {"nodes": 10, "per_node": 8, "template": "ext", "n1ok": True, "memscale": 1.5, "down": 0.0},
}


@pytest.fixture(scope="module", autouse=True)
def programs():
    for name in ("hroller", "hsqueeze"):
        assert shutil.which(name), f"{name} is not installed; run `make peers-ganeti`"


def printed(path: pathlib.Path, text: str, program: str, *options: str) -> subprocess.CompletedProcess:
    path.write_text(text)
    return subprocess.run([program, "-t", str(path), *options], capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", CLUSTERS)
def test_no_more_sets_than_hroller(name, option, tmp_path):
    text = generate(**CLUSTERS[name]).text()
    theirs = printed(tmp_path / "cluster.data", text, "hroller", "--no-headers", *filter(None, [option]))
    ours = run_maintenance(Loaded(parse_text(text), {}), OPTIONS[option])
    nodes = [node for members in ours["sets"] for node in members["nodes"]] + [skipped["node"] for skipped in ours["left_out"]]
    assert len(nodes) == len(set(nodes)) == CLUSTERS[name]["nodes"]
    if theirs.returncode:
        assert excused({Difference.NON_REDUNDANT: "Cannot create node graph" in theirs.stderr}), theirs.stderr
        assert ours["sets"]
        return
    sets = [line for line in theirs.stdout.splitlines() if line.strip()]
    assert sets
    assert len(ours["sets"]) <= len(sets)


def test_far_fewer_sets_where_secondaries_have_memory_for_several_primaries(tmp_path):
    text = generate(**CLUSTERS["drbd"]).text()
    theirs = printed(tmp_path / "cluster.data", text, "hroller", "--no-headers").stdout.splitlines()
    ours = run_maintenance(Loaded(parse_text(text), {}), {})["sets"]
    assert 2 * len(ours) <= len(theirs)


@pytest.mark.parametrize("name", SQUEEZED)
def test_no_fewer_nodes_off_than_hsqueeze(name, tmp_path):
    text = generate(**SQUEEZED[name]).text()
    theirs = printed(tmp_path / "cluster.data", text, "hsqueeze", "-C")
    off = set(re.findall(r"gnt-node power -f off (\S+)", theirs.stdout))
    found = run_squeeze(Loaded(parse_text(text), {}), {"redundant": False})
    assert theirs.returncode == 0, theirs.stderr
    assert off, theirs.stdout
    assert len(found["power_off"]) >= len(off)
    assert not found["power_on"]
