# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Draw the rooms of the code, their packages and who imports whom, from the imports as they are.

    make picture
    PYTHONPATH=.venv/collections .venv/bin/python tests/utils/draw_rooms.py [FILE]

Inside a room an arrow that follows from others is left out: a package may import all that it reaches. Between rooms all arrows are drawn.
"""

from __future__ import annotations

import dataclasses
import html
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import networkx
from ansible_collections.bareon.allocator.tests.support.house.imports import PLUGINS, ROOT, floor_of, imports, room_of

PICTURE = ROOT / "docs" / "development" / "rooms.svg"
WIDTHS = {"package": 13.0, "room": 8.2}
"""Pixels for a box without its text, and for a letter."""
HIGH, ROW, GAP, MARGIN, TITLE = 26, 62, 16, 14, 30
COLOURS = {
    "action, filter, inventory, lookup": "#6b7280",
    "modules": "#6b7280",
    "bridge": "#b45309",
    "group": "#1d4ed8",
    "provider": "#7c3aed",
    "disk": "#047857",
    "common": "#be123c",
    "module_utils": "#0e7490",
}
SAYS = {
    "action, filter, inventory, lookup": "doors on the controller: arguments in, one call, a result out",
    "modules": "doors on hosts, and the documentation of all",
    "bridge": "joins rooms that do not know each other",
    "group": "clusters: score, place, move",
    "provider": "the ledger, and where a request fits",
    "disk": "from a dynamic schema to exact sizes",
    "common": "errors, fields, libraries, programs",
    "module_utils": "on hosts: facts, layouts, steps; storage is for both sides",
}


@dataclasses.dataclass(frozen=True)
class Box:
    """A rectangle in pixels."""

    left: float
    top: float
    wide: float
    high: float

    @property
    def middle(self) -> float:
        return self.left + self.wide / 2

    @property
    def bottom(self) -> float:
        return self.top + self.high

    def moved(self, right: float, down: float) -> Box:
        return dataclasses.replace(self, left=self.left + right, top=self.top + down)


@dataclasses.dataclass(frozen=True)
class Room:
    """A room laid out from its own left upper corner: boxes of packages, and arrows as points to pass."""

    name: str
    wide: float
    high: float
    packages: dict[str, Box]
    arrows: list[list[tuple[float, float]]]


def room_name(place: tuple[str, ...]) -> str:
    """Return the room or the door of a file."""
    return room_of(place) or ("modules" if place[0] == "modules" else "action, filter, inventory, lookup")


def read() -> tuple[dict[str, networkx.DiGraph], set[tuple[str, str, str]]]:
    """Return the packages of each room with their arrows, and who imports which package of another room."""
    inside = {name: networkx.DiGraph() for name in COLOURS}
    across = set()
    for found in imports():
        place = found.source.relative_to(PLUGINS).with_suffix("").parts
        if place[-1] == "__init__":
            continue
        source = room_name(place)
        if room_of(place):
            inside[source].add_node(floor_of(place))
        if found.target is None:
            continue
        target = room_name(found.target)
        if source != target:
            across.add((source, target, floor_of(found.target)))
        elif room_of(place) and floor_of(place) != floor_of(found.target):
            inside[source].add_edge(floor_of(place), floor_of(found.target))
    return inside, across


def lay_out(name: str, graph: networkx.DiGraph) -> Room:
    """Put packages in rows so that every arrow points down, and long arrows round the boxes between."""
    wide_title = MARGIN * 2 + 6.4 * len(SAYS[name])
    if not graph:
        return Room(name, max(wide_title, 210), TITLE + 34, {}, [])
    drawn = networkx.transitive_reduction(graph)
    level: dict[str, int] = {}
    for node in reversed(list(networkx.lexicographical_topological_sort(drawn))):
        level[node] = max((level[below] + 1 for below in drawn[node]), default=0)
    top = max(level.values())
    rows: list[list[str]] = [sorted(node for node in level if level[node] == top - row) for row in range(top + 1)]
    chains, links = [], networkx.DiGraph()
    for upper, lower in sorted(drawn.edges):
        chain = [upper, *(f"{upper}>{lower}>{step}" for step in range(level[upper] - 1, level[lower], -1)), lower]
        chains.append(chain)
        networkx.add_path(links, chain)
        for step, between in enumerate(chain[1:-1], start=1):
            rows[top - level[upper] + step].append(between)
    _untangle(rows, links)
    widths = [[_width(node) for node in row] for row in rows]
    wide = max(wide_title, *(sum(row) + GAP * (len(row) - 1) + 2 * MARGIN for row in widths))
    boxes = {}
    for number, row in enumerate(rows):
        left = (wide - sum(widths[number]) - GAP * (len(row) - 1)) / 2
        for node, width in zip(row, widths[number]):
            boxes[node] = Box(left, TITLE + 34 + number * ROW, width, HIGH)
            left += width + GAP
    arrows = [
        [(boxes[chain[0]].middle, boxes[chain[0]].bottom), *_bends(boxes, chain), (boxes[chain[-1]].middle, boxes[chain[-1]].top)]
        for chain in chains
    ]
    return Room(name, wide, TITLE + 34 + top * ROW + HIGH + MARGIN, {node: boxes[node] for node in level}, arrows)


def _bends(boxes: dict[str, Box], chain: Sequence[str]) -> list[tuple[float, float]]:
    return [(boxes[node].middle, end) for node in chain[1:-1] for end in (boxes[node].top, boxes[node].bottom)]


def _width(node: str) -> float:
    return 4.0 if ">" in node else 2 * WIDTHS["package"] + 7.0 * len(node)


def _untangle(rows: list[list[str]], links: networkx.DiGraph) -> None:
    """Order rows by the middles of what their boxes are linked with, to and fro."""
    for sweep in range(24):
        order = range(1, len(rows)) if sweep % 2 == 0 else range(len(rows) - 2, -1, -1)
        for number in order:
            other = rows[number - 1 if sweep % 2 == 0 else number + 1]
            at = {node: (position + 0.5) / len(other) for position, node in enumerate(other)}
            near = links.predecessors if sweep % 2 == 0 else links.successors
            now = {node: (position + 0.5) / len(rows[number]) for position, node in enumerate(rows[number])}

            rows[number].sort(
                key=lambda node, at=at, now=now, near=near: (_middle(near(node) if node in links else (), at, now[node]), node)
            )


def _middle(linked: Iterable[str], at: dict[str, float], otherwise: float) -> float:
    found = [at[one] for one in linked if one in at]
    return sum(found) / len(found) if found else otherwise


def place_rooms(rooms: dict[str, Room]) -> dict[str, Box]:
    """Put the rooms of the controller below their doors, and those of hosts beside them."""
    gap, space = 40, 62
    middle = ("group", "provider", "disk")
    wide = sum(rooms[name].wide for name in middle) + gap * 2
    tall = max(rooms[name].high for name in middle)
    boxes = {"action, filter, inventory, lookup": Box(0, 0, wide, rooms["action, filter, inventory, lookup"].high)}
    top = boxes["action, filter, inventory, lookup"].bottom + space
    boxes["bridge"] = Box(rooms["group"].wide * 0.85, top, rooms["bridge"].wide, rooms["bridge"].high)
    top = boxes["bridge"].bottom + space
    left = 0.0
    for name in middle:
        boxes[name] = Box(left, top, rooms[name].wide, tall)
        left += rooms[name].wide + gap
    boxes["common"] = Box(0, top + tall + space, wide, rooms["common"].high)
    host = rooms["module_utils"]
    boxes["modules"] = Box(wide + 2 * gap, 0, host.wide, rooms["modules"].high)
    boxes["module_utils"] = Box(wide + 2 * gap, top + tall - host.high, host.wide, host.high)
    return boxes


def draw() -> str:
    """Return the picture as SVG."""
    inside, across = read()
    rooms = {name: lay_out(name, graph) for name, graph in inside.items()}
    boxes = place_rooms(rooms)
    wide = max(box.left + box.wide for box in boxes.values())
    high = max(box.bottom for box in boxes.values())
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-20 -20 {wide + 40:.0f} {high + 40:.0f}" width="{wide + 40:.0f}"'
        f' height="{high + 40:.0f}" font-family="system-ui, sans-serif" role="img" aria-label="The rooms of the code and their imports">',
        # REUSE-IgnoreStart
        "<!-- SPDX-License-Identifier: GPL-3.0-or-later -->",
        # REUSE-IgnoreEnd
        "<!-- made by tests/utils/draw_rooms.py -->",
        *(
            f'<marker id="{_tip(name)}" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9"'
            f' orient="auto"><path d="M0 0 8 4 0 8z" fill="{colour}"/></marker>'
            for name, colour in COLOURS.items()
        ),
        f'<rect x="-20" y="-20" width="{wide + 40:.0f}" height="{high + 40:.0f}" fill="#ffffff"/>',
        *_arrows_between(across, boxes),
        *(line for name, room in rooms.items() for line in _draw_room(room, boxes[name])),
        *_arrows_to_hosts(across, rooms, boxes),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _arrows_between(across: Iterable[tuple[str, str, str]], boxes: dict[str, Box]) -> list[str]:
    """Draw who imports which other room; what reaches over to the host's side is drawn apart."""
    pairs = sorted({(source, target) for source, target, _package in across if (target == "module_utils") == (source == "modules")})
    lines = []
    for source, target in pairs:
        upper, lower = boxes[source], boxes[target]
        into = sorted((one for one, other in pairs if other == target), key=lambda one: (boxes[one].middle, one))
        x = lower.left + lower.wide * (into.index(source) + 1) / (len(into) + 1)
        start = min(max(x, upper.left + 20), upper.left + upper.wide - 20)
        if upper.left + upper.wide < lower.left or lower.left + lower.wide < upper.left:
            start = upper.left + upper.wide - 20 if lower.left > upper.left else upper.left + 20
        path = _curve([(start, upper.bottom), (x, lower.top)])
        lines.append(
            f'<path d="{path}" fill="none" stroke="{COLOURS[source]}" stroke-width="2.2" opacity="0.6" marker-end="url(#{_tip(source)})"/>'
        )
    return lines


def _arrows_to_hosts(across: Iterable[tuple[str, str, str]], rooms: dict[str, Room], boxes: dict[str, Box]) -> list[str]:
    """Draw which packages of the host's side the controller shares."""
    lines = []
    corner = boxes["module_utils"]
    shared = sorted({(source, package) for source, target, package in across if target == "module_utils" and source != "modules"})
    for number, (source, package) in enumerate(shared):
        target = rooms["module_utils"].packages[package].moved(corner.left, corner.top)
        box, lane = boxes[source], corner.left - 20 - 12 * number
        y = box.bottom - 14 if source == "action, filter, inventory, lookup" else box.top + 60
        x, over = target.left + target.wide * (number + 1) / (len(shared) + 1), target.top - 10 - 3 * number
        corners = [(box.left + box.wide, y), (lane, y), (lane, over), (x, over), (x, target.top)]
        lines.append(
            f'<path d="{_rounded(corners)}" fill="none" stroke="{COLOURS[source]}" stroke-width="1.8" stroke-dasharray="6 4"'
            f' marker-end="url(#{_tip(source)})"/>'
        )
    return lines


def _rounded(points: Sequence[tuple[float, float]], radius: float = 8) -> str:
    """Return a path of upright and level lines with round corners."""
    path = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (x, y), (via_x, via_y), (to_x, to_y) in zip(points, points[1:], points[2:]):
        into, out = _towards(via_x, via_y, x, y, radius), _towards(via_x, via_y, to_x, to_y, radius)
        path += f"L{into[0]:.0f} {into[1]:.0f}Q{via_x:.0f} {via_y:.0f} {out[0]:.0f} {out[1]:.0f}"
    return f"{path}L{points[-1][0]:.0f} {points[-1][1]:.0f}"


def _towards(x: float, y: float, to_x: float, to_y: float, most: float) -> tuple[float, float]:
    """Return the point `most` pixels from a point towards another one, or half of the way where they are nearer."""
    far = abs(to_x - x) + abs(to_y - y)
    share = min(most, far / 2) / far if far else 0
    return x + (to_x - x) * share, y + (to_y - y) * share


def _tip(room: str) -> str:
    """Return the name of the arrow's tip in the colour of a room."""
    return f"tip-{room.split(',')[0]}"


def _draw_room(room: Room, box: Box) -> list[str]:
    colour = COLOURS[room.name]
    right, down = box.left + (box.wide - room.wide) / 2, box.top + (box.high - room.high) / 2
    lines = [
        f'<rect x="{box.left:.0f}" y="{box.top:.0f}" width="{box.wide:.0f}" height="{box.high:.0f}" rx="10" fill="#ffffff"/>',
        f'<rect x="{box.left:.0f}" y="{box.top:.0f}" width="{box.wide:.0f}" height="{box.high:.0f}" rx="10" fill="{colour}"'
        f' fill-opacity="0.08" stroke="{colour}" stroke-width="1.5"/>',
        f'<text x="{box.middle:.0f}" y="{box.top + 22:.0f}" text-anchor="middle" font-size="17" font-weight="700" fill="{colour}">'
        f"{html.escape(room.name)}</text>",
        f'<text x="{box.middle:.0f}" y="{box.top + 41:.0f}" text-anchor="middle" font-size="12.5" fill="#374151">'
        f"{html.escape(SAYS[room.name])}</text>",
    ]
    for points in room.arrows:
        path = _curve([(x + right, y + down) for x, y in points])
        lines.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.3" marker-end="url(#{_tip(room.name)})"/>')
    for name, package in room.packages.items():
        here = package.moved(right, down)
        lines.append(
            f'<rect x="{here.left:.0f}" y="{here.top:.0f}" width="{here.wide:.0f}" height="{here.high}" rx="5" fill="#ffffff"'
            f' stroke="{colour}"/><text x="{here.middle:.0f}" y="{here.top + 17.5:.0f}" text-anchor="middle" font-size="12.5"'
            f' fill="#111827">{html.escape(name)}</text>'
        )
    return lines


def _curve(points: Sequence[tuple[float, float]]) -> str:
    """Return a path through points that leaves and arrives upright."""
    path = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (x, y), (to_x, to_y) in zip(points, points[1:]):
        half = (y + to_y) / 2
        path += f"C{x:.0f} {half:.0f} {to_x:.0f} {half:.0f} {to_x:.0f} {to_y:.0f}"
    return path


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else PICTURE).write_text(draw(), encoding="utf-8")
