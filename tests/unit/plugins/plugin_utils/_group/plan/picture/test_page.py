# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans as pictures: an arrow for each move, rows for the nodes it touches, words that are right and cannot break the page."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.bareon.allocator.plugins.filter.moves_to_html import moves_to_html
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Group
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.picture.nodes import node_pictures
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate


def evacuated(bench, members, instances, **arguments):
    groups = [Group(name, f"uuid-{name}") for name in dict.fromkeys(node.group for node in members)]
    return run_evacuate(Loaded(bench.cluster(members, instances, groups), {}), arguments)


@pytest.fixture
def inside(bench):
    nodes = [bench.node(f"{name}.example.com") for name in "abcd"]
    names = [node.name for node in nodes]
    instances = [bench.instance(f"i{at}", names[0], names[1 + at % 2]) for at in range(4)]
    instances.append(bench.instance("other", names[1], names[2]))
    return evacuated(bench, nodes, instances, nodes=[names[0]])


@pytest.fixture
def across(bench):
    nodes = [bench.node("a1", "g"), bench.node("a2", "g"), *(bench.node(f"b{number}", "h") for number in range(3)), bench.node("c", "k")]
    return evacuated(
        bench,
        nodes,
        [bench.instance("i", "a1", "a2", memory=200, disk=2000), bench.instance("j", "b0", "b1")],
        nodes=["a1"],
        across_groups="only",
    )


def test_each_move_is_an_arrow_between_the_rows_of_its_nodes(inside):
    (picture,) = node_pictures(inside["plan"])
    moves = inside["plan"]["moves"]
    assert [arrow.instance for arrow in picture.arrows] == [move["instance"] for move in moves]
    at = {row.name: height for height, row in enumerate(picture.rows)}
    for move, arrow in zip(moves, picture.arrows):
        first = arrow.lines[0]
        assert (first.role, int(first.start), int(first.end)) == ("primary", at[move["from"][0]], at[move["to"][0]])
        gained = set(move["to"][1:]) - set(move["from"])
        assert [at[name] for name in gained] == [int(line.end) for line in arrow.lines if line.role == "mirror"]
        assert arrow.copies == (move["data"] > 0)
    assert sum(count for _stage, count in picture.stages) == len(moves)


def test_rows_are_the_nodes_that_moves_touch(across):
    (picture,) = node_pictures(across["plan"])
    touched = {node for move in across["plan"]["moves"] for end in ("from", "to") for node in move[end]}
    everything = {node["node"] for node in across["plan"]["nodes"]}
    assert touched < everything
    assert {row.name for row in picture.rows} & everything == touched
    assert {row.name for row in picture.still} == everything - touched


def test_ends_that_share_a_row_lie_apart_and_do_not_cross(inside):
    (picture,) = node_pictures(inside["plan"])
    lines = [line for arrow in picture.arrows for line in arrow.lines]
    assert len({line.start for line in lines}) == len(lines)
    assert len({line.end for line in lines}) == len(lines)
    for one in lines:
        for other in lines:
            if int(one.start) == int(other.start) and int(one.end) < int(other.end):
                assert one.start < other.start
    assert picture.ends == max(sum(int(line.start) == row for line in lines) for row in range(len(picture.rows)))


def test_names_lose_the_domain_that_all_share(inside):
    rows = [row for picture in node_pictures(inside["plan"]) for row in (*picture.rows, *picture.still)]
    assert sorted((row.name, row.label) for row in rows) == [(f"{name}.example.com", name) for name in "abcd"]


@pytest.mark.parametrize("names", [["a.example.com"], ["a.example.com", "b"], ["a.example.com", "b.example.org"], ["a", "b"]])
def test_names_keep_what_not_all_end_with(inside, names):
    nodes = [node | {"node": name} for node, name in zip(inside["plan"]["nodes"], names)]
    (picture,) = node_pictures({"nodes": nodes, "moves": [], "stages": []})
    assert [row.label for row in picture.still] == names


def test_bars_tell_what_is_used(inside):
    (picture,) = node_pictures(inside["plan"])
    row = next(row for row in picture.rows if row.label == "a")
    memory, disk, cpus, load = row.before
    assert (memory.used, disk.used, cpus.used) == pytest.approx((0.4, 0.4, 0.1))
    assert load.used == pytest.approx(1.0), "the highest load of all fills its drawn"
    assert [drawn.used for drawn in row.after] == [0, 0, 0, 0]
    assert [drawn.before for drawn in row.after] == [drawn.used for drawn in row.before]
    assert row.words[0] == "memory: 400 MiB of 1000 MiB → 0 MiB of 1000 MiB"
    assert row.words[-1] == "4 primaries and 0 secondaries → 0 primaries and 0 secondaries"
    kept = [drawn for row in picture.rows for drawn in row.after if drawn.reserved]
    assert kept
    assert all(drawn.metric == "memory" and "kept for failovers" in drawn.words for drawn in kept)


def test_groups_that_a_move_connects_share_a_picture(across):
    (picture,) = node_pictures(across["plan"])
    assert picture.groups == ("g", "h")
    assert [row.name for row in picture.rows if row.number < 0] == ["g", "h"]
    assert len(picture.arrows) == len(across["plan"]["moves"]) == 1
    assert len(picture.arrows[0].lines) == 2


def test_the_page_is_whole_and_holds_no_markup_of_names(inside):
    inside["plan"]["moves"][0]["instance"] = "<script>alert(1)</script>"
    inside["unplaced"] = [{"instance": "<b>", "reasons": [{"node": None, "limit": "policy_memory", "short": 3, "says": "a & b"}]}]
    page = moves_to_html(inside, title="Rack <12>")
    assert "<script" not in page
    assert "all nodes: policy memory, 3 short: a &amp; b" in page
    assert "<h1>Rack &lt;12&gt;</h1>" in page
    assert page.count('<li class="move ') == len(inside["plan"]["moves"])
    assert not re.search(r"(src|href)=[\"'](?!#)|url\(|@import", page), "nothing is loaded"
    text = re.sub(r"<!DOCTYPE html>|<meta[^>]*>|<style>.*?</style>", "", page, flags=re.DOTALL)
    text = re.sub(r"<input ([^>]*?)( checked)?>", r"<input \1/>", text).replace(' tabindex="0"', "")
    assert ElementTree.fromstring(text).tag == "html", "every element is closed"


def test_the_page_tells_scores_of_groups_where_they_are_known(inside):
    inside["groups"] = [{"group": "g", "score_before": 26.4107, "score_after": 4.25}, {"group": "other"}]
    assert "score 26.41 before, 4.25 after · " in moves_to_html(inside)
    assert " before, 4.25 after" not in moves_to_html(inside["plan"])


def test_a_plan_without_moves_is_a_page_too():
    page = moves_to_html({"moves": [], "stages": [], "nodes": [], "score_before": 1.0, "score_after": 1.0})
    assert "<b>0</b> moves" in page


@pytest.mark.parametrize(
    "wrong", [None, [], {}, {"plan": None}, {"moves": [], "stages": []}, {"moves": [{}], "stages": [[0]], "nodes": []}]
)
def test_what_is_no_plan_is_told(wrong):
    with pytest.raises(AnsibleFilterError, match=r"^moves_to_html (needs|cannot read)"):
        moves_to_html(wrong)


@pytest.mark.parametrize("character", ["\u202e", "\u2066", "\x1b", "\x9b"])
def test_what_nobody_sees_in_a_name_is_marked(inside, character):
    text = json.dumps(inside)
    for name in ("a.example.com", "i0"):
        text = text.replace(f'"{name}"', json.dumps(f"{name}{character}"))
    page = moves_to_html(json.loads(text), title=f"Moves{character}")
    for name in ("Moves", "a.example.com", "i0"):
        assert f"{name}\N{REPLACEMENT CHARACTER}" in page
    assert character not in page
