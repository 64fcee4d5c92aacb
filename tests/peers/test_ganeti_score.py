# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ganeti's own programs and we give the same numbers; `make peers-ganeti` installs them and runs this.

Without them every test here fails: that nothing was compared must not look like agreement.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import pathlib
import re
import shutil
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.arrays import NOWHERE
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Disk, DiskTemplate, Instance
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.evacuate.evacuation import evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.evacuate.task import AcrossGroups, EvacuationMode, tasks_of_nodes
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.health import ProblemKind, find_problems
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.limits import Limit
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.redundancy import node_failures
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode, Scorer
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.verdicts import (
    EXACT,
    HTOOLS,
    primary_verdict,
    secondary_verdict,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.iallocator import parse_iallocator
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text, write_text
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

PRINTED = 1e-8
"""The programs print eight decimals."""
HAIL = "/usr/lib/ganeti/iallocators/hail"
CLUSTERS = {
    "drbd": {"nodes": 40},
    "drbd, N+1": {"nodes": 40, "n1ok": True, "homog": True, "memscale": 1.4},
    "drbd, offline, 2 groups": {"nodes": 40, "groups": 2, "offline": 3, "seed": 2},
    "plain": {"nodes": 40, "template": "plain"},
    "shared": {"nodes": 40, "template": "ext"},
    "mixed, tags": {"nodes": 40, "template": "mixed", "extags": True, "loctags": True},
    "mixed, tags, offline, 3 groups": {"nodes": 60, "groups": 3, "template": "mixed", "extags": True, "loctags": True, "offline": 4},
    "odd": {"nodes": 42, "groups": 2, "template": "mixed", "extags": True, "loctags": True, "odd": True},
    "odd, other": {"nodes": 60, "template": "mixed", "extags": True, "odd": True, "seed": 7, "offline": 2},
    "100 nodes": {"nodes": 100, "groups": 5, "seed": 3},
    "400 nodes": {"nodes": 400, "groups": 2, "template": "mixed", "extags": True, "loctags": True, "seed": 5},
}
ODD_NUMBERS = [
    ("131072.5", "0.0000012", "0.05"),
    ("131073.5", "12500000", "12345678.25"),
    ("98304.7", "1e-3", "10000000"),
    ("98304", "3", "9999999.5"),
    ("98304", "0.1", "0"),
]
every_cluster = pytest.mark.parametrize("name", CLUSTERS)


@pytest.fixture(scope="module", autouse=True)
def programs():
    missing = [name for name in ("hbal", "hinfo", "hcheck", HAIL) if shutil.which(name) is None]
    assert not missing, f"ganeti-htools are not installed ({', '.join(missing)}); run `make peers-ganeti`"


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300).stdout


def printed_metrics(output: str) -> dict[str, float]:
    return {name: float(value) for name, value in re.findall(r"^ {3}(\w+) +(-?[\d.]+) +x", output, re.MULTILINE)}


def assert_same_metrics(scorer: Scorer, state: ClusterState, printed: dict[str, float]) -> None:
    ours = {metric.name: metric.value for metric in scorer.metrics(state)}
    assert list(ours) == list(printed)
    different = {name: (value, printed[name]) for name, value in ours.items() if abs(value - printed[name]) > PRINTED}
    assert not different


@every_cluster
def test_metrics_and_score_of_each_group(name, tmp_path):
    text = generate(**CLUSTERS[name]).text()
    path = tmp_path / "cluster.data"
    path.write_text(text)
    cluster = parse_text(text)
    state = ClusterState.from_cluster(cluster)
    for position, group in enumerate(cluster.groups):
        output = run("hbal", "-t", str(path), "-G", group.name, "-l", "0", "-v", "-v", "-v")
        scorer = Scorer(state, ScoreMode.HTOOLS, state.group_nodes(position))
        assert_same_metrics(scorer, state, printed_metrics(output))
        total = re.search(r"overall ([\d.]+)", output)
        assert scorer.score(state) == pytest.approx(float(total[1]), abs=PRINTED)


@every_cluster
def test_metrics_and_score_of_the_cluster(name, tmp_path):
    text = generate(**CLUSTERS[name]).text()
    path = tmp_path / "cluster.data"
    path.write_text(text)
    state = ClusterState.from_cluster(parse_text(text))
    output = run("hinfo", "-t", str(path))
    scorer = Scorer(state, ScoreMode.HTOOLS)
    assert_same_metrics(scorer, state, printed_metrics(output))
    total = re.search(r"Cluster score: ([\d.]+)", output)
    assert scorer.score(state) == pytest.approx(float(total[1]), abs=PRINTED)


def test_htools_do_not_count_virtual_cpus_that_a_node_does_not_have(tmp_path):
    cluster = parse_text(generate(**CLUSTERS["drbd"]).text())
    first, *others = cluster.instances
    most = int(max(node.total_cpus for node in cluster.nodes))
    cluster = dataclasses.replace(cluster, instances=(dataclasses.replace(first, vcpus=most + 1), *others))
    path = tmp_path / "cluster.data"
    path.write_text(write_text(cluster))
    state = ClusterState.from_cluster(cluster)
    assert_same_metrics(Scorer(state, ScoreMode.HTOOLS), state, printed_metrics(run("hinfo", "-t", str(path))))


@every_cluster
def test_what_we_write_is_what_hbal_writes(name, tmp_path):
    text = generate(**CLUSTERS[name]).text()
    path = tmp_path / "cluster.data"
    path.write_text(write_text(parse_text(text)))
    run("hbal", "-t", str(path), "-G", "group-01", "-l", "0", "-S", str(tmp_path / "saved"))
    assert (tmp_path / "saved.original").read_bytes() == path.read_bytes()


def test_hbal_takes_a_drained_node_as_it_does_an_offline_one(tmp_path):
    cluster = parse_text(generate(**CLUSTERS["drbd"]).text())
    first, *others = cluster.nodes
    for name, flags in (("offline", {"offline": True}), ("drained", {"drained": True})):
        written = write_text(dataclasses.replace(cluster, nodes=(dataclasses.replace(first, **flags), *others)))
        assert parse_text(written).nodes[0].state == name
        (tmp_path / name).write_text(written)
        run("hbal", "-t", str(tmp_path / name), "-l", "0", "-S", str(tmp_path / f"{name}-saved"))
    assert (tmp_path / "drained").read_text() != (tmp_path / "offline").read_text()
    assert (tmp_path / "drained-saved.original").read_bytes() == (tmp_path / "offline-saved.original").read_bytes()


def test_odd_numbers_are_written_as_haskell_writes_them(tmp_path):
    text = generate(nodes=6).text()
    for number, (memory, speed, ratio) in enumerate(ODD_NUMBERS):
        lines = text.split("\n")
        columns = lines[2].split("|")
        columns[1], columns[14] = memory, speed
        lines[2] = "|".join(columns)
        changed = "\n".join(lines).replace("|4.0|32.0", f"|{ratio}|32.0")
        path = tmp_path / f"{number}.data"
        path.write_text(changed)
        run("hbal", "-t", str(path), "-l", "0", "-S", str(tmp_path / f"saved{number}"))
        assert (tmp_path / f"saved{number}.original").read_text() == write_text(parse_text(changed))


@pytest.mark.parametrize("name", ["drbd, offline, 2 groups", "mixed, tags", "odd"])
def test_iallocator_message_describes_the_same_cluster(name, tmp_path):
    generated = generate(**CLUSTERS[name])
    cluster = parse_iallocator(json.loads(generated.ialloc({"type": "node-evacuate"}))).cluster
    path = tmp_path / "cluster.data"
    path.write_text(write_text(cluster))
    state = ClusterState.from_cluster(cluster)
    assert_same_metrics(Scorer(state, ScoreMode.HTOOLS), state, printed_metrics(run("hinfo", "-t", str(path))))


@pytest.mark.parametrize("name", ["drbd", "mixed, tags", "odd", "shared"])
def test_state_after_moves_can_be_saved_and_scores_the_same(name, tmp_path):
    cluster = parse_text(generate(**CLUSTERS[name]).text())
    state = ClusterState.from_cluster(cluster)
    draw = np.random.default_rng(1)
    moved = sum(move_somewhere(state, instance, draw) for instance in draw.choice(len(cluster.instances), 60, replace=False).tolist())
    assert moved > 20
    saved = state.to_cluster()
    path = tmp_path / "cluster.data"
    path.write_text(write_text(saved))
    again = ClusterState.from_cluster(saved)
    assert_same_metrics(Scorer(again, ScoreMode.HTOOLS), again, printed_metrics(run("hinfo", "-t", str(path))))


def move_somewhere(state: ClusterState, instance: int, draw: np.random.Generator) -> bool:
    """Move an instance to nodes drawn from its group if memory and disk allow it."""
    two = state.facts.instances.two_nodes[instance]
    primary, secondary = draw.choice(state.group_nodes(state.group_of(instance)), (2, 1), replace=False)
    with state.lifted(instance):
        fits = primary_verdict(state, instance, primary, EXACT.hard()).fits.all()
        fits &= not two or secondary_verdict(state, instance, primary, secondary, EXACT.hard()).fits.all()
    if fits:
        state.place(instance, int(primary[0]), int(secondary[0]) if two else NOWHERE)
    return bool(fits)


@pytest.mark.parametrize("name", [name for name in CLUSTERS if "odd" not in name])
def test_health_counts_what_hcheck_counts(name, tmp_path):
    text = generate(**CLUSTERS[name]).text()
    path = tmp_path / "cluster.data"
    path.write_text(text)
    output = run("hcheck", "-t", str(path), "--machine-readable=yes", "--no-simulation", "--no-capacity-checks")
    told = dict(re.findall(r"^HCHECK_INIT_CLUSTER_(\w+)=(\d+)$", output, re.MULTILINE))
    problems = find_problems(ClusterState.from_cluster(parse_text(text)), [])
    counts = collections.Counter(problem.kind for problem in problems)
    assert counts[ProblemKind.OFFLINE_PRIMARY] == int(told["OFFLINE_PRI"])
    assert len({problem.node for problem in problems if problem.kind == ProblemKind.TAGS}) == int(told["CONFLICT_TAGS"])
    assert counts[ProblemKind.N1] == int(told["N1_FAIL"])
    offline = sum(node.offline for node in parse_text(text).nodes)
    assert int(told["OFFLINE_SEC"]) == offline, "hcheck counts offline nodes here, whether anything is mirrored on them or not"


def test_health_after_an_evacuation_is_that_of_the_result(tmp_path):
    """hcheck goes on counting the dead node, mirrors on it or not, and repeats at the end what it said at first."""
    text = generate(nodes=6, n1ok=True, seed=4, offline=1).text()
    path = tmp_path / "cluster.data"
    path.write_text(text)
    told = dict(re.findall(r"^HCHECK_(\w+)=(\d+)$", run("hcheck", "-t", str(path), "--machine-readable=yes"), re.MULTILINE))
    assert (told["FINAL_CLUSTER_OFFLINE_PRI"], told["FINAL_CLUSTER_OFFLINE_SEC"]) == ("0", "1")
    assert told["FINAL_CLUSTER_NEED_REBALANCE"] == told["INIT_CLUSTER_NEED_REBALANCE"] == "1"
    cluster = parse_text(text)
    state = ClusterState.from_cluster(cluster)
    dead = [node for node in range(len(cluster.nodes)) if state.offline[node]]
    for move in evacuate(state, tasks_of_nodes(state, dead, EvacuationMode.ALL), AcrossGroups.NO, ScoreMode.HTOOLS).moves:
        state.place(move.instance, *move.target)
    kinds = {problem.kind for problem in find_problems(ClusterState.from_cluster(state.to_cluster()), [])}
    assert not kinds & {ProblemKind.OFFLINE_PRIMARY, ProblemKind.OFFLINE_SECONDARY}


@pytest.mark.parametrize("scale", [1.0, 2.2, 2.8])
def test_shared_storage_strands_nothing_that_hcheck_can_restart(scale, tmp_path):
    text = generate(nodes=20, per_node=12, template="ext", memscale=scale, homog=True).text()
    path = tmp_path / "cluster.data"
    path.write_text(text)
    output = run("hcheck", "-t", str(path), "--machine-readable=yes", "--no-simulation")
    theirs = int(re.search(r"^HCHECK_INIT_CLUSTER_GN1_FAIL=(\d+)$", output, re.MULTILINE)[1])
    failures = node_failures(ClusterState.from_cluster(parse_text(text)), 0)
    assert all(failure.proven for failure in failures)
    assert sum(bool(failure.stranded) for failure in failures) <= theirs


def asked(template: str, memory: int, disk: int, cpus: int) -> dict[str, object]:
    return {
        "type": "allocate",
        "name": "new.example.com",
        "required_nodes": 2 if template == "drbd" else 1,
        "disk_space_total": disk,
        "disks": [{"size": disk, "mode": "rw", "spindles": 1}],
        "nics": [],
        "vcpus": cpus,
        "memory": memory,
        "disk_template": template,
        "spindle_use": 1,
        "tags": ["service:s1"],
        "os": "o",
        "hypervisor": "xen-pvm",
    }


@pytest.mark.parametrize("size", [(1024, 20480, 1), (16384, 262144, 4)])
@pytest.mark.parametrize("name", ["drbd, N+1", "plain", "100 nodes"])
def test_every_place_is_judged_and_scored_as_hail_does(name, size, tmp_path):
    arguments = CLUSTERS[name] | {"n1ok": True}
    template = arguments.get("template", "drbd")
    generated = generate(**arguments, extags=True, loctags=True)
    path = tmp_path / "message.json"
    path.write_text(generated.ialloc(asked(template, *size)))
    answer = json.loads(run(HAIL, "--no-capacity-checks", str(path)))
    told = re.findall(r"Group (\S+) \(\w+\): score: ([\d.]+), successes (\d+), failures (\d+) \(([^)]*)\)", answer["info"])
    cluster = parse_text(generated.text())
    memory, disk, cpus = size
    new = Instance(
        *("new.example.com", memory, disk, cpus),
        disk_template=DiskTemplate(template),
        disks=(Disk(disk, 1),),
        tags=("service:s1",),
    )
    state = ClusterState.from_cluster(cluster, (new,))
    assert len(told) == len(cluster.groups)
    for group, score, successes, failures, modes in told:
        limits, scores = judge(state, len(cluster.instances), cluster.group_positions()[group])
        assert scores.min() == pytest.approx(float(score), abs=PRINTED)
        assert (limits == Limit.NONE).sum() == int(successes)
        assert (limits != Limit.NONE).sum() == int(failures)
        ours = collections.Counter(Limit(limit).fail_mode for limit in limits.tolist() if limit)
        assert ours == {mode: int(count) for mode, count in re.findall(r"(\w+): (\d+)", modes)}


def judge(state: ClusterState, instance: int, group: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first failing limit of every place in a group, and the score of those without one (others infinite)."""
    nodes = np.intersect1d(state.group_nodes(group), state.online())
    scorer = Scorer(state, ScoreMode.HTOOLS)
    first = primary_verdict(state, instance, nodes, HTOOLS)
    if not state.facts.instances.two_nodes[instance]:
        return first.limit, np.where(first.fits, scorer.primary_scores(state, instance, nodes), np.inf)
    second = secondary_verdict(state, instance, nodes, nodes, HTOOLS)
    limits = np.where(first.fits[:, None], second.limit, first.limit[:, None])
    scores = np.where(limits == Limit.NONE, scorer.pair_scores(state, instance, nodes, nodes), np.inf)
    pairs = ~np.eye(len(nodes), dtype=bool)
    return limits[pairs], scores[pairs]
