# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the guide from schema to plan shows is what the planner says."""

from __future__ import annotations

import pathlib
import re
import textwrap

import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.plugin_utils.common.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.render.text import summary

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "schema_to_plan.rst"
BLOCK = re.compile(r"^\.\. code-block:: (yaml|text)\n\n((?:(?: {4}.*)?\n)+)", re.MULTILINE)


def examples():
    """Return (hardware, schema, result) of every result in the guide: each stands below what it is made of."""
    hardware = schema = None
    found = []
    for language, body in BLOCK.findall(GUIDE.read_text(encoding="utf-8") + "\n"):
        body = textwrap.dedent(body).strip("\n")
        if language == "text":
            found.append(pytest.param(hardware, schema, body, id=f"result-{len(found) + 1}"))
            continue
        content = yaml.safe_load(body)
        if isinstance(content, dict):
            hardware = content
        else:
            schema = content
    return found


def test_the_guide_has_its_examples():
    assert len(examples()) == 18


@pytest.mark.parametrize(("hardware", "schema", "result"), examples())
def test_the_result_is_what_the_planner_says(hardware, schema, result):
    try:
        said = summary(Planner(schema).plan(hardware), hardware)
    except NoSolution as error:
        said = str(error)
    assert said == result
