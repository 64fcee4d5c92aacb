# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page and the drawings in a real browser: Debian's Chromium, headless, with a profile of its own and no network.

Run with `pytest tests/browser`; needs Debian's packages chromium and poppler-utils. Screenshots are left in tests/output/browser to be
looked at. What the browser measured is written into the page's title by a script that only these tests add.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import subprocess

import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.html import FleetHost, fleet_page
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.svg import svg
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.profiles import PROFILES
from ansible_collections.bareon.allocator.tests.browser.headless import (
    DARK,
    LIGHT,
    PHONE,
    ROOT,
    SHOTS,
    chromium,
    console,
    in_frame,
    measure,
    screenshot,
)

MEASURE = """
const box = (element) => { const r = element.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; };
const shapes = [...document.querySelectorAll('.shape')];
const search = document.querySelector('.find input[type=search]'), warned = document.querySelector('.find input[type=checkbox]');
const left = (words, only) => {
  search.value = words; warned.checked = only;
  search.dispatchEvent(new Event('input', { bubbles: true }));
  return shapes.filter((shape) => !shape.hidden).map((shape) => shape.querySelector('.who').textContent.trim().split(/[\\s,]/)[0]);
};
const found = { nobody: left('no such host', false), host: left('WEB-1U-7', false), warned: left('', true), both: left('nuc gib', true),
  said: document.querySelector('.find span').textContent, all: left('', false).length };
for (const shape of shapes) shape.open = true;
const bars = [...document.querySelectorAll('.bars')].map((row) => {
  const bar = row.querySelector('.bar:not(.true)'), stub = row.querySelector('.true');
  const parts = [...bar.querySelectorAll('.part')].map((part) => ({ box: box(part), grow: Number(getComputedStyle(part).flexGrow),
    name: (part.getAttribute('aria-label') || '').split(',')[0] }));
  return { box: box(bar), stub: stub && box(stub), row: box(row), parts };
});
const part = [...document.querySelectorAll('.part[tabindex]')].at(-1);
const before = getComputedStyle(part.querySelector('.tip')).display;
part.focus();
const tip = part.querySelector('.tip');
const style = getComputedStyle(document.body);
const result = { bars, found, wide: document.documentElement.scrollWidth, view: innerWidth, before, after: getComputedStyle(tip).display,
  tip: box(tip), paper: style.backgroundColor, ink: style.color, requests: performance.getEntriesByType('resource').length };
"""


LARGE = """
const shapes = [...document.querySelectorAll('.shape')];
const search = document.querySelector('.find input[type=search]');
const shown = shapes.filter((shape) => shape.getBoundingClientRect().height > 0).length;
const begun = performance.now();
search.value = 'node-0299';
search.dispatchEvent(new Event('input', { bubbles: true }));
const left = shapes.filter((shape) => !shape.hidden).length;
const result = { rows: shapes.length, shown, left, search: performance.now() - begun };
"""


@pytest.fixture(scope="session")
def fleet() -> list[FleetHost]:
    sample = yaml.safe_load((ROOT / "playbooks" / "inventory" / "sample.yml").read_text())
    hosts = []
    for name, variables in sample["all"]["children"]["sample"]["hosts"].items():
        profile = yaml.safe_load((PROFILES / f"{variables['bareon_profile']}.yml").read_text())
        hardware = variables["bareon_known_hardware"]
        plan = Planner(profile["schema"], idle=profile.get("idle", "")).plan(hardware)
        if name == "nuc":
            plan["warnings"].append("a warning for the sake of the picture")
        hosts.append(FleetHost(name, plan, hardware, profile["schema"], profile["why"]))
    web = next(host for host in hosts if host.name == "web-1u")
    twins = [FleetHost(f"web-1u-{at}", web.plan, web.hardware, web.schema, web.why) for at in range(2, 12)]
    failure = {
        "msg": "No plan",
        "conflict": {
            "short": 30722,
            "constraints": [{"name": "min:root", "says": "root needs at least 51200 MiB"}],
            "remedies": ["reduce the minimum of root from 51200 to 20478 MiB (30722 MiB less)"],
        },
    }
    return [*hosts, *twins, FleetHost("too-small", failure=failure)]


@pytest.fixture(scope="session")
def page(fleet, tmp_path_factory) -> pathlib.Path:
    file = tmp_path_factory.mktemp("page") / "fleet.html"
    file.write_text(fleet_page(fleet, "Sample fleet"), encoding="utf-8")
    return file


def measured(profile: pathlib.Path, page: pathlib.Path, width: int, *flags: str) -> dict:
    """Return what MEASURE finds."""
    return measure(MEASURE, profile, page, width, *flags)


@pytest.mark.parametrize("width", [1200, PHONE])
def test_bars_are_to_scale_where_they_are_seen(page, tmp_path, width):
    seen = measured(tmp_path, page, width)
    assert len(seen["bars"]) > 20
    for drawn in seen["bars"]:
        parts = [part for part in drawn["parts"] if part["box"][2] > 20]
        for part in parts[1:]:
            expected = part["grow"] / parts[0]["grow"]
            assert part["box"][2] / parts[0]["box"][2] == pytest.approx(expected, rel=0.12, abs=0.05), part["name"]
        assert all(part["box"][2] >= 2.9 for part in drawn["parts"])
        assert drawn["box"][0] + drawn["box"][2] <= width + 0.5


@pytest.mark.parametrize("width", [1200, 768, PHONE])
def test_nothing_reaches_beyond_the_page(page, tmp_path, width):
    seen = measured(tmp_path, page, width)
    assert seen["view"] == width
    assert seen["wide"] <= width


@pytest.mark.parametrize("width", [1200, PHONE])
def test_a_tip_comes_with_the_focus_and_stays_on_the_page(page, tmp_path, width):
    seen = measured(tmp_path, page, width)
    assert (seen["before"], seen["after"]) == ("none", "block")
    left, _top, wide, _height = seen["tip"]
    assert left >= 0
    assert left + wide <= width


def test_a_search_leaves_the_shapes_in_which_every_word_is_found(page, tmp_path):
    found = measured(tmp_path, page, 1200)["found"]
    assert found["nobody"] == []
    assert found["host"] == ["web-1u"]
    assert "nuc" in found["warned"]
    assert found["both"] == ["nuc"]
    assert found["said"] == f"1 of {found['all']} shapes"


def test_the_script_is_the_one_that_the_page_allows(page, tmp_path):
    assert not console(tmp_path, page)


@pytest.mark.parametrize(("count", "most_bytes"), [(300, 1_300_000), (3000, 4_000_000)])
def test_large_fleets_are_rows_that_are_found(fleet, tmp_path, count, most_bytes):
    planned = [host for host in fleet[:13] if host.plan is not None]
    hosts = [dataclasses.replace(planned[at % len(planned)], name=f"node-{at:04}") for at in range(count)]
    file = tmp_path / f"fleet-{count}.html"
    file.write_text(fleet_page(hosts, f"{count} hosts"), encoding="utf-8")
    assert file.stat().st_size < most_bytes
    seen = measure(LARGE, tmp_path / "profile", file, 1200)
    assert seen["rows"] == seen["shown"] == len(planned)
    assert seen["left"] == 1
    # Whatever the machine, this is far from what makes a reader wait.
    assert seen["search"] < 500


def test_light_and_dark(page, tmp_path):
    light, dark = measured(tmp_path, page, 1200, LIGHT), measured(tmp_path, page, 1200, DARK)
    assert (light["paper"], light["ink"]) == ("rgb(255, 255, 255)", "rgb(21, 24, 28)")
    assert (dark["paper"], dark["ink"]) == ("rgb(21, 24, 28)", "rgb(236, 239, 243)")


def test_the_page_asks_for_nothing(page, tmp_path):
    assert measured(tmp_path, page, 1200)["requests"] == 0


@pytest.mark.parametrize(("name", "flags", "paper"), [("light", [LIGHT], (255, 255, 255)), ("dark", [DARK], (21, 24, 28))])
def test_screenshots(page, tmp_path, name, flags, paper):
    rows = screenshot(tmp_path, page, name, "1200,1500", *flags)
    colours = {pixel for row in rows[::3] for pixel in row[::3]}
    assert rows[2][2] == paper
    assert {(0x77, 0xAA, 0xDD), (0x44, 0xBB, 0x99)} <= colours


def test_screenshot_as_wide_as_a_phone(page, tmp_path):
    rows = screenshot(tmp_path, in_frame(page, PHONE, 2400), "phone", f"{PHONE + 110},2400", LIGHT)
    assert {(0x77, 0xAA, 0xDD), (0x44, 0xBB, 0x99)} <= {pixel for row in rows[::3] for pixel in row[:PHONE:3]}


def test_print_has_everything_that_hides_on_the_screen(page, fleet, tmp_path):
    SHOTS.mkdir(parents=True, exist_ok=True)
    target = SHOTS / "print.pdf"
    chromium(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={target}", page.as_uri())
    text = subprocess.run(["pdftotext", "-layout", str(target), "-"], capture_output=True, text=True, check=True, timeout=60).stdout
    words = re.sub(r"\s+", "", text)
    for host in fleet:
        assert host.name in words
    assert "web-1u-11" in words
    assert "wwn-0x50025387cc75da43" in words


@pytest.mark.parametrize(("name", "flags", "paper"), [("light", [LIGHT], (255, 255, 255)), ("dark", [DARK], (21, 24, 28))])
def test_the_drawing_alone(fleet, tmp_path, name, flags, paper):
    host = next(host for host in fleet if host.name == "database")
    file = tmp_path / "database.svg"
    file.write_text(svg(host.plan, host.hardware, host.name), encoding="utf-8")
    rows = screenshot(tmp_path / "profile", file, f"svg-{name}", "960,600", *flags)
    assert rows[2][2] == paper
    assert {(0x77, 0xAA, 0xDD), (0x44, 0xBB, 0x99)} <= {pixel for row in rows[::3] for pixel in row[::3]}
