# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A group that Ganeti's hbal cannot heal is healed with the help of others; `make peers-ganeti` installs it and runs this.

Without it every test here fails: that nothing was compared must not look like agreement.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.health import group_health
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text, write_text
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.redistribute import run_redistribute

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "playbooks" / "files" / "supercluster.data"
MOVE = re.compile(r"^\s*\d+\.\s+(\S+)\s+\S+\s+=>\s+(\S+):(\S+)\s", re.MULTILINE)


@pytest.fixture(scope="module", autouse=True)
def programs():
    for name in ("hbal", "hspace"):
        assert shutil.which(name), f"{name} is not installed; run `make peers-ganeti`"


def short(names) -> dict[str, int]:
    return {name.split(".")[0]: position for position, name in enumerate(names)}


def test_hbal_leaves_instances_on_the_dead_node_and_we_move_no_more_than_those():
    state = ClusterState.from_cluster(parse_text(SAMPLE.read_text()))
    nodes, instances = short(state.facts.nodes.names), short(state.facts.instances.names)
    command = ["hbal", "-t", str(SAMPLE), "-G", "group-01"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    moves = MOVE.findall(printed)
    assert moves
    for instance, primary, secondary in moves:
        state.place(instances[instance.split(".")[0]], nodes[primary.split(".")[0]], nodes[secondary.split(".")[0]])
    left = group_health(state, 0).offline
    found = run_redistribute(Loaded(state.facts.cluster, {}), {})
    assert left
    assert found["healthy"]
    assert found["groups"][0]["fewest"]
    assert len(found["groups"][0]["moved_out"]) <= len(left)


def test_hspace_counts_nothing_before_and_something_after(tmp_path):
    """Once the plan is done, hspace counts again: the state is sound by its own rules, too."""
    cluster = parse_text(SAMPLE.read_text())
    state = ClusterState.from_cluster(cluster)
    nodes, instances = cluster.node_positions(), cluster.instance_positions()
    for move in run_redistribute(Loaded(cluster, {}), {})["plan"]["moves"]:
        state.place(instances[move["instance"]], *(nodes[name] for name in move["to"]))
    (tmp_path / "healed.data").write_text(write_text(state.to_cluster()))
    assert counted(SAMPLE) == 0
    assert counted(tmp_path / "healed.data") > 0


def counted(path: pathlib.Path) -> int:
    command = ["hspace", "-t", str(path), "--machine-readable", "--standard-alloc=10240,4096,2", "--disk-template=drbd"]
    told = dict(re.findall(r"HTS_(\w+)=(\S+)", subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout))
    return int(told["FIN_INST_CNT"]) - int(told["INI_INST_CNT"])
