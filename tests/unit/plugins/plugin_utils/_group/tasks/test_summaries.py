# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers as text to read: each of them says what is done, by how much, and what is left undone."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate, Load
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.evacuate import evacuation
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.compress import run_compress
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.info import report, summary
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.maintenance import run_maintenance, run_squeeze
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import reasons_line
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.redistribute import run_redistribute
from ansible_collections.bareon.allocator.tests.support.group.policies import open_group


def told(run, bench, nodes, instances, **arguments):
    groups = [open_group(name) for name in dict.fromkeys(node.group for node in nodes)]
    return run(Loaded(bench.cluster(nodes, instances, groups), {}), arguments)["summary"].splitlines()


def two_groups(bench, **first):
    return [bench.node("a", **first), bench.node("b"), bench.node("x", "h"), bench.node("y", "h")]


def test_redistribution_says_what_is_wrong_and_what_moves(bench):
    lines = told(run_redistribute, bench, two_groups(bench, offline=True), [bench.instance("i", "a", "b")])
    assert lines[0].split("  ")[0] == "group"
    rows = [line.split()[:3] for line in lines if line.startswith(("g ", "h "))]
    assert rows == [["g", "healed", "1"], ["h", "healthy", "0"]]
    assert any(line.split()[:2] == ["1", "i"] for line in lines)


def test_redistribution_says_who_finds_no_place(bench):
    nodes = [bench.node("a", offline=True), bench.node("b", total_memory=100.0, free_memory=100)]
    lines = told(run_redistribute, bench, nodes, [bench.instance("i", "a", memory=400, disk_template=DiskTemplate.EXT)])
    assert any(line.startswith("g ") and "not healthy" in line for line in lines)
    assert any(line.startswith("i: ") for line in lines)


def test_redistribution_for_load_shows_pressures(bench):
    shared = {"disk_template": DiskTemplate.EXT, "load": Load(4.0, 4.0, 4.0, 4.0)}
    instances = [bench.instance(f"i{n}", "ab"[n % 2], **shared) for n in range(6)]
    lines = told(run_redistribute, bench, two_groups(bench), instances, by="load", tolerance=0.1, min_gain=0.0)
    assert lines[0].split() == ["group", "pressure", "after", "outlier", "then"]
    assert float(lines[1].split()[1]) > float(lines[1].split()[2])


def test_compression_marks_the_group_that_is_emptied(bench):
    lines = told(run_compress, bench, two_groups(bench), [bench.instance("i", "a", "b"), bench.instance("j", "x", "y", memory=900)])
    assert lines[1].split()[:3] == ["*", "g", "1"]
    assert "g is emptied." in lines
    alone = told(run_compress, bench, two_groups(bench)[:2], [bench.instance("i", "a", "b")])
    assert "No group can be emptied." in alone


def test_maintenance_shows_the_sets_and_who_is_in_the_way(bench):
    nodes = [bench.node(name) for name in "abc"]
    lines = told(run_maintenance, bench, nodes, [bench.instance("i", "a", "b")])
    assert lines[0].split() == ["set", "nodes", "moves", "away", "copied", "moves", "back"]
    assert lines[1].split()[0] == "1"
    stuck = bench.instance("p", "a", memory=900)
    full = [bench.instance("q", "b", memory=900), bench.instance("r", "c", memory=900)]
    assert any(line.startswith("a is left out: p: ") for line in told(run_maintenance, bench, nodes, [stuck, *full]))


def test_squeezing_names_the_nodes(bench):
    nodes = [bench.node(name, tags=("htools:standby:auto",)) for name in "abc"]
    lines = told(run_squeeze, bench, nodes, [bench.instance("i", "a", memory=10, disk=10, disk_template=DiskTemplate.EXT)])
    assert lines == ["can be switched off: b"]
    alone = told(run_squeeze, bench, [bench.node("a")], [bench.instance("i", "a")])
    assert alone == ["All nodes stay as they are.", "", "Left out: 1 local_disks."]


def test_amounts_are_told_as_people_write_them(bench):
    reasons = [
        {"node": "a", "limit": "memory", "short": 2293760},
        {"node": "b", "limit": "offline", "short": 0},
        {"node": "c", "limit": "cpus", "short": 1.5},
    ]
    assert reasons_line(reasons) == "a: memory short by 2.19 TiB; b: offline; c: cpus short by 1.5"
    big = bench.node("n", total_memory=3e6, free_memory=3000000 - 2293760)
    (line,) = [line for line in summary(report(bench.cluster([big]), ScoreMode.HTOOLS)).splitlines() if line.startswith("missing_memory")]
    assert "2.19 TiB" in line


def test_healthy_means_all_policies(bench):
    nodes = [bench.node("a", total_cpus=1.0), bench.node("b")]
    cluster = bench.cluster(nodes, [bench.instance("i", "a", vcpus=80)], [open_group("g")])
    health = report(cluster, ScoreMode.HTOOLS)["health"]
    assert (health["healthy"], health["cpus"]) == (False, 1)


def test_places_in_other_groups_come_before_limits_break(bench, monkeypatch):
    """In its own group it would strand the others, wherever it goes, and there are more nodes than are tried."""
    monkeypatch.setattr(evacuation, "MOST_TRIED", 1)
    nodes = [bench.node("dead", offline=True), bench.node("b"), bench.node("c"), bench.node("x", "h"), bench.node("y", "h")]
    shared = {"disk_template": DiskTemplate.EXT}
    instances = [
        bench.instance(name, node, memory=memory, **shared) for name, node, memory in (("i", "dead", 300), ("j", "b", 500), ("k", "c", 400))
    ]
    groups = [open_group("g"), open_group("h")]
    found = run_evacuate(Loaded(bench.cluster(nodes, instances, groups), {}), {"across_groups": "true"})
    assert [(placed["group"], placed["relaxed"]) for placed in found["placed"]] == [("h", False)]
