# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every sentence of docs/trust.md about what somebody cannot do names its tests, and these exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.endswith("| --- |") and not line.endswith("| test |")]
NAMED = re.compile(r"`(tests/[\w/.-]+)::(test_\w+)`")


def test_every_row_names_tests() -> None:
    assert len(ROWS) > 20
    assert [row for row in ROWS if not NAMED.search(row.split("|")[2])] == []


def test_tests_that_are_named_exist() -> None:
    missing = []
    for file, name in NAMED.findall(PAGE):
        path = ROOT / file
        if not path.exists() or not re.search(rf"^def {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            missing.append(f"{file}::{name}")
    assert not missing


def test_the_pages_that_speak_of_security_lead_there() -> None:
    assert "docs/trust.md" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "docs/trust.md" in (ROOT / "README.md").read_text(encoding="utf-8")
