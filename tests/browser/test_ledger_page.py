# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of a ledger in a real browser: 2,001 hosts in 50 racks with 3,201 claims, and a small one.

Run with `pytest tests/browser`; needs Debian's package chromium. Screenshots are left in tests/output/browser.
"""

from __future__ import annotations

import pathlib
import subprocess

import pytest
from ansible_collections.bareon.allocator.plugins.filter.ledger_to_html import ledger_to_html
from ansible_collections.bareon.allocator.tests.browser.headless import DARK, LIGHT, PHONE, SHOTS, chromium, console, measure, screenshot
from ansible_collections.bareon.allocator.tests.support.provider.racks import HOSTILE, hall_ledger

RACKS = 50

USE = """
const rows = (name) => [...document.querySelectorAll(`.${name} tbody tr`)];
const shown = (name) => rows(name).filter((row) => row.offsetHeight).map((row) => row.cells[0].firstChild.textContent.trim());
const left = (name) => rows(name).filter((row) => !row.classList.contains('out')).length;
const form = document.querySelector('.find'), [search, host] = form.querySelectorAll('input'), said = form.querySelector('output');
const set = (input, value) => { input.value = value; input.dispatchEvent(new Event('input', { bubbles: true })); };
const pick = (name, text) => set(form.elements[name], [...form.elements[name].options].find((option) => option.text === text).value);
const state = () => ({ claims: left('claims'), hosts: left('hosts'), seen: [shown('claims').length, shown('hosts').length],
  said: said.textContent, lit: document.querySelectorAll('.map i.on').length });
const clear = () => { for (const input of form.elements) if (input.tagName !== 'BUTTON') input.value = ''; set(search, ''); };
const found = { all: state() };
const begun = performance.now();
set(search, 'TRAIN-R07 user3');
found.took = performance.now() - begun;
found.words = state();
clear();
set(host, 'r07-h03'); found.host = state(); found.chosen = document.querySelectorAll('.map i.chosen').length; clear();
pick('rack', 'rack7'); found.rack = state(); clear();
pick('project', 'red'); found.project = state(); clear();
pick('project', 'red'); pick('rack', 'rack7'); found.both = state(); clear();
pick('user', 'user3'); found.user = state(); clear();
pick('free', 'DISK_GB'); found.free = state(); clear();
for (const [name, text] of [['unused', 'unused'], ['inUse', 'in use'], ['drained', 'drained']]) {
  pick('state', text); found[name] = state(); clear();
}
document.querySelector('.rack .pick').click(); found.pickedRack = state(); document.querySelector('.rack .pick').click();
found.unpicked = state();
document.querySelector('.map i').click(); found.clicked = host.value; clear();
const until = document.querySelectorAll('.claims .sort')[4];
until.click(); found.first = rows('claims')[0].cells[4].textContent; until.click(); found.last = rows('claims')[0].cells[4].textContent;
found.sorted = until.closest('th').ariaSort;
document.querySelectorAll('.more')[1].click(); found.everything = shown('hosts').length;
found.title = document.title;
found.requests = performance.getEntriesByType('resource').length;
const result = found;
"""
LOOK = """
const keys = 'button, input, select, summary, a[href], [tabindex="0"]';
const box = (element) => { const r = element.getBoundingClientRect(); return [r.left, r.right, r.width, r.height]; };
const seen = (element) => element.getClientRects().length > 0 && !element.closest('details:not([open]) > :not(summary)');
const reached = [...document.querySelectorAll(keys)].filter(seen);
const stops = reached.map((element) => { element.focus(); return document.activeElement === element; });
const isUnmarked = (element) => { element.focus({ focusVisible: true }); return getComputedStyle(element).outlineStyle === 'none'; };
const result = { wide: document.documentElement.scrollWidth, view: innerWidth, stops: stops.length,
  lost: stops.filter((one) => !one).length,
  unmarked: reached.filter(isUnmarked).length, cells: [...document.querySelectorAll('.map i')].map(box),
  legend: document.querySelectorAll('.legend')[1].offsetHeight };
"""


@pytest.fixture(scope="session")
def ledger(tmp_path_factory) -> dict:
    return hall_ledger(tmp_path_factory.mktemp("ledger"), RACKS)


@pytest.fixture(scope="session")
def large(ledger, tmp_path_factory) -> pathlib.Path:
    file = tmp_path_factory.mktemp("pages") / "ledger.html"
    file.write_text(ledger_to_html(ledger, ["rack*"], "Hall 2"), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def small(tmp_path_factory) -> pathlib.Path:
    file = tmp_path_factory.mktemp("pages") / "small.html"
    file.write_text(ledger_to_html(hall_ledger(tmp_path_factory.mktemp("ledger"), 2), ["rack*"], "Small"), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def used(large, tmp_path_factory) -> dict:
    return measure(USE, tmp_path_factory.mktemp("profile"), large, 1200)


def test_two_thousand_hosts_are_a_page_that_mail_takes(ledger, large):
    assert len(ledger["trees"]) == 2001
    assert large.stat().st_size < 3_000_000


def test_a_search_leaves_claims_and_hosts_with_every_word(ledger, used):
    wanted = [one for one in ledger["consumers"].values() if "train-r07" in one["name"] and one["user"] == "user3"]
    hosts = {one["name"].rpartition("-")[0] for one in wanted}
    assert (used["words"]["claims"], used["words"]["hosts"], used["words"]["lit"]) == (len(wanted), len(hosts), len(hosts))
    # Whatever the machine, this is far from what makes a reader wait.
    assert used["took"] < 500


def test_choices_leave_what_the_ledger_has(ledger, used):
    claims, total = list(ledger["consumers"].values()), len(ledger["trees"])
    assert (used["all"]["claims"], used["all"]["hosts"], used["all"]["lit"]) == (len(claims), total, 0)
    assert used["host"]["claims"] == 3
    assert (used["host"]["hosts"], used["host"]["lit"], used["chosen"]) == (1, 1, 1)
    assert used["rack"]["hosts"] == 40
    assert used["rack"]["claims"] == sum("-r07-" in one["name"] for one in claims) + 1
    assert used["project"]["claims"] == sum(one["project"] == "red" for one in claims)
    assert used["both"] == {**used["both"], "claims": 0, "hosts": 0}
    assert used["user"]["claims"] == sum(one["user"] == "user3" for one in claims)
    assert used["free"]["hosts"] == 4 * RACKS
    assert used["unused"]["hosts"] + used["inUse"]["hosts"] == total
    assert used["unused"]["hosts"] == 3 * RACKS + 1
    assert used["drained"]["hosts"] == 2
    assert (used["pickedRack"]["hosts"], used["unpicked"]["hosts"]) == (40, total)
    assert used["clicked"] == "r01-h01"


def test_a_hundred_rows_are_shown_until_all_are_asked_for(used):
    assert used["all"]["seen"] == [100, 100]
    assert used["all"]["said"] == "3,201 claims, 2,001 hosts"
    assert used["everything"] == 2001


def test_claims_are_sorted_by_their_end(used):
    assert (used["first"], used["last"], used["sorted"]) == ("2031-01-15 18:00", "no end", "descending")


def test_a_name_that_is_markup_is_text(used, large):
    assert used["title"] == "Hall 2"
    assert HOSTILE not in large.read_text(encoding="utf-8")


def test_the_page_asks_for_nothing_and_the_browser_says_nothing(used, large, tmp_path):
    assert used["requests"] == 0
    assert not console(tmp_path, large)


@pytest.mark.parametrize("width", [1200, 768, PHONE])
def test_nothing_reaches_beyond_the_page_and_all_of_it_is_reached_by_keyboard(small, tmp_path, width):
    seen = measure(LOOK, tmp_path, small, width)
    assert (seen["view"], seen["wide"]) == (width, width)
    assert seen["stops"] > 20
    assert (seen["lost"], seen["unmarked"]) == (0, 0)
    assert len(seen["cells"]) == 81
    assert all(left >= 0 and right <= width and wide >= 12 and high >= 12 for left, right, wide, high in seen["cells"])
    assert seen["legend"] > 0


@pytest.mark.parametrize(("name", "flags", "paper"), [("light", [LIGHT], (255, 255, 255)), ("dark", [DARK], (21, 24, 28))])
def test_screenshots(large, tmp_path, name, flags, paper):
    rows = screenshot(tmp_path, large, f"ledger-{name}", "1200,1500", *flags)
    assert rows[2][2] == paper
    colours = {pixel for row in rows[::3] for pixel in row[::3]}
    assert {(0xB9, 0xD0, 0xE3), (0xF7, 0xDD, 0x98), (0xDC, 0x6A, 0x3C)} <= colours or name == "dark"
    assert len(colours) > 20


def test_print_has_every_row(large, tmp_path):
    SHOTS.mkdir(parents=True, exist_ok=True)
    target = SHOTS / "ledger.pdf"
    chromium(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={target}", large.as_uri())
    text = subprocess.run(["pdftotext", "-layout", str(target), "-"], capture_output=True, text=True, check=True, timeout=60).stdout
    words = "".join(text.split())
    assert all(f"r{rack:02}-h{number:02}" in words for rack in (1, 25, 50) for number in range(1, 41))
    assert "train-r50-h39-2" in words
