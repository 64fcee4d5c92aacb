# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan with more moves than a board can show: heat before and after, a table of all moves, and a script that only a digest lets run."""

from __future__ import annotations

import base64
import copy
import hashlib
import re
from xml.etree import ElementTree

import pytest
from ansible_collections.bareon.allocator.plugins.filter.moves_to_html import moves_to_html
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.picture.nodes import node_parts
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.picture.overview import overview

MOVES = 90


def used(memory=0, disk=0, cpus=0, reserved=0):
    return {"memory": memory, "reserved": reserved, "disk": disk, "cpus": cpus, "load": 1.0, "primaries": 1, "secondaries": 0}


def node(name, group, before, after, offline=False):
    capacity = {"memory": 1000, "disk": 1000, "cpus": 10.0}
    return {"node": f"{name}.x.org", "group": group, "offline": offline, "capacity": capacity, "before": before, "after": after}


@pytest.fixture
def plan():
    """Ninety instances leave `hot`: two of three within its group, one to the other group, where it gets a mirror."""
    nodes = [
        node("hot", "g", used(memory=900, reserved=200), used(memory=300)),
        node("cool", "g", used(disk=500), used(disk=501)),
        node("away", "h", used(), used(cpus=8)),
        node("dead", "h", used(), used(), offline=True),
    ]
    moves = [
        {"instance": f"vm{at}", "kind": "failover_to_any", "from": ["hot.x.org"], "to": ["cool.x.org"], "data": 0}
        if at % 3
        else {"instance": f"vm{at}", "kind": "replace_both", "from": ["hot.x.org"], "to": ["away.x.org", "dead.x.org"], "data": 10240 + at}
        for at in range(MOVES)
    ]
    stages = [list(range(45, 90)), list(range(45))]
    return {"nodes": nodes, "moves": moves, "stages": stages, "score_before": 2.0, "score_after": 1.0}


def test_heat_is_the_scarcest_capacity_with_what_is_kept(plan):
    shown = overview(*node_parts(plan))
    assert [(group.name, len(group.rows), group.moves) for group in shown.groups] == [("g", 2, 90), ("h", 2, 0)]
    hot, cool, away, dead = (row for group in shown.groups for row in group.rows)
    assert [(row.before.percent, row.before.shade, row.after.percent, row.after.shade) for row in (hot, cool, away, dead)] == [
        ("110%", 5, "30%", 0),
        ("50%", 0, "50%", 1),
        ("0%", 0, "80%", 2),
        ("0%", 0, "0%", 0),
    ]
    assert hot.metrics == ("90% → 30%", "0%", "0%")
    assert [(row.leaving, row.coming) for row in (hot, cool, away, dead)] == [(90, 0), (0, 60), (0, 30), (0, 30)]


def test_moves_are_told_in_the_order_of_stages_with_their_lines(plan):
    shown = overview(*node_parts(plan))
    assert [one.move.instance for one in shown.moves] == [f"vm{at}" for at in (*range(45, 90), *range(45))]
    lines = {one.move.instance: (one.lines, one.copied, one.move.way) for one in shown.moves}
    assert lines["vm1"] == ("0 0 1", "", "hot → cool")
    assert lines["vm0"] == ("1 0 2 2 0 3", "10 GiB", "hot → away, dead")
    assert shown.across


def test_the_page_tells_all_and_lets_one_script_run(plan):
    plan["moves"][0]["instance"] = "</script><script>alert(1)</script>"
    page = moves_to_html({"plan": plan, "groups": [{"group": "g", "score_before": 3.0, "score_after": 1.5}]}, title="All <90>")
    assert "<h1>All &lt;90&gt;</h1>" in page
    assert "score 3 before, 1.5 after" in page
    assert page.count("<tr data-l=") == MOVES
    assert "between groups" in page
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert not re.search(r"(src|href)=[\"'](?!#)|url\(|@import|fetch\(|XMLHttp", page), "nothing is loaded"
    text = re.sub(r"<!DOCTYPE html>|<meta[^>]*>|<style>.*?</style>|<script>.*?</script>", "", page, flags=re.DOTALL)
    assert ElementTree.fromstring(text).tag == "html", "every element is closed"


def test_few_moves_stay_on_boards(plan):
    few = copy.deepcopy(plan)
    few["moves"], few["stages"] = few["moves"][:60], [list(range(60))]
    assert "<script" not in moves_to_html(few)
    assert 'class="board"' in moves_to_html(few)
    assert 'class="board"' not in moves_to_html(plan)
