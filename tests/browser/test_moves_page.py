# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of a plan of moves in a real browser: a board of 60 moves, an evacuation across groups, and 400 nodes with 2,238 moves.

Run with `pytest tests/browser`; needs Debian's package chromium. Screenshots are left in tests/output/browser.
"""

from __future__ import annotations

import pathlib
import random
import re
import subprocess

import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.plain import plain
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.moves import Move, possible_moves
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.order import Guard
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.picture.page import moves_page
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.plain import plan_to_plain
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.stages import Plan, stages
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.load import load_cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.storages import run_storages
from ansible_collections.bareon.allocator.tests.browser.headless import (
    DARK,
    LIGHT,
    ROOT,
    SHOTS,
    chromium,
    console,
    in_frame,
    measure,
    screenshot,
)
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

WIDE, PHONE = 1280, 400
NODES, MOVES = 20, 60
MANY_NODES, MANY_MOVES = 400, 2238

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


EXPLORE = """
const rows = () => [...document.querySelectorAll('.moves tbody tr')].filter((row) => row.offsetHeight);
const [words, node] = document.querySelectorAll('.find label > input'), said = document.querySelector('.find output');
const names = (list) => [...list.querySelectorAll('li :not(b, i)')].map((name) => name.textContent);
const sides = () => [...document.querySelectorAll('.ways ol')].map(names);
const type = (input, text) => { input.value = text; input.dispatchEvent(new Event('input', { bubbles: true })); };
const state = () => ({ rows: rows().map((row) => row.cells[1].textContent), said: said.textContent, sides: sides(),
  ribbons: document.querySelectorAll('.flow path').length,
  counts: [...document.querySelectorAll('.count')].map((one) => Number(one.textContent)) });
const found = { all: state() };
const begun = performance.now();
type(words, WORDS);
found.took = performance.now() - begun;
found.words = state();
type(words, '');
type(node, NODE);
found.node = state();
found.lit = [...document.querySelectorAll('.map i.on')].length;
found.chosen = [...document.querySelectorAll('.map i.chosen')].length;
document.querySelector('.find').reset();
type(node, '');
document.querySelector('.map i').click();
found.clicked = node.value;
document.querySelector('.map i').click();
const copied = document.querySelectorAll('.moves .sort')[4];
copied.click(); copied.click();
found.largest = Number(rows()[0].cells[4].dataset.v);
found.sorted = copied.closest('th').ariaSort;
document.querySelector('.more').click();
found.everything = rows().length;
found.wide = document.documentElement.scrollWidth;
found.view = innerWidth;
found.requests = performance.getEntriesByType('resource').length;
const result = found;
"""


def drawn_by_lot(nodes: int, most: int, offline: int = 1) -> tuple[ClusterState, list[Move]]:
    """Return a cluster and so many moves; where they lead is drawn by lot, since only the picture is looked at."""
    state = ClusterState.from_cluster(parse_text(generate(nodes=nodes, seed=5, template="mixed", offline=offline).text()))
    draw = random.Random(1)
    online = state.online().tolist()
    moves: list[Move] = []
    for instance in draw.sample(range(len(state.primary)), len(state.primary)):
        primary, secondary = draw.sample(online, 2)
        target = (primary, secondary) if state.secondary[instance] >= 0 else (primary, -1)
        ways = possible_moves(state, instance, target) if state.facts.instances.models[instance].disk_template != "plain" else []
        moves += ways[:1] if len(moves) < most else []
    return state, moves


def large_plan() -> dict:
    """Return a plan with as many moves as a board can show."""
    state, moves = drawn_by_lot(NODES, MOVES)
    return plan_to_plain(state, stages(state, moves, Guard.at_every_step(state), 3), ScoreMode.HTOOLS)


def huge_plan() -> dict:
    """Return a plan with very many moves, a hundred in each stage."""
    state, moves = drawn_by_lot(MANY_NODES, MANY_MOVES)
    positions = range(len(moves))
    staged = tuple(tuple(positions[first : first + 100]) for first in range(0, len(moves), 100))
    return plan_to_plain(state, Plan(tuple(moves), ((),) * len(moves), staged), ScoreMode.HTOOLS)


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
    file.write_text(moves_page({"plan": plan}, f"{NODES} nodes, {MOVES} moves"), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def many() -> dict:
    return plain(huge_plan())


@pytest.fixture(scope="session")
def huge(many, tmp_path_factory) -> pathlib.Path:
    file = tmp_path_factory.mktemp("moves") / "huge.html"
    file.write_text(moves_page({"plan": many}, f"{MANY_NODES} nodes, {MANY_MOVES} moves"), encoding="utf-8")
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
    assert len(seen["left"]) == len(seen["right"]) == NODES
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
def test_nothing_reaches_beyond_a_page_of_boards(large, small, storages, tmp_path, width):
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


def short(name: str) -> str:
    return name.partition(".")[0]


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_what_is_looked_for_is_found_among_thousands_of_moves(huge, many, tmp_path, width):
    moves = many["moves"]
    word, node = moves[7]["instance"][:8], short(moves[7]["to"][0])
    script = EXPLORE.replace("WORDS", f"{word!r}").replace("NODE", f"{node!r}")
    seen = measure(script, tmp_path, huge, width, height=4000)
    assert (len(seen["all"]["rows"]), seen["all"]["ribbons"]) == (100, 40)
    assert seen["all"]["said"].startswith("2,238 moves, ")
    matching = [move["instance"] for move in moves if word in move["instance"]]
    assert seen["words"]["rows"] == matching[:100]
    assert seen["words"]["said"].startswith(f"{len(matching)} of 2,238 moves, ")
    own = [move for move in moves if node in map(short, (*move["from"], *move["to"])) and touches(move, node)]
    assert seen["node"]["rows"] == [move["instance"] for move in own]
    assert any(node in side for side in seen["node"]["sides"])
    assert (seen["chosen"], seen["clicked"]) == (2, short(many["nodes"][0]["node"]))
    assert seen["lit"] >= 4
    assert (seen["largest"], seen["sorted"]) == (max(move["data"] for move in moves), "descending")
    assert seen["everything"] == MANY_MOVES
    assert (seen["view"], seen["requests"]) == (width, 0)
    assert seen["wide"] <= width
    # Whatever the machine, this is far from what makes a reader wait.
    assert seen["took"] < 500


def touches(move: dict, node: str) -> bool:
    """Return whether a line of a move begins or ends at a node: one that keeps its mirror there is not drawn."""
    source, target = ([short(name) for name in move[end]] for end in ("from", "to"))
    lost = [name for name in source if name not in target] or [source[0]]
    mirrors = [name for name in target[1:] if name not in source]
    ends = [source[0], target[0]] if source[0] != target[0] else []
    return node in (*ends, *mirrors, *(lost[-1:] if mirrors else []))


def test_ribbons_carry_the_counts_of_their_moves(tmp_path):
    """A node that is emptied onto two others: three hundred moves are a few ribbons, and their counts are all the moves."""
    names = ["full.example.com", "left.example.com", "right.example.com"]
    used = {"memory": 512, "reserved": 0, "disk": 0, "cpus": 1, "load": 1.0, "primaries": 1, "secondaries": 0}
    nodes = [
        {"node": name, "group": "g", "offline": False, "capacity": {"memory": 1024, "disk": 0, "cpus": 4.0}, "before": used, "after": used}
        for name in names
    ]
    moves = [
        {"instance": f"vm{number}", "kind": "failover_to_any", "from": names[:1], "to": [names[1 + number % 3 // 2]], "data": 0}
        for number in range(300)
    ]
    page = tmp_path / "emptied.html"
    told = {"nodes": nodes, "moves": moves, "stages": [list(range(300))], "score_before": 2.0, "score_after": 1.0}
    page.write_text(moves_page({"plan": told}), encoding="utf-8")
    seen = measure(EXPLORE.replace("WORDS", "'vm29'").replace("NODE", "'right'"), tmp_path / "profile", page, WIDE)
    assert seen["all"]["sides"] == [["full"], ["left", "right"]]
    assert seen["all"]["counts"] == [200, 100]
    assert seen["node"]["counts"] == [100]
    assert seen["words"]["said"] == "11 of 300 moves, 0 MiB copied"


def test_an_overview_is_small_and_prints_whole(huge, many, tmp_path):
    assert huge.stat().st_size < 1_000_000
    SHOTS.mkdir(parents=True, exist_ok=True)
    target = SHOTS / "moves-huge.pdf"
    chromium(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={target}", huge.as_uri())
    told = subprocess.run(["pdftotext", str(target), "-"], capture_output=True, text=True, check=True, timeout=60).stdout
    text = re.sub(r"\s+", "", told)
    assert all(move["instance"] in text for move in many["moves"])
    assert all(short(node["node"]) in text for node in many["nodes"])


def test_the_browser_has_nothing_to_complain_of(large, small, huge, tmp_path):
    assert console(tmp_path, large) == []
    assert console(tmp_path, small) == []
    assert console(tmp_path, huge) == []


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


@pytest.mark.parametrize(
    ("name", "flag", "paper", "hot"),
    [("light", LIGHT, (255, 255, 255), (0xA0, 0x17, 0x2C)), ("dark", DARK, (21, 24, 28), (0xFF, 0x4D, 0x78))],
)
def test_the_heat_is_seen(huge, tmp_path, name, flag, paper, hot):
    rows = screenshot(tmp_path, huge, f"moves-huge-{name}", f"{WIDE},1800", flag)
    assert rows[2][2] == paper
    assert hot in {pixel for row in rows[::2] for pixel in row[::3]}
    screenshot(tmp_path, in_frame(huge, PHONE, 2400), f"moves-huge-{name}-phone", f"{PHONE + 110},2400", flag)


def test_the_plan_is_told_whole_in_the_page(large, plan):
    text = large.read_text(encoding="utf-8")
    assert all(move["instance"] in text for move in plan["moves"])
    assert len(text) < 600_000
