# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of a plan of moves in a real browser: 40 nodes and 200 moves at once, and an evacuation across groups.

Run with `pytest tests/browser`; needs Debian's package chromium. Screenshots are left in tests/output/browser.
"""

from __future__ import annotations

import pathlib
import random

import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.cluster.moves import possible_moves
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.plan.order import Guard
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.plan.picture.page import moves_page
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.plan.plain import plan_to_plain
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.plan.stages import stages
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.sources.load import load_cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.sources.text import parse_text
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.tasks.storages import run_storages
from ansible_collections.bareon.allocator.tests.browser.headless import DARK, LIGHT, ROOT, console, in_frame, measure, screenshot
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

WIDE, PHONE = 1280, 400
MOVES = 200

SEE = """
const box = (element) => { const r = element.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; };
const side = (name) => Object.fromEntries([...document.querySelectorAll(`.board .${name} .node`)].map((node) =>
  [node.getAttribute('aria-label').split(' ')[0], box(node)]));
const heads = [...document.querySelectorAll('button.head')];
const moves = heads.map((head) => head.parentElement);
"""
LOOK = f"""{SEE}
const ends = (path) => {{
  const map = path.getScreenCTM(), points = [path.getPointAtLength(0), path.getPointAtLength(path.getTotalLength())];
  return points.map((point) => {{ const at = point.matrixTransform(map); return [at.x, at.y]; }});
}};
const arrows = moves.map((move) => ({{ label: move.querySelector('button').getAttribute('aria-label'),
  lines: [...move.querySelectorAll('path.line')].map(ends), heads: [...move.querySelectorAll('.head')].map(box) }}));
const bars = [...document.querySelectorAll('.board .left .bar')].map((bar) => [box(bar), box(bar.querySelector('.used'))]);
const result = {{ arrows, left: side('left'), right: side('right'), bars, wide: document.documentElement.scrollWidth, view: innerWidth,
  requests: performance.getEntriesByType('resource').length }};
"""
USE = f"""{SEE}
const details = heads.map((head) => head.parentElement.querySelector('.detail'));
const shown = (elements) => elements.flatMap((element, at) => getComputedStyle(element).display === 'none' ? [] : [at]);
const before = shown(details);
const tips = [0, heads.length - 1].map((at) => {{
  heads[at].focus();
  const opacities = moves.map((move) => getComputedStyle(move).opacity);
  return {{ at, shown: shown(details), box: box(details[at]), own: opacities[at], others: opacities.filter((_, other) => other !== at) }};
}});
const node = document.querySelector('.board .left .node');
node.focus();
const number = [...node.classList].find((name) => /^r\\d+$/.test(name)).slice(1);
const dimmed = moves.map((move) => [move.classList.contains('n' + number), getComputedStyle(move).opacity]);
const nodeTip = box(node.querySelector('.tip'));
node.blur();
const inputs = [...document.querySelectorAll('.stages input')];
const stages = [0, 1, 2, inputs.length - 1].map((at) => {{
  inputs[at].checked = true;
  return [at, Number(inputs[at].parentElement.querySelector('small').textContent), shown(moves).length];
}});
const result = {{ before, tips, dimmed, nodeTip, stages }};
"""


def large_plan() -> dict:
    """Return a plan with very many moves; where they lead is drawn by lot, since only the picture is looked at."""
    state = ClusterState.from_cluster(parse_text(generate(nodes=40, seed=5, template="mixed", offline=1).text()))
    draw = random.Random(1)
    online = state.online().tolist()
    moves = []
    for instance in draw.sample(range(len(state.primary)), len(state.primary)):
        primary, secondary = draw.sample(online, 2)
        target = (primary, secondary) if state.secondary[instance] >= 0 else (primary, -1)
        ways = possible_moves(state, instance, target) if state.facts.instances.models[instance].disk_template != "plain" else []
        moves += ways[:1] if len(moves) < MOVES else []
    return plan_to_plain(state, stages(state, moves, Guard.at_every_step(state), 3), ScoreMode.HTOOLS)


def small_result() -> dict:
    """Return how a node is emptied into another group, with instances that stay."""
    source = {"type": "ganeti_text", "path": str(ROOT / "playbooks" / "files" / "cluster.data")}
    message = load_cluster({"source": source}, lambda path: path)
    return run_evacuate(message, {"nodes": ["node-0001.example.com", "node-0002.example.com"], "across_groups": "true"})


def storages_result() -> dict:
    """Return how the disks of eight nodes move, each from a full local storage to an empty one, and between two that all reach."""
    sizes = {"full": 100, "empty": 900}
    local = [{"type": "internal", "pool": pool, "total": 1024000, "free": 1000 * free} for pool, free in sizes.items()]
    shared = [{"type": "external", "pool": f"san-{pool}", "total": 8192000, "free": 8000 * free} for pool, free in sizes.items()]
    nodes = [
        {"name": f"node-{number}", "total_memory": 65536, "total_cpus": 16, "storage": [*(local if number < 7 else local[:1]), *shared]}
        for number in range(8)
    ]
    usual = {"memory": 1024, "vcpus": 1, "disk_template": "ext"}
    on_san = {"type": "external", "pool": "san-full"}
    instances = [
        {**usual, "name": f"vm-{node}-{number}", "primary": f"node-{node}", "disks": [{"size": 90000 + 1000 * number, "storage": storage}]}
        for node in range(8)
        for number, storage in enumerate([{"type": "internal", "pool": "full"}] * 4 + [on_san] * 5)
    ]
    return run_storages(Loaded(parse_inline({"nodes": nodes, "instances": instances}), {}), {"of": "storage"}, {})


@pytest.fixture(scope="session")
def plan() -> dict:
    return large_plan()


@pytest.fixture(scope="session")
def large(plan, tmp_path_factory) -> pathlib.Path:
    file = tmp_path_factory.mktemp("moves") / "large.html"
    file.write_text(moves_page({"plan": plan}, "40 nodes, 200 moves"), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def small(tmp_path_factory) -> pathlib.Path:
    result = small_result()
    file = tmp_path_factory.mktemp("moves") / "small.html"
    file.write_text(moves_page(result, "Emptying two nodes"), encoding="utf-8")
    return file


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_arrows_lead_from_node_to_node(large, plan, tmp_path, width):
    seen = measure(LOOK, tmp_path, large, width, height=4000)
    assert len(seen["left"]) == len(seen["right"]) == 40
    assert len(seen["arrows"]) == len(plan["moves"]) == MOVES
    known = {move["instance"]: move for move in plan["moves"]}
    for arrow in seen["arrows"]:
        move = known[arrow["label"].split(":")[0]]
        (start_x, start_y), (end_x, end_y) = arrow["lines"][0]
        from_node = move["from"][0] if move["from"][0] != move["to"][0] else move["from"][1]
        to_node = move["to"][0] if move["from"][0] != move["to"][0] else move["to"][1]
        left, right = seen["left"][from_node], seen["right"][to_node]
        assert left[1] <= start_y <= left[3]
        assert right[1] <= end_y <= right[3]
        assert start_x == pytest.approx(left[2], abs=1)
        assert right[0] - 12 <= end_x <= right[0]
        assert arrow["heads"][0][2] == pytest.approx(right[0], abs=2)


@pytest.fixture(scope="session")
def storages(tmp_path_factory) -> pathlib.Path:
    """The page of disks that move between storages, local and shared."""
    file = tmp_path_factory.mktemp("moves") / "storages.html"
    file.write_text(moves_page(storages_result(), "Even storages"), encoding="utf-8")
    return file


@pytest.mark.parametrize("width", [WIDE, 768, PHONE])
def test_nothing_reaches_beyond_the_page(large, small, storages, tmp_path, width):
    for page in (large, small, storages):
        seen = measure(LOOK, tmp_path, page, width, height=4000)
        assert (seen["view"], seen["requests"]) == (width, 0)
        assert seen["wide"] <= width


def test_bars_are_to_scale(large, plan, tmp_path):
    seen = measure(LOOK, tmp_path, large, WIDE, height=4000)
    bars = iter(seen["bars"])
    highest = max(node[when]["load"] for node in plan["nodes"] for when in ("before", "after"))
    for node in plan["nodes"]:
        for metric, whole in [*((metric, node["capacity"][metric]) for metric in ("memory", "disk", "cpus")), ("load", highest)]:
            frame, used = next(bars)
            drawn = (used[2] - used[0]) / (frame[2] - frame[0])
            assert drawn == pytest.approx(min(1.0, node["before"][metric] / whole), abs=0.01)


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_the_keyboard_reaches_every_move_and_node(large, plan, tmp_path, width):
    seen = measure(USE, tmp_path, large, width, height=4000)
    assert seen["before"] == []
    for tip in seen["tips"]:
        assert tip["shown"] == [tip["at"]]
        assert (tip["own"], set(tip["others"])) == ("1", {"0.13"})
        assert tip["box"][0] >= 0
        assert tip["box"][2] <= width
    assert {opacity for own, opacity in seen["dimmed"] if own} == {"1"}
    assert {opacity for own, opacity in seen["dimmed"] if not own} == {"0.08"}
    assert seen["nodeTip"][0] >= 0
    assert seen["nodeTip"][2] <= width
    sizes = [MOVES, *(len(stage) for stage in plan["stages"])]
    assert all(told == drawn == sizes[at] for at, told, drawn in seen["stages"])


def test_the_browser_has_nothing_to_complain_of(large, small, tmp_path):
    assert console(tmp_path, large) == []
    assert console(tmp_path, small) == []


def test_complaints_would_be_heard(tmp_path):
    page = tmp_path / "bad.html"
    page.write_text('<meta http-equiv="Content-Security-Policy" content="default-src \'none\'"><script>alert(1)</script>')
    assert console(tmp_path / "profile", page)


@pytest.mark.parametrize(("name", "flag", "paper"), [("light", LIGHT, (255, 255, 255)), ("dark", DARK, (21, 24, 28))])
def test_screenshots(large, small, tmp_path, name, flag, paper):
    for page, height in ((large, 1900), (small, 900)):
        rows = screenshot(tmp_path, page, f"moves-{page.stem}-{name}", f"{WIDE},{height}", flag)
        assert rows[2][2] == paper
        assert {(0x77, 0xAA, 0xDD), (0x44, 0xBB, 0x99), (0xE3, 0xC9, 0x4F), (0xEE, 0x88, 0x66)} <= {
            pixel for row in rows[::2] for pixel in row[::3]
        }
        frame = in_frame(page, PHONE, height)
        narrow = np.array(screenshot(tmp_path, frame, f"moves-{page.stem}-{name}-phone", f"{PHONE + 110},{height}", flag))
        assert tuple(narrow[2][2]) == paper


def test_the_plan_is_told_whole_in_the_page(large, plan):
    text = large.read_text(encoding="utf-8")
    assert all(move["instance"] in text for move in plan["moves"])
    assert len(text) < 600_000
