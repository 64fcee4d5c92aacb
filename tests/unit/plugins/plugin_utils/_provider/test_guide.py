# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every block of the guide docs/provider_candidates.md finds what the guide says it finds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.action.provider_candidates import ActionModule
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.tasks.candidates import run_provider_candidates

DEFAULTS = {name: spec.get("default") for name, spec in ActionModule.ARGUMENTS.items()}
GUIDE = Path(__file__).parents[5] / "docs" / "provider_candidates.md"


def blocks():
    """The arguments of every example: a fenced block has one, or a list of them."""
    for fenced in re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL):
        block = yaml.safe_load(fenced)
        yield from block if isinstance(block, list) else [block]


BLOCKS = list(blocks())


def test_the_guide_has_its_examples():
    assert len(BLOCKS) == 11


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_guide(block):
    found = run_provider_candidates({**DEFAULTS, **block})
    candidates = [{found["names"][uuid]: amounts for uuid, amounts in each["allocations"].items()} for each in found["candidates"]]
    assert candidates == block["finds"]
