# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The examples of docs/schema_to_plan.rst, and the pictures that are drawn of some of them.

Run with the collection on the path to draw them: PYTHONPATH=.venv/collections .venv/bin/python tests/support/disk/guide.py
"""

from __future__ import annotations

import re
import textwrap
import typing as t
from dataclasses import dataclass
from pathlib import Path

import yaml
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.svg import svg

DOCS = Path(__file__).resolve().parents[3] / "docs"
GUIDE = DOCS / "schema_to_plan.rst"
_PART = re.compile(r"^\.\. code-block:: (yaml|text)\n\n((?:(?: {4}.*)?\n)+)|^\.\. image:: (images/\S+\.svg)\n", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """What is planned, and the table that the guide has of it."""

    hardware: t.Any
    schema: t.Any
    result: str


def read() -> tuple[list[Example], dict[str, Example]]:
    """Return the examples, and those that have a picture by the picture's path. Each stands below what it is made of."""
    hardware = schema = None
    examples: list[Example] = []
    drawn: dict[str, Example] = {}
    for part in _PART.finditer(GUIDE.read_text(encoding="utf-8") + "\n"):
        language, body, image = part.groups()
        if image:
            drawn[image] = examples[-1]
        elif language == "text":
            examples.append(Example(hardware, schema, textwrap.dedent(body).strip("\n")))
        else:
            content = yaml.safe_load(textwrap.dedent(body))
            hardware, schema = (content, schema) if isinstance(content, dict) else (hardware, content)
    return examples, drawn


def picture(example: Example) -> str:
    """Return the picture of an example."""
    return svg(Planner(example.schema).plan(example.hardware), example.hardware)


if __name__ == "__main__":
    for name, drawn_of in read()[1].items():
        (DOCS / name).write_text(picture(drawn_of), encoding="utf-8")
