# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters: what they give, and what they say of what they cannot read."""

from __future__ import annotations

import json
import pathlib
import re

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.bareon.allocator.plugins.filter import from_mib, join_url, plan_to_svg, plans_to_html, to_mib

CASE = json.loads((pathlib.Path(__file__).parents[2] / "data" / "plans" / "web.json").read_text())


def call(module, *arguments, **options):
    ((_name, function),) = module.FilterModule().filters().items()
    return function(*arguments, **options)


@pytest.mark.parametrize(
    ("size", "mib"), [("50 GiB", 51200), ("2 TB", 1907348), (512, 512), ("512", 512), ("1.5GiB", 1536), ("1 B", 0), ("10 gib", 10240)]
)
def test_to_mib(size, mib):
    assert call(to_mib, size) == mib


@pytest.mark.parametrize("size", ["fifty", "", "10 XB", None, "-1", [1]])
def test_to_mib_refuses_what_is_no_size(size):
    with pytest.raises(AnsibleFilterError, match=r"to_mib: .*(is not a size|unknown unit)"):
        call(to_mib, size)


@pytest.mark.parametrize(("mib", "text"), [(512, "512 MiB"), (51200, "50 GiB"), ("51200", "50 GiB"), (1907348, "1.82 TiB"), (0, "0 MiB")])
def test_from_mib(mib, text):
    assert call(from_mib, mib) == text


@pytest.mark.parametrize("mib", ["much", None, [1]])
def test_from_mib_refuses_what_is_no_number(mib):
    with pytest.raises(AnsibleFilterError, match="is not a number of MiB"):
        call(from_mib, mib)


@pytest.mark.parametrize(
    ("parts", "query", "url"),
    [
        ((2, "instances", "web1.example.com"), {"bulk": 1}, "https://c:5080/2/instances/web1.example.com?bulk=1"),
        (("nodes", "a/../../access"), {}, "https://c:5080/nodes/a%2F..%2F..%2Faccess"),
        (("a?b#c", "d e%2f", "vm:101", "ä"), {}, "https://c:5080/a%3Fb%23c/d%20e%252f/vm%3A101/%C3%A4"),
        (("x",), {"vmid": "1&force=1"}, "https://c:5080/x?vmid=1%26force%3D1"),
    ],
)
def test_each_part_of_a_url_stays_one(parts, query, url):
    assert call(join_url, "https://c:5080/", *parts, **query) == url


@pytest.mark.parametrize("part", ["", ".", "..", None, True, 1.5, ["a"], {}])
def test_what_can_be_no_part_of_a_url_is_refused(part):
    with pytest.raises(AnsibleFilterError, match="join_url: "):
        call(join_url, "https://c:5080", "nodes", part, "status")


def test_a_plan_is_drawn():
    drawing = call(plan_to_svg, CASE["plan"], hardware=CASE["hardware"], title="web-1")
    assert drawing.startswith("<svg ")
    assert ">web-1</title>" in drawing
    assert "SAMSUNG" in drawing


@pytest.mark.parametrize("plan", [None, "plan", [], {}, {"plans": {}}])
def test_what_is_no_plan_is_refused(plan):
    with pytest.raises(AnsibleFilterError, match="needs a plan as bareon.allocator.disk_plan returns it"):
        call(plan_to_svg, plan)


@pytest.mark.parametrize("disks", [[{"disk_id": "a", "spaces": [{}]}], [1], 7])
def test_a_broken_plan_is_named(disks):
    with pytest.raises(AnsibleFilterError, match="plan_to_svg cannot read the plan"):
        call(plan_to_svg, {"disks": disks})
    with pytest.raises(AnsibleFilterError, match="plans_to_html cannot read the plans"):
        call(plans_to_html, {"a": {"disks": disks}})


def test_a_page_takes_reasons_from_profiles_and_schemas():
    plans = {"a": CASE["plan"], "b": CASE["plan"]}
    profile = {"why": {"home": "Kept small."}, "schema": CASE["schema"]}
    page = call(
        plans_to_html, plans, hardware={"a": CASE["hardware"]}, profiles={"a": profile}, schema={"b": CASE["schema"]}, title="Rack 12"
    )
    assert "<h1>Rack 12</h1>" in page
    assert page.count('<td class="why"><ul><li>Kept small.</li>') == 1
    assert page.count("at least 10 GiB</li>") == 4


def test_a_page_has_hosts_without_a_plan():
    page = call(plans_to_html, {}, failures={"tiny": {"msg": "too small"}})
    assert "too small" in page
    assert "1 host in 0 shapes" in page


def test_conflicts_and_warnings_are_regions_with_a_name():
    warned = {**CASE["plan"], "warnings": ["a warning"]}
    page = call(plans_to_html, {"a": warned, "b": CASE["plan"]}, failures={"tiny": {"msg": "too small"}, "b": {"msg": "a disk is gone"}})
    assert re.findall(r'<section class="problems \w+"([^>]*)>', page) == [
        ' aria-label="No plan"',
        ' aria-label="Not as planned"',
        ' aria-label="Warnings"',
    ]


def test_a_page_refuses_a_list():
    with pytest.raises(AnsibleFilterError, match="needs plans by the name of their host"):
        call(plans_to_html, [CASE["plan"]])


@pytest.mark.parametrize(
    ("module", "plan"),
    [
        (plan_to_svg, {"disks": [{"disk_id": "sda", "size": 10**400, "spaces": []}]}),
        (plans_to_html, {"web": {"disks": [{"disk_id": "sda", "size": float("inf"), "spaces": []}]}}),
    ],
)
def test_sizes_that_cannot_be_drawn_are_told(module, plan):
    with pytest.raises(AnsibleFilterError, match="cannot read the plan"):
        call(module, plan)


def test_from_mib_refuses_what_is_too_large():
    with pytest.raises(AnsibleFilterError, match="is not a number of MiB"):
        call(from_mib, 10**400)
