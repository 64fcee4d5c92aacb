# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""axe-core finds nothing on any page, in light, in dark, and as wide as a phone.

Run with `pytest tests/browser`; needs Debian's packages chromium and npm, which fetches axe-core once.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import tarfile
import typing as t

import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.filter.erasures_to_html import erasures_to_html
from ansible_collections.bareon.allocator.plugins.filter.ledger_to_html import ledger_to_html
from ansible_collections.bareon.allocator.plugins.filter.moves_to_html import moves_to_html
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.html import FleetHost, fleet_page
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.profiles import PROFILES
from ansible_collections.bareon.allocator.tests.browser.headless import DARK, LIGHT, PHONE, ROOT, measure
from ansible_collections.bareon.allocator.tests.support.fuzz.targets import act

AXE = "axe-core@4.14.1"
RULES = """
const found = [];
const violations = (await axe.run()).violations;
for (const one of violations) found.push([one.id, one.nodes.length, one.nodes[0].html.slice(0, 160)]);
return found;
"""
SAMPLES = yaml.safe_load((ROOT / "playbooks" / "files" / "demo.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the script of axe-core."""
    folder = ROOT / ".build" / "axe"
    archive = folder / "axe-core-4.14.1.tgz"
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", AXE, "--silent", "--pack-destination", str(folder)], check=True, timeout=120, capture_output=True)
    with tarfile.open(archive) as opened:
        script = opened.extractfile("package/axe.min.js")
        assert script
        return script.read().decode().replace("</script", "<\\/script")


def fleet() -> list[FleetHost]:
    """Return some planned hosts, one of them without a plan and one not as planned."""
    sample = yaml.safe_load((ROOT / "playbooks" / "inventory" / "sample.yml").read_text(encoding="utf-8"))["all"]["children"]["sample"][
        "hosts"
    ]
    hosts = [FleetHost("nothing", failure={"msg": "There is no plan."})]
    for name in ("web-1u", "database", "app-mixed", "bios-old"):
        profile = yaml.safe_load((PROFILES / f"{sample[name]['bareon_profile']}.yml").read_text(encoding="utf-8"))
        plan = Planner(profile["schema"]).plan(sample[name]["bareon_known_hardware"])
        hosts.append(
            FleetHost(name, {**plan, "warnings": ["A warning."]}, sample[name]["bareon_known_hardware"], profile["schema"], profile["why"])
        )
    return hosts


def drifted() -> list[FleetHost]:
    """Return hosts of which one is not as planned, as the page of drift has them."""
    return [FleetHost(host.name, host.plan, host.hardware, failure={"msg": "the disk is gone"}) for host in fleet() if host.plan]


def moves(folder: pathlib.Path) -> str:
    """Return the page of the moves that balance three nodes."""
    nodes = [{"name": f"node{at}", "total_memory": "64 GiB", "total_disk": "2 TiB", "total_cpus": 16} for at in range(3)]
    size = {"memory": "8 GiB", "disk": "50 GiB", "vcpus": 2, "disk_template": "drbd", "primary": "node0", "secondary": "node1"}
    cluster = {"nodes": nodes, "instances": [{"name": f"web{at}", **size} for at in range(4)]}
    return moves_to_html(act("group_balance", folder, check=False)({"cluster": cluster}), title="Moves")


PAGES = {
    "fleet": lambda _folder: fleet_page(fleet(), "Fleet", {"profile": "general", "date": "2026-01-31"}),
    "drift": lambda _folder: fleet_page(drifted(), "Not as planned"),
    "moves": moves,
    "ledger": lambda _folder: ledger_to_html(SAMPLES["ledger"], ["rack*"], "Hall"),
    "erased": lambda _folder: erasures_to_html(SAMPLES["erased"], "Erased"),
}


GUIDES = ("docs/awx.md", "docs/how_to/fleet.md", "docs/how_to/ci.md", "docs/comparison.md")
"""Guides with all that pages of the site are made of: code, long lines, tables, pictures. These are seen in all views."""

OTHERS = sorted({str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")} - {*GUIDES, "docs/site/index.md"})
"""All other guides, which have the same colours and the same frame."""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return the folder of the guides, made as `make docs` makes them and the reference."""
    folder = tmp_path_factory.mktemp("site")
    for guide in (*GUIDES, *OTHERS):
        (folder / "source" / guide).parent.mkdir(parents=True, exist_ok=True)
        (folder / "source" / guide).write_text((ROOT / guide).read_text(encoding="utf-8"), encoding="utf-8")
    for part in ("images", "examples", "development"):
        shutil.copytree(ROOT / "docs" / part, folder / "source" / "docs" / part, dirs_exist_ok=True)
    names = "\n".join(guide.removesuffix(".md") for guide in (*GUIDES, *OTHERS))
    (folder / "source" / "index.md").write_text(f"# Guides\n\n```{{toctree}}\n{names}\n```\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-b",
        "html",
        "-q",
        "-c",
        str(ROOT / "docs" / "site"),
        str(folder / "source"),
        str(folder / "html"),
    ]
    subprocess.run(command, check=True, timeout=300, capture_output=True)
    return folder / "html"


def violations(page: pathlib.Path, axe: str, profile: pathlib.Path, width: int, flag: str) -> list[t.Any]:
    """Return what axe-core finds on a page."""
    script = f"(async () => {{ {RULES} }})().then((result) => {{ parent.document.title = document.title = JSON.stringify(result); }});"
    found: list[t.Any] = measure(f"{axe}\n{script}\nconst result = 'not ended';", profile, page, width, flag, budget=30000)
    return found


VIEWS = ((1200, LIGHT), (1200, DARK), (PHONE, LIGHT))


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(name: str, axe: str, tmp_path: pathlib.Path) -> None:
    page = tmp_path / f"{name}.html"
    page.write_text(PAGES[name](tmp_path), encoding="utf-8")
    for width, flag in VIEWS:
        assert violations(page, axe, tmp_path / "profile", width, flag) == [], (name, width, flag)


@pytest.mark.parametrize("guide", GUIDES)
def test_axe_finds_nothing_on_the_site(guide: str, axe: str, site: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for width, flag in VIEWS:
        assert violations(site / guide.replace(".md", ".html"), axe, tmp_path / "profile", width, flag) == [], (guide, width, flag)


@pytest.mark.parametrize("guide", OTHERS)
def test_axe_finds_nothing_on_a_guide(guide: str, axe: str, site: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert violations(site / guide.replace(".md", ".html"), axe, tmp_path / "profile", *VIEWS[0]) == []
