# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The README names everything that a user can call, and needs no word of ours."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
INTERNAL = {"controller_file", "host_answer", "pinned_options"}
"""Modules that only playbooks and roles of the collection call."""


def test_every_module_role_and_playbook_is_named() -> None:
    named = set(re.findall(r"`(\w+)`", README)) | set(re.findall(r"bareon\.allocator\.(\w+)", README))
    modules = {path.stem for path in (ROOT / "plugins" / "modules").glob("[a-z]*.py")} - INTERNAL
    roles = {path.name for path in (ROOT / "roles").iterdir()}
    playbooks = {path.stem for path in (ROOT / "playbooks").glob("*.yml")}
    assert sorted((modules | roles | playbooks) - named) == []


def test_words_of_the_code_are_not_in_it() -> None:
    assert re.findall(r"\b(?:doors?|rooms?)\b", README) == []
