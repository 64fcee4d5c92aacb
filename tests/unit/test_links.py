# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links between the pages of the project lead somewhere, to a heading where they name one, and the site has every page."""

from __future__ import annotations

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("roles/*/*.md")])
_LINK = re.compile(r"\]\((?P<path>[^)#\s]*)(?:#(?P<heading>[^)\s]+))?\)")
_FORGE = re.compile(r"https://(github\.com/bareon/allocator/blob|raw\.githubusercontent\.com/bareon/allocator)/main/(?P<path>\S+)")
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#+ (?P<words>.+)$", re.MULTILINE)


def anchors(page: pathlib.Path) -> set[str]:
    """Return what the headings of a page are called in links, as forges make it of their words."""
    headings = _HEADING.findall(_FENCED.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-") for words in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: pathlib.Path) -> None:
    for found in _LINK.finditer(_FENCED.sub("", page.read_text(encoding="utf-8"))):
        ours = _FORGE.fullmatch(found["path"])
        if "://" in found["path"] and not ours:
            continue
        target = ROOT / ours["path"] if ours else page.parent / found["path"] if found["path"] else page
        assert target.exists(), f"there is no {found['path']}"
        assert not found["heading"] or found["heading"] in anchors(target), f"{target.name} has no heading {found['heading']}"


def test_the_site_has_every_page() -> None:
    home = ROOT / "docs" / "site" / "index.md"
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```", home.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    entries = [line.strip() for tree in trees for line in tree.splitlines() if line.strip() and not line.startswith(":")]
    named = {re.sub(r".*<(.*)>", r"\1", entry) for entry in entries} - {"../../collections/index"}
    listed = {next(found for found in home.parent.glob(f"{name}.*")).resolve() for name in named}
    guides = {page for page in ROOT.glob("docs/**/*") if page.suffix in (".md", ".rst")}
    assert listed == {*PAGES, *guides} - {home}
