# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guide to the messages of disk_plan quotes what it really says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "messages.md").read_text()
MACHINE = yaml.safe_load(next(re.finditer(r"```yaml\n(ram:.*?)```", TEXT, re.DOTALL))[1])
QUOTED = re.findall(r"```yaml\n(-.*?)```\n\n```text\n(.*?)\n```", TEXT, re.DOTALL)


def test_the_guide_has_examples() -> None:
    assert len(QUOTED) == TEXT.count("```text") >= 7


@pytest.mark.parametrize(("schema", "message"), QUOTED)
def test_messages_are_as_the_guide_has_them(schema: str, message: str) -> None:
    with pytest.raises(NoSolution) as caught:
        Planner(yaml.safe_load(schema)).plan(MACHINE)
    assert str(caught.value) == message
