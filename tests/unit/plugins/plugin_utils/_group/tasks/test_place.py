# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers as tables: short names, columns, and one line for each that finds no place."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import (
    evacuation_summary,
    place,
    place_summary,
    reasons_line,
)
from ansible_collections.bareon.allocator.tests.support.group.policies import open_group


def message(bench, nodes, guests=()):
    return Loaded(bench.cluster(nodes, guests, [open_group("g"), open_group("h")]), {})


def test_places_and_refusals(bench):
    nodes = [bench.node("a.rack.example.com"), bench.node("b.example.com"), bench.node("c.example.com", "h", free_memory=100)]
    wanted = {"name": "web", "memory": 500, "disk": 2048, "vcpus": 1, "disk_template": "drbd"}
    lines = place_summary(place(message(bench, nodes), {"instances": [wanted, wanted | {"name": "second", "memory": 800}]})).splitlines()
    assert lines[0] == "web: 1 of 2 groups can take it"
    assert lines[1].split() == ["group", "policy", "nodes", "score", "lost", "disk", "left"]
    assert lines[2].split()[:3] in (["g", "preferred", "a.rack:b"], ["g", "preferred", "b:a.rack"])
    assert lines[2].endswith("MiB") or lines[2].endswith("GiB")
    assert lines[3] == "h cannot: c.example.com: memory short by 400 MiB"
    assert lines[4] == ""
    assert lines[5] == "second: 0 of 2 groups can take it"
    assert lines[6].startswith("g cannot: ")


def test_moves_and_what_stays(bench):
    nodes = [bench.node("a"), bench.node("b"), bench.node("c")]
    guests = [bench.instance("moves", "a", "b"), bench.instance("stays", "a", disk_template=DiskTemplate.PLAIN)]
    lines = evacuation_summary(run_evacuate(message(bench, nodes, guests), {"nodes": ["a"]})).splitlines()
    assert lines[0].startswith("1 of 2 instances move in 1 stage, 1000 MiB are copied; score ")
    assert lines[2].split() == ["stage", "instance", "move", "group", "copied", "from", "->", "to"]
    assert lines[3].split()[:4] == ["1", "moves", "failover_and_replace", "g"]
    assert lines[-1] == "stays stays: disks of template plain cannot be moved to another node"


def test_what_breaks_soft_limits_is_told(bench):
    nodes = [bench.node("dead", offline=True), bench.node("b"), bench.node("c")]
    guests = [bench.instance("i", "dead", memory=300, disk_template=DiskTemplate.EXT)]
    guests.append(bench.instance("j", "c", memory=900, disk_template=DiskTemplate.EXT))
    told = evacuation_summary(run_evacuate(message(bench, nodes, guests), {}))
    assert "i: N+1, CPUs or tags are violated where it goes" in told.splitlines()


def test_long_lists_of_reasons_are_cut():
    reasons = [{"node": f"n{number}", "limit": "disk", "short": number} for number in range(9)]
    assert reasons_line(reasons).endswith("n4: disk short by 4 MiB; 4 more")
    assert reasons_line([{"node": None, "limit": "network", "short": 1, "says": "not connected"}]) == "not connected"
