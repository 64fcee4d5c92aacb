# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The drawing, read back as XML: geometry to scale, everything escaped, nothing from outside."""

from __future__ import annotations

import json
import pathlib
import re
from xml.etree import ElementTree

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.svg import svg

PLANS = pathlib.Path(__file__).parents[4] / "data" / "plans"
NAMESPACE = "{http://www.w3.org/2000/svg}"


def load(name):
    return json.loads((PLANS / f"{name}.json").read_text())


def draw(name, title="host"):
    case = load(name)
    return ElementTree.fromstring(svg(case["plan"], case["hardware"], title))


def all_with_class(root, name):
    return [element for element in root.iter() if name in (element.get("class") or "").split()]


def width(element):
    return float(element.get("width"))


def areas(disk):
    """Return (name, rectangle) of what is drawn on a disk, magnified copies last."""
    return [
        (space.find(f"{NAMESPACE}title").text.split("\n")[0], space.find(f"{NAMESPACE}rect")) for space in all_with_class(disk, "space")
    ]


@pytest.mark.parametrize("name", ["web", "mirror", "storage", "bare"])
def test_everything_is_drawn_within_the_page(name):
    root = draw(name)
    page_width, page_height = (float(value) for value in root.get("viewBox").split()[2:])
    for rectangle in root.iter(f"{NAMESPACE}rect"):
        assert float(rectangle.get("x", 0)) + width(rectangle) <= page_width + 0.01
        assert float(rectangle.get("y", 0)) + float(rectangle.get("height")) <= page_height + 0.01
    for text in root.iter(f"{NAMESPACE}text"):
        assert 0 <= float(text.get("x")) <= page_width
        assert 0 <= float(text.get("y")) <= page_height


def test_spaces_are_to_scale():
    case = load("web")
    (disk,) = all_with_class(draw("web"), "disk")
    drawn = {name: width(rectangle) for name, rectangle in areas(disk)}
    sizes = {volume["space_id"]: volume["size"] for volume in case["plan"]["schema"]["lvs"]}
    assert drawn["var"] / drawn["root"] == pytest.approx(sizes["var"] / sizes["root"], rel=0.01)
    assert drawn["home"] / drawn["root"] == pytest.approx(sizes["home"] / sizes["root"], rel=0.01)
    assert drawn["esp"] == drawn["boot"] == 3
    assert sum(drawn.values()) == pytest.approx(912, abs=3.1)


def test_volumes_lie_within_their_group():
    (disk,) = all_with_class(draw("web"), "disk")
    (strip,) = all_with_class(disk, "strip")
    left, right = float(strip.get("x")), float(strip.get("x")) + width(strip)
    (bottom,) = {float(area.get("y")) + float(area.get("height")) for name, area in areas(disk) if name in {"esp", "boot"}}
    for name, rectangle in areas(disk):
        if name in {"root", "var", "home", "swap"}:
            assert left - 0.01 <= float(rectangle.get("x"))
            assert float(rectangle.get("x")) + width(rectangle) <= right + 0.01
            assert float(rectangle.get("y")) > float(strip.get("y"))
            assert float(rectangle.get("y")) + float(rectangle.get("height")) == pytest.approx(bottom)


def test_disks_of_a_host_have_one_scale():
    case = load("storage")
    root = draw("storage")
    disks = all_with_class(root, "disk")
    assert len(disks) == len(case["plan"]["disks"])
    true = [(all_with_class(disk, "true-to-scale") or all_with_class(disk, "bar"))[0] for disk in disks]
    largest = max(disk["size"] for disk in case["plan"]["disks"])
    for frame, disk in zip(true, case["plan"]["disks"]):
        assert width(frame) == pytest.approx(912 * disk["size"] / largest, abs=0.01)


def test_alike_disks_that_are_small_have_their_scale_too():
    disks = [
        {"disk_id": name, "size": size, "spaces": [{"space_id": "a", "size": size}]} for name, size in [("x", 10), ("y", 10), ("z", 100)]
    ]
    drawn = all_with_class(ElementTree.fromstring(svg({"disks": disks})), "disk")
    assert [width(frame) for disk in drawn[:2] for frame in all_with_class(disk, "true-to-scale")] == pytest.approx([91.2, 91.2])


def test_small_disks_are_magnified_as_much_as_is_written():
    first = all_with_class(draw("storage"), "disk")[0]
    (true,), (magnified,) = all_with_class(first, "true-to-scale"), all_with_class(first, "bar")
    written = next(text.text for text in first.iter(f"{NAMESPACE}text") if text.text.startswith("×"))
    assert float(written[1:]) == pytest.approx(width(magnified) / width(true), rel=0.01)


def test_every_space_is_in_the_legend_with_its_colour():
    root = draw("storage")
    fills = {}
    for holder in all_with_class(root, "space"):
        name = holder.find(f"{NAMESPACE}title").text.split("\n")[0]
        fills.setdefault(name, set()).add(tuple(rectangle.get("fill") for rectangle in holder.iter(f"{NAMESPACE}rect")))
    assert {"esp", "boot", "root", "swap", "osd", "db1", "db12"} <= set(fills)
    assert all(len(paints) == 1 for paints in fills.values())


def test_what_is_too_narrow_for_its_name_has_it_below():
    texts = [text.text for text in draw("web").iter(f"{NAMESPACE}text")]
    assert {"esp 512 MiB", "boot 1 GiB", "swap 4 GiB"} <= set(texts)


def test_hostile_words_are_only_words():
    text = svg(load("bare")["plan"], None, '<script>"&')
    root = ElementTree.fromstring(text)
    assert not list(root.iter("script"))
    assert not list(root.iter(f"{NAMESPACE}script"))
    assert root.find(f"{NAMESPACE}title").text == '<script>"&'
    assert "\a" not in text


@pytest.mark.parametrize("name", ["web", "storage"])
def test_nothing_comes_from_outside(name):
    case = load(name)
    text = svg(case["plan"], case["hardware"], name)
    assert re.findall(r"https?://[^\s\"']+", text) == ["http://www.w3.org/2000/svg"]
    assert "href" not in text
    assert "@import" not in text
    assert set(re.findall(r"url\(([^)]*)\)", text)) <= {"#pattern-stripes", "#pattern-dots", "#pattern-grid"}


def test_screen_readers_hear_what_it_is():
    root = draw("web", "web-1")
    assert root.get("role") == "img"
    title, about = (next(element for element in root if element.get("id") == key) for key in root.get("aria-labelledby").split())
    assert title.text == "web-1"
    assert "root 30 GiB on /;" in about.text


def test_dark_readers_get_a_dark_drawing():
    assert "prefers-color-scheme: dark" in draw("web").find(f"{NAMESPACE}style").text


def test_the_same_plan_gives_the_same_drawing():
    case = load("storage")
    assert svg(case["plan"], case["hardware"], "x") == svg(case["plan"], case["hardware"], "x")


def test_a_host_without_disks_is_a_drawing_too():
    assert ElementTree.fromstring(svg({"disks": []}, None, "empty")).get("viewBox")


def test_an_array_says_which_group_lies_on_it():
    disks = [{"id": f"d{at}", "dev": f"/dev/sd{at}", "type": "hdd", "size": 1_000_000} for at in range(12)]
    arrays = [{"id": f"md{at}", "type": "raid", "level": "raid1", "legs": 2, "min_size": 1000} for at in range(6)]
    group = {"id": "data", "type": "vg", "contains": [*({"id": array["id"]} for array in arrays), {"id": "db"}]}
    facts = {"ram": 16_000, "disks": disks}
    text = svg(Planner([*arrays, group, {"id": "db", "type": "lv", "min_size": 5000}]).plan(facts), facts)
    assert re.findall(r">(md[0-9] with data, raid1, 977 GiB)</text>", text) == [f"md{at} with data, raid1, 977 GiB" for at in range(6)]
