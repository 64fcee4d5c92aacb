# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the guide from schema to plan shows is what the planner says."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.text import summary
from ansible_collections.bareon.allocator.tests.support.disk.guide import DOCS, Example, picture, read

EXAMPLES, DRAWN = read()


def test_the_guide_has_its_examples() -> None:
    assert len(EXAMPLES) == 26
    assert len(DRAWN) == 12


@pytest.mark.parametrize("example", [pytest.param(example, id=f"result-{at}") for at, example in enumerate(EXAMPLES, start=1)])
def test_the_result_is_what_the_planner_says(example: Example) -> None:
    try:
        said = summary(Planner(example.schema).plan(example.hardware), example.hardware)
    except NoSolution as error:
        said = str(error)
    assert said == example.result


@pytest.mark.parametrize("name", DRAWN)
def test_pictures_are_those_of_the_examples(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == picture(DRAWN[name]), "run make guide"
