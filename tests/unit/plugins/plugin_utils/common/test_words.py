# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of names in a sentence."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils.common.words import listed


@pytest.mark.parametrize(
    ("words", "says"),
    [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c"), (list("abcd"), "a, b and 2 more")],
)
def test_a_sentence_lists_two_names_and_the_last_where_it_is_alone(words: list[str], says: str) -> None:
    assert listed(words, most=2) == says


def test_without_a_limit_all_are_listed() -> None:
    assert listed(list("abcdefgh")) == "a, b, c, d, e, f, g and h"
