# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of a fleet, read back as HTML: hosts grouped, problems on top, everything escaped, nothing from outside."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import pathlib
import re

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.html import FleetHost, fleet_page

PLANS = pathlib.Path(__file__).parents[4] / "data" / "plans"
VOID = {"meta", "link", "br", "img", "input", "hr"}
CONFLICT = {
    "msg": "No plan, 30720 MiB short: root needs at least 51200 MiB; disk sda holds 20478 MiB",
    "conflict": {
        "short": 30722,
        "constraints": [
            {"name": "min:root", "says": "root needs at least 51200 MiB"},
            {"name": "disk:sda", "says": "disk sda holds 20478 MiB"},
        ],
        "remedies": ["reduce the minimum of root from 51200 to 20478 MiB"],
    },
}


class Reader(html.parser.HTMLParser):
    """Collects elements with their attributes and text; complains of tags that do not match."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[dict] = []
        self.open: list[dict] = []

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "attributes": dict(attrs), "text": "", "inside": list(self.open)}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert not reader.open
    return reader.elements


def load(name):
    return json.loads((PLANS / f"{name}.json").read_text())


def host(name, case, **more):
    data = load(case)
    return FleetHost(name, data["plan"], data["hardware"], data["schema"], data["why"], **more)


def fleet():
    return [
        *(host(f"web-{at}", "web") for at in range(1, 12)),
        *(host(f"old-{at}", "mirror") for at in (1, 2)),
        host("store", "storage"),
        host("bare", "bare"),
        FleetHost("tiny-1", failure=CONFLICT),
        FleetHost("tiny-2", failure=CONFLICT),
    ]


def with_class(elements, name):
    return [element for element in elements if name in (element["attributes"].get("class") or "").split()]


def grow(element):
    return float(re.search(r"flex-grow:([0-9.e+]+)", element["attributes"]["style"])[1])


def test_hosts_of_one_shape_are_drawn_once_in_natural_order():
    shapes = with_class(read(fleet_page(fleet())), "shape")
    assert len(shapes) == 4
    web = next(shape for shape in shapes if "web-1" in shape["text"])
    assert "web-1, web-2, web-3 and 8 more" in web["text"]
    assert "web-9, web-10, web-11" in web["text"]
    assert "11 hosts alike" in web["text"]


def test_problems_stand_before_the_drawings_and_once():
    elements = read(fleet_page(fleet()))
    (conflicts,), (warnings,) = with_class(elements, "conflicts"), with_class(elements, "warnings")
    order = [element["tag"] for element in elements if element is conflicts or element is warnings or element["tag"] == "main"]
    assert order == ["section", "section", "main"]
    assert "tiny-1, tiny-2" in conflicts["text"]
    assert conflicts["text"].count("root needs at least 51200 MiB") == 1
    assert "30 GiB short" in conflicts["text"]
    assert "reduce the minimum of root" in conflicts["text"]
    assert "old-1, old-2" in warnings["text"]


def test_several_lines_of_a_message_stay_lines():
    page = fleet_page([FleetHost("broken", failure={"msg": "the disk is gone\na disk is new\x07"})])
    assert "the disk is gone\na disk is new\N{REPLACEMENT CHARACTER}" in page


def test_a_failure_without_a_conflict_says_its_message():
    page = fleet_page([FleetHost("broken", failure={"msg": "hardware.disks is empty"})])
    assert "hardware.disks is empty" in page
    assert "1 host in 0 shapes" in page


def test_disks_are_drawn_to_scale_and_those_that_are_alike_once():
    case = load("storage")
    elements = read(fleet_page([host("store", "storage")]))
    rows = with_class(elements, "disk")
    largest = max(disk["size"] for disk in case["plan"]["disks"])
    sizes = {pathlib.PurePath(disk["disk_id"]).name: disk["size"] for disk in case["plan"]["disks"]}
    assert 1 < len(rows) < len(sizes)
    for row in rows:
        inside = [element for element in elements if row in element["inside"]]
        link = with_class(inside, "link")[0]["text"].strip()
        drawn = with_class(inside, "bar")[0]
        if link in sizes:  # it may be cut in its middle, and runs have none
            assert float(re.search(r"width:([0-9.]+)%", drawn["attributes"]["style"])[1]) == pytest.approx(
                100 * sizes[link] / largest, abs=1e-3
            )
    counts = [int(times["text"].split()[0]) for times in with_class(elements, "times")]
    assert sum(counts) == len(sizes)
    assert [count > 1 for count in counts] == ["several" in row["attributes"]["class"].split() for row in rows]


def test_spaces_are_to_scale_within_their_disk():
    case = load("web")
    elements = read(fleet_page([host("web", "web")]))
    parts = {part["attributes"].get("aria-label", "").split(",")[0]: part for part in with_class(elements, "part")}
    sizes = {volume["space_id"]: volume["size"] for volume in case["plan"]["schema"]["lvs"]}
    drawn = {name: grow(parts[name]) for name in sizes}
    assert drawn == sizes


def test_pointing_at_a_space_tells_size_mount_and_reasons():
    elements = read(fleet_page([host("web", "web")]))
    tips = {tip["inside"][-1]["attributes"]["aria-label"].split(",")[0]: tip["text"] for tip in with_class(elements, "tip")}
    assert "200 GiB on sda" in tips["var"]
    assert "/var, xfs, nodev,nosuid" in tips["var"]
    assert "at most 200 GiB: as large as it may be" in tips["var"]
    assert "Kept small: nobody works here." in tips["home"]
    assert all("tabindex" in tip["inside"][-1]["attributes"] for tip in with_class(elements, "tip"))


def test_hostile_words_are_only_words():
    elements = read(fleet_page([host("<b>host</b>", "bare")], "<script>"))
    assert not [element for element in elements if element["tag"] in {"script", "iframe", "object", "img", "link"}]
    (script,) = [element["text"] for element in read(fleet_page(fleet())) if element["tag"] == "script"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in fleet_page(fleet())
    assert next(element for element in elements if element["tag"] == "title")["text"] == "<script>"
    assert "<b>host</b>" in with_class(elements, "who")[0]["text"]
    assert not [name for element in elements for name in element["attributes"] if name.startswith("on")]


def test_nothing_comes_from_outside():
    page = fleet_page(fleet())
    assert not re.search(r"https?:|//[a-z]|@import|url\(|src=", page)
    assert "default-src 'none'" in page
    assert not [element for element in read(page) if "href" in element["attributes"]]


def test_the_order_of_hosts_does_not_matter():
    assert fleet_page(fleet()) == fleet_page(reversed(fleet()))


def test_ten_thousand_hosts_make_a_page_that_opens():
    case = load("web")
    hosts = [FleetHost(f"web-{at}", case["plan"], case["hardware"], case["schema"]) for at in range(10_000)]
    page = fleet_page(hosts)
    assert len(read(page)) < 60_000
    assert len(page) < 5_000_000
