# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every return value says when it is returned, its type, and what it looks like; every plugin names those that belong to it."""

from __future__ import annotations

import ast
import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PATHS = sorted(path for folder in ("modules", "filter", "lookup") for path in (ROOT / "plugins" / folder).glob("[a-z]*.py"))
KINDS = {"str": str, "int": int, "float": (int, float), "bool": bool, "list": list, "dict": dict}
NAMES = [f"{path.parent.name}/{path.stem}" for path in PATHS]


def documentation(path: Path, name: str) -> t.Any:
    """Return a block of documentation of a plugin as data."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name:
            return yaml.safe_load(ast.literal_eval(node.value))
    return None


def values(described: dict[str, t.Any], within: str = "") -> Iterator[tuple[str, dict[str, t.Any]]]:
    """Give (path, description) of each return value, however deep it lies."""
    for name, value in described.items():
        yield f"{within}{name}", value
        yield from values(value.get("contains") or {}, f"{within}{name}.")


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_return_values_are_complete(path: Path) -> None:
    found = list(values(documentation(path, "RETURN") or {}))
    assert [name for name, value in found if not {"description", "returned", "type"} <= set(value)] == []
    assert [name for name, value in found if "sample" not in value and "contains" not in value] == []


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_samples_have_the_type_that_is_documented(path: Path) -> None:
    wrong = []
    for name, value in values(documentation(path, "RETURN") or {}):
        kind = KINDS.get(value["type"])
        if "sample" in value and kind and (not isinstance(value["sample"], kind) or isinstance(value["sample"], bool) != (kind is bool)):
            wrong.append((name, value["type"], value["sample"]))
    assert wrong == []


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_plugins_name_those_that_belong_to_them(path: Path) -> None:
    own = documentation(path, "DOCUMENTATION")
    names = [name.removeprefix("bareon.allocator.").split(".")[0] for name in own.get("extends_documentation_fragment", ())]
    fragments = [documentation(ROOT / "plugins" / "doc_fragments" / f"{name}.py", "DOCUMENTATION") or {} for name in names]
    assert any(described.get("seealso") for described in (own, *fragments))
