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
from dataclasses import dataclass, replace
from xml.etree import ElementTree

from ....module_utils._data.units import format_mib
from ....module_utils._data.words import visible
from .geometry import SMALLEST_LEGIBLE, TEXT_ON_COLOUR, Label, Paint, lengths, paints, rows_of_labels, text_width
from .picture import picture, runs_of_alike
from .shapes import DiskPicture, HostPicture, Segment, SpacePicture
from .words import free_tip, left_out_words, run_link, run_name, run_size, strip, strip_name, tip, unallocated_tip

WIDTH = 960
MARGIN = 24
BAR = WIDTH - 2 * MARGIN
BAR_HEIGHT = 46
STRIP_HEIGHT = 16
SLIM_HEIGHT = 10
ROW_HEIGHT = 16
BOLDER = 1.1
SMALLEST = 3.0
GAP_TO_MAGNIFIED = 44
LEGEND_COLUMN = 304
LABEL_ROWS = 8
LEGEND_ROW = 22

INK, MUTED, PAPER, FRAME, HOLLOW, STRIP, WEDGE = "#15181c", "#5a6472", "#ffffff", "#8d97a5", "#eef1f4", "#dfe4ea", "#e6eaef"
TEXT_COLOURS = {"ink": INK, "muted": MUTED, "on-colour": TEXT_ON_COLOUR}
STYLE = """
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

    @property
    def right(self) -> float:
        """The x of its right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The y of its lower edge."""
        return self.y + self.height


@dataclass(frozen=True)
class Area:
    """What is drawn of one space on one disk: where, and the words for it. A paint of None is room that nothing takes."""

    box: Box
    name: str
    size: float
    paint: Paint | None
    tip: Sequence[str]


@dataclass(frozen=True)
class Subject:
    """What is drawn: a host, its spaces by id with their paints, and the size of its largest disk, which sets the scale."""

    host: HostPicture
    spaces: Mapping[str, SpacePicture]
    paints: Mapping[str, Paint]
    largest: int


def svg(plan: Mapping[str, t.Any], hardware: Mapping[str, t.Any] | None = None, title: str = "") -> str:
    """Return the plan of one host as an SVG document of its own.

    All disks are drawn to one scale; one too small for that stands to scale next to a magnified copy. Spaces are
    to scale within their disk, but never less than 3 units wide.
    """
    host = picture(plan, hardware)
    painted = paints(host.painted())
    subject = Subject(host, host.by_id(), painted, max((disk.size for disk in host.disks), default=0))
    root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "width": str(WIDTH)})
    _describe(root, host, title)
    sub(root, "style").text = STYLE
    definitions = sub(root, "defs")
    drawings = {"stripes": "M0 8L8 0M-2 2L2 -2M6 10L10 6", "dots": "M2 2h2v2h-2zM6 6h2v2h-2z", "grid": "M0 0H8M0 0V8"}
    for name, path in drawings.items():
        pattern = sub(definitions, "pattern", {"id": f"pattern-{name}", "width": "8", "height": "8", "patternUnits": "userSpaceOnUse"})
        sub(pattern, "path", {"d": path, "stroke": TEXT_ON_COLOUR, "stroke-width": "1", "fill": "none", "opacity": "0.35"})
    paper = sub(root, "rect", {"class": "paper", "width": str(WIDTH), "fill": PAPER})
    y = _heading(root, host, title)
    for run in runs_of_alike(host.disks):
        y = _run(root, subject, run, y)
    y = _left_out(root, subject, y)
    height = f"{_legend(root, subject, y) + MARGIN - 8:g}"
    for element in (root, paper):
        element.set("height", height)
    root.set("viewBox", f"0 0 {WIDTH} {height}")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _describe(root: Element, host: HostPicture, title: str) -> None:
    """Add what a screen reader says; the ids differ between drawings, which may stand in one page."""
    key = hashlib.blake2b(repr((title, host)).encode(), digest_size=5).hexdigest()
    root.set("aria-labelledby", f"title-{key} about-{key}")
    sub(root, "title", {"id": f"title-{key}"}).text = visible(title or "Disk layout")
    spaces = "; ".join(
        f"{space.id} {format_mib(space.size)}{f' on {space.place}' if space.mount or space.subvolumes else ''}" for space in host.spaces
    )
    sub(root, "desc", {"id": f"about-{key}"}).text = visible(f"{_disks_in_words(host)}. {spaces}.")


def _disks_in_words(host: HostPicture) -> str:
    return f"{len(host.disks)} {'disk' if len(host.disks) == 1 else 'disks'}, {format_mib(host.size)}"


def _heading(root: Element, host: HostPicture, title: str) -> float:
    y = MARGIN + 14
    _text(root, MARGIN, y, title, size=19, bold=True)
    _text(root, WIDTH - MARGIN, y, _disks_in_words(host), size=13, css="muted", anchor="end")
    return y + 14


def _run(root: Element, subject: Subject, run: Sequence[DiskPicture], y: float) -> float:
    """Draw disks that look alike: the first with names, the others slim below it; return where the next thing may start."""
    name = run_name(run)
    y += 24
    _text(root, MARGIN, y, name, size=14, bold=True)
    _text(root, MARGIN + text_width(name, 14 * BOLDER) + 8, y, run_size(run), size=12, css="muted")
    _text(root, WIDTH - MARGIN, y, run_link(run), size=12, css="muted", anchor="end")
    y = _named_disk(root, subject, run[0], y + 8)
    slim = SLIM_HEIGHT if len(run) <= 12 else SLIM_HEIGHT / 2
    for disk in run[1:]:
        group = sub(root, "g", {"class": "disk alike"})
        boxes = _boxes(subject, disk, y + 3, slim)
        true, box = boxes
        if box != true:
            _bar(group, _areas(subject, disk, true), true, "true-to-scale")
        _bar(group, _areas(subject, disk, box), box, "bar")
        y += slim + 3
    return y + 4


def _named_disk(root: Element, subject: Subject, disk: DiskPicture, y: float) -> float:
    """Draw one disk with names; return where the next thing may start."""
    strip_height = STRIP_HEIGHT if any(segment.slices for segment in disk.segments) else 0
    true, box = _boxes(subject, disk, y, BAR_HEIGHT + strip_height)
    group = sub(root, "g", {"class": "disk"})
    if box != true:
        _wedge(group, true, box)
        _bar(group, _areas(subject, disk, true), true, "true-to-scale")
    for segment, place in _segment_boxes(disk, box):
        if segment.slices:
            _container(group, subject.spaces, segment, place)
    areas = _areas(subject, disk, box, strip_height)
    _bar(group, areas, box, "bar")
    return _names(group, areas, box)


def _boxes(subject: Subject, disk: DiskPicture, y: float, height: float) -> tuple[Box, Box]:
    """Return where a disk lies to scale, and where it is to be read: the same unless it is too small for that."""
    width = max(SMALLEST, BAR * disk.size / subject.largest) if subject.largest else BAR
    true = Box(MARGIN, y, width, height)
    if width >= BAR * SMALLEST_LEGIBLE:
        return true, true
    return true, Box(true.right + GAP_TO_MAGNIFIED, y, BAR - width - GAP_TO_MAGNIFIED, height)


def _segment_boxes(disk: DiskPicture, box: Box) -> list[tuple[Segment, Box]]:
    whole = max(disk.size, sum(segment.size for segment in disk.segments) + max(0, disk.unallocated))
    widths = lengths([*(segment.size for segment in disk.segments), disk.unallocated], whole, box.width, SMALLEST)
    places = []
    x = box.x
    for segment, width in zip(disk.segments, widths):
        places.append((segment, Box(x, box.y, width, box.height)))
        x += width
    return places


def _areas(subject: Subject, disk: DiskPicture, box: Box, strip_height: float = 0) -> list[Area]:
    """Return what is to be filled with colour, from left to right; volumes stand below the strip of their group."""
    areas = []
    x = box.x
    for segment, place in _segment_boxes(disk, box):
        if segment.slices:
            below_strip = Box(place.x, place.y + strip_height, place.width, place.height - strip_height)
            areas += _slice_areas(subject, disk, segment, below_strip)
        else:
            area = _space_area(subject, disk, segment.space_id, segment.size, place)
            areas.append(replace(area, name=f"{area.name}, spare") if segment.spare else area)
        x = place.right
    if disk.unallocated > 0 and box.right - x > 0.01:
        areas.append(Area(Box(x, box.y, box.right - x, box.height), "unallocated", disk.unallocated, None, unallocated_tip(disk)))
    return areas


def _slice_areas(subject: Subject, disk: DiskPicture, segment: Segment, box: Box) -> list[Area]:
    widths = lengths([*(part.size for part in segment.slices), segment.free], segment.size, box.width, SMALLEST)
    areas = []
    x = box.x
    for part, width in zip(segment.slices, widths):
        areas.append(_space_area(subject, disk, part.space_id, part.size, Box(x, box.y, width, box.height)))
        x += width
    if segment.free >= segment.size / 1000:
        areas.append(Area(Box(x, box.y, widths[-1], box.height), "free", segment.free, None, free_tip(segment)))
    return areas


def _space_area(subject: Subject, disk: DiskPicture, space_id: str, size: float, box: Box) -> Area:
    return Area(box, space_id, size, subject.paints[space_id], tip(subject.spaces[space_id], disk, size))


def _bar(group: Element, areas: Sequence[Area], box: Box, css: str) -> None:
    for area in areas:
        _fill(group, area)
    sub(group, "rect", {"class": f"frame {css}", "fill": "none", "stroke": FRAME, **_attributes(box)})


def _fill(group: Element, area: Area) -> None:
    holder = sub(group, "g", {"class": "space"})
    sub(holder, "title").text = "\n".join(map(visible, area.tip))
    place = _attributes(area.box)
    if area.paint is None:
        sub(holder, "rect", {"class": "area hollow frame", "fill": HOLLOW, "stroke": FRAME, "stroke-width": "0.6", **place})
        return
    sub(holder, "rect", {"class": "area", "fill": area.paint.colour, "stroke": TEXT_ON_COLOUR, "stroke-width": "0.6", **place})
    if area.paint.pattern != "plain":
        sub(holder, "rect", {"class": "pattern", "fill": f"url(#pattern-{area.paint.pattern})", **place})


def _container(group: Element, spaces: Mapping[str, SpacePicture], segment: Segment, box: Box) -> None:
    """Draw the frame around the volumes of a group or array, with its name in the strip on top."""
    words = strip(spaces, segment)
    holder = sub(group, "g", {"class": "container"})
    sub(holder, "title").text = visible(words)
    sub(holder, "rect", {"class": "frame strip", "fill": STRIP, "stroke": FRAME, **_attributes(box)})
    fitting = [text for text in (words, strip_name(spaces, segment), segment.space_id) if text_width(text, 11) <= box.width - 8]
    if fitting:
        _text(holder, box.x + 5, box.y + STRIP_HEIGHT - 4.5, fitting[0], size=11)


def _wedge(group: Element, true: Box, magnified: Box) -> None:
    """Join a disk drawn to scale with its magnified copy, and say how much it is magnified."""
    corners = [(true.right, true.y), (magnified.x, magnified.y), (magnified.x, magnified.bottom), (true.right, true.bottom)]
    points = " ".join(f"{x:g},{y:g}" for x, y in corners)
    sub(group, "polygon", {"class": "wedge", "fill": WEDGE, "points": points})
    times = f"×{magnified.width / true.width:.3g}"
    _text(group, magnified.x - 4, true.y + true.height / 2 + 4, times, size=11, css="muted", anchor="end")


def _names(group: Element, areas: Sequence[Area], box: Box) -> float:
    """Write names and sizes into the areas that have room, the others below with a line to them; return where that ends."""
    outside = []
    for area in areas:
        if max(text_width(area.name, 12 * BOLDER), text_width(format_mib(area.size), 11)) <= area.box.width - 10:
            css = "muted" if area.paint is None else "on-colour"
            middle = area.box.y + area.box.height / 2
            _text(group, area.box.x + 6, middle - 2, area.name, size=12, bold=True, css=css)
            _text(group, area.box.x + 6, middle + 13, format_mib(area.size), size=11, css=css)
        else:
            outside.append(area)
    labels = [_label(area) for area in outside]
    rows = rows_of_labels(labels, LABEL_ROWS, gap=8)
    for area, label, row in zip(outside, labels, rows):
        if row is not None:
            y = box.bottom + 14 + row * ROW_HEIGHT
            line = {"class": "line", "d": f"M{label.at:.2f} {box.bottom:g}V{y:g}", "stroke": MUTED, "stroke-width": "0.8", "fill": "none"}
            sub(group, "path", line)
            x, anchor = (label.at - 4, "end") if label.leftward else (label.at + 4, "start")
            _text(group, x, y, _label_text(area), size=11, anchor=anchor)
    return box.bottom + ROW_HEIGHT * (1 + max((row for row in rows if row is not None), default=-1)) + 6


def _label(area: Area) -> Label:
    at = area.box.x + area.box.width / 2
    width = text_width(_label_text(area), 11) + 4
    return Label(at, width, leftward=at + width > WIDTH - MARGIN)


def _label_text(area: Area) -> str:
    return f"{area.name} {format_mib(area.size)}"


def _left_out(root: Element, subject: Subject, y: float) -> float:
    """Draw the disks that the plan leaves alone: a dashed bar to scale each, and why; return where the next thing may start."""
    for disk in subject.host.left_out:
        y += 24
        words = f"{format_mib(disk.size)}{f'  {disk.description}' if disk.description else ''}, left out: it {disk.reason}"
        _text(root, MARGIN, y, disk.name, size=14, bold=True)
        x = MARGIN + text_width(disk.name, 14 * BOLDER) + 8
        _text(root, x, y, _shortened(words, 12, WIDTH - MARGIN - x), size=12, css="muted")
        width = min(BAR, max(SMALLEST, BAR * disk.size / subject.largest)) if subject.largest else BAR
        holder = sub(root, "g", {"class": "disk left-out"})
        sub(holder, "title").text = visible(left_out_words(disk))
        dashed = {"class": "frame", "fill": "none", "stroke": FRAME, "stroke-dasharray": "4 3"}
        sub(holder, "rect", dashed | _attributes(Box(MARGIN, y + 8, width, SLIM_HEIGHT)))
        y += 8 + SLIM_HEIGHT
    return y


def _legend(root: Element, subject: Subject, y: float) -> float:
    y += 18
    for number, (space_id, paint) in enumerate(subject.paints.items()):
        space = subject.spaces[space_id]
        x, line = MARGIN + number % 3 * LEGEND_COLUMN, y + number // 3 * LEGEND_ROW
        _fill(root, Area(Box(x, line, 16, 14), space_id, space.size, paint, [space_id]))
        words = "  ".join(filter(None, (format_mib(space.size), _first_place(space))))
        name = _shortened(space_id, 12 * BOLDER, LEGEND_COLUMN - 60 - text_width(words, 12))
        _text(root, x + 23, line + 11.5, name, size=12, bold=True)
        _text(root, x + 29 + text_width(name, 12 * BOLDER), line + 11.5, words, size=12, css="muted")
    return y + LEGEND_ROW * -(-len(subject.paints) // 3)


def _first_place(space: SpacePicture) -> str:
    """Return where a space is found, in short."""
    first, others, _rest = space.place.partition(", ")
    return f"{first} …" if others else first


def _shortened(text: str, font_size: float, width: float) -> str:
    if text_width(text, font_size) <= width:
        return text
    while text and text_width(text + "…", font_size) > width:
        text = text[:-1]
    return text + "…"


def _attributes(box: Box) -> dict[str, str]:
    return {"x": f"{box.x:.2f}", "y": f"{box.y:.2f}", "width": f"{box.width:.2f}", "height": f"{box.height:.2f}"}


def _text(
    parent: Element, x: float, y: float, text: str, *, size: float, css: str = "ink", bold: bool = False, anchor: str = "start"
) -> None:
    if not text:
        return
    attributes = {"class": css, "x": f"{x:.2f}", "y": f"{y:.2f}", "font-size": f"{size:g}", "fill": TEXT_COLOURS[css]}
    if bold:
        attributes["font-weight"] = "600"
    if anchor != "start":
        attributes["text-anchor"] = anchor
    sub(parent, "text", attributes).text = visible(text)
