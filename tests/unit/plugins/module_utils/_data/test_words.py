# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of names in a sentence, and of the marks in place of what nobody sees in them."""

from __future__ import annotations

import json
import pathlib
import unicodedata

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.words import listed, visible, visible_lines
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.table import table
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.html import FleetHost, fleet_page
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.svg import svg
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.text import summary

PLANS = pathlib.Path(__file__).parents[3] / "data" / "plans"
# Overrides of direction, marks of direction, escape, C1, a joiner, a soft hyphen, the ends of lines of Unicode, a byte order mark.
UNSEEN = [*map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C, 0x1B, 0x07, 0x7F, 0x85, 0x9B))]
UNSEEN += ["\u200b", "\u200d", "\u00ad", "\u2028", "\u2029", "\ufeff"]
MARK = "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("words", "says"),
    [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c"), (list("abcd"), "a, b and 2 more")],
)
def test_a_sentence_lists_two_names_and_the_last_where_it_is_alone(words: list[str], says: str) -> None:
    assert listed(words, most=2) == says


def test_without_a_limit_all_are_listed() -> None:
    assert listed(list("abcdefgh")) == "a, b, c, d, e, f, g and h"


@pytest.mark.parametrize("character", UNSEEN, ids=lambda character: f"U+{ord(character):04X}")
def test_what_nobody_sees_is_marked(character: str) -> None:
    for text in (character, f"disk{character}", f"{character}disk{character}x"):
        assert visible(text) == visible_lines(text) == text.replace(character, MARK)
        assert table(["name"], [[text]]) == f"name\n{text.replace(character, MARK)}"


def test_what_is_seen_stays() -> None:
    for text in ("", "web-1", "Größe \u202f10\u00a0GiB", "東京", "שלום", "…→"):
        assert visible(text) == visible_lines(text) == text
    assert visible("a\nb\tc") == f"a{MARK}b{MARK}c"
    assert visible_lines("a\nb\tc") == f"a\nb{MARK}c"


def hostile(value: object, character: str) -> object:
    """Put a character into all values of the keys that name something."""
    if isinstance(value, list):
        return [hostile(one, character) for one in value]
    if not isinstance(value, dict):
        return value
    named = {"serial", "model", "vendor", "fs_label", "label", "name"}
    return {key: f"{one}{character}" if key in named and isinstance(one, str) else hostile(one, character) for key, one in value.items()}


def unseen_in(text: str) -> set[str]:
    return {character for character in text if unicodedata.category(character) in {"Cc", "Cf", "Zl", "Zp"}} - {"\n"}


@pytest.mark.parametrize("character", ["\u202e", "\u2066", "\x1b", "\x9b"])
def test_tables_drawings_and_pages_of_plans_have_marks(character: str) -> None:
    case = json.loads((PLANS / "web.json").read_text(encoding="utf-8"))
    hardware, title = hostile(case["hardware"], character), f"host{character}"
    host = FleetHost(title, plan=case["plan"], hardware=hardware, failure={"msg": f"the disk {title} is gone"})
    for text in (summary(case["plan"], hardware), svg(case["plan"], hardware, title), fleet_page([host], title)):
        assert MARK in text
        assert unseen_in(text) == set()
