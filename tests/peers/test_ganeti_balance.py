# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Balancing in the manner of hbal makes the very moves that Debian's hbal makes, and our own is no worse.

`make peers-ganeti` installs it and runs this.

Without it every test here fails: that nothing was compared must not look like agreement.
"""

from __future__ import annotations

import dataclasses
import pathlib
import random
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.libraries import np
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.group import Assignment, plan_group
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.hbal import HbalOptions, steps_like_hbal
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.model import BalanceOptions
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.arrays import NOWHERE
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.changes import after_moves
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Load
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.neighbourhood.moves import MoveOptions
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

PRINTED = 2e-8
"""The programs print eight decimals."""
TAGGED = {"template": "mixed", "extags": True, "loctags": True}
TO_THE_END = {
    "drbd, failing N+1": {"nodes": 14},
    "drbd, N+1": {"nodes": 14, "n1ok": True},
    "drbd, nearly full": {"nodes": 16, "n1ok": True, "memscale": 2.2, "homog": True},
    "drbd, offline": {"nodes": 14, "offline": 2, "seed": 3},
    "shared": {"nodes": 20, "template": "ext"},
    "shared, offline": {"nodes": 20, "template": "ext", "offline": 2},
    "plain": {"nodes": 10, "template": "plain"},
    "mixed, tags": {"nodes": 14, **TAGGED},
    "mixed, tags, offline": {"nodes": 14, **TAGGED, "offline": 2, "seed": 4},
    "odd": {"nodes": 16, "template": "mixed", "extags": True, "odd": True, "seed": 7},
    "two groups": {"nodes": 16, "groups": 2, "seed": 2},
}
LIMITED = {
    "drbd, 40 nodes": {"nodes": 40, "n1ok": True},
    "mixed, 40 nodes": {"nodes": 40, **TAGGED, "offline": 2},
    "shared, 40 nodes": {"nodes": 40, "template": "ext"},
}

FORTY_NODES = {
    "drbd, failing N+1": {},
    "drbd": {"n1ok": True},
    "drbd, nearly full": {"n1ok": True, "memscale": 2.2, "homog": True},
    "drbd, offline": {"offline": 2},
    "shared": {"template": "ext"},
    "mixed, tags": TAGGED,
}

SHARED = [
    {"nodes": 4, "offline": 1, "memscale": 2.2, "extags": True, "seed": 2},
    {"nodes": 6, "offline": 2, "extags": True, "seed": 1},
    {"nodes": 7, "offline": 1, "memscale": 2.0, "seed": 4},
    {"nodes": 8, "offline": 2, "memscale": 2.2, "homog": True, "seed": 13},
    {"nodes": 5, "offline": 2, "memscale": 2.0, "seed": 14},
    {"nodes": 9, "offline": 2, "memscale": 2.2, "odd": True, "seed": 7},
    {"nodes": 4, "memscale": 2.0, "extags": True, "seed": 113},
    {"nodes": 7, "memscale": 2.2, "seed": 111},
    {"nodes": 8, "memscale": 1.5, "homog": True, "seed": 109},
    {"nodes": 5, "memscale": 2.0, "extags": True, "seed": 1052},
    {"nodes": 6, "offline": 2, "memscale": 2.2, "odd": True, "seed": 1050},
]
"""Small clusters on shared storage, most of them with dead nodes and too little memory for all."""


@pytest.fixture(scope="module", autouse=True)
def programs():
    assert shutil.which("hbal"), "ganeti-htools are not installed; run `make peers-ganeti`"


def hbal(text: str, folder: pathlib.Path, *options: str) -> list[tuple[str, str, float]]:
    """Return hbal's moves: the instance, its nodes afterwards, and the score that it prints."""
    path = folder / "cluster.data"
    path.write_text(text)
    command = ["hbal", "-t", str(path), "-v", "-v", "-v", *options]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    found = re.findall(r"^ +\d+\. (\S+) +\S+ +=> (\S+) +([\d.]+) a=", run.stdout, re.MULTILINE)
    return [(instance, nodes, float(score)) for instance, nodes, score in found]


def ours(state: ClusterState, options: HbalOptions, group: int = 0) -> list[tuple[str, str, float]]:
    names = [name.split(".")[0] for name in state.facts.nodes.names]
    told = []
    for step in steps_like_hbal(state, group, options):
        nodes = ":".join(names[node] for node in step.move.target if node != NOWHERE)
        told.append((state.facts.instances.names[step.move.instance].split(".")[0], nodes, step.score))
    return told


def assert_same_moves(told: list[tuple[str, str, float]], theirs: list[tuple[str, str, float]]) -> None:
    assert [move[:2] for move in told] == [move[:2] for move in theirs]
    assert [move[2] for move in told] == pytest.approx([move[2] for move in theirs], abs=PRINTED)


@pytest.mark.parametrize("name", TO_THE_END)
def test_same_moves_to_the_end(name, tmp_path):
    text = generate(**TO_THE_END[name]).text()
    state = ClusterState.from_cluster(parse_text(text))
    for position, group in enumerate(state.facts.cluster.groups):
        theirs = hbal(text, tmp_path, "-G", group.name)
        assert_same_moves(ours(state.copy(), HbalOptions(), position), theirs)
        assert theirs or name == "plain"


@pytest.mark.parametrize("name", LIMITED)
def test_same_first_moves_of_forty_nodes(name, tmp_path):
    text = generate(**LIMITED[name]).text()
    theirs = hbal(text, tmp_path, "-l", "7")
    assert len(theirs) == 7
    assert_same_moves(ours(ClusterState.from_cluster(parse_text(text)), HbalOptions(max_moves=7)), theirs)


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        (("--no-disk-moves",), HbalOptions(MoveOptions(disk_moves=False))),
        (("--no-instance-moves",), HbalOptions(MoveOptions(instance_moves=False))),
        (("--evac-mode",), HbalOptions(evacuation_only=True)),
        (("--min-gain=1", "--min-gain-limit=1000"), HbalOptions(min_gain=1.0, min_gain_limit=1000.0)),
    ],
)
def test_same_moves_with_the_same_options(flags, options, tmp_path):
    text = generate(nodes=16, **TAGGED, offline=2, seed=5).text()
    theirs = hbal(text, tmp_path, *flags)
    assert theirs
    assert_same_moves(ours(ClusterState.from_cluster(parse_text(text)), options), theirs)


def test_same_moves_with_measured_load(tmp_path):
    text = generate(nodes=14, template="mixed", seed=6).text()
    cluster = parse_text(text)
    draw = random.Random(1)
    loads = {instance.name: Load(*(round(draw.uniform(0, 4), 2) for _part in range(4))) for instance in cluster.instances}
    lines = (f"{name} {load.cpu} {load.memory} {load.disk} {load.net}\n" for name, load in loads.items())
    (tmp_path / "load").write_text("".join(lines))
    theirs = hbal(text, tmp_path, "-U", str(tmp_path / "load"))
    measured = tuple(dataclasses.replace(instance, load=loads[instance.name]) for instance in cluster.instances)
    state = ClusterState.from_cluster(dataclasses.replace(cluster, instances=measured))
    assert_same_moves(ours(state, HbalOptions()), theirs)


@pytest.mark.parametrize("name", FORTY_NODES)
def test_less_data_or_a_better_score_than_hbal(name):
    """hbal's end is told by our own run in its manner, which the tests above show to be the same; hbal takes minutes for it."""
    cluster = parse_text(generate(nodes=40, **FORTY_NODES[name]).text())
    theirs = plan_group(Assignment(cluster, 0, HbalOptions()))
    found = plan_group(Assignment(cluster, 0, BalanceOptions()))
    less = found.score_after <= theirs.score_after and found.data <= 0.85 * theirs.data
    better = found.score_after < theirs.score_after and found.data <= theirs.data
    assert less or better, (found.score_after, theirs.score_after, found.data, theirs.data)
    assert not found.blocked


def down(state: ClusterState) -> int:
    """Return how many instances are down because their node is."""
    running = np.array([model.uses_memory for model in state.facts.instances.models])
    return int((state.marked_offline[state.primary] & running).sum())


@pytest.mark.parametrize("wanted", SHARED, ids=lambda wanted: f"{wanted['nodes']} nodes, seed {wanted['seed']}")
def test_no_fewer_come_up_than_with_hbal_and_the_score_is_as_good(wanted, tmp_path):
    text = generate(template="ext", **wanted).text()
    cluster = parse_text(text)
    theirs = hbal(text, tmp_path)
    positions = {name.split(".")[0]: position for position, name in enumerate(cluster.node_positions())}
    instances = {name.split(".")[0]: position for position, name in enumerate(cluster.instance_positions())}
    state = ClusterState.from_cluster(cluster)
    before = down(state)
    after_theirs = state.copy()
    for instance, nodes, _score in theirs:
        after_theirs.place(instances[instance], positions[nodes])
    found = plan_group(Assignment(cluster, 0, BalanceOptions()))
    after = after_moves(state, found.plan.moves)
    assert down(after) <= down(after_theirs) <= before
    assert found.score_after <= theirs[-1][2] * 1.01
    assert not found.blocked
