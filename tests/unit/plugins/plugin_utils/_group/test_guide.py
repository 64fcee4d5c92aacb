# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guide's examples find what it says."""

from __future__ import annotations

import pathlib
import re

import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.plain import plain
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.info import report

GUIDE = pathlib.Path(__file__).resolve().parents[5] / "docs" / "group_info.md"
EXAMPLES = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)]


def assert_holds(part, whole):
    """Assert that every field of `part` is in `whole`; items of lists are found by their first field, or stand in order."""
    if isinstance(part, dict):
        for name, value in part.items():
            assert_holds(value, whole[name])
    elif isinstance(part, list):
        for position, item in enumerate(part):
            key, value = next(iter(item.items()))
            named = [other for other in whole if other.get(key) == value]
            assert_holds(item, named[0] if named else whole[position])
    elif isinstance(part, float):
        assert whole == pytest.approx(part, abs=1e-9)
    else:
        assert whole == part


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_finds_what_the_guide_says(example):
    assert_holds(example["finds"], plain(report(parse_inline(example["cluster"]), ScoreMode(example.get("score", "htools")))))


def test_guide_has_examples():
    assert len(EXAMPLES) >= 4
