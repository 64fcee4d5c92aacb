# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What pages show as YAML or JSON is that, fragments included: a reader copies it."""

from __future__ import annotations

import json
import pathlib
import re
import textwrap

import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("roles/*/*.md")])
_FENCED = re.compile(r"^(?P<indent> *)```(?P<language>yaml|json)\n(?P<text>.*?)^ *```$", re.DOTALL | re.MULTILINE)
SNIPPETS = [
    pytest.param(found["language"], textwrap.dedent(found["text"]), id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, found in enumerate(_FENCED.finditer(page.read_text(encoding="utf-8")), start=1)
]


@pytest.mark.parametrize(("language", "text"), SNIPPETS)
def test_snippets_are_what_they_are_shown_as(language: str, text: str) -> None:
    read = list(yaml.safe_load_all(text)) if language == "yaml" else [json.loads(text)]
    assert read != [None]
