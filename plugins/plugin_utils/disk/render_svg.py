# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan as a drawing that goes into a document: disks as bars to scale, spaces coloured and named. No scripts, no fonts to load.

Presentation attributes give the light colours, so that programs which know no media queries show them; a style sheet
turns them dark where the reader's system is. ElementTree writes the XML and so escapes whatever the plan says.
"""

from __future__ import annotations

import hashlib
import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from ..common.units import format_mib
from .palette import TEXT_ON_COLOUR, Paint, paints
from .picture import DiskPicture, HostPicture, Segment, picture, runs_of_alike, shown
from .scale import SMALLEST_LEGIBLE, Label, lengths, rows_of_labels, text_width

WIDTH = 960
MARGIN = 24
BAR = WIDTH - 2 * MARGIN
BAR_HEIGHT = 46
STRIP_HEIGHT = 16
SLIM_HEIGHT = 10
ROW_HEIGHT = 16
BOLDER = 1.1
SMALLEST = 3.0
GAP_TO_MAGNIFIED = 36
LEGEND_COLUMN = 304
LABEL_ROWS = 8

INK, MUTED, PAPER, FRAME, HOLLOW = "#15181c", "#5a6472", "#ffffff", "#8d97a5", "#eef1f4"
DARK_STYLE = """
text { font-family: system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
.space:hover .area { stroke-width: 2; }
@media (prefers-color-scheme: dark) {
  .paper { fill: #15181c; } .ink { fill: #eceff3; } .muted { fill: #a3adba; } .hollow { fill: #23282f; }
  .frame { stroke: #77818e; } .line { stroke: #a3adba; } .wedge { fill: #2b3139; } .strip { fill: #333a44; }
}
"""

Element = ElementTree.Element
sub = ElementTree.SubElement


@dataclass(frozen=True)
class Box:
    """A rectangle of the drawing."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Area:
    """What is drawn of one space on one disk: where, and the words for it. A paint of None is room that nothing takes."""

    box: Box
    name: str
    size: float
    paint: Paint | None
    tooltip: str


def svg(plan: Mapping[str, t.Any], hardware: Mapping[str, t.Any] | None = None, title: str = "") -> str:
    """Return the plan of one host as an SVG document of its own.

    All disks are drawn to one scale; one too small for that stands to scale with a magnified copy beside it. Spaces are
    to scale within their disk, but never less than 3 units wide.
    """
    host = picture(plan, hardware)
    painted = paints(space.id for space in host.spaces if not _holds_others(host, space.id))
    root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "width": str(WIDTH)})
    _describe(root, host, title)
    sub(root, "style").text = DARK_STYLE
    _patterns(root)
    paper = sub(root, "rect", {"class": "paper", "width": str(WIDTH), "fill": PAPER})
    y = _heading(root, host, title)
    largest = max((disk.size for disk in host.disks), default=0)
    for run in runs_of_alike(host.disks):
        y = _run(root, host, run, largest, painted, y)
    y = _legend(root, host, painted, y)
    height = f"{y + MARGIN - 8:g}"
    for element in (root, paper):
        element.set("height", height)
    root.set("viewBox", f"0 0 {WIDTH} {height}")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _describe(root: Element, host: HostPicture, title: str) -> None:
    key = hashlib.blake2b(repr((title, host)).encode(), digest_size=5).hexdigest()
    root.set("aria-labelledby", f"title-{key} about-{key}")
    sub(root, "title", {"id": f"title-{key}"}).text = shown(title or "Disk layout")
    spaces = "; ".join(f"{space.id} {format_mib(space.size)}{f' on {space.mount}' if space.mount else ''}" for space in host.spaces)
    disks = f"{len(host.disks)} {'disk' if len(host.disks) == 1 else 'disks'}, {format_mib(host.size)} together"
    sub(root, "desc", {"id": f"about-{key}"}).text = shown(f"{disks}. {spaces}.")


def _patterns(root: Element) -> None:
    definitions = sub(root, "defs")
    drawings = {"stripes": "M0 8L8 0M-2 2L2 -2M6 10L10 6", "dots": "M2 2h2v2h-2zM6 6h2v2h-2z", "grid": "M0 0H8M0 0V8"}
    for name, path in drawings.items():
        pattern = sub(definitions, "pattern", {"id": f"pattern-{name}", "width": "8", "height": "8", "patternUnits": "userSpaceOnUse"})
        sub(pattern, "path", {"d": path, "stroke": TEXT_ON_COLOUR, "stroke-width": "1", "fill": "none", "opacity": "0.35"})


def _heading(root: Element, host: HostPicture, title: str) -> float:
    y = MARGIN + 14
    if title:
        _text(root, MARGIN, y, title, size=19, weight="600")
    disks = "1 disk" if len(host.disks) == 1 else f"{len(host.disks)} disks"
    _text(root, WIDTH - MARGIN, y, f"{disks}, {format_mib(host.size)}", size=13, css="muted", anchor="end")
    return y + 14


def _run(root: Element, host: HostPicture, run: Sequence[DiskPicture], largest: int, painted: Mapping[str, Paint], y: float) -> float:
    disk = run[0]
    name = f"{disk.name} … {run[-1].name}" if len(run) > 1 else disk.name
    size = f"{len(run)} × {format_mib(disk.size)}" if len(run) > 1 else format_mib(disk.size)
    y += 24
    _text(root, MARGIN, y, name, size=14, weight="600")
    _text(root, MARGIN + text_width(name, 14 * BOLDER) + 8, y, f"{size}  {disk.description}", size=12, css="muted")
    _text(root, WIDTH - MARGIN, y, disk.short_id if len(run) == 1 and disk.short_id != disk.name else "", size=12, css="muted", anchor="end")
    y = _disk(root, host, disk, largest, painted, y + 8)
    slim = SLIM_HEIGHT if len(run) <= 12 else SLIM_HEIGHT / 2
    for other in run[1:]:
        _slim_disk(root, host, other, largest, painted, Box(MARGIN, y + 3, 0, slim))
        y += slim + 3
    return y + 4


def _disk(root: Element, host: HostPicture, disk: DiskPicture, largest: int, painted: Mapping[str, Paint], y: float) -> float:
    """Draw one disk with names; return where the next thing may start."""
    true_width = _true_width(disk, largest)
    strip = STRIP_HEIGHT if any(segment.slices for segment in disk.segments) else 0
    box = Box(MARGIN, y, true_width, BAR_HEIGHT + strip)
    group = sub(root, "g", {"class": "disk"})
    if true_width < BAR * SMALLEST_LEGIBLE:
        magnified = Box(MARGIN + true_width + GAP_TO_MAGNIFIED, y, BAR - true_width - GAP_TO_MAGNIFIED, box.height)
        _magnify(group, box, magnified)
        for area in _areas(host, disk, box, painted):
            _area(group, area)
        _outline(group, box, "true-to-scale")
        box = magnified
    areas = _areas(host, disk, box, painted, strip)
    for segment, place in _segment_boxes(disk, box):
        if segment.slices:
            _container(group, host, segment, place, strip)
    for area in areas:
        _area(group, area)
    _outline(group, box, "bar")
    return _names(group, areas, box)


def _slim_disk(root: Element, host: HostPicture, disk: DiskPicture, largest: int, painted: Mapping[str, Paint], place: Box) -> None:
    true_width = _true_width(disk, largest)
    if true_width < BAR * SMALLEST_LEGIBLE:
        place = Box(place.x + true_width + GAP_TO_MAGNIFIED, place.y, BAR - true_width - GAP_TO_MAGNIFIED, place.height)
    else:
        place = Box(place.x, place.y, true_width, place.height)
    group = sub(root, "g", {"class": "disk alike"})
    for area in _areas(host, disk, place, painted):
        _area(group, area)
    _outline(group, place, "bar")


def _true_width(disk: DiskPicture, largest: int) -> float:
    return max(SMALLEST, BAR * disk.size / largest) if largest else BAR


def _segment_boxes(disk: DiskPicture, box: Box) -> list[tuple[Segment, Box]]:
    widths = lengths([*(segment.size for segment in disk.segments), disk.unallocated], _whole(disk), box.width, SMALLEST)
    places = []
    x = box.x
    for segment, width in zip(disk.segments, widths):
        places.append((segment, Box(x, box.y, width, box.height)))
        x += width
    return places


def _whole(disk: DiskPicture) -> int:
    return max(disk.size, sum(segment.size for segment in disk.segments) + max(0, disk.unallocated))


def _areas(host: HostPicture, disk: DiskPicture, box: Box, painted: Mapping[str, Paint], strip: float = 0) -> list[Area]:
    """Return what is to be filled with colour, from left to right; volumes stand below the strip of their group."""
    areas = []
    x = box.x
    for segment, place in _segment_boxes(disk, box):
        if segment.slices:
            areas += _slice_areas(host, disk, segment, Box(place.x, place.y + strip, place.width, place.height - strip), painted)
        else:
            areas.append(Area(place, segment.space_id, segment.size, painted[segment.space_id], _tooltip(host, disk, segment.space_id, segment.size)))
        x = place.x + place.width
    free = Box(x, box.y, box.x + box.width - x, box.height)
    if disk.unallocated > 0 and free.width > 0.01:
        areas.append(Area(free, "unallocated", disk.unallocated, None, f"{format_mib(disk.unallocated)} of {disk.name} unallocated"))
    return areas


def _slice_areas(host: HostPicture, disk: DiskPicture, segment: Segment, box: Box, painted: Mapping[str, Paint]) -> list[Area]:
    widths = lengths([*(part.size for part in segment.slices), segment.free], segment.size, box.width, SMALLEST)
    areas = []
    x = box.x
    for part, width in zip(segment.slices, widths):
        tooltip = _tooltip(host, disk, part.space_id, part.size)
        areas.append(Area(Box(x, box.y, width, box.height), part.space_id, part.size, painted[part.space_id], tooltip))
        x += width
    if segment.free >= segment.size / 1000:
        areas.append(Area(Box(x, box.y, widths[-1], box.height), "free", segment.free, None, f"{format_mib(segment.free)} free in {segment.space_id}"))
    return areas


def _tooltip(host: HostPicture, disk: DiskPicture, space_id: str, size: float) -> str:
    space = host.by_id()[space_id]
    on_disk = f"{format_mib(size)} on {disk.name}, {100 * size / disk.size:.1f} %" if disk.size else format_mib(size)
    lines = [f"{space.id}: {space.label}{', encrypted' if space.encrypted else ''}", on_disk]
    if round(size) != space.size:
        lines.append(f"{format_mib(space.size)} in all")
    lines += [line for line in (f"inside {space.inside}" if space.inside else "", " ".join(filter(None, (space.mount, space.fs_type)))) if line]
    return "\n".join(lines)


def _area(group: Element, area: Area) -> None:
    holder = sub(group, "g", {"class": "space"})
    sub(holder, "title").text = shown(area.tooltip)
    place = _attributes(area.box)
    if area.paint is None:
        sub(holder, "rect", {"class": "area hollow frame", "fill": HOLLOW, "stroke": FRAME, "stroke-width": "0.6", **place})
        return
    sub(holder, "rect", {"class": "area", "fill": area.paint.colour, "stroke": TEXT_ON_COLOUR, "stroke-width": "0.6", **place})
    if area.paint.pattern != "plain":
        sub(holder, "rect", {"class": "pattern", "fill": f"url(#pattern-{area.paint.pattern})", **place})


def _container(group: Element, host: HostPicture, segment: Segment, box: Box, strip: float) -> None:
    space = host.by_id()[segment.space_id]
    holder = sub(group, "g", {"class": "container"})
    sub(holder, "title").text = shown(f"{space.id}: {space.label}, {format_mib(segment.size)} of this disk")
    sub(holder, "rect", {"class": "frame strip", "fill": "#dfe4ea", "stroke": FRAME, **_attributes(box)})
    words = f"{space.id}, {space.label}, {format_mib(segment.size)}"
    if text_width(words, 11) > box.width - 8:
        words = space.id
    if text_width(words, 11) <= box.width - 8:
        _text(holder, box.x + 5, box.y + strip - 4.5, words, size=11)


def _magnify(group: Element, true: Box, magnified: Box) -> None:
    """Draw the wedge that joins a small disk with its magnified copy."""
    right = true.x + true.width
    points = f"{right:g},{true.y:g} {magnified.x:g},{magnified.y:g} {magnified.x:g},{magnified.y + magnified.height:g} {right:g},{true.y + true.height:g}"
    sub(group, "polygon", {"class": "wedge", "fill": "#e6eaef", "points": points})
    times = magnified.width / true.width
    _text(group, magnified.x - 4, true.y + true.height / 2 + 4, f"×{times:.0f}" if times >= 10 else f"×{times:.1f}", size=11, css="muted", anchor="end")


def _outline(group: Element, box: Box, css: str) -> None:
    sub(group, "rect", {"class": f"frame {css}", "fill": "none", "stroke": FRAME, **_attributes(box)})


def _names(group: Element, areas: Sequence[Area], box: Box) -> float:
    """Write names and sizes into the areas that have room, the others below with a line to them; return where that ends."""
    outside = []
    for area in areas:
        size = format_mib(area.size)
        room = area.box.width - 10
        if text_width(area.name, 12 * BOLDER) <= room and text_width(size, 11) <= room:
            css, fill = ("muted", MUTED) if area.paint is None else ("on-colour", TEXT_ON_COLOUR)
            middle = area.box.y + area.box.height / 2
            _text(group, area.box.x + 6, middle - 2, area.name, size=12, weight="600", css=css, fill=fill)
            _text(group, area.box.x + 6, middle + 13, size, size=11, css=css, fill=fill)
        else:
            outside.append(area)
    labels = [_label(area) for area in outside]
    rows = rows_of_labels(labels, LABEL_ROWS, gap=8)
    bottom = box.y + box.height
    for area, label, row in zip(outside, labels, rows):
        if row is not None:
            y = bottom + 14 + row * ROW_HEIGHT
            points = f"M{label.at:.2f} {bottom:g}V{y:g}"
            sub(group, "path", {"class": "line", "d": points, "stroke": MUTED, "stroke-width": "0.8", "fill": "none"})
            x, anchor = (label.at - 4, "end") if label.leftward else (label.at + 4, "start")
            _text(group, x, y, _label_text(area), size=11, anchor=anchor)
    return bottom + ROW_HEIGHT * (1 + max((row for row in rows if row is not None), default=-1)) + 6


def _label(area: Area) -> Label:
    at = area.box.x + area.box.width / 2
    width = text_width(_label_text(area), 11) + 4
    return Label(at, width, leftward=at + width > WIDTH - MARGIN)


def _label_text(area: Area) -> str:
    return f"{area.name} {format_mib(area.size)}"


def _legend(root: Element, host: HostPicture, painted: Mapping[str, Paint], y: float) -> float:
    y += 18
    for number, space in enumerate(space for space in host.spaces if space.id in painted):
        column, row = number % 3, number // 3
        x, line = MARGIN + column * LEGEND_COLUMN, y + row * 22
        _area(root, Area(Box(x, line, 16, 14), space.id, space.size, painted[space.id], space.id))
        words = "  ".join(filter(None, (format_mib(space.size), space.mount or ("swap" if space.fs_type == "swap" else None))))
        name = _shortened(space.id, 12 * BOLDER, LEGEND_COLUMN - 60 - text_width(words, 12))
        _text(root, x + 23, line + 11.5, name, size=12, weight="600")
        _text(root, x + 29 + text_width(name, 12 * BOLDER), line + 11.5, words, size=12, css="muted")
    return y + 22 * -(-len(painted) // 3)


def _shortened(text: str, font_size: float, width: float) -> str:
    if text_width(text, font_size) <= width:
        return text
    while text and text_width(text + "…", font_size) > width:
        text = text[:-1]
    return text + "…"


def _holds_others(host: HostPicture, space_id: str) -> bool:
    return any(space.inside == space_id for space in host.spaces)


def _attributes(box: Box) -> dict[str, str]:
    return {"x": f"{box.x:.2f}", "y": f"{box.y:.2f}", "width": f"{box.width:.2f}", "height": f"{box.height:.2f}"}


def _text(
    parent: Element, x: float, y: float, text: str, *, size: float, css: str = "ink", weight: str = "400", anchor: str = "start", fill: str | None = None
) -> None:
    if not text:
        return
    colour = fill or (MUTED if css == "muted" else INK)
    attributes = {"class": css, "x": f"{x:.2f}", "y": f"{y:.2f}", "font-size": f"{size:g}", "fill": colour}
    if weight != "400":
        attributes["font-weight"] = weight
    if anchor != "start":
        attributes["text-anchor"] = anchor
    sub(parent, "text", attributes).text = shown(text)
