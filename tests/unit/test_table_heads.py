# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each column of a table has a name, which programs that read pages aloud say with each cell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for part in ("*.md", "docs/**/*.md", "roles/*/*.md", "tests/**/*.md") for path in ROOT.glob(part))
RULE = re.compile(r"\|(\s*:?-+:?\s*\|)+\s*")


def unnamed(text: str) -> list[str]:
    """Return the heads of tables with a column that has no name."""
    lines = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE).splitlines()
    heads = [head for head, rule in zip(lines, lines[1:]) if head.startswith("|") and RULE.fullmatch(rule)]
    return [head for head in heads if not all(cell.strip() for cell in re.split(r"(?<!\\)\|", head.strip())[1:-1])]


def test_the_check_finds_what_it_is_for() -> None:
    assert unnamed("| | b |\n|---|---|\n| a | c |\n") == ["| | b |"]
    assert unnamed("| a | b |\n| :--- | ---: |\n| | |\n") == []
    assert len(PAGES) > 40


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_column_has_a_name(page: Path) -> None:
    assert unnamed(page.read_text(encoding="utf-8")) == []
