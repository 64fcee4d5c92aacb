# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written for those who change the code: files that are named exist, make's targets too, and the picture is not out of date."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("CONTRIBUTING.md", "docs/development/architecture.md")
TOPS = ("plugins/", "roles/", "tests/", "docs/", "extensions/", "changelogs/")


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = [name for name in re.findall(r"[`\s]((?:[\w.-]+/)+[\w.-]*)[`\s]", text) if name.startswith(TOPS) and "NEW" not in name]
    linked = [str(Path(page).parent / name) for name in re.findall(r"\]\((?!https?:)([^)#]+)", text)]
    assert len(named) > 5
    assert [name for name in (*named, *linked) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_targets_that_are_named_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {word for line in re.findall(r"make ((?:[a-z-]+ ?)+)[`\n]", text) for word in line.split()}
    assert named
    assert named <= targets


def test_the_picture_is_that_of_the_imports(tmp_path: Path) -> None:
    drawn = tmp_path / "rooms.svg"
    subprocess.run(
        [sys.executable, ROOT / "tests" / "utils" / "draw_rooms.py", drawn], check=True, env={"PYTHONPATH": ROOT / ".venv" / "collections"}
    )
    committed = (ROOT / "docs" / "development" / "rooms.svg").read_text(encoding="utf-8")
    assert drawn.read_text(encoding="utf-8") == committed, "the imports have changed: make picture"
